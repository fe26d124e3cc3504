"""The page of a sweep: the best settings, all of them in a table, and their curves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.diagnosis.models.measures import write_csv
from hopplus.evaluation.ablation import SMOOTHED, SMOOTHED_STEPS
from hopplus.evaluation.statistics import ENOUGH, across_seeds, seeds_json
from hopplus.report.numbers import counted, doubt_seeds
from hopplus.report.page import Column, Page, Section, make_table
from hopplus.report.pages.curves import curves_section
from hopplus.report.pages.runs import across_seeds_section, too_close
from hopplus.report.pages.summary import Summary
from hopplus.report.translations import Translations
from hopplus.runs.folder import clear_errors

MOST = 10  # runs whose curves are drawn, and whose seeds are held against those of the best


@dataclass(frozen=True)
class Contestant:
    """A setting that was trained: returns of those at one table can be compared."""

    name: str
    setting: Mapping[str, str]  # by option, as it was typed
    table: str  # who plays what, in words; nothing if it is the same for all
    run: Summary
    level: float | None = None  # a return that it is to come to soon
    steps_to_level: int | None = None  # of the mean over seeds

    @property
    def rank(self) -> tuple[float, float]:
        """Those that come to the level soonest first; without one, those that were trained for
        longest. Of them the highest return."""
        mean = self.run.mean_return
        first = -self.run.steps if self.level is None else self.steps_to_level or np.inf
        return (first, -mean.mean if mean else np.inf)

    def as_json(self) -> dict[str, Any]:
        own: dict[str, Any] = {"name": self.name, "setting": dict(self.setting)}
        own["table"] = self.table
        if self.level is not None:
            own |= {"level": self.level, "steps_to_level": self.steps_to_level}
        by_seed = None if self.run.by_seed is None else self.run.by_seed.tolist()
        return {**own, "by_seed": by_seed, **self.run.as_json()}


def sweep_page(title: str, found: Sequence[Contestant], failed: Mapping[str, str]) -> Page:
    """The best of every table, everyone's figures, and the curves of the best."""
    level = found[0].level
    tables = {
        table: sorted((one for one in found if one.table == table), key=lambda one: one.rank)
        for table in dict.fromkeys(one.table for one in found)
    }
    seeds = min(one.run.seeds for one in found)
    lines = [f"mean returns over the last tenth ± 95% over {counted(seeds, 'seed')}"]
    lines += filter(None, [doubt_seeds(seeds)])
    steps = {one.run.steps for one in found}
    if level is not None:
        lines.append(
            f"those that come to {level:g} soonest stand first, by the mean over seeds and over"
            f" {SMOOTHED_STEPS:,} steps (a tenth of a shorter run; {SMOOTHED} updates at least);"
            " all else is of their last returns"
        )
    elif len(steps) > 1:
        lines.append("those that were trained for longer stand first")
    lines += [
        f"⚠ {own[0].name}: {Translations()(one)}"
        for own in tables.values()
        for one in own[0].run.warnings()
        if not one.text.startswith("few seeds")
    ]
    lines += [f"not done: {name}: {why}" for name, why in failed.items()]
    sections: list[Section] = []
    payload: list[dict[str, Any]] = []
    for table, ranked in tables.items():
        by_seeds = across_seeds([one.run.by_seed for one in ranked])
        some = [one.name for one in ranked[:MOST]]
        sections += filter(
            None,
            [
                _settings(table or "Settings", ranked),
                _effects(ranked),
                across_seeds_section(some, by_seeds[:MOST]),
            ],
        )
        payload += [
            {**one.as_json(), **seeds_json(seed)}
            for one, seed in zip(ranked, by_seeds, strict=True)
        ]
    # The best of every table before the second of any.
    order = sorted(
        ((place, one) for own in tables.values() for place, one in enumerate(own)),
        key=lambda pair: pair[0],
    )
    curved = [one.run.curved for _, one in order[:MOST]]
    return Page(
        title,
        "; ".join(_answer(table, ranked) for table, ranked in tables.items()),
        "good" if seeds >= ENOUGH and not failed else "bad",
        lines,
        sections=[*sections, curves_section(curved, Translations())],
        payload={
            "best": [own[0].as_json() for own in tables.values()],
            "runs": payload,
            "failed": dict(failed),
        },
    )


def _answer(table: str, ranked: Sequence[Contestant]) -> str:
    """The best, of those that were trained for longest."""
    where = f"{table}: " if table else ""
    best = ranked[0]
    if best.level is not None:
        if best.steps_to_level is None:
            return f"{where}none has come to {best.level:g}"
        return f"{where}{best.name} is first at {best.level:g}: {best.steps_to_level:,} steps"
    level = [one for one in ranked if one.run.steps == ranked[0].run.steps]
    known = [(one.name, one.run.mean_return) for one in level if one.run.mean_return]
    if not known:
        return f"{where}no returns"
    if even := too_close(known):
        return f"{where}{Translations()(even)}"
    return f"{where}{known[0][0]} has the highest return: {known[0][1]}"


def _settings(title: str, ranked: Sequence[Contestant]) -> Section:
    """Everyone's figures, the best first."""

    def value(option: str) -> Callable[[Contestant], Any]:
        return lambda one: one.setting[option]

    columns: dict[str | Column, Callable[[Contestant], Any]] = {
        Column(option, words=True): value(option) for option in ranked[0].setting
    }
    columns |= {
        **_to_level(ranked[0].level),
        Column("return ± 95%", absent="?"): lambda one: one.run.mean_return,
        "value loss": lambda one: one.run.figure("value_loss"),
        "steps": lambda one: one.run.steps,
        Column("seconds", ".0f"): lambda one: one.run.seconds,
    }
    return make_table(title, columns, ranked)


def _to_level(level: float | None) -> dict[str | Column, Callable[[Contestant], Any]]:
    """The column of steps to a level, if there is one."""
    if level is None:
        return {}
    return {Column(f"steps to {level:g}", absent="never"): lambda one: one.steps_to_level}


def _effects(ranked: Sequence[Contestant]) -> Section | None:
    """What each value gets on average over all runs that have it; only where all have come as far
    and each value comes with several others."""
    if len({one.run.steps for one in ranked}) > 1:
        return None
    rows: list[list[Any]] = []
    for option in ranked[0].setting:
        means: dict[str, list[float]] = {}
        for one in ranked:
            if one.run.mean_return:
                means.setdefault(one.setting[option], []).append(one.run.mean_return.mean)
        if len(means) > 1 and min(map(len, means.values())) > 1:
            rows += [[option, value, len(own), np.mean(own)] for value, own in means.items()]
    header: list[str | Column] = ["option", Column("value", words=True), "runs", "return"]
    return Section("On average over all other settings", header=header, rows=rows) if rows else None


def write_sweep(path: Path, found: Sequence[Contestant]) -> None:
    """A line for each run: its settings and figures, with the ends of 95% intervals."""
    rows = []
    for one in sorted(found, key=lambda one: (one.table, one.rank)):
        mean = one.run.mean_return
        rows.append(
            {
                "name": one.name,
                **one.setting,
                "steps": one.run.steps,
                "seeds": one.run.seeds,
                **{
                    f"return_{end}": value
                    for end, value in (mean.as_json() if mean else {}).items()
                },
                **({} if one.level is None else {"steps_to_level": one.steps_to_level}),
                "value_loss": one.run.figure("value_loss"),
                "seconds": one.run.seconds,
            }
        )
    with clear_errors(f"write {path}"):
        write_csv(path, rows)
