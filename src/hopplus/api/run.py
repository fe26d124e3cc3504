"""A run as Python has it: train it, look at it, play with it."""

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hopplus.api.found import Found
from hopplus.api.players import LoadedPlayer, load_players
from hopplus.api.report import make_report
from hopplus.api.studies import evaluate
from hopplus.api.training import GameLike, SearchLike, begin, extend, finish, written_config
from hopplus.config import ConfigError, TrainConfig, change
from hopplus.evaluation.evaluate import Evaluation
from hopplus.presets import PRESETS
from hopplus.report.pages.logged import read_logged
from hopplus.report.translations import Language
from hopplus.runs.folder import open_run

if TYPE_CHECKING:
    import pandas as pd

    from hopplus.games.pettingzoo import HopplusEnv


class Run(os.PathLike[str]):
    """A run's folder: `Run("runs/first")`, or what `train` returns. It stands for its path wherever
    a run is asked for."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.folder = open_run(Path(path))

    @property
    def path(self) -> Path:
        return self.folder.path

    @cached_property
    def config(self) -> TrainConfig:
        """The settings that it was made with."""
        return self.folder.config()

    @property
    def result(self) -> dict[str, Any] | None:
        """What came of it, means over its last tenth; None until it is finished."""
        return self.folder.result()

    @cached_property
    def players(self) -> dict[int, LoadedPlayer]:
        """The learned players of its first seed by seat; `load_players` has those of others."""
        return load_players(self.path)

    def env(self, render_mode: str | None = None) -> "HopplusEnv":
        """Its game, as a PettingZoo environment."""
        from hopplus.games.pettingzoo import parallel_env  # which a machine that trains may lack

        return parallel_env(self.config.game, render_mode=render_mode)

    def metrics(self) -> dict[str, np.ndarray]:
        """What was logged, by name: `steps` [U] of U updates, `returns` [U, S, N] of the episodes
        that ended in each, by seed and seat, and all else as [U, S] or [U, S, N]. NaN where there
        is no number."""
        logged = read_logged(self.folder)
        found = {"steps": logged.steps, **logged.values}
        if logged.episodes is not None:
            totals, counts = logged.episodes
            with np.errstate(invalid="ignore", divide="ignore"):
                found["returns"] = totals / counts[..., None]
        return found

    def frame(self) -> "pd.DataFrame":
        """The same as a table of pandas, a row for each update and seed; what is told by seat has a
        column for each, as `returns/0`, and what is told by more is left out."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise ConfigError("a frame needs pandas: pip install pandas") from error
        found = self.metrics()
        steps, seeds = found.pop("steps"), list(self.config.seed_numbers)
        columns: dict[str, Any] = {
            "steps": np.repeat(steps, len(seeds)),
            "seed": np.tile(seeds, len(steps)),
        }
        for name, values in found.items():
            if values.ndim not in (2, 3):
                continue  # of more than a seed and a seat
            rows = values.reshape(len(steps) * len(seeds), -1)
            each = [name] if values.ndim == 2 else [f"{name}/{n}" for n in range(rows.shape[1])]
            columns |= dict(zip(each, rows.T, strict=True))
        return pd.DataFrame(columns)

    def evaluate(
        self,
        *,
        players: str | None = None,
        episodes: int = 10_000,
        greedy: bool = False,
        search: SearchLike | None = None,
        seed: int = 0,
        quiet: bool = False,
    ) -> Found[Evaluation]:
        """Play whole episodes with each of its seeds; with others in some seats as `players` says:
        `run,stag,hare,random`."""
        return evaluate(
            self,
            players=players,
            episodes=episodes,
            greedy=greedy,
            search=search,
            seed=seed,
            quiet=quiet,
        )

    def report(
        self, out: str | Path | None = None, *, language: Language = "en", quiet: bool = False
    ) -> Path:
        """Write one page about it: summary, curves, models, replay; where it is, `report.html` in
        the run when not said."""
        return make_report([self.path], language=language, quiet=quiet).write(out)

    def resume(self, steps: int | None = None, *, quiet: bool = False) -> "Run":
        """Go on where it was stopped; or, with more `steps`, where it has ended."""
        if steps is not None:
            extend(self.folder, steps)
        finish(self.folder, quiet=quiet)
        return Run(self.path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"


def train(
    preset: str | os.PathLike[str] | TrainConfig = "ppo",
    *,
    steps: float | None = None,
    seeds: int | None = None,
    seed: int | None = None,
    game: GameLike | None = None,
    name: str | None = None,
    runs: str | os.PathLike[str] = "runs",
    quiet: bool = False,
    **options: Any,
) -> Run:
    """Train players and keep everything about it in the folder `runs/name`.

    `preset` is one of `hopplus list presets`, a TOML file, or settings. Whatever is given goes on
    top of it: `steps` of each of the `seeds`, the `game` (`"coin-v1"`, `{"size": 8}`), and every
    other option of `hopplus train`, as `ppo={"games": 64}` or `**{"ppo.games": 64}`. Ctrl-C saves:
    `Run(...).resume()` goes on.
    """
    said = {"steps": steps, "seeds": seeds, "seed": seed, "game": game}
    given = {one: value for one, value in said.items() if value is not None}
    config = change(_config_of(preset), given | options)
    run = begin(config, name, Path(runs))
    finish(run, quiet=quiet)
    return Run(run.path)


def _config_of(preset: str | os.PathLike[str] | TrainConfig) -> TrainConfig:
    if isinstance(preset, TrainConfig):
        return preset
    called = os.fspath(preset)
    return written_config(Path(called))[1] if called.endswith(".toml") else PRESETS[called]
