"""Measure the model of a run, whatever it is of."""

from typing import Protocol

import jax

from hopplus.diagnosis.goal import GoalDiagnosis
from hopplus.diagnosis.heldout import held_out
from hopplus.diagnosis.measures import Measures
from hopplus.diagnosis.opponent import OpponentDiagnosis
from hopplus.diagnosis.world import WorldDiagnosis
from hopplus.learning.dataset import Data
from hopplus.learning.parts import Setting
from hopplus.types import Params

MOST_ROWS = 200_000  # that are measured by


class Diagnosis(Protocol):
    """Measures one kind of model on held-out play."""

    def measure(self, params: Params) -> Measures: ...


def make_diagnosis(
    setting: Setting, data: Data, learned_from: str, most: int = MOST_ROWS
) -> Diagnosis:
    """What measures a model: by the held-out episodes of the data it learned from (known by its
    fingerprint), or by all episodes of other data."""
    same = data.fingerprint == learned_from
    held = held_out(data, setting.config.fit.held_out if same else 1.0, most)
    match setting.config.kind:
        case "goal":
            return GoalDiagnosis(setting, held)
        case "opponent":
            return OpponentDiagnosis(setting, held)
        case _:
            return WorldDiagnosis(setting, held)


def measure_seeds(diagnosis: Diagnosis, params: Params) -> list[Measures]:
    """One after the other, the models of all seeds [S, ...]."""
    seeds = jax.tree.leaves(params)[0].shape[0]
    return [
        diagnosis.measure(jax.tree.map(lambda leaf: leaf[seed], params))  # noqa: B023
        for seed in range(seeds)
    ]
