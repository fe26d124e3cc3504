"""What TensorBoard shows of a run: curves by the names that CleanRL made known."""

import time
from collections.abc import Callable

import numpy as np

from hopplus.config import TrainConfig
from hopplus.learning.auxiliary.table import added_up, charts, gate_of, others_of
from hopplus.learning.from_run import learning_seats
from hopplus.runs.tensorboard import Record, by_seed

LOSSES = {
    "policy_loss": "policy_loss",
    "value_loss": "value_loss",
    "value_loss_mixed": "value_loss_mixed",
    "entropy": "entropy",
    "kl": "approx_kl",
    "clipped": "clipfrac",
    "gradient_norm": "gradient_norm",
    "explained": "explained_variance",
}


class Pace:
    """Steps per second between one dispatch and the next; the first has compilation in it."""

    def __init__(self, steps: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.steps, self._clock = steps, clock  # steps of an update, of all seeds
        self._last: float | None = None

    def lap(self, updates: int = 1) -> float | None:
        """Call after each dispatch of so many updates: None after the first."""
        now, before = self._clock(), self._last
        self._last = now
        return None if before is None else updates * self.steps / max(now - before, 1e-9)


def learning_rate_at(config: TrainConfig, step: int) -> float:
    """The learning rate at a gradient step, as the learner's own schedule has it, without a program
    of its own."""
    c = config.ppo
    steps = config.updates * c.epochs * c.minibatches
    share = max(0.0, 1 - step / steps) if c.anneal else 1.0
    return float(np.float32(share * c.learning_rate))


def training_curves(
    record: Record, config: TrainConfig, learning_rate: float, steps_per_second: float | None
) -> dict[str, float]:
    """Of an update: means over seeds and sets of parameters, and what differs by seed or seat."""
    curves = {"charts/learning_rate": learning_rate}
    if steps_per_second is not None:
        curves["charts/SPS"] = steps_per_second
    return curves | _returns(record, config) | _losses(record, config) | _models(record, config)


def _returns(record: Record, config: TrainConfig) -> dict[str, float]:
    """Means over the episodes that ended in the update; nothing where there were none."""
    episodes, sums = np.asarray(record["episodes"]), np.asarray(record["return_sum"])  # [S], [S, N]
    if not episodes.any():
        return {}
    learning = learning_seats(config)
    seats = sums.sum(axis=0) / episodes.sum()
    name = "episodic_return"
    curves = {f"charts/{name}": float(seats[learning].mean())}
    curves |= {f"by_seat/{name}/seat_{seat}": float(mean) for seat, mean in enumerate(seats)}
    for place in np.flatnonzero(episodes):
        means, seed = sums[place] / episodes[place], config.seed + place
        curves[f"by_seed/{name}/seed_{seed}"] = float(means[learning].mean())
        curves |= {
            f"by_seed_and_seat/{name}/seed_{seed}_seat_{seat}": float(mean)
            for seat, mean in enumerate(means)
        }
    return curves


def _losses(record: Record, config: TrainConfig) -> dict[str, float]:
    """Of the policy and the value, [S, sets] each."""
    curves = {}
    for name, known in LOSSES.items():
        if name in record:
            curves[f"losses/{known}"] = float(np.mean(record[name]))
            curves |= by_seed(known, record[name], config.seed)
    return curves


def _models(record: Record, config: TrainConfig) -> dict[str, float]:
    """Of the auxiliary models, and of imagination where a gate is open."""
    curves = {}
    counts = added_up()
    for name, values in record.items():
        if "/" not in name or name in counts:
            continue
        part, _, rest = name.partition("/")
        shown = np.asarray(values)
        if gate := gate_of(name):
            shown = shown[np.asarray(record.get(gate, 0.0)) > 0]  # of [S, sets]
            if not shown.size:  # a zero would stand for nothing
                continue
        if rest.startswith("loss/"):
            curves[f"losses/{part}/{rest.removeprefix('loss/')}"] = float(shown.mean())
        elif rest in LOSSES:
            curves[f"losses/{part}/{LOSSES[rest]}"] = float(shown.mean())
        else:
            curves[f"{part}/{rest}"] = float(shown.mean())
    for chart in charts():
        by_action, by_other = (
            [np.sum(record[name], axis=0) for name in pair] if pair and pair[0] in record else None
            for pair in (chart.by_action, chart.by_other)
        )  # hits and counts [sets, N - 1, A]
        first = next(iter(chart.names))
        if by_action:
            hit, count = (part.sum(axis=(0, 1)) for part in by_action)
            for action in np.flatnonzero(count):
                name = f"{first.partition('/')[0]}/recall/action_{action}"
                curves[name] = float(hit[action] / count[action])
        if by_other:
            hit, count = (part.sum(axis=-1) for part in by_other)
            for number, place, seat, other in others_of(by_other[1], learning_seats(config)):
                if count[number, place]:
                    share = hit[number, place] / count[number, place]
                    curves[f"{first}/seat_{seat}_of_{other}"] = float(share)
    return curves
