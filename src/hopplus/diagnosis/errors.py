"""What one prediction of a world model got right and wrong."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.games.grid import MOVES
from hopplus.models.world import Prediction
from hopplus.types import Sample


class Errors(eqx.Module):
    """What one prediction got right and wrong, on the device or on the host."""

    channel: Any  # [C] mean squared error
    reward: Any  # [] squared error of the seat's own
    rewards: Any  # [] of all present seats, mean
    gone: Any  # [] bool, the seat's own end foreseen
    done: Any  # [] bool, the episode's end foreseen
    legal: Any  # [] bool, the seat's legal actions all foreseen
    exact: Any  # [] bool, every cell of every plane
    one_cell: Any  # [] bool, every seat that stays is in one cell
    one_step: Any  # [] bool, nobody goes further than a cell
    things_stay: Any  # [] bool, no thing appears anywhere
    nobody_returns: Any  # [] bool
    true_mean: Any  # [C] values where the truth is 1, added up
    true_least: Any  # [C] the least of them
    true_count: Any  # [C] how many
    false_mean: Any  # [C] values where the truth is 0, added up
    false_count: Any  # [C] how many
    false_most: Any  # [C] the largest of them


def errors_of(prediction: Prediction, settled: jax.Array, sample: Sample) -> Errors:
    """Compare one prediction with what came."""
    truth, given = sample.after.planes, prediction.planes
    present = sample.present
    ends = (prediction.gone > 0.5) == ~sample.present_after
    # A probability can be outside of 0 to 1 by rounding only; nothing is rounded away here.
    reward = (prediction.reward - sample.reward) ** 2
    one_cell, one_step, things_stay, nobody_returns = consistent(
        sample.view.planes, settled, prediction.gone > 0.5, len(present)
    )
    yes = truth > 0
    return Errors(
        channel=((given - truth) ** 2).mean(axis=(0, 1)),
        reward=reward[0],
        rewards=jnp.where(present, reward, 0.0).sum() / present.sum(),
        gone=ends[0],
        done=(prediction.done > 0.5) == sample.done,
        legal=((prediction.legal[0] > 0.5) == sample.legal_after[0]).all(),
        exact=(settled == truth).all(),
        one_cell=one_cell,
        one_step=one_step,
        things_stay=things_stay,
        nobody_returns=nobody_returns,
        true_mean=jnp.where(yes, given, 0.0).sum(axis=(0, 1)),
        true_least=jnp.where(yes, given, 1.0).min(axis=(0, 1)),
        true_count=yes.sum(axis=(0, 1)),
        false_mean=jnp.where(yes, 0.0, given).sum(axis=(0, 1)),
        false_count=(~yes).sum(axis=(0, 1)),
        false_most=jnp.where(yes, 0.0, given).max(axis=(0, 1)),
    )


def consistent(
    before: jax.Array, settled: jax.Array, gone: jax.Array, seats: int
) -> tuple[jax.Array, ...]:
    """Whether settled planes [H, W, C] could follow at all: every seat that is not gone [N] is in
    one cell and those that are in none; nobody goes further than one step; things are where there
    were some; nobody who was gone is there."""
    here, there = before[..., :seats], settled[..., :seats]
    count = there.sum(axis=(0, 1))
    were = here.sum(axis=(0, 1)) > 0
    one_cell = jnp.where(were, count == jnp.where(gone, 0, 1), True).all()
    near = sum(
        jnp.pad(here, ((1, 1), (1, 1), (0, 0)))[
            1 - row : 1 - row + here.shape[0], 1 - column : 1 - column + here.shape[1]
        ]
        for row, column in MOVES
    )
    one_step = ~((there > 0) & (near == 0) & were).any()
    things_stay = ~((settled[..., seats:] > 0) & (before[..., seats:] == 0)).any()
    nobody_returns = ~((there > 0).any(axis=(0, 1)) & ~were).any()
    return one_cell, one_step, things_stay, nobody_returns
