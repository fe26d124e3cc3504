"""`hopplus leave-one-out`: how does a player get on with co-players of a kind it has never met?"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import tyro

from hopplus.api.training import train_to_end
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.cli.reading.rows import read_rows
from hopplus.cli.studies.engine import Engine, TrainedBy
from hopplus.config import (
    ConfigError,
    GameConfig,
    SearchConfig,
    TrainConfig,
    check_range,
    default_game,
    to_json,
)
from hopplus.evaluation.best_response import BestResponses
from hopplus.evaluation.leave_one_out import FamilyTrials, Table, all_of
from hopplus.evaluation.reference_players import is_plain
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.from_run import find_run, new_run
from hopplus.learning.left_out import LeftOut
from hopplus.play.trained import Trained
from hopplus.players.actor import make_actor
from hopplus.players.scripted import mixed_names
from hopplus.report.pages.leave_one_out import leave_one_out_page
from hopplus.runs.checkpoint import steps_of
from hopplus.runs.executor import Executor, Task
from hopplus.runs.folder import RunFolder, clear_errors, is_busy, locked
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say

Pair = tuple[str, str]  # a row and the family that is left out
AT_ONCE = "at-once"  # the run that has met none of the families
SEARCHING = " + search"  # behind the name of a row that plays by one


@dataclass(frozen=True)
class LeaveOneOut:
    """Train with one family of co-players held out and test with that family, for every family in
    turn.

    The same command goes on where it was stopped, and trains nothing that is finished; several
    processes with the same --runs share the work.
    """

    rows: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="ROW")]
    """What is trained: presets, each by itself or quoted with options of hopplus train and, if it
    is to have another name, that: ppo "ppo-memory --net.hidden 128" "wide=ppo --net.hidden 256"."""
    blind: str | None = None
    """The row that others are held against, by name, which makes nothing of its co-players; the
    first such row when not given."""
    families: tuple[str, ...] = ()
    """Families that are left out in turn; all of the game's when not given."""
    at_once: bool = False
    """Leave these families out all at once: one run of each row instead of one for every family,
    and less to learn from."""
    game: GameConfig = field(default_factory=default_game)
    steps: int = 5_000_000
    """Environment steps of each seed of each run."""
    best_steps: int | None = None
    """The same for best responses; as --steps when not given."""
    trial: int = 5
    """Episodes that they learn against the same co-players, before others are drawn."""
    seeds: int = 5
    """Independent runs of each row and family, side by side in one program."""
    seed: int = 0
    """The first seed; the others follow it."""
    episodes: int | None = None
    """Episodes of a trial among the family that was left out; as --trial when not given."""
    trials: int = 1024
    """Such trials of each seed, and of best responses."""
    seat: int = 0
    """Where it sits in them."""
    search: SearchConfig = field(default_factory=SearchConfig)
    search_trials: int = 128
    """With --search.simulations, trials in which rows that have models of the others play by that
    search, too: rows of their own in the table."""
    side_by_side: int | None = None
    """Families that are left out in one program side by side, each in a run of its own; all when
    not given, and one after the other on a CPU."""
    train: bool = True
    """Train what is not done; without, the table has what is."""
    runs: Path = Path("runs/leave-one-out")
    """The folder for all of it: a run for each row and family, best responses, and the page."""
    trained_by: TrainedBy = field(default_factory=Engine)
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check_options(steps=self.steps, trial=self.trial, seeds=self.seeds, seed=self.seed)
        named = {"best-steps": self.best_steps, "side-by-side": self.side_by_side}
        check_options(trials=self.trials, **named, **{"search-trials": self.search_trials})
        self.search.check_asked()
        check_range("--episodes", self.episodes, 1, self.trial)
        game = make_game(self.game)
        check_range("--seat", self.seat, 0, game.seats - 1)
        families = self._families(game)
        rows = self._rows(families[0])
        blind = self._blind(rows)
        for config in filter(self._looks_ahead, rows.values()):  # raises if it cannot
            actor = make_actor("learn", game, config)
            like = jax.eval_shape(actor.init, jax.random.key(0))
            Trained(actor, like, config.search, config).playing(game, self.search)
        config = replace(rows[blind], train_against=None, held_out=())
        config = replace(config, steps=self.best_steps or self.steps)
        everyone = mixed_names(game, "population")
        lineups = [all_of(family, game) for family in families]
        best = BestResponses(config, lineups, episodes=self.trials, kinds=everyone)
        wanted = {
            (name, family): replace(config, held_out=families if self.at_once else (family,))
            for name, config in rows.items()
            for family in families
        }
        executor = self.trained_by.make()
        runs = self._find(wanted)  # raises if it must, before anything is made
        try:
            if self.train:
                self._train(wanted, everyone, game, executor)
                runs = self._find(wanted)
            undone = [pair for pair in wanted if pair not in runs]
            lacking = {family for _, family in undone}
            done = [family for family in families if family not in lacking]
            if not done:
                raise ConfigError(f"no family is done with all rows in {self.runs}")
            if self.train and not undone:  # whoever is done last
                self._learn(best)
            returns = self._play(game, {pair: runs[pair] for pair in wanted if pair[1] in done})
        except KeyboardInterrupt:
            say("stopped; go on with the same command")
            return 130
        count = self.episodes or self.trial
        known, unknown = best.kept(self._best), np.full((self.seeds, count), np.nan)
        responses = [known.get(all_of(one, game), unknown)[:, :count] for one in done]
        table = Table(
            done,
            {
                name: np.stack([returns[name, one] for one in done], axis=1)
                for name in dict.fromkeys(name for name, _ in returns)
            },
            blind,
            np.stack(responses, axis=1),
        )
        lines = [f"not done: {name} without {family}" for name, family in undone]
        lines += ["best responses sit in seat 0"] * (self.seat != 0)
        if self.at_once and len(families) > 1:
            lines.append(f"the {len(families)} families were left out all at once")
        if any(name.endswith(SEARCHING) for name in table.rows):
            lines.append(f"with a search {self.search_trials} trials, without {self.trials:,}")
        return show(
            leave_one_out_page(f"hopplus leave-one-out: {self.runs}", table, lines),
            as_json=self.json,
            html=self.runs / f"{AT_ONCE if self.at_once else 'leave-one-out'}.html",
            undone=undone,
            seeds=list(config.seed_numbers),
            steps=self.steps,
            best_steps=config.steps,
            at_once=self.at_once,
            trials=self.trials,
            search=to_json(self.search),
            search_trials=self.search_trials,
        )

    @property
    def _best(self) -> Path:
        """Where best responses are kept."""
        return self.runs / "best-responses"

    def _families(self, game: Game) -> tuple[str, ...]:
        known = mixed_names(game, "population")
        if wrong := [name for name in self.families if name not in known]:
            raise ConfigError(
                f"--families has {wrong[0]!r}, and the families are {', '.join(known)}"
            )
        families = tuple(dict.fromkeys(self.families)) or known
        if self.at_once and len(families) == len(known):
            raise ConfigError("--at-once leaves nobody to learn among: give some --families")
        if self.at_once and self.side_by_side:
            raise ConfigError("--side-by-side is given, but --at-once has one run for each row")
        return families

    def _rows(self, family: str) -> dict[str, TrainConfig]:
        """The settings of every row, with one of the families left out."""
        if not self.rows:
            raise ConfigError("which rows? Give presets, such as ppo ppo-memory")
        common = {name: str(getattr(self, name)) for name in ("steps", "trial", "seeds", "seed")}
        given = {**common, "train-against": "population", "held-out": family}
        rows = read_rows(self.rows, given)
        return {name: replace(config, game=self.game) for name, config in rows.items()}

    def _looks_ahead(self, config: TrainConfig) -> bool:
        """Whether such a player is tried with a search, too."""
        return bool(self.search.simulations) and "opponent" in config.parts

    def _blind(self, rows: Mapping[str, TrainConfig]) -> str:
        if self.blind is None:
            found = next((name for name, config in rows.items() if is_plain(config)), None)
            if found is None:
                raise ConfigError(
                    "no row is blind: one without parts, context, memory and search is needed,"
                    " such as ppo"
                )
            return found
        if self.blind not in rows:
            raise ConfigError(f"--blind is {self.blind!r}, and the rows are {', '.join(rows)}")
        if not is_plain(rows[self.blind]):
            raise ConfigError(
                f"--blind is {self.blind}, which is not: it has parts, a context, a memory or a"
                " search"
            )
        return self.blind

    def _find(self, wanted: Mapping[Pair, TrainConfig]) -> dict[Pair, RunFolder]:
        """Those of the runs that are finished; there must be none of other settings."""
        found = {pair: self._open(pair, config) for pair, config in wanted.items()}
        return {pair: run for pair, run in found.items() if run and run.result()}

    def _open(self, pair: Pair, config: TrainConfig) -> RunFolder | None:
        return find_run(self._path(pair), config, "another --runs")

    def _path(self, pair: Pair) -> Path:
        """Where the run is whose player has not met the family."""
        row, family = pair
        return self.runs / row / (AT_ONCE if self.at_once else family)

    def _train(
        self,
        wanted: Mapping[Pair, TrainConfig],
        everyone: Sequence[str],
        game: Game,
        executor: Executor,
    ) -> None:
        """Train what is not done and try it, but for what another process is at."""
        with self._alone_in(self.runs):  # one process makes a run, and the others find it
            runs = {
                pair: self._open(pair, config) or new_run(self._path(pair), config)
                for pair, config in wanted.items()
            }
        tasks: dict[Task, dict[Pair, RunFolder]] = {}
        for name in dict.fromkeys(name for name, _ in wanted):
            own = {pair: run for pair, run in runs.items() if pair[0] == name}
            undone = dict.fromkeys(run for run in own.values() if not run.result())
            busy = [run for run in undone if is_busy(run.path)]
            for run in busy:
                say(f"{run.path} is being trained by another process")
            for some in self._together([run for run in undone if run not in busy]):
                joint = len(some) > 1 and LeftOut.of(some, everyone) is not None
                for part in [some] if joint else [[run] for run in some]:
                    pairs = {pair: run for pair, run in own.items() if run in part}
                    families = [family for _, family in pairs]
                    said = f"{len(pairs)} families" if len(pairs) > 1 else families[0]
                    work = partial(train_to_end, everyone=everyone)
                    tasks[Task(f"{name} without {said}", tuple(part), work)] = pairs
        failed = executor.execute(list(tasks), lambda task: self._play(game, tasks[task]))
        for _, why in failed:
            say(why)

    def _together(self, runs: Sequence[RunFolder]) -> Iterator[Sequence[RunFolder]]:
        """Those that are to be trained side by side, none ahead of the others."""
        stopped: dict[int, list[RunFolder]] = {}
        for run in runs:
            stopped.setdefault(max(steps_of(run.checkpoints), default=0), []).append(run)
        for alike in stopped.values():
            size = self.side_by_side or (1 if jax.default_backend() == "cpu" else len(alike))
            yield from (alike[n : n + size] for n in range(0, len(alike), size))

    def _learn(self, best: BestResponses) -> None:
        """Those best responses that are not known."""
        with self._alone_in(self._best):
            known = best.kept(self._best)
            if lineups := [one for one in best.lineups if one not in known]:
                missing = replace(best, lineups=lineups)
                what, total = "learning best responses", missing.total_steps
                with Progress(what, total, "steps", where=self._best) as progress:
                    missing.learn(self._best, progress.advance)

    @contextmanager
    def _alone_in(self, folder: Path) -> Iterator[None]:
        """Have other processes wait at this place meanwhile."""
        with clear_errors(f"write in {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
        with locked(folder, wait=True):
            yield

    def _play(self, game: Game, runs: Mapping[Pair, RunFolder]) -> dict[Pair, np.ndarray]:
        """[S, E] returns of each among the family that it has not met; first of all as they have
        learned to play, then with a search."""
        episodes = self.episodes or self.trial
        plain = FamilyTrials(game, episodes, self.trials, self.seat, self.seed)
        asked = {pair: (plain, run) for pair, run in runs.items()}
        looking = replace(plain, trials=self.search_trials, search=self.search)
        for (name, family), run in runs.items():
            if self._looks_ahead(run.config()):
                asked[name + SEARCHING, family] = (looking, run)
        found = {pair: trials.played(run, pair[1]) for pair, (trials, run) in asked.items()}
        missing = [pair for pair, returns in found.items() if returns is None]
        total = sum(self.seeds * asked[pair][0].trials for pair in missing)
        if missing:
            with Progress("playing among those left out", total, "trials") as progress:
                for pair in missing:
                    trials, run = asked[pair]
                    found[pair] = trials.play(run, pair[1], progress.advance)
        return {pair: returns for pair, returns in found.items() if returns is not None}
