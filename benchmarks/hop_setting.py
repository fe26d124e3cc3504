"""HOP's published setting (Huang et al. 2024) for every preset: the score of self-play, then
few-shot adaptation, online, among co-players who stay as they are and among co-players who learn,
too: 2,400 steps of which the last 600 count. What is done is read again, and what was stopped goes
on."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks import main
from benchmarks.training import train_in
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, GameConfig, SearchConfig, TrainConfig, default_game
from hopplus.evaluation.adaptation import adapt, lineups
from hopplus.evaluation.certificate import Certificate
from hopplus.evaluation.fine_tuning import LEARN, FineTuning
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.evaluation.trials import AtTheEnd, Names
from hopplus.games import make_game
from hopplus.games.game import board_size
from hopplus.learning.from_run import players_by_seed
from hopplus.players.scripted import mixed_names
from hopplus.presets import PRESETS
from hopplus.report.page import Page, make_table
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import RunFolder
from hopplus.runs.progress import Progress
from hopplus.runtime import device_line

FIXED, LEARNING = "fixed", "learning"
KEPT = "hop_setting.json"  # in the folder of a run


@dataclass(frozen=True)
class Scored:
    """A row; None where there is nothing to tell."""

    name: str
    self_play: Estimate | None = None
    fixed: Estimate | None = None  # mean over the lineups
    learning: Estimate | None = None

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class HopSetting:
    """Train presets in self-play on seeds 100 to 104, and let them adapt; one table of all."""

    only: tuple[str, ...] = ()
    """Presets; all when not given."""
    game: GameConfig = field(default_factory=default_game)
    steps: int | None = None
    """Environment steps of each seed in self-play; a preset's own when not given."""
    seed: int = 100
    """The first seed."""
    seeds: int = 5
    """Seeds of each preset."""
    against: tuple[str, ...] = ()
    """Lineups that stay as they are; when not given, three (or as many as there are seats) of each
    scripted player that the game's mixtures are made of."""
    trial_steps: int = 2400
    """Steps of a trial."""
    last: int = 600
    """Of them, those at the end that count."""
    trials: int = 8
    """Trials among each lineup, for each seed; the player sits in seat 0."""
    reference_steps: int = 16_000_000
    """Environment steps for which oracle and blind learn, as in hopplus certify."""
    references: bool = True
    """Measure oracle, blind and random, too; one of several processes is enough to do so."""
    episodes: int = 4096
    """Episodes that they are measured by, for each lineup."""
    runs: Path = Path("runs/hop-setting")
    """Where runs and references are; one folder for each game."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(seed=self.seed, seeds=self.seeds, steps=self.steps, trials=self.trials)
        check_options(trial_steps=self.trial_steps, last=self.last, steps=self.reference_steps)
        if unknown := [name for name in self.only if name not in PRESETS]:
            raise ConfigError(f"--only has {unknown[0]!r}, and there are {', '.join(PRESETS)}")
        game = make_game(self.game)
        if self.trial_steps < self.last or self.last < game.horizon:
            raise ConfigError("--last must hold an episode, and be no more than --trial-steps")
        others = game.seats - 1
        alike = [",".join([name] * others) for name in mixed_names(game)]
        wanted = {
            FIXED: lineups(self.against or alike, game),
            LEARNING: lineups([",".join([LEARN] * others)], game),
        }
        rows = self._references(wanted[FIXED]) if self.references else []
        left_out = []
        for name in self.only or PRESETS:
            if PRESETS[name].ppo.lola.step and not self.only:
                left_out.append(f"without {name}, who learns in pairs and cannot go on alone")
                continue
            run = train_in(self.runs / name, self._config(name))
            if run is None:
                return 130
            rows.append(self._scored(name, run, wanted))
        machine = device_line()
        title = f"{game.name}, {board_size(game)}, seeds from {self.seed}; {machine}"
        columns: dict[Any, Callable[[Scored], Any]] = {
            "player": lambda one: one.name,
            "self-play": lambda one: one.self_play,
            "fixed co-players": lambda one: one.fixed,
            "learning co-players": lambda one: one.learning,
        }
        payload = {"machine": machine, "rows": [one.as_json() for one in rows]}
        said = f"adaptation: the last {self.last} of {self.trial_steps:,} steps, learning online"
        page = Page(
            "HOP's setting",
            said,
            lines=left_out,
            sections=[make_table(title, columns, rows)],
            payload=payload,
        )
        return show(page, as_json=self.json)

    def _config(self, name: str) -> TrainConfig:
        made = PRESETS[name]
        config = replace(made, game=self.game, seed=self.seed, seeds=self.seeds)
        return replace(config, train_against=None, steps=self.steps or made.steps)

    def _references(self, fixed: list[Names]) -> list[Scored]:
        """Oracle, blind and random among those who stay as they are, in the last episode of a trial
        where they remember it; nobody learns on the way."""
        config = TrainConfig(
            game=self.game,
            steps=self.reference_steps,
            seeds=self.seeds,
            seed=self.seed,
            trial=5,
        )
        asked = Certificate(config, fixed, episodes=self.episodes)
        with Progress("certifying", asked.total_steps, "steps") as progress:
            found = asked.measure(self.runs / "references", progress.advance)
        return [
            Scored(name, fixed=estimate(found.by_episode.get(name, first)[..., -1].mean(axis=1)))
            for name, first in ((name, one[..., None]) for name, one in found.returns.items())
        ]

    def _scored(self, name: str, run: RunFolder, wanted: dict[str, list[Names]]) -> Scored:
        result = run.result()
        assert result is not None
        about = {
            "wanted": {kind: [list(one) for one in found] for kind, found in wanted.items()},
            "protocol": [self.trial_steps, self.last, self.trials],
            "caution": FineTuning.caution,
        }
        path = run.path / KEPT
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if kept.get("about") != about:
            kept = {"about": about, **self._adapted(name, run, wanted)}
            write_durably(path, json.dumps(kept, indent=2).encode())
        by_kind = {kind: estimate(np.array(kept[kind]).mean(axis=1)) for kind in wanted}
        return Scored(name, estimate(np.array(result["mean_return_by_seed"])), **by_kind)

    def _adapted(self, name: str, run: RunFolder, wanted: dict[str, list[Names]]) -> dict[str, Any]:
        """[S, K] returns among each kind of lineups."""
        config = run.config()
        players = list(players_by_seed(run, list(config.seed_numbers)).values())
        online, score = FineTuning(config), AtTheEnd(self.trial_steps, self.last)
        total = sum(map(len, wanted.values())) * self.trials * len(players)
        found = {}
        with Progress(f"{name} among others", total, "trials") as progress:
            for kind, lineup in wanted.items():
                seen = adapt(
                    make_game(self.game),
                    players,
                    lineup,
                    {},
                    [0],
                    score,
                    self.trials,
                    SearchConfig(),
                    jax.random.key(self.seed),
                    online,
                    progress.advance,
                )
                found[kind] = seen.returns[..., 0].tolist()
        return found


if __name__ == "__main__":
    sys.exit(main(HopSetting))
