"""How well do players foresee each other while they play? By what they expect at the moment."""

from typing import Any

import numpy as np

from hopplus.diagnosis.classes import cross_entropy, top_k
from hopplus.diagnosis.measures import Measures
from hopplus.diagnosis.opponent import opponent_figures
from hopplus.evaluation.watch import LEAST, Watched


def measure_foresight(seen: Watched, names: list[str]) -> Measures:
    """The figures of all that those with models expected of others who had a choice."""
    told = np.asarray(seen.told)  # [T, B, N, N]
    log_probs = np.log(np.maximum(np.asarray(seen.expected)[told], LEAST))
    log_probs = np.where(np.asarray(seen.expected)[told] > 0, log_probs, -np.inf)
    action = np.broadcast_to(np.asarray(seen.trajectory.act.action)[:, :, None], told.shape)[told]
    figures = opponent_figures(log_probs, action, names, {})
    *_, looks, other = np.nonzero(told)
    pairs = []
    for seat, about in zip(*np.nonzero(told.any(axis=(0, 1))), strict=True):
        mask = (looks == seat) & (other == about)
        pairs.append(
            {
                "seat": int(seat),
                "other": int(about),
                "count": int(mask.sum()),
                "top1": top_k(log_probs[mask], action[mask], 1),
                "cross_entropy": cross_entropy(log_probs[mask], action[mask]),
            }
        )

    def draw() -> Any:
        from hopplus.diagnosis.pictures import opponent_picture

        return opponent_picture(figures)

    return Measures("opponent", figures, {"pairs": pairs}, {"opponent": draw})
