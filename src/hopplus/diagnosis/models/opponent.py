"""How well is a player's next action predicted, and how well could it be?"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from hopplus.diagnosis.models.classes import (
    bin_calibration,
    calibration_error,
    count_confusions,
    cross_entropy,
    describe_classes,
    score_top,
)
from hopplus.diagnosis.models.heldout import HeldOut
from hopplus.diagnosis.models.measures import Measures
from hopplus.diagnosis.models.observers import Observer, observe
from hopplus.evaluation.replay.watch import LEAST, Watched
from hopplus.program_cache import kept_jit
from hopplus.recorded.models import Setting
from hopplus.recorded.samples import Sampler, Source
from hopplus.types import Params


@kept_jit
def _predictions(
    sampler: Sampler, params: Params, prior_params: Params, source: Source, steps: np.ndarray
) -> jax.Array:
    """[M, A] log-probabilities of the actions of rows and seats [M, 2]."""

    def one(now: tuple[jax.Array, jax.Array]) -> jax.Array:
        step, number = now
        key = jax.random.fold_in(jax.random.key(0), number)
        sample = sampler(source, step, key, prior_params)
        return params(sample.view, sample.goal)

    return jax.lax.map(one, (steps, np.arange(len(steps))), batch_size=2048)


@dataclass(frozen=True)
class OpponentDiagnosis:
    """Measures opponent models on held-out play."""

    setting: Setting
    held: HeldOut

    @cached_property
    def observers(self) -> dict[str, Observer]:
        return observe(self.held)

    def measure(self, params: Params) -> Measures:
        held, setting = self.held, self.setting
        log_probs = np.asarray(
            _predictions(setting.sampler, params, setting.prior_params, held.source, held.steps)
        )
        names = list(held.game.action_names)
        figures = describe_predictions(log_probs, held.action, names, self.observers)
        figures["by_player"] = self._by_player(log_probs)
        tables = {
            "classes": figures["classes"],
            "confusion": [
                {"action": name, **dict(zip(names, row, strict=True))}
                for name, row in zip(names, figures["confusion"], strict=True)
            ],
            "calibration": figures["calibration"],
            "players": figures["by_player"],
        }
        return Measures("opponent", figures, tables)

    def _by_player(self, log_probs: np.ndarray) -> list[dict[str, Any]]:
        rows = []
        for number, name in enumerate(self.held.players):
            mask = self.held.who == number
            if mask.any():
                top1 = score_top(log_probs[mask], self.held.action[mask], 1)
                rows.append({"player": name, "count": int(mask.sum()), "top1": top1})
        return rows


def describe_predictions(
    log_probs: np.ndarray, action: np.ndarray, names: list[str], observers: dict[str, Observer]
) -> dict[str, Any]:
    """The figures of [M, A] predictions of [M] actions."""
    first = log_probs.argmax(axis=1)
    table = count_confusions(action, first, len(names))
    by_bin = bin_calibration(np.exp(log_probs.max(axis=1)), first == action)
    figures: dict[str, Any] = {
        "samples": len(action),
        "top1": score_top(log_probs, action, 1),
        "top3": score_top(log_probs, action, 3),
        "cross_entropy": cross_entropy(log_probs, action),
        "calibration_error": calibration_error(by_bin),
        "classes": describe_classes(table, names),
        "confusion": table.tolist(),
        "actions": names,
        "calibration": by_bin,
        "best": {name: observer.figures() for name, observer in observers.items()},
    }
    if observers:
        watching = observers["watching"]
        for row, recall in zip(figures["classes"], watching.recall(), strict=True):
            row["best_recall"] = float(recall)
        # Scored by what the players draw from, as the best is: luck in their draws left out.
        expected = np.take_along_axis(watching.truth, first[:, None], axis=1).mean()
        figures["expected_top1"] = float(expected)
        # For a model that is told a goal from the future this is no bound.
        figures["share_of_best"] = figures["expected_top1"] / figures["best"]["watching"]["top1"]
        figures["never_predicted"] = [
            row["action"]
            for row in figures["classes"]
            if row["count"] and row["recall"] == 0 and row["best_recall"] > 0
        ]
    return figures


def measure_in_play(seen: Watched, names: list[str]) -> Measures:
    """The figures of all that players with models expected, while they played, of others who had a
    choice."""
    told = np.asarray(seen.modelling)  # [T, B, N, N]
    likely = np.asarray(seen.expected)[told]
    log_probs = np.where(likely > 0, np.log(np.maximum(likely, LEAST)), -np.inf)
    action = np.broadcast_to(np.asarray(seen.trajectory.act.action)[:, :, None], told.shape)[told]
    figures = describe_predictions(log_probs, action, names, {})
    *_, looks, other = np.nonzero(told)
    pairs = []
    for seat, about in zip(*np.nonzero(told.any(axis=(0, 1))), strict=True):
        mask = (looks == seat) & (other == about)
        pairs.append(
            {
                "seat": int(seat),
                "other": int(about),
                "count": int(mask.sum()),
                "top1": score_top(log_probs[mask], action[mask], 1),
                "top3": score_top(log_probs[mask], action[mask], 3),
                "cross_entropy": cross_entropy(log_probs[mask], action[mask]),
            }
        )
    return Measures("opponent", figures, {"pairs": pairs})
