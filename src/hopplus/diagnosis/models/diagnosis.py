"""Measure the model of a run, whatever it is of."""

import jax

from hopplus.config import ConfigError
from hopplus.diagnosis.models.goal import GoalDiagnosis
from hopplus.diagnosis.models.heldout import held_out
from hopplus.diagnosis.models.measures import Measures
from hopplus.diagnosis.models.opponent import OpponentDiagnosis
from hopplus.diagnosis.models.world import WorldDiagnosis
from hopplus.recorded.dataset import Data
from hopplus.recorded.models import Setting
from hopplus.types import Params

MOST_ROWS = 200_000  # that are measured by


ModelDiagnosis = GoalDiagnosis | OpponentDiagnosis | WorldDiagnosis
DIAGNOSES: dict[str, type[ModelDiagnosis]] = {
    "goal": GoalDiagnosis,
    "opponent": OpponentDiagnosis,
    "world": WorldDiagnosis,
}


def make_diagnosis(
    setting: Setting, data: Data, learned_from: str | None, most: int = MOST_ROWS
) -> ModelDiagnosis:
    """What measures a model that has learned from the play of a certain origin.

    Of data of the same origin, longer or shorter, only the episodes that are held out are used; of
    other data all. An origin that is not known may be the same.
    """
    if data.game != setting.game:
        raise ConfigError(f"{data.path} is of another game than the model, or of other settings")
    same = learned_from in (None, data.origin)
    share = setting.config.fit.held_out if same else 1.0
    return DIAGNOSES[setting.config.kind](setting, held_out(data, share, most))


def measure_seeds(
    diagnosis: ModelDiagnosis, setting: Setting, params: Params
) -> dict[int, Measures]:
    """The models of all seeds [S, ...], one after the other, by their seeds."""
    first = setting.config.seed
    return {
        first + place: diagnosis.measure(jax.tree.map(lambda leaf: leaf[place], params))  # noqa: B023
        for place in range(setting.config.seeds)
    }
