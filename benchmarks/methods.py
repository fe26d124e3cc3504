"""One table of what was to be tried: methods at equal environment steps and at equal wall time,
kinds of goals, and what might make a learner from search rise and fall. A row that is done is not
trained again, and one that was stopped goes on."""

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks import main
from benchmarks.kept import find_figures, keep_figures
from benchmarks.parts import PARTS, adapted_tables
from benchmarks.training import train_in
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, DistilConfig, GameConfig, TrainConfig, default_game
from hopplus.diagnosis.introspection import introspect
from hopplus.evaluation.ablation import SMOOTHED, Row, Trace, measure, read_trace
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.games import make_game
from hopplus.learning.compilation import first_and_next
from hopplus.learning.from_run import find_run, make_learner, players_by_seed
from hopplus.learning.train import FINAL
from hopplus.play.seeds import seed_keys
from hopplus.presets import PRESETS
from hopplus.report.figures.evaluation import draw_ladder
from hopplus.report.figures.palette import try_figure
from hopplus.report.json import page_json
from hopplus.report.page import Column, Page, make_table
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import RunFolder
from hopplus.runs.watchdog import say
from hopplus.runtime import device_line

STEPS = 500_000
GATE = 0.2  # as imagination's
ALONE = "alone.json"  # where times are kept
WARM, TIMED = 40, 5  # updates before imagination has begun everywhere, and those that are timed
TRIALS, TIME = 1024, 4  # of the probe: trials of an episode, and the step that is read
PPO, HOP_PLUS = PRESETS["ppo"], PRESETS["hop-plus"]


def _large(preset: str) -> TrainConfig:
    """A preset that learns from a search, with a larger one, and what came of a step as the target
    of its values: as these presets were when the rows below were made, so that each of those
    differs in what it says alone."""
    config = PRESETS[preset]
    search = replace(config.search, trees=3, simulations=50)
    return replace(config, search=search, distil=DistilConfig())


MCTS = _large("hop-plus-mcts")


def _goals(**prior: Any) -> TrainConfig:
    goal = HOP_PLUS.goal
    return replace(HOP_PLUS, goal=replace(goal, prior=replace(goal.prior, **prior)))


def _selecting(selector: Any) -> TrainConfig:
    return replace(HOP_PLUS, goal=replace(HOP_PLUS.goal, selector=selector))


def _searching(**changes: Any) -> TrainConfig:
    """What learns from a search, with settings of it, of its distillation, or of PPO changed."""
    groups = {"search": MCTS.search, "distil": MCTS.distil, "ppo": MCTS.ppo}
    for name in changes:
        assert any(hasattr(group, name) for group in groups.values()), name
    changed: dict[str, Any] = {
        name: replace(
            group, **{field: value for field, value in changes.items() if hasattr(group, field)}
        )
        for name, group in groups.items()
    }
    parts = (*MCTS.parts, *(("world",) if changes.get("world") == "learned" else ()))
    return replace(MCTS, parts=parts, **changed)


OLD: dict[str, Any] = {"replay": 65_536}
OWN: dict[str, Any] = {"value_target": "search"}
# Of both the search and PPO: what the values learn is what the tree adds up.
LATER: dict[str, Any] = {"discount": 0.95}
FINAL_REWARD: dict[str, Any] = {**LATER, "gae_lambda": 1.0, "games": 64, "unroll": 64}
LEARNED: dict[str, Any] = {"world": "learned"}

# By name; the first of those that are done is what the others are held against.
METHODS: Mapping[str, TrainConfig] = {
    "ppo": PPO,
    "ppo-long": replace(PPO, steps=20 * STEPS),  # for a search's wall time
    "pg": PRESETS["pg"],
    "hop-plus": HOP_PLUS,
    "mcts-root": MCTS,  # goals are inferred at the root alone
    "mcts-fourth": _searching(infer_every=4),
    "mcts-every": _searching(infer_every=1),
    "hop": _large("hop"),
    "direct-om": _large("direct-om"),
    "one-step": PRESETS["one-step"],
}
GOALS: Mapping[str, TrainConfig] = {
    "hop-plus": HOP_PLUS,  # 16 numbers, the optimistic selector, independent parameters
    "discrete-4": _goals(kind="discrete", size=4),
    "discrete-8": _goals(kind="discrete", size=8),
    "conservative": _selecting("conservative"),
    "last": _selecting("last"),
    "random": _selecting("random"),
    "shared": replace(HOP_PLUS, ppo=replace(HOP_PLUS.ppo, parameters="shared")),
}
FALL: Mapping[str, TrainConfig] = {
    "mcts-root": MCTS,
    "old-data": _searching(**OLD),
    "own-value": _searching(**OWN),
    "discount": _searching(**LATER),
    "final-reward": _searching(**FINAL_REWARD),
    "final-reward-r2": _searching(**FINAL_REWARD, **OLD, normalise=True),
    "learned-world": _searching(**LEARNED),
    "learned-gated": _searching(**LEARNED, gate=GATE),
    "steady": _searching(anneal=False),
    "undiscounted": _searching(**OLD, **OWN, **LEARNED, anneal=False),
    "all": _searching(**OLD, **OWN, **LATER, **LEARNED, anneal=False),
    "all-gated": _searching(**OLD, **OWN, **LATER, **LEARNED, anneal=False, gate=GATE),
}
GROUPS = {"methods": METHODS, "goals": GOALS, "fall": FALL, "parts": PARTS}
ROWS: Mapping[str, TrainConfig] = {**METHODS, **GOALS, **FALL, **PARTS}


