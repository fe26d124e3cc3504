"""`hopplus sweep`: which settings are best?"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import tyro

from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options, finite, whole
from hopplus.cli.reading.rows import FOREIGN, read_settings, refuse, split_row
from hopplus.cli.studies.engine import Engine, TrainedBy
from hopplus.cli.studies.halving import Halving
from hopplus.cli.studies.space import (
    Axis,
    Setting,
    draw,
    grid,
    name_settings,
    read_axis,
    read_sweep,
    words_of,
)
from hopplus.config import ConfigError, TrainConfig, check_range
from hopplus.evaluation.ablation import read_trace
from hopplus.report.pages.summary import summarise
from hopplus.report.pages.sweep import Contestant, sweep_page, write_sweep
from hopplus.runs.folder import RunError, RunFolder, check_name
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import say

Number = TypeVar("Number", int, float)
TABLE = ("game", "seats", "train-against", "held-out", "co-play")
NUMBERS = ("steps", "seeds", "seed", "random", "halving")
MOST_RUNGS = 10
FRESH = 100  # seeds further on, which nothing was chosen by


@dataclass(frozen=True)
class Plan:
    """What was asked for, read."""

    train: str  # the preset and what all runs have in common, on a command line
    base: TrainConfig  # its settings
    settings: dict[str, Setting]  # by the names of folders
    typed: dict[str, list[str]]  # the same on a command line
    configs: dict[str, TrainConfig]
    rungs: int
    level: float | None  # a return that is to be come to soon


@dataclass(frozen=True)
class Sweep:
    """Search for good settings: a grid, random draws or successive halving.

    The same command goes on where it was stopped, and trains nothing that is finished.
    """

    what: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="PRESET|FILE")]
    """What is trained: a preset, by itself or quoted with options of hopplus train, as in
    "ppo --net.hidden 128"; or a file of TOML that says it and all below."""
    over: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """An option of hopplus train and its values, as ppo.learning-rate=1e-3,5e-4, or with --random a
    range, as ppo.entropy=0.0..0.1 or log:1e-4..1e-2; given several times, all go with all."""
    random: int | None = None
    """Draw so many settings instead of taking all; the same --seed draws the same."""
    halving: int | None = None
    """Successive halving in so many rungs: each trains the better half of the rung before for twice
    its steps, the last of them for all."""
    level: float | None = None
    """Rank settings by the steps after which their mean return is first at this level, and not by
    their last returns."""
    steps: int | None = None
    """Environment steps of each seed of each run; those of the preset when not given."""
    seeds: int | None = None
    """Seeds of each run, side by side in one program."""
    seed: int | None = None
    """The first seed; the others follow it."""
    name: str | None = None
    """Name of the sweep's folder; that of the file, or sweep and the preset, when not given."""
    runs: Path = Path("runs")
    """The folder that holds the sweep's own, which holds a run for each setting."""
    trained_by: TrainedBy = field(default_factory=Engine)
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        file = Path(self.what) if self.what.endswith(".toml") else None
        plan = self._read(file)
        name = file.stem if file else f"sweep-{shlex.split(self.what)[0].rpartition(':')[2]}"
        folder = self.runs / check_name(self.name or name)
        executor = self.trained_by.make()
        tables = {name: _table(setting) for name, setting in plan.settings.items()}
        halving = Halving(folder, plan.configs, tables, plan.rungs)
        halving.find()  # raises if it must, before anything is made
        try:
            failed = halving.train(executor)
        except KeyboardInterrupt:
            say("stopped; go on with the same command")
            return 130
        done = [name for name in plan.settings if name not in failed]
        if not done:
            raise RunError(f"no run has come to its end, as {'; '.join(failed.values())}")
        level = plan.level
        found = [
            Contestant(
                name,
                plan.settings[name],
                tables[name],
                replace(run, name=name),
                level,
                None if level is None else read_trace(name, name, run.run).steps_to(level),
            )
            for name, run in zip(
                done, summarise([RunFolder(folder / name) for name in done]), strict=True
            )
        ]
        page = sweep_page(f"hopplus sweep: {folder}", found, failed)
        write_sweep(folder / "sweep.csv", found)
        best = page.payload["best"][0]["name"]
        other = f"--seed {plan.base.seed + max(FRESH, plan.base.seeds)}"
        return show(
            page,
            as_json=self.json,
            html=folder / "sweep.html",
            hints=[
                "on the seeds that it was chosen by, the best of many looks better than it is; on"
                f" others: {plan.train} {shlex.join(plan.typed[best])} {other}",
                f"the runs are in {folder}, and their figures in {folder / 'sweep.csv'}",
            ],
            folder=str(folder),
            train=plan.train,
            seeds=list(plan.base.seed_numbers),
        )

    def _read(self, file: Path | None) -> Plan:
        """The command line, or the file as far as the command line does not say otherwise."""
        takes = ("train", "over", "level", *NUMBERS)
        said = read_sweep(file, takes) if file else {"train": self.what}
        numbers = {name: self._number(name, said, whole) for name in NUMBERS}
        check_options(**{name: value for name, value in numbers.items() if name != "halving"})
        check_range("--halving", numbers["halving"], 2, MOST_RUNGS)
        level = self._number("level", said, finite)
        if level is not None and numbers["halving"]:
            raise ConfigError("--level is given, but --halving goes by returns: leave one out")
        row = said.get("train")
        if not isinstance(row, str):
            raise ConfigError(f"{file} does not say what to train, as in train = 'ppo'")
        given = (*said.get("over", ()), *map(read_axis, self.over))
        axes: list[Axis] = list({axis.option: axis for axis in given}.values())
        if not axes:
            raise ConfigError("over what? Give --over ppo.learning-rate=1e-3,5e-4, for one")
        if numbers["halving"] and any(axis.option == "steps" for axis in axes):
            raise ConfigError("--over has steps, which --halving gives to each run by itself")
        preset, words = split_row(row)
        refuse(row, words, FOREIGN, "which is no setting of training")
        common = {name: numbers[name] for name in ("steps", "seeds", "seed")}
        words += [f"--{name}={value}" for name, value in common.items() if value is not None]
        base = read_settings(preset, words)
        count = numbers["random"]
        drawn = grid(axes) if count is None else draw(axes, count, base.seed, base)
        settings = name_settings(drawn)
        typed = {name: words_of(setting, base) for name, setting in settings.items()}
        configs: dict[str, TrainConfig] = {}
        with Progress("reading settings", len(typed), "settings", first="reading") as progress:
            for name, own in typed.items():
                try:
                    configs[name] = read_settings(preset, [*words, *own])
                    configs[name].search.check_asked()
                except ConfigError as error:
                    raise ConfigError(f"{name}: {error}") from None
                progress.advance(1)
        for name, config in configs.items():
            if (first := next(n for n, one in configs.items() if one == config)) != name:
                raise ConfigError(f"{first} and {name} are the same settings: leave one out")
        train = shlex.join(["hopplus", "train", preset, *words])
        return Plan(train, base, settings, typed, configs, numbers["halving"] or 1, level)

    def _number(
        self, name: str, said: Mapping[str, Any], read: Callable[[str], Number]
    ) -> Number | None:
        """What the command line says, or else the file."""
        given: Number | None = getattr(self, name)
        if given is not None or name not in said:
            return given
        try:
            return read(str(said[name]))
        except ValueError as error:
            raise ConfigError(f"{self.what} has {name}: {error}") from None


def _table(setting: Setting) -> str:
    """Who plays what: returns of one game tell nothing about settings for another."""
    return ", ".join(
        f"{option}={value}"
        for option, value in setting.items()
        if option.partition(".")[0] in TABLE
    )
