"""How sure a comparison over seeds is, in the numbers that the field reports."""

from collections.abc import Sequence

from hopplus.evaluation.statistics import AcrossSeeds
from hopplus.report.page import Column, Section
from hopplus.report.translations import Translations

IQM = (
    "IQM is the interquartile mean over seeds; intervals are of 95%, by bootstrap over seeds"
    " (Agarwal et al., 2021)."
)
IMPROVEMENT = (
    "The probability of improvement is that a run of one seed does better than one of {first}."
)


def across_seeds_section(
    names: Sequence[str], found: Sequence[AcrossSeeds | None], say: Translations | None = None
) -> Section | None:
    """A row for each contestant; none if nobody has several seeds."""
    say = say or Translations()
    if not any(found):
        return None
    header = [Column(say("run"), words=True), Column(say("IQM [95% bootstrap interval]"))]
    rows: list[list[object]] = [
        [name, one and one.iqm] for name, one in zip(names, found, strict=True)
    ]
    text = say(IQM)
    if any(one and one.improvement for one in found):
        header.append(Column(say("probability of improvement")))
        rows = [[*row, one and one.improvement] for row, one in zip(rows, found, strict=True)]
        text = f"{text} {say(IMPROVEMENT, first=names[0])}"
    return Section(say("Across seeds"), text, header=header, rows=rows)
