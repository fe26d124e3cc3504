"""Does each diagnosis name what is wrong? Faults built in, over many seeds, and none built in."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import tyro

from benchmarks import main
from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.config import MANY, ConfigError, GameConfig, TrainConfig, check_range, default_game
from hopplus.diagnosis.faults import FAULTS, Fault, find_fault
from hopplus.diagnosis.seats.checks import SeatsSettings, diagnose_seats
from hopplus.diagnosis.subject import Laboratory, OnStep, make_laboratory, train_subject
from hopplus.diagnosis.value_loss.diagnosis import diagnose_value_loss
from hopplus.diagnosis.value_loss.experiments import REPLICAS
from hopplus.presets import PRESETS
from hopplus.report.page import Column, Page, Section
from hopplus.runs.progress import Progress
from hopplus.runtime import device_line

NONE = "none"


@dataclass(frozen=True)
class Trials:
    """How often a diagnosis said what about one fault."""

    command: str
    fault: str
    expected: str
    said: dict[str, int]
    seconds: float  # of one diagnosis, after the first

    @property
    def right(self) -> int:
        return self.said.get(self.expected, 0)

    @property
    def count(self) -> int:
        return sum(self.said.values())

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "right": self.right, "count": self.count}

    @property
    def row(self) -> list[Any]:
        others = [f"{name} {n}" for name, n in self.said.items() if name != self.expected]
        right = f"{self.right}/{self.count}"
        return [self.command, self.fault, self.expected, right, ", ".join(others), self.seconds]


@dataclass(frozen=True)
class FaultBench:
    """Build every fault in, over many seeds, and count how often each diagnosis names it; with the
    settings of `hopplus diagnose ... --quick`."""

    seeds: int = 20
    """Diagnoses of each fault, no two with a seed in common."""
    faults: tuple[str, ...] = ()
    """Which faults; none is the run without any. All when not given."""
    runs: int = 5
    """Runs side by side in a diagnosis of seats."""
    steps: int = 40_000
    """Environment steps of each run."""
    episodes: int = 10_000
    """Episodes for each kind of player that the game is tried with."""
    updates: int = 6
    """Updates of each experiment in a diagnosis of the value loss."""
    games: Annotated[int, tyro.conf.arg(name="ppo.games")] = 128
    """Games side by side in a diagnosis of the value loss."""
    game: GameConfig = field(default_factory=default_game)
    seats_preset: str = "ppo"
    """What the diagnosis of seats is tried on; where a fault needs parts that it lacks, the other
    is."""
    value_preset: str = "hop-plus"
    """What the diagnosis of the value loss is tried on."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(seeds=self.seeds, runs=self.runs, steps=self.steps, episodes=self.episodes)
        check_options(updates=self.updates)
        check_range("ppo.games", self.games, 1, MANY)
        for name in (self.seats_preset, self.value_preset):
            if name not in PRESETS:
                raise ConfigError(f"no preset {name!r}; there are {', '.join(PRESETS)}")
        for name in self.faults:
            if name not in FAULTS and name != NONE:
                raise ConfigError(f"no fault {name!r}; there are {NONE}, {', '.join(FAULTS)}")
        kinds = sum(
            2 if name == NONE else bool(FAULTS[name].seats) + bool(FAULTS[name].value_loss)
            for name in self._wanted
        )
        with Progress(
            "diagnosing", kinds * self.seeds, "diagnoses", first="busy with the first"
        ) as progress:
            found = list(self.trials(lambda note: progress.advance(1, note)))
        machine = device_line()
        table = Section(
            f"{self.seeds} seeds; {machine}",
            header=[
                "diagnose",
                Column("fault", words=True),
                "should say",
                "said so",
                "also said",
                Column("seconds each", ".1f"),
            ],
            rows=[trials.row for trials in found],
        )
        payload = {"machine": machine, "trials": [trials.as_json() for trials in found]}
        page = Page("faults", "", sections=[table], payload=payload)
        return show(page, as_json=self.json)

    @property
    def _wanted(self) -> tuple[str, ...]:
        return self.faults or (NONE, *FAULTS)

    def trials(self, on_step: OnStep) -> Iterator[Trials]:
        """All faults, and none, by both commands where each should find it."""
        for name in self._wanted:
            if name == NONE or FAULTS[name].seats:
                yield self._seats(name, on_step)
        for name in self._wanted:
            if name == NONE or FAULTS[name].value_loss:
                yield self._value_loss(name, on_step)

    def _seats(self, name: str, on_step: OnStep) -> Trials:
        needs = () if name == NONE else FAULTS[name].needs
        lacking = set(needs) - set(PRESETS[self.seats_preset].parts)
        preset = self.value_preset if lacking else self.seats_preset
        config = replace(PRESETS[preset], game=self.game, steps=self.steps)
        fault = find_fault(None if name == NONE else name, config)
        laboratory = make_laboratory(config, fault, self.runs)

        def diagnose(seed: int) -> str:
            settings = SeatsSettings(
                episodes=self.episodes,
                seed=seed,
                ablation_steps=self.steps,
                fewer_rungs=True,
            )
            subject = train_subject(preset, laboratory, seed, lambda note: None)
            return diagnose_seats(subject, fault, settings, lambda note: None).verdict.name

        return self._counted("seats", name, fault.seats, diagnose, self.runs, on_step)

    def _value_loss(self, name: str, on_step: OnStep) -> Trials:
        laboratory, fault = self._imagining(name)

        def diagnose(seed: int) -> str:
            subject = train_subject(self.value_preset, laboratory, seed, lambda note: None)
            return diagnose_value_loss(subject, self.updates, lambda note: None).verdict.name

        return self._counted("value-loss", name, fault.value_loss, diagnose, REPLICAS, on_step)

    def _imagining(self, name: str) -> tuple[Laboratory, Fault]:
        made: TrainConfig = PRESETS[self.value_preset].steady
        ppo = replace(made.ppo, games=self.games)
        config = replace(made, game=self.game, steps=self.steps, ppo=ppo)
        fault = find_fault(None if name == NONE else name, config)
        return make_laboratory(config, fault, REPLICAS), fault

    def _counted(
        self,
        command: str,
        name: str,
        expected: str | None,
        diagnose: Callable[[int], str],
        replicas: int,
        on_step: OnStep,
    ) -> Trials:
        said: Counter[str] = Counter()
        began = time.monotonic()
        for number in range(self.seeds):
            said[diagnose(number * replicas)] += 1  # no seed is used twice
            on_step(f"{command}, {name}: {dict(said)}")
            if number == 0:
                began = time.monotonic()
        seconds = (time.monotonic() - began) / max(1, self.seeds - 1)
        return Trials(command, name, expected or "healthy", dict(said), seconds)


if __name__ == "__main__":
    sys.exit(main(FaultBench))