@dataclass(frozen=True)
class Fall:
    """A curve's best stretch against its last, each a tenth of the run."""

    best: Estimate
    at: Estimate  # environment steps, at the end of the best
    fall: Estimate  # best less last
    worst: float  # of a seed

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def fall_of(trace: Trace) -> Fall:
    """Over seeds; the best of many stretches is a little above the last by chance alone. The first
    updates are left out, as in curves: the episodes that end soonest are the short ones."""
    tenth = max(1, round(FINAL * trace.updates))
    first = min(SMOOTHED - 1, trace.updates - tenth)

    def stretches(counts: np.ndarray) -> np.ndarray:
        sums = np.concatenate([np.zeros((1, counts.shape[1])), np.cumsum(counts, axis=0)])
        return np.asarray(sums[tenth:] - sums[:-tenth])

    means = stretches(trace.returns[first:]) / np.maximum(stretches(trace.episodes[first:]), 1)
    lost = means.max(axis=0) - means[-1]
    at = (means.argmax(axis=0) + first + tenth) * float(trace.steps)
    return Fall(estimate(means.max(axis=0)), estimate(at), estimate(lost), float(lost.max()))


@dataclass(frozen=True)
class Tried:
    """A row in figures; None where there is nothing to tell."""

    row: Row
    fall: Fall
    seconds: float  # of the whole run without compilation
    hit: Estimate | None  # how often an inferred goal is nearer to the one that hindsight selects
    probe: Estimate | None  # share of scripted co-players whose kind is read from what is inferred

    def as_json(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("seconds", "hit", "probe")}
        return {**self.row.as_json(), "fall": self.fall, **own}


RACE: dict[str | Column, Any] = {
    "row": lambda one: one.row.title,
    "return": lambda one: one.row.mean_return,
    "in equal time": lambda one: one.row.timed_return,
    Column("updates", ",d"): lambda one: one.row.timed_updates,
    Column("steps to level", ",d", "never"): lambda one: one.row.steps_to_level,
    Column("seconds", ",.1f"): lambda one: one.seconds,
}
COURSE: dict[str | Column, Any] = {
    "row": lambda one: one.row.title,
    "best tenth": lambda one: one.fall.best,
    Column("at", ",.0f"): lambda one: one.fall.at.mean,
    "fall": lambda one: one.fall.fall,
    "of the worst seed": lambda one: one.fall.worst,
    "hit": lambda one: one.hit,
    "probe": lambda one: one.probe,
}

TIMES: dict[str | Column, Any] = {
    "row": lambda one: one[0],
    Column("milliseconds", ",.1f"): lambda one: 1000 * one[1],
}


