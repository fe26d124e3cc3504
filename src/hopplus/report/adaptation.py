"""The pages of adaptation: what a player gets among new company, and what there is to be had."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hopplus.evaluation.adaptation import Adaptation
from hopplus.evaluation.references import References
from hopplus.evaluation.statistics import ENOUGH, estimate
from hopplus.report.page import Page, Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOLD, BLIND, OWN = "#009E73", "#D55E00", "#0072B2"  # Okabe and Ito's

PRACTISED = (
    "Among company of others than the mixtures' (the mean marked practised), told has learned and"
    " blind has not: what it brings there is knowing and practice."
)


def adaptation_page(
    name: str, found: Adaptation, known: References | None, learning: str, command: str
) -> Page:
    """Returns among each company, beside those of told and blind where they were measured."""
    seeds = len(found.returns)
    means, closed = found.means(), found.closed(known) if known else None
    rows = [
        [", ".join(company), *map(str, found.estimates(place))]
        for place, company in enumerate(found.companies)
    ]
    rows.append(["mean", *map(str, means)])
    if closed:
        rows.append(["share of the gap closed", *map(str, closed)])
        answer = f"Share of the gap that is closed: {closed[0]} in {found.columns[0]}"
        if len(closed) > 1:
            answer += f", {closed[-1]} in {found.columns[-1]}"
    else:
        answer = f"Mean return {means[0]} in {found.columns[0]}"
    over = f"Means over {seeds} seeds, ± 95%" if seeds > 1 else "One seed, so no intervals"
    lines = [f"Learning: {learning}. {over}."]
    lines += [f"⚠ below {ENOUGH} seeds, intervals say little"] * (seeds < ENOUGH)
    if known and closed is None:
        lines.append("Among this company there is no gap between blind and told to close.")
    table = Section("Returns", header=["others", *found.columns], rows=rows)
    picture = Section(
        "By company",
        "Dots are the player's returns, from the first column (light) to the last (dark).",
        pictures=[("returns by company", draw_adaptation(found, known))],
    )
    sure = closed is None or closed[-1].mean > closed[-1].half_width
    mark = "good" if sure and seeds >= ENOUGH else "bad"
    return Page(f"hopplus adapt: {name}", answer, mark, lines, command, [table, picture])


def certificate_page(found: References, title: str, command: str) -> Page:
    """What being told brings, by company."""
    header, rows = certificate_rows(found)
    seeds, gap = len(found.told), found.gap
    most = f"{found.gaps()[found.widest]}, is with {', '.join(found.companies[found.widest])}"
    lines = [f"The largest gap, {most}."]
    lines += [PRACTISED] * bool(found.practised.any())
    lines += [f"⚠ below {ENOUGH} seeds, intervals say little"] * (seeds < ENOUGH)
    sections = [
        Section("Told and blind", header=header, rows=rows),
        Section("By company", pictures=[("told and blind by company", draw_certificate(found))]),
    ]
    mark = "good" if gap.mean > gap.half_width else "bad"
    answer = f"Being told whom one faces brings {gap} on average"
    return Page(f"hopplus certify: {title}", answer, mark, lines, command, sections)


def certificate_rows(found: References) -> tuple[list[str], list[list[str]]]:
    """The names of columns; a row for each company, and one for the mean over the mixtures and over
    the companies that only told has learned among, where there are any."""
    gap = found.told - found.blind
    columns = {
        "told": found.told,
        "blind": found.blind,
        "told − blind": gap,
        "random": found.random,
    }
    names = [", ".join(company) for company in found.companies]
    rows = [
        [name, *(str(estimate(returns[:, place])) for returns in columns.values())]
        for place, name in enumerate(names)
    ]
    for name, held in (("mean", ~found.practised), ("mean, practised", found.practised)):
        if held.any():
            means = (estimate(returns[:, held].mean(axis=1)) for returns in columns.values())
            rows.append([name, *map(str, means)])
    return ["others", *columns], rows


def draw_adaptation(found: Adaptation, known: References | None) -> "Figure":
    """Returns of each column by company, with told and blind as marks."""
    figure, axes = _axes([", ".join(company) for company in found.companies])
    columns = len(found.columns)
    for column in range(columns):
        means = found.returns[:, :, column].mean(axis=0)
        strength = 0.25 + 0.75 * (column + 1) / columns
        last = column == columns - 1
        axes.plot(
            means,
            range(len(means)),
            "o",
            color=OWN,
            alpha=strength,
            label=found.columns[column] if last or column == 0 else None,
        )
    if known:
        places = {company: place for place, company in enumerate(known.companies)}
        held = [(row, places[c]) for row, c in enumerate(found.companies) if c in places]
        for name, values, colour, mark in (
            ("told", known.told, TOLD, ">"),
            ("blind", known.blind, BLIND, "<"),
        ):
            at = [values[:, place].mean() for _, place in held]
            axes.plot(
                at, [row for row, _ in held], mark, color=colour, fillstyle="none", label=name
            )
    axes.legend(loc="best")
    return figure


def draw_certificate(found: References) -> "Figure":
    """Told and blind by company, with a line for the gap."""
    figure, axes = _axes([", ".join(company) for company in found.companies])
    for row in range(len(found.companies)):
        ends = [one[:, row].mean() for one in (found.blind, found.told)]
        axes.plot(ends, [row, row], "-", color="grey", linewidth=1)
    rows = range(len(found.companies))
    marks = {"told": (TOLD, ">"), "blind": (BLIND, "<"), "random": ("grey", "x")}
    for name, values in found.returns.items():
        colour, mark = marks[name]
        axes.plot(values.mean(axis=0), rows, mark, color=colour, label=name)
    axes.legend(loc="best")
    return figure


def _axes(names: Sequence[str]) -> tuple["Figure", Any]:
    from matplotlib.figure import Figure  # playing and learning do without

    figure = Figure(figsize=(9, 1.5 + 0.32 * len(names)), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("return")
    axes.grid(axis="x", alpha=0.3)
    return figure, axes
