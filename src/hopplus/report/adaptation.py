"""The pages of adaptation: what a player gets among new company, and what there is to be had."""

from typing import Any

from hopplus.evaluation.adaptation import Adaptation
from hopplus.evaluation.references import References
from hopplus.evaluation.statistics import ENOUGH, estimate
from hopplus.report.figures.adaptation import draw_adaptation, draw_certificate
from hopplus.report.numbers import counted, doubt_seeds, said
from hopplus.report.page import Page, Section

PRACTISED = (
    "Among company of others than the mixtures' (the mean marked practised), told has learned and"
    " blind has not: what it brings there is knowing and practice."
)


def adaptation_page(name: str, found: Adaptation, known: References | None, learning: str) -> Page:
    """Returns among each company, beside those of told and blind where they were measured."""
    seeds = len(found.returns)
    means, closed = found.means(), found.closed(known) if known else None
    rows: list[list[Any]] = [
        [company, *found.estimates(place)] for place, company in enumerate(found.companies)
    ]
    totals = [["mean", *means], *([["share of the gap closed", *closed]] if closed else [])]
    if closed:
        answer = f"Share of the gap that is closed: {closed[0]} in {found.columns[0]}"
        if len(closed) > 1:
            answer += f", {closed[-1]} in {found.columns[-1]}"
    else:
        answer = f"Mean return {means[0]} in {found.columns[0]}"
    lines = ["mean returns ± 95% over seeds"] * (seeds > 1)
    lines += filter(None, [doubt_seeds(seeds)])
    if known and closed is None:
        lines.append("among this company there is no gap between blind and told to close")
    title = f"{name}, learning: {learning}, {counted(seeds, 'seed')}"
    table = Section(title, header=["others", *found.columns], rows=rows + totals, apart=len(totals))
    picture = Section(
        "By company",
        "Dots are the player's returns, from the first column (light) to the last (dark).",
        pictures=[("returns by company", lambda: draw_adaptation(found, known))],
    )
    sure = closed is None or closed[-1].mean > closed[-1].half_width
    return Page(
        f"hopplus adapt: {name}",
        answer,
        "good" if sure and seeds >= ENOUGH else "bad",
        lines,
        sections=[table, picture],
        payload={
            "learning": learning,
            **found.as_json(),
            "closed": closed,
        },
    )


def certificate_page(found: References, title: str) -> Page:
    """What being told brings, by company."""
    header, rows = certificate_rows(found)
    gaps, gap = found.gaps(), found.gap
    sure = sum(one.mean > one.half_width for one in gaps)
    lines = [
        f"the largest gap, {gaps[found.widest]}, is with {said(found.companies[found.widest])};"
        f" with {sure} of {len(gaps)} companies its interval is above 0"
    ]
    lines += [PRACTISED] * bool(found.practised.any())
    lines += filter(None, [doubt_seeds(len(found.told))])
    table = Section(
        f"return of seat 0, {title}", header=header, rows=rows, apart=len(rows) - len(gaps)
    )
    drawn = ("told and blind by company", lambda: draw_certificate(found))
    return Page(
        f"hopplus certify: {title}",
        f"Being told whom one faces brings {gap} on average",
        "good" if gap.mean > gap.half_width else "bad",
        lines,
        sections=[table, Section("By company", pictures=[drawn])],
        payload=found.as_json(),
    )


def certificate_rows(found: References) -> tuple[list[str], list[list[Any]]]:
    """The names of columns; a row for each company, and one for the mean over the mixtures and over
    the companies that only told has learned among, where there are any."""
    columns = {
        "told": found.told,
        "blind": found.blind,
        "told − blind": found.told - found.blind,
        "random": found.random,
    }
    rows = [
        [company, *(estimate(returns[:, place]) for returns in columns.values())]
        for place, company in enumerate(found.companies)
    ]
    for name, held in (("mean", ~found.practised), ("mean, practised", found.practised)):
        if held.any():
            means = (estimate(returns[:, held].mean(axis=1)) for returns in columns.values())
            rows.append([name, *means])
    return ["others", *columns], rows
