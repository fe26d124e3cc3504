"""Do models that were learned from recorded play help HOP+ early, and for how long? It is trained
from scratch, with each of them, and with all; with the same networks throughout, so that nothing
differs but what they begin with. What is done is not done again, and what was stopped goes on."""

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks import main
from benchmarks.training import train_in
from hopplus.cli.collect import Collect
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import (
    ConfigError,
    GameConfig,
    OpponentConfig,
    PretrainConfig,
    PretrainGoal,
    PretrainOpponent,
    PretrainWorld,
    TrainConfig,
    default_game,
)
from hopplus.evaluation.ablation import Row, Trace, measure, read_trace
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.presets import PRESETS
from hopplus.recorded.pretrain import new_pretrain, open_session, pretrain
from hopplus.report.figures.evaluation import draw_ladder
from hopplus.report.figures.palette import try_figure
from hopplus.report.json import page_json
from hopplus.report.page import Column, Page, Section, make_table
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import RunFolder, open_run
from hopplus.runs.watchdog import say
from hopplus.runtime import device_line

SCRIPTED = "noisy-stag:0.1|noisy-hare:0.1"
TOLD = "told-opponent"  # a model of the others that is told goals, and brings the prior of these
# What each row begins with: an option of training, and the run that it names.
ROWS: dict[str, dict[str, str]] = {
    "scratch": {},
    "world": {"world": "world"},
    "goal": {"goal": "goal"},  # of the preset's own loss
    "goal-joint": {"goal": "goal-joint"},
    "goal-reconstruction": {"goal": "goal-reconstruction"},
    "opponent": {"opponent": "opponent"},
    "goal-opponent": {"opponent": TOLD},
    "all": {"world": "world", "opponent": TOLD},
}


@dataclass(frozen=True)
class Begun:
    """A row: the run's figures, and returns on the way to them."""

    row: Row
    at: dict[int, Estimate | None]  # by environment steps, over three updates
    ahead: dict[int, Estimate | None]  # of the first row, by the same seeds
    gain: Estimate | None  # mean difference to the first row over the whole run

    @property
    def reached(self) -> list[int]:
        """Steps to the level, of the seeds that reach it."""
        return [steps for steps in self.row.steps_to_level_by_seed if steps is not None]

    @property
    def steps_to_level(self) -> str:
        """Mean of the seeds that reach it, and how many do."""
        if not self.reached:
            return "never"
        found, seeds = estimate(np.array(self.reached, float)), self.row.by_seed
        spread = f" ± {found.half_width:,.0f}" if np.isfinite(found.half_width) else ""
        return f"{found.mean:,.0f}{spread} ({len(self.reached)}/{len(seeds)})"

    def as_json(self) -> dict[str, Any]:
        return {**self.row.as_json(), "at": self.at, "ahead": self.ahead, "gain": self.gain}


