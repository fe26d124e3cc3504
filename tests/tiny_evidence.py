"""Evidence of a value loss, of which a test gives what it is about."""

from typing import Any

from hopplus.diagnosis.value_loss.evidence import ValueLossEvidence
from hopplus.diagnosis.value_loss.sources import StepSource


def evidence(**given: Any) -> ValueLossEvidence:
    """With these alone; nothing else is looked at."""
    names = (
        "subject",
        "lesson",
        "sources",
        "targets",
        "world",
        "opponents",
        "goals_apart",
        "experiments",
        "courses",
        "over_time",
    )
    parts: dict[str, Any] = {name: given.get(name) for name in names}
    return ValueLossEvidence(**parts)


def source(**given: Any) -> StepSource:
    usual: dict[str, Any] = {
        "steps": 9,
        "reward": [0.0, 0.0, 0.0, 1.0, 5.0],
        "returns": [0.0] * 5,
        "value": [0.0] * 5,
        "return_mean": 1.0,
        "return_variance": 1.0,
        "value_loss": 0.5,
        "explained": 0.5,
        "goal": [0.0] * 5,
        "goal_size": 1.0,
        "goal_zero": 0.0,
    }
    return StepSource(**(usual | given))
