"""How well is a player's next action foreseen, and how well could it be?"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np

from hopplus.diagnosis.classes import (
    calibration,
    calibration_error,
    class_figures,
    confusion,
    cross_entropy,
    top_k,
)
from hopplus.diagnosis.heldout import HeldOut
from hopplus.diagnosis.measures import Measures
from hopplus.diagnosis.observers import Observer, best_possible, observe
from hopplus.learning.parts import Setting
from hopplus.learning.samples import Sampler, Source
from hopplus.types import Params


@eqx.filter_jit
def _predictions(
    sampler: Sampler, params: Params, prior_params: Params, source: Source, steps: np.ndarray
) -> jax.Array:
    """[M, A] log-probabilities of the actions of rows and seats [M, 2]."""

    def one(now: tuple[jax.Array, jax.Array]) -> jax.Array:
        step, number = now
        key = jax.random.fold_in(jax.random.key(0), number)
        sample = sampler(source, step, key, prior_params)
        log_probs: jax.Array = params(sample.view, sample.goal)
        return log_probs

    out: jax.Array = jax.lax.map(one, (steps, np.arange(len(steps))), batch_size=2048)
    return out


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
        figures = opponent_figures(
            log_probs, held.action, list(held.game.action_names), self.observers
        )
        figures["by_player"] = self._by_player(log_probs)
        tables = {
            "classes": figures["classes"],
            "confusion": _named(figures["confusion"], held.game.action_names),
            "calibration": figures["calibration"],
            "players": figures["by_player"],
        }

        def draw() -> Any:
            from hopplus.diagnosis.pictures import opponent_picture

            return opponent_picture(figures)

        return Measures("opponent", figures, tables, {"opponent": draw})

    def _by_player(self, log_probs: np.ndarray) -> list[dict[str, Any]]:
        rows = []
        for number, name in enumerate(self.held.players):
            mask = self.held.who == number
            if mask.any():
                top1 = top_k(log_probs[mask], self.held.action[mask], 1)
                rows.append({"player": name, "count": int(mask.sum()), "top1": top1})
        return rows


def opponent_figures(
    log_probs: np.ndarray, action: np.ndarray, names: list[str], observers: dict[str, Observer]
) -> dict[str, Any]:
    """The figures of [M, A] predictions of [M] actions."""
    first = log_probs.argmax(axis=1)
    table = confusion(action, first, len(names))
    by_class = class_figures(table)
    probability = np.exp(log_probs.max(axis=1))
    said = calibration(probability, first == action)
    figures: dict[str, Any] = {
        "samples": len(action),
        "top1": top_k(log_probs, action, 1),
        "top3": top_k(log_probs, action, 3),
        "cross_entropy": cross_entropy(log_probs, action),
        "calibration_error": calibration_error(said),
        "classes": [
            {
                "action": name,
                "count": int(by_class.counts[number]),
                "share": float(by_class.share[number]),
                "precision": float(by_class.precision[number]),
                "recall": float(by_class.recall[number]),
                "f1": float(by_class.f1[number]),
            }
            for number, name in enumerate(names)
        ],
        "confusion": table.tolist(),
        "actions": names,
        "calibration": said,
        "best": best_possible(observers),
    }
    if observers:
        watching = observers["watching"]
        recall = watching.recall()
        for number, row in enumerate(figures["classes"]):
            row["best_recall"] = float(recall[number])
        # Scored by what the players draw from, as the best is: luck in their draws left out.
        expected = np.take_along_axis(watching.truth, first[:, None], axis=1).mean()
        figures["expected_top1"] = float(expected)
        # For a model that is told a goal from the future this is no bound.
        figures["share_of_best"] = figures["expected_top1"] / figures["best"]["watching"]["top1"]
        figures["never_foreseen"] = [
            row["action"]
            for row in figures["classes"]
            if row["count"] and row["recall"] == 0 and row["best_recall"] > 0
        ]
    return figures


def _named(table: list[list[int]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [
        {"action": name, **dict(zip(names, row, strict=True))}
        for name, row in zip(names, table, strict=True)
    ]
