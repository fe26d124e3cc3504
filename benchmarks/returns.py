"""Do presets still learn what they did? Each is trained on seeds that nothing is tuned on, and held
against the returns kept in returns.json. A preset that is done is not trained again, and one that
was stopped goes on."""

import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import main
from benchmarks.kept import find_figures, keep_figures
from benchmarks.training import run_in
from hopplus.api.training import train_to_end
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.cli.studies.engine import Engine, TrainedBy
from hopplus.config import ConfigError, GameConfig, TrainConfig, default_game
from hopplus.evaluation.statistics import Estimate, apart, estimate
from hopplus.presets import PRESETS
from hopplus.report.page import Column, Page, make_table
from hopplus.runs.executor import Task
from hopplus.runs.folder import RunError, RunFolder
from hopplus.runs.watchdog import say
from hopplus.runtime import device_line

KEPT = Path(__file__).with_name("returns.json")


@dataclass(frozen=True)
class Learned:
    """A preset's returns by seed, of the seats that learn, and those that are kept of it."""

    preset: str
    steps: int
    by_seed: list[float]
    seconds: float
    kept: list[float] | None  # None of a preset that is not kept, or kept with other settings

    @property
    def now(self) -> Estimate:
        return estimate(np.array(self.by_seed))

    @property
    def before(self) -> Estimate | None:
        return estimate(np.array(self.kept)) if self.kept else None

    @property
    def verdict(self) -> str:
        """Whether the two differ by more than seeds do."""
        if self.before is None:
            return "not kept"
        if not apart(self.now, self.before):
            return "as kept"
        return "higher" if self.now.mean > self.before.mean else "LOWER"

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "now": self.now, "before": self.before, "verdict": self.verdict}


COLUMNS: dict[str | Column, Any] = {
    "preset": lambda one: one.preset,
    "steps": lambda one: f"{one.steps:,}",
    "return": lambda one: str(one.now),
    "kept": lambda one: str(one.before or ""),
    "verdict": lambda one: one.verdict,
    "seconds": lambda one: f"{one.seconds:.0f}",
}


@dataclass(frozen=True)
class ReturnsBench:
    """Train presets on seeds 100 to 104 and compare their returns with those that are kept."""

    presets: tuple[str, ...] = ()
    """Which presets. When not given, all that go with the game: lola in one of two seats."""
    game: GameConfig = field(default_factory=default_game)
    steps: int | None = None
    """Environment steps of each seed; a preset's own when not given."""
    seed: int = 100
    """The first seed."""
    seeds: int = 5
    """Seeds side by side."""
    runs: Path = Path("runs/returns")
    """Where the runs are."""
    trained_by: TrainedBy = field(default_factory=Engine)
    keep: bool = False
    """Write what was measured into benchmarks/returns.json."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(seed=self.seed, seeds=self.seeds, steps=self.steps)
        for name in self.presets:
            if name not in PRESETS:
                raise ConfigError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
        executor = self.trained_by.make()
        names = self.presets or self._presets
        runs = {name: run_in(self.runs / name, self._config(name)) for name in names}
        tasks = [Task(name, (run,), train_to_end) for name, run in runs.items()]
        try:
            failed = executor.execute(tasks)
        except KeyboardInterrupt:
            say("stopped; go on with the same command")
            return 130
        if failed:
            raise RunError(failed[0].why)
        found = [self._learned(name, run) for name, run in runs.items()]
        if self.keep:
            now = {one.preset: {**self._settings(one), "returns": one.by_seed} for one in found}
            keep_figures(KEPT, now)
        machine = device_line()
        title = f"Seeds {self.seed} to {self.seed + self.seeds - 1}; {machine}"
        page = Page(
            "returns",
            "",
            sections=[make_table(title, COLUMNS, found)],
            payload={"machine": machine, "presets": [one.as_json() for one in found]},
        )
        show(page, as_json=self.json)
        return int(any(one.verdict == "LOWER" for one in found))

    @property
    def _presets(self) -> list[str]:
        """All that go with the game: LOLA is for two seats."""
        two = self.game.seats == 2
        return [name for name, made in PRESETS.items() if two or not made.ppo.lola.step]

    def _config(self, name: str) -> TrainConfig:
        config = replace(PRESETS[name], game=self.game, seed=self.seed, seeds=self.seeds)
        return replace(config, steps=self.steps or config.steps)

    def _learned(self, name: str, run: RunFolder) -> Learned:
        """What came of the preset's run, which is done."""
        result = run.result()
        assert result is not None
        by_seed = [float(value) for value in result["mean_return_by_seed"]]
        one = Learned(name, run.config().steps, by_seed, float(result["seconds"]), None)
        known = find_figures(KEPT, name, self._settings(one))
        return replace(one, kept=known["returns"] if known else None)

    def _settings(self, one: Learned) -> dict[str, Any]:
        """What returns hang on besides the preset."""
        return {"game": asdict(self.game), "steps": one.steps, "seed": self.seed}


if __name__ == "__main__":
    sys.exit(main(ReturnsBench))
