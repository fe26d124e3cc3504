"""From one checkpoint, side by side: what does the value loss become with one thing changed?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hopplus.diagnosis.subject import OnStep, Subject, replicas_of

AS_IT_IS, REAL_ONLY, ZERO = "as it is", "real steps only", "imagined rewards zero"
CHANGES: dict[str, dict[str, Any]] = {  # of the laboratory's switch
    AS_IT_IS: {},
    REAL_ONLY: {"imagine": False},
    ZERO: {"zero": True},
    "critic on real steps only": {"critic": False},
    "critic on both": {"critic": True},
}
REPLICAS = 4  # experiments side by side


@dataclass(frozen=True)
class Experiment:
    """The same checkpoint, one thing changed, a few updates."""

    name: str
    value_loss: list[float]  # by update, of real steps, mean over seats
    imagined_loss: list[float]  # of imagined ones, where values learn from them; else 0
    explained: list[float]
    returns: list[float]  # mean real return that values learn from
    imagines: bool  # whether anything imagined was learned from

    @property
    def final(self) -> float:
        """Over the second half."""
        return float(np.mean(self.value_loss[len(self.value_loss) // 2 :]))

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "final": self.final}


def run_experiments(subject: Subject, updates: int, on_step: OnStep) -> list[Experiment]:
    """So many updates of each; none of a learner that imagines nothing."""
    if not subject.learner.auxiliary.imagined_rollouts:
        return []
    lab = subject.laboratory
    critic = subject.config.imagine.critic_on == "both"
    names = [
        name
        for name, change in CHANGES.items()
        if change.get("critic", not critic) != critic  # what it is already needs no experiment
    ]
    switch = lab.switches([CHANGES[name] for name in names])
    now = replicas_of(subject.learning, [0] * len(names))
    records = []
    for number in range(updates):
        now, record, _ = lab.update(now, switch)
        records.append(record)
        on_step(f"experiments, update {number + 1} of {updates}")

    def series(name: str, replica: int) -> list[float]:
        return [float(np.mean(record[name][replica])) for record in records if name in record]

    return [
        Experiment(
            name,
            series("value_loss", replica),
            series("imagined/value_loss", replica),
            series("explained", replica),
            series("real/return", replica),
            any(series("imagined/open", replica)) and name != REAL_ONLY,
        )
        for replica, name in enumerate(names)
    ]
