"""The tables about where it is lost who the others are."""

from collections.abc import Sequence

import numpy as np

from hopplus.diagnosis.introspection import Introspection
from hopplus.evaluation.statistics import estimate
from hopplus.report.page import Section


def understanding_sections(found: Sequence[Introspection]) -> list[Section]:
    """The three measures over seeds."""
    first = found[0]
    episodes = range(len(first.probe))
    numbers = [f"episode {number + 1}" for number in episodes]
    read = [
        [str(time), *(said([one.probe[e, place] for one in found]) for e in episodes)]
        for place, time in enumerate(first.times)
    ]
    predicted = [
        [", ".join(lineup), *(said([one[place] for one in by_seed]) for by_seed in _models(found))]
        for place, lineup in enumerate(first.lineups)
    ]
    moved = [
        [
            number,
            said([one.moved_alike[e] for one in found]),
            said([one.moved_other[e] for one in found]),
        ]
        for e, number in enumerate(numbers)
    ]
    return [
        Section(
            "Kinds of the others that a linear probe reads from what it infers",
            f"{first.chance:.3f} is chance. Over {len(found)} seed{'s' * (len(found) > 1)}, ± 95%.",
            header=["after steps", *numbers],
            rows=read,
        ),
        Section(
            "How often the models of the others are right",
            header=["others", "right", "at best"],
            rows=predicted,
        ),
        Section(
            "How far the policy moves with what another infers",
            "Total variation, from 0 to 1; a policy that listens moves more among others.",
            header=["", "among the same co-players", "among others"],
            rows=moved,
        ),
    ]


def said(values: Sequence[float]) -> str:
    """The mean over seeds with its interval; nothing where it cannot be told."""
    known = np.array(values)
    return "" if np.isnan(known).any() else str(estimate(known))


def _models(found: Sequence[Introspection]) -> list[list[np.ndarray]]:
    return [[one.accuracy for one in found], [one.best for one in found]]
