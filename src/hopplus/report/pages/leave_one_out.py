"""The page of leave-one-family-out: what players get among a family that they have not met."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hopplus.evaluation.leave_one_out import FALL, Table
from hopplus.evaluation.statistics import ENOUGH, Estimate, estimate
from hopplus.report.figures.evaluation import draw_families
from hopplus.report.numbers import counted, doubt_seeds, said
from hopplus.report.page import Column, Page, Section, make_table

OUT = "left out"


def leave_one_out_page(title: str, found: Table, more: Sequence[str]) -> Page:
    """Returns by episode among every family, the way from blind to best responses that is made,
    what is lost on the way, and who is ahead of whom."""
    seeds = len(found.best)
    lines = [f"mean returns ± 95% over {counted(seeds, 'seed')}"]
    lines += filter(None, [doubt_seeds(seeds)])
    unknown = int(np.isnan(found.best).any(axis=(0, 2)).sum())
    lines += [f"best responses to {unknown} of the families are not known"] * bool(unknown)
    closed = [one for k, one in enumerate(found.families) if k not in found.passable]
    if closed:
        lines.append(
            f"no share in {len(closed)} of {len(found.families)} families, where best responses"
            f" are not clearly ahead of blind: {said(closed)}"
        )
    for name in found.rows:
        where = said(found.fallen(name), absent="no family")
        lines.append(f"{name} loses over {FALL:.0%} of its return by the last episode in: {where}")
    made = {name: found.share_of_mean(name) for name in found.others}
    furthest = max(
        ((shares[-1], name) for name, shares in made.items() if shares),
        key=lambda one: one[0].mean,
        default=None,
    )
    answer = "The share of the gap from blind to best responses is not known"
    if furthest:
        share, name = furthest
        answer = f"{name} closes most of the gap from blind to best responses: {share}"
        answer += " in the last episode"
    sure = furthest is not None and furthest[0].mean > furthest[0].half_width
    picture = Section(
        "Episode by episode", pictures=[("returns by episode", lambda: draw_families(found))]
    )
    return Page(
        title,
        answer,
        "good" if sure and seeds >= ENOUGH else "bad",
        [*lines, *more],
        sections=[_returns(found), *_shares(found), _changes(found), _ahead(found), picture],
        payload=found.as_json(),
    )


def _episodes(found: Table, names: Sequence[str]) -> list[str]:
    """The names of columns."""
    return [f"{name}\nepisode {number}" for name in names for number in found.numbers]


def _returns(found: Table) -> Section:
    columns = [found.rows[found.blind].mean(axis=-1), found.best.mean(axis=-1)]
    columns += [found.rows[name][..., n - 1] for name in found.others for n in found.numbers]

    def row(part: slice) -> list[Estimate | None]:
        means = [estimate(column[:, part].mean(axis=1)) for column in columns]
        return [None if np.isnan(one.mean) else one for one in means]

    rows = [[family, *row(slice(k, k + 1))] for k, family in enumerate(found.families)]
    return Section(
        "Returns among the family that was left out",
        f"blind is {found.blind}; it and best responses are means over the trial.",
        header=[OUT, "blind", "best responses", *_episodes(found, found.others)],
        rows=[*rows, ["mean", *row(slice(None))]],
        apart=1,
    )


def _shares(found: Table) -> list[Section]:
    """None without anyone who could have made any of the way."""
    if not found.others or not found.passable:
        return []

    def row(tell: Callable[[str], list[Estimate] | None]) -> list[Estimate | None]:
        shares = [tell(name) for name in found.others]
        cells = [one[n - 1] if one else None for one in shares for n in found.numbers]
        return [None if one is None or np.isnan(one.mean) else one for one in cells]

    each = {name: found.shares(name) for name in found.others}
    rows: list[list[Any]] = [
        [family, *row(lambda name: each[name][k])]  # noqa: B023
        for k, family in enumerate(found.families)
    ]
    sums = [["share of the mean gap", *row(found.share_of_mean)]]
    sums += [[f"mean of {len(found.passable)} shares", *row(found.mean_of_shares)]]
    return [
        Section(
            "Share of the gap from blind to best responses",
            header=[OUT, *(Column(one, absent="-") for one in _episodes(found, found.others))],
            rows=[*rows, *sums],
            apart=2,
        )
    ]


def _changes(found: Table) -> Section:
    places: list[tuple[str, int | None]] = [(one, k) for k, one in enumerate(found.families)]
    return Section(
        "From the first episode to the last, as a share of the return in the first",
        header=[OUT, *(Column(name, absent="-") for name in found.rows)],
        rows=[
            [called, *(found.change(name, place) for name in found.rows)]
            for called, place in [*places, ("mean", None)]
        ],
        apart=1,
    )


def _ahead(found: Table) -> Section:
    def named(side: int) -> Callable[[Any], str]:
        return lambda one: said([found.families[k] for k in one.places(side)], absent="-")

    return make_table(
        "Who is ahead of whom, by differences of the same seeds",
        {
            "row": lambda one: one.one,
            Column("minus", words=True): lambda one: one.other,
            Column("in", words=True): lambda one: one.over,
            "difference": lambda one: one.difference,
            "ahead in": lambda one: f"{len(one.places(1))} of {len(found.families)}",
            Column("behind in", words=True): named(-1),
            Column("not clear in", words=True): named(0),
        },
        found.comparisons(),
    )
