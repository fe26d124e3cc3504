"""How well the others are foreseen, and whether the models know it: the tables and the picture."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hopplus.diagnosis.foresight import Foresight
from hopplus.evaluation.statistics import estimate
from hopplus.report.figures.models import draw_foresight
from hopplus.report.numbers import counted
from hopplus.report.page import Section


def foresight_sections(found: Sequence[Foresight]) -> list[Section]:
    """Over seeds [S]; nothing where nobody was asked about."""
    if not found:
        return []
    lineups, episodes = found[0].lineups, range(found[0].right.shape[1])
    columns = [f"episode {number + 1}" for number in episodes]

    def rows(values: np.ndarray) -> list[list[Any]]:
        """Of [S, K, E], by lineup and over all of them."""
        by_lineup = [
            [lineup, *(estimate(column) for column in values[:, place].T)]
            for place, lineup in enumerate(lineups)
        ]
        return [*by_lineup, ["mean", *(estimate(column) for column in values.mean(axis=1).T)]]

    right, best, nats = (
        np.array([getattr(one, name) for one in found]) for name in ("right", "best", "nats")
    )
    over = f"Over {counted(len(found), 'seed')}, ± 95%."
    error = np.array([one.calibration_error for one in found])  # [S, E]
    # The picture is of the first seed: dots of several would be no bins.
    shown = {columns[0]: found[0].calibration[0], columns[-1]: found[0].calibration[-1]}
    totals = [
        ["right", *(estimate(column) for column in right.mean(axis=1).T)],
        ["at best", *(estimate(column) for column in best.mean(axis=1).T)],
    ]
    return [
        Section(
            "Accuracy of the models on these co-players",
            f"Top-1 accuracy minus the best possible: 0 is best. {over}",
            header=["others", *columns],
            rows=rows(right - best) + totals,
            apart=1 + len(totals),
        ),
        Section(
            "KL divergence of the models, in nats per action",
            "From the co-players' true policies to the predicted ones: 0 is best.",
            header=["others", *columns],
            rows=rows(nats),
            apart=1,
        ),
        Section(
            "Calibration of the models",
            "Expected calibration error. On the diagonal predicted probabilities match"
            " frequencies; below it the models are overconfident. The picture is of the first"
            " seed.",
            header=["", *columns],
            rows=[["off by", *(estimate(column) for column in error.T)]],
            pictures=[("calibration", lambda: draw_foresight(shown))],
        ),
    ]
