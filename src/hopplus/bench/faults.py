"""Does each diagnosis name what is wrong? Faults built in, over many seeds, and none built in."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hopplus.config import GameConfig, TrainConfig
from hopplus.diagnosis.faults import FAULTS, Fault, find_fault
from hopplus.diagnosis.laboratory import Laboratory
from hopplus.diagnosis.seats.checks import SeatsSettings
from hopplus.diagnosis.seats.diagnosis import diagnose_seats
from hopplus.diagnosis.subject import OnStep, make_laboratory, train_subject
from hopplus.diagnosis.value_loss.diagnosis import diagnose_value_loss
from hopplus.diagnosis.value_loss.experiments import LANES
from hopplus.presets import PRESETS

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


@dataclass(frozen=True)
class FaultBench:
    """The settings of the trials: those of `hopplus diagnose ... --quick`."""

    seeds: int
    runs: int  # side by side in a diagnosis of seats
    steps: int
    episodes: int
    experiments: int  # updates of each experiment of a diagnosis of the value loss
    games: int  # of the value loss
    game: GameConfig
    seats_preset: str
    value_preset: str

    def trials(self, only: tuple[str, ...], on_step: OnStep) -> Iterator[Trials]:
        """All faults, and none, by both commands where each should find it."""
        wanted = [NONE, *FAULTS] if not only else list(only)
        for name in wanted:
            if name == NONE or FAULTS[name].seats:
                yield self._seats(name, on_step)
        for name in wanted:
            if name == NONE or FAULTS[name].value_loss:
                yield self._value_loss(name, on_step)

    def _seats(self, name: str, on_step: OnStep) -> Trials:
        config = replace(PRESETS[self.seats_preset], game=self.game, steps=self.steps)
        fault = find_fault(None if name == NONE else name, config)
        laboratory = make_laboratory(config, fault, self.runs)

        def diagnose(seed: int) -> str:
            settings = SeatsSettings(
                episodes=self.episodes,
                seed=seed,
                ablation_steps=self.steps,
                fewer_rungs=True,
            )
            subject = train_subject(self.seats_preset, laboratory, seed, lambda note: None)
            return diagnose_seats(subject, fault, settings, lambda note: None).verdict.name

        return self._counted("seats", name, fault.seats, diagnose, self.runs, on_step)

    def _value_loss(self, name: str, on_step: OnStep) -> Trials:
        laboratory, fault = self._imagining(name)

        def diagnose(seed: int) -> str:
            subject = train_subject(self.value_preset, laboratory, seed, lambda note: None)
            return diagnose_value_loss(subject, self.experiments, lambda note: None).verdict.name

        return self._counted("value-loss", name, fault.value_loss, diagnose, LANES, on_step)

    def _imagining(self, name: str) -> tuple[Laboratory, Fault]:
        made: TrainConfig = PRESETS[self.value_preset].steady
        ppo = replace(made.ppo, games=self.games)
        config = replace(made, game=self.game, steps=self.steps, ppo=ppo)
        fault = find_fault(None if name == NONE else name, config)
        return make_laboratory(config, fault, LANES), fault

    def _counted(
        self,
        command: str,
        name: str,
        expected: str | None,
        diagnose: Callable[[int], str],
        lanes: int,
        on_step: OnStep,
    ) -> Trials:
        said: Counter[str] = Counter()
        began = time.monotonic()
        for number in range(self.seeds):
            said[diagnose(number * lanes)] += 1  # no seed is used twice
            on_step(f"{command}, {name}: {dict(said)}")
            if number == 0:
                began = time.monotonic()
        seconds = (time.monotonic() - began) / max(1, self.seeds - 1)
        return Trials(command, name, expected or "healthy", dict(said), seconds)