@dataclass(frozen=True)
class MethodsBench:
    """Train methods and variants of them on seeds 100 to 104, and put them into one table."""

    only: tuple[str, ...] = ()
    """Rows, or groups of them: methods, goals, fall, parts (who learns among the population). All
    when not given."""
    game: GameConfig = field(default_factory=default_game)
    steps: int = STEPS
    """Environment steps of each seed."""
    seed: int = 100
    """The first seed."""
    seeds: int = 5
    """Seeds side by side."""
    level: float = 2.8
    """The mean return whose first time is told."""
    seconds: float | None = None
    """The wall time at which returns are compared; that of the first row when not given."""
    as_long_as: str | None = None
    """A row whose wall time each row is given, in steps of its own, by what --time has kept: runs
    of equal compute."""
    held_out: tuple[str, ...] = ()
    """Families that rows of parts do not meet."""
    adapt: bool = False
    """Also play trials among each family, for rows of parts: returns by episode."""
    trials: int = 1024
    """Trials of each seed among each family."""
    probe: bool = False
    """Also read from what rows infer who their co-players are."""
    runs: Path = Path("runs/methods")
    """Where the runs are; several commands may share it, each with rows of its own."""
    train: bool = True
    """Train rows that are not done; without, the table has those that are."""
    time: bool = False
    """Time some updates of each row instead, with the machine to itself, and keep that for the
    table: runs that were trained side by side have no wall time to compare."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(seed=self.seed, seeds=self.seeds, steps=self.steps, seconds=self.seconds)
        names = choose(self.only)
        if self.adapt and (other := [name for name in names if name not in PARTS]):
            raise ConfigError(
                f"--adapt is for rows of parts, which {other[0]} is not: --only parts"
            )
        if self.time:
            return self._time(names)
        timed = {name: find_figures(self.runs / ALONE, name, self._timed) for name in names}
        done: dict[str, RunFolder] = {}
        for name in names:
            path, config = self.runs / name, self._config(name)
            run = find_run(path, config, "another --runs")
            if self.train and (run := train_in(path, config)) is None:
                return 130
            if run and run.result():
                done[name] = run
        if not done:
            raise ConfigError(f"no row is done in {self.runs}: leave --no-train out")
        traces = [
            replace(trace, seconds=(timed[trace.name] or vars(trace))["seconds"])
            for trace in (read_trace(name, name, run) for name, run in done.items())
        ]
        rows = measure(traces, self.level, self.seconds)
        found = [self._tried(*one) for one in zip(rows, traces, done.values(), strict=True)]
        machine = device_line()
        title = f"Seeds {self.seed} to {self.seed + self.seeds - 1}; {machine}"
        tables = [
            make_table(title, RACE, found),
            make_table("From the best tenth of a run to its last", COURSE, found),
        ]
        payload: dict[str, Any] = {
            "machine": machine,
            "level": self.level,
            "rows": [one.as_json() for one in found],
        }
        if self.adapt:
            kept = self.runs / "adapted.json"
            among, payload["adapted"] = adapted_tables(done, self.held_out, self.trials, kept)
            tables += among
        page = Page("methods", "", sections=tables, payload=payload)
        label = "-".join(self.only) or "all"
        try_figure(self.runs / f"{label}.png", lambda: draw_ladder(traces, self.level))
        write_durably(self.runs / f"{label}.json", page_json(page).encode())
        return show(page, as_json=self.json)

    def _time(self, names: list[str]) -> int:
        found = {}
        for name in names:
            found[name] = time_update(self._config(name))
            say(f"{name}: {found[name]:.3f} s an update")
            keep_figures(self.runs / ALONE, {name: {**self._timed, "seconds": found[name]}})
        machine = device_line()
        table = make_table(f"An update of {self.seeds} seeds; {machine}", TIMES, found.items())
        payload = {"machine": machine, "seeds": self.seeds, "seconds": found}
        return show(Page("methods", "", sections=[table], payload=payload), as_json=self.json)

    @property
    def _timed(self) -> dict[str, Any]:
        """What the time of an update hangs on besides the row; on another machine it is another
        --runs."""
        return {"seeds": self.seeds, "game": asdict(self.game)}

    def _config(self, name: str) -> TrainConfig:
        config = replace(ROWS[name], game=self.game, seed=self.seed, seeds=self.seeds)
        if self.held_out:
            config = replace(config, held_out=self.held_out)
        longer = 20.0 if name == "ppo-long" else 1.0
        if self.as_long_as is not None and not self.time:
            longer = self._seconds_of(self.as_long_as) / self._seconds_of(name)
        return replace(config, steps=round(longer * self.steps))

    def _seconds_of(self, name: str) -> float:
        """Of a step, timed alone."""
        (row,) = choose((name,))
        if (kept := find_figures(self.runs / ALONE, row, self._timed)) is None:
            raise ConfigError(f"{row} was not timed in {self.runs}: run --time --only {row} first")
        return float(kept["seconds"]) / ROWS[row].ppo.steps

    def _tried(self, row: Row, trace: Trace, run: RunFolder) -> Tried:
        late = run.metrics()[-max(1, round(FINAL * trace.updates)) :]
        hit = None
        if "goal/hit" in late[-1]:
            by_seed = np.mean(
                [record["goal/hit"] for record in late if "goal/hit" in record], axis=0
            )
            hit = estimate(by_seed.mean(axis=1))
        reads = self.probe and bool({*run.config().context_names} - {"none", "episodes"})
        return Tried(
            row,
            fall_of(trace),
            trace.seconds * trace.updates,
            hit,
            self._probed(run) if reads else None,
        )

    def _probed(self, run: RunFolder) -> Estimate:
        """Of the first seat of every seed, in one episode among drawn scripted co-players."""
        players = players_by_seed(run, list(run.config().seed_numbers))
        game = make_game(self.game)
        found = [
            introspect(game, one[0], 0, 1, TRIALS, [TIME], self.seed).probe[0, 0]
            for one in players.values()
        ]
        return estimate(np.array(found))


def time_update(config: TrainConfig) -> float:
    """Seconds of an update of all seeds, the middle one of some; compilation does not count."""
    keys = seed_keys(config)
    now, update = first_and_next(make_learner(config, {}), config, keys)
    spent = []
    for _ in range(WARM + TIMED):
        began = time.monotonic()
        now = jax.block_until_ready(update(now)[0])
        spent.append(time.monotonic() - began)
    return float(np.median(spent[WARM:]))


def choose(only: tuple[str, ...]) -> list[str]:
    """The names of rows, in the table's order."""
    for name in only:
        if name not in ROWS and name not in GROUPS:
            there = ", ".join([*GROUPS, *ROWS])
            raise ConfigError(f"--only has {name!r}, and there are {there}")
    wanted = {row for name in only for row in GROUPS.get(name, [name])}
    return [name for name in ROWS if name in wanted or not only]


if __name__ == "__main__":
    sys.exit(main(MethodsBench))
