"""What one prediction of a world model got right and wrong."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.models.world import Prediction, stepped
from hopplus.types import Sample


class Errors(eqx.Module):
    """What one prediction got right and wrong, on the device or on the host."""

    channel: Any  # [C] mean squared error
    reward: Any  # [] squared error of the seat's own
    rewards: Any  # [] of all present seats, mean
    gone: Any  # [] bool, the seat's own end predicted
    done: Any  # [] bool, the episode's end predicted
    legal: Any  # [] bool, the seat's legal actions all predicted
    exact: Any  # [] bool, every cell of every plane
    laws: dict[str, Any]  # [] bool each, what could follow at all; see `consistent`
    true_sum: Any  # [C] values where the truth is 1, added up
    true_least: Any  # [C] the least of them
    true_count: Any  # [C] how many
    false_sum: Any  # [C] values where the truth is 0, added up
    false_count: Any  # [C] how many
    false_most: Any  # [C] the largest of them


def measure_errors(
    prediction: Prediction, settled: jax.Array, gone: jax.Array, sample: Sample
) -> Errors:
    """Compare one prediction, and what it was settled to, with what came."""
    truth, given = sample.after.planes, prediction.planes
    present = sample.present
    reward = (prediction.reward - sample.reward) ** 2
    yes = truth > 0
    return Errors(
        channel=((given - truth) ** 2).mean(axis=(0, 1)),
        reward=reward[0],
        rewards=jnp.where(present, reward, 0.0).sum() / present.sum(),
        gone=gone[0] == ~sample.present_after[0],
        done=(prediction.done > 0.5) == sample.done,
        legal=((prediction.legal[0] > 0.5) == sample.legal_after[0]).all(),
        exact=(settled == truth).all(),
        laws=consistent(sample.view.planes, settled, gone),
        true_sum=jnp.where(yes, given, 0.0).sum(axis=(0, 1)),
        true_least=jnp.where(yes, given, 1.0).min(axis=(0, 1)),
        true_count=yes.sum(axis=(0, 1)),
        false_sum=jnp.where(yes, 0.0, given).sum(axis=(0, 1)),
        false_count=(~yes).sum(axis=(0, 1)),
        false_most=jnp.where(yes, 0.0, given).max(axis=(0, 1)),
    )


def consistent(before: jax.Array, settled: jax.Array, gone: jax.Array) -> dict[str, jax.Array]:
    """Which laws settled planes [H, W, C] keep, with the seats in `gone` [N] said to be gone:
    who stays is in one cell and who is gone in none; nobody goes further than one step; nobody is
    on an obstacle; things are where there were some; nobody who was gone is back."""
    seats = len(gone)
    here, there = before[..., :seats], settled[..., :seats]
    were = here.any(axis=(0, 1))
    count = there.sum(axis=(0, 1))
    near = stepped(here).any(axis=0)
    return {
        "one_cell": jnp.where(were, count == jnp.where(gone, 0, 1), True).all(),
        "one_step": ~((there > 0) & ~near & were).any(),
        "off_walls": ~((there > 0) & (before[..., seats, None] > 0)).any(),
        "things_stay": ~((settled[..., seats:] > 0) & (before[..., seats:] == 0)).any(),
        "nobody_returns": ~(there.any(axis=(0, 1)) & ~were).any(),
    }