@dataclass(frozen=True)
class PretrainedBench:
    """Train HOP+ from scratch and with pre-trained world, goals and models of the others, and
    compare how soon they come to a return."""

    only: tuple[str, ...] = ()
    """Train these rows alone (scratch, world, goal, goal-joint, goal-reconstruction, opponent,
    goal-opponent, all), for several processes side by side after one with --prepare; the table is
    of all rows that are done."""
    prepare: bool = False
    """Record play, fit the models to it, and stop."""
    data: Literal["scripted", "self-play"] = "scripted"
    """Whose play is recorded: stag and hare hunters with 10% noise, or the players of a ppo run of
    seed 0."""
    episodes: int = 5500
    """Episodes to record."""
    epochs: int = 20
    """Passes over them at most, when a model is fitted."""
    preset: str = "hop-plus"
    """What is trained."""
    game: GameConfig = field(default_factory=default_game)
    steps: int | None = None
    """Environment steps of each seed; the preset's own when not given."""
    seed: int = 100
    """The first seed."""
    seeds: int = 5
    """Seeds side by side."""
    level: float = 2.8
    """The mean return that rows race to."""
    budgets: tuple[int, ...] = (20_000, 40_000, 60_000, 80_000, 120_000, 200_000)
    """Environment steps after which returns are compared."""
    runs: Path = Path("runs/pretrained")
    """Where data and runs are."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check_options(
            seed=self.seed,
            seeds=self.seeds,
            steps=self.steps,
            episodes=self.episodes,
            epochs=self.epochs,
        )
        lacking = {"opponent", "goal", "world"} - set(self._preset.parts)
        if lacking:
            raise ConfigError(f"{self.preset} has no {' and no '.join(sorted(lacking))} model")
        for name in self.only:
            if name not in ROWS:
                raise ConfigError(f"no row {name!r}; there are {', '.join(ROWS)}")
        wanted = self.only or tuple(ROWS)
        try:
            fitted = {model for name in wanted for model in ROWS[name].values()}
            for model in sorted({*fitted, *({"goal"} if TOLD in fitted else ())}):
                self._fitted(model)
        except KeyboardInterrupt:
            say("stopped; go on with the same command")
            return 130
        if self.prepare:
            print(f"the models are in {self._folder}")
            return 0
        for name in wanted:
            if train_in(self._run(name), self._config(name)) is None:
                return 130
        return self._told()

    @property
    def _preset(self) -> TrainConfig:
        if self.preset not in PRESETS:
            raise ConfigError(f"no preset {self.preset!r}; there are {', '.join(PRESETS)}")
        return PRESETS[self.preset]

    @property
    def _folder(self) -> Path:
        """Of what hangs on the data."""
        return self.runs / self.data

    def _run(self, name: str) -> Path:
        """Of a row; the one from scratch is the same whatever the data."""
        return (self._folder if ROWS[name] else self.runs) / f"from-{name}"

    def _config(self, name: str) -> TrainConfig:
        config = replace(self._preset, game=self.game, seed=self.seed, seeds=self.seeds)
        begun: dict[str, Any] = {
            part: replace(getattr(config, part), from_run=str(self._folder / model))
            for part, model in ROWS[name].items()
        }
        return replace(config, steps=self.steps or config.steps, **begun)

    def _recorded(self) -> Path:
        """The data, recorded if they are not there yet."""
        out = self._folder / "data"
        if out.exists():
            return out
        play = Collect(players=SCRIPTED, game=self.game, out=out, episodes=self.episodes)
        if self.data == "self-play":
            ppo = replace(PRESETS["ppo"], game=self.game)
            run = train_in(self._folder / "ppo", replace(ppo, steps=self.steps or ppo.steps))
            if run is None:
                raise KeyboardInterrupt
            play = Collect(run_name=str(run.path), out=out, episodes=self.episodes)
        with redirect_stdout(sys.stderr):
            if play.run():
                raise KeyboardInterrupt
        return out

    def _fitted(self, model: str) -> RunFolder:
        """A model that is fitted to the data, if it is not there yet."""
        path = self._folder / model
        data = str(self._recorded())
        run = open_run(path) if path.exists() else new_pretrain(path, self._pretrain(model, data))
        if run.result() is None:
            say(f"fitting {path}")
            pretrain(run, open_session(run))
        return run

    def _pretrain(self, model: str, data: str) -> PretrainConfig:
        """With the networks of training, so that nothing but the start differs."""
        preset, net = self._preset, self._preset.opponent.net
        config: PretrainConfig
        match model:
            case "world":
                config = PretrainWorld(data, world=preset.world.model)
            case "goal":
                config = PretrainGoal(data, goal=preset.goal.prior)
            case "goal-joint":
                config = PretrainGoal(data, goal=replace(preset.goal.prior, loss="joint"))
            case "goal-reconstruction":
                prior = replace(preset.goal.prior, loss="reconstruction")
                config = PretrainGoal(data, goal=prior)
            case "opponent":
                config = PretrainOpponent(data, opponent=OpponentConfig(net=net))
            case _:
                told = OpponentConfig(goal="hindsight", net=net)
                config = PretrainOpponent(data, goal_run=str(self._folder / "goal"), opponent=told)
        return replace(config, fit=replace(config.fit, epochs=self.epochs))

    def _told(self) -> int:
        """The table of all rows that are done."""
        done = [name for name in ROWS if self._run(name).exists()]
        runs = {name: open_run(self._run(name)) for name in done}
        traces = [read_trace(name, name, run) for name, run in runs.items() if run.result()]
        found = compare(traces, self.level, self.budgets)
        losses = {
            model: result["held_out_loss"][0]
            for model in dict.fromkeys(one for row in ROWS.values() for one in row.values())
            if (path := self._folder / model).exists() and (result := open_run(path).result())
        }
        machine = device_line()
        payload = {
            "machine": machine,
            "data": self.data,
            "level": self.level,
            "held_out_loss": losses,
            "rows": [one.as_json() for one in found],
            "curves": {one.name: np.round(one.curve(), 4) for one in traces},  # [U, S]
            "steps_of_an_update": traces[0].steps,
        }
        told = f"data: {self.data}; seeds {self.seed} to {self.seed + self.seeds - 1}; {machine}"
        page = Page("pretrained", "", sections=_tables(found, self.level, told), payload=payload)
        try_figure(self._folder / "curves.png", lambda: draw_ladder(traces, self.level))
        write_durably(self._folder / "pretrained.json", page_json(page).encode())
        return show(page, as_json=self.json)


def compare(traces: Sequence[Trace], level: float, budgets: Sequence[int]) -> list[Begun]:
    """Every row beside the first, on the way and at the end; differences are of the same seeds."""
    first = traces[0].curve()  # [U, S]

    def at(curve: np.ndarray, trace: Trace, steps: int) -> Estimate | None:
        """Of [U, S] after so many steps; None before the first curve begins, and after the last."""
        update = steps // trace.steps
        there = 0 < update <= len(curve) and np.isfinite(curve[update - 1]).all()
        return estimate(curve[update - 1]) if there else None

    found = []
    for trace, row in zip(traces, measure(traces, level), strict=True):
        curve = trace.curve()
        ahead = curve - first[: len(curve)] if len(curve) <= len(first) else curve * np.nan
        known = np.isfinite(ahead).all(axis=1)
        found.append(
            Begun(
                row,
                {steps: at(curve, trace, steps) for steps in budgets},
                {steps: at(ahead, trace, steps) for steps in budgets},
                estimate(ahead[known].mean(axis=0)) if known.any() else None,
            )
        )
    return found


def _tables(found: Sequence[Begun], level: float, told: str) -> list[Section]:
    """How soon, how far, and what is left of it at the end; and returns on the way."""
    first = found[0]
    race: dict[str | Column, Callable[[Begun], Any]] = {
        "begins with": lambda one: one.row.title,
        f"steps to {level:g} ± 95%": lambda one: one.steps_to_level,
        f"mean - {first.row.title}, whole run": lambda one: "" if one is first else one.gain,
        "return at the end ± 95%": lambda one: one.row.mean_return,
        f"- {first.row.title}": lambda one: "" if one is first else one.row.difference,
    }

    def on_the_way(title: str, rows: Sequence[Begun], by_steps: str) -> Section:
        return Section(
            title,
            header=["begins with", *(f"{steps:,}" for steps in first.at)],
            rows=[[one.row.title, *getattr(one, by_steps).values()] for one in rows],
        )

    return [
        make_table(f"The race; {told}", race, found),
        on_the_way("Return after so many steps, over three updates, ± 95%", found, "at"),
        on_the_way(f"- {first.row.title}, by the same seeds, ± 95%", found[1:], "ahead"),
    ]


if __name__ == "__main__":
    sys.exit(main(PretrainedBench))
