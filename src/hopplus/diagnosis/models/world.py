"""How well is the next state predicted: value by value, as a whole, and step after step?"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.diagnosis.models.classes import describe_bins
from hopplus.diagnosis.models.heldout import HeldOut
from hopplus.diagnosis.models.measures import Measures
from hopplus.games.game import Game
from hopplus.models.world import Prediction, World, imagined, stepped
from hopplus.program_cache import kept_jit
from hopplus.recorded.models import Setting
from hopplus.recorded.samples import Sampler, Source
from hopplus.types import Params, Sample, View

BINS = 20  # of the calibration of cells
OPEN_LOOP = 15  # steps imagined at most
WINDOWS = 20_000  # places at most from which to imagine
WORST = 6  # predictions shown
LEAST_MSE = 1e-12  # so that the ratio of no error at all is a number: 120 dB


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


@kept_jit
def _errors(
    sampler: Sampler, world: World, source: Source, steps: np.ndarray, real: np.ndarray
) -> tuple[Errors, jax.Array, jax.Array]:
    """Over batches [n, batch, 2] of rows and seats: errors [n * batch, ...], rewards predicted and
    true [n * batch, 2], and, of those `real` [n, batch], how often each channel's cells were given
    a probability in each bin, and were 1 then, and the probabilities added up [3, C, bins].
    """

    def one(step: jax.Array) -> tuple[Errors, jax.Array, jax.Array]:
        sample = sampler(source, step, jax.random.key(0), ())
        prediction = world(sample.view, sample.joint)
        settled, gone = world.settled(prediction)
        given, truth = prediction.planes, sample.after.planes
        place = jnp.clip((given * BINS).astype(int), 0, BINS - 1)
        inside = jax.nn.one_hot(place, BINS)  # [H, W, C, bins]
        counts = jnp.stack(
            [inside.sum(axis=(0, 1))]
            + [(inside * x[..., None]).sum(axis=(0, 1)) for x in (truth, given)]
        )
        reward = jnp.stack([prediction.reward[0], sample.reward[0]])
        return measure_errors(prediction, settled, gone, sample), reward, counts

    def many(
        total: jax.Array, now: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, tuple[Errors, jax.Array]]:
        errors, reward, counts = jax.vmap(one)(now[0])
        return total + jnp.einsum("b,bscn->scn", now[1], counts), (errors, reward)

    channels = sampler.game.shape[2]
    zero = jnp.zeros((3, channels, BINS))
    total, (errors, reward) = jax.lax.scan(many, zero, (jnp.asarray(steps), jnp.asarray(real)))
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), (errors, reward))
    return flat[0], flat[1], total


@kept_jit
def _open_loop(
    sampler: Sampler, world: World, source: Source, steps: np.ndarray
) -> tuple[jax.Array, ...]:
    """For windows from rows and seats [M, 2]: whether each of the next steps imagined counts, is
    exact, its planes' and its reward's squared error; [M, OPEN_LOOP] each.

    A step counts while the seat is present before it.
    """
    game = sampler.game

    def one(step: jax.Array) -> tuple[jax.Array, ...]:
        row, seat = step
        order = (seat + jnp.arange(game.seats)) % game.seats
        last = source.last_seen[row, seat]

        def imagine(view: View, k: jax.Array) -> tuple[View, tuple[jax.Array, ...]]:
            now = jnp.minimum(row + k, len(source.rows.time) - 2)
            joint = source.rows.joint[now, order].astype(jnp.int32)
            after, prediction, _ = imagined(world, view, joint, game.horizon)
            truth = sampler.view(source, now + 1, seat).planes
            counts = (row + k <= last) & (row + k == now) & (joint[0] >= 0)
            exact = (after.planes == truth).all()
            planes = ((prediction.planes - truth) ** 2).mean()
            reward = (prediction.reward[0] - source.rows.reward[now, seat]) ** 2
            return after, (counts, exact, planes, reward)

        _, out = jax.lax.scan(imagine, sampler.view(source, row, seat), jnp.arange(OPEN_LOOP))
        return out

    return jax.lax.map(one, steps, batch_size=1024)


@kept_jit
def _predicted(
    sampler: Sampler, world: World, source: Source, steps: np.ndarray
) -> tuple[Sample, Prediction]:
    """Rows and seats [M, 2], and what is predicted for them, [M, ...] each."""

    def one(step: jax.Array) -> tuple[Sample, Prediction]:
        sample = sampler(source, step, jax.random.key(0), ())
        return sample, world(sample.view, sample.joint)

    return jax.vmap(one)(jnp.asarray(steps))


class WorldShown(NamedTuple):
    """What pictures of a world model show besides figures."""

    game: Game
    rewards: np.ndarray  # [M, 2] of the seat itself, predicted and true
    # The worst predictions next to what came; worked out when drawn, as that is one more program.
    worst: Callable[[], list[tuple[Sample, Prediction]]]


@dataclass(frozen=True)
class WorldDiagnosis:
    """Measures world models on held-out play."""

    setting: Setting
    held: HeldOut

    def measure(self, params: Params) -> Measures:
        held, sampler = self.held, self.setting.sampler
        channels = name_channels(held.game)
        number = len(held.steps)
        batch = min(1024, number)
        steps = np.resize(held.steps, (-(-number // batch) * batch, 2))  # fills up the last batch
        real = (np.arange(len(steps)) < number).astype(np.float32)
        errors, rewards, counts = jax.device_get(
            _errors(
                sampler, params, held.source, steps.reshape(-1, batch, 2), real.reshape(-1, batch)
            )
        )
        errors, rewards = jax.tree.map(lambda leaf: leaf[:number], (errors, rewards))
        windows = np.random.default_rng(0).permutation(number)[:WINDOWS]
        chosen = held.steps[np.sort(windows)]
        loop = jax.device_get(_open_loop(sampler, params, held.source, chosen))
        figures = describe_errors(errors, channels)
        figures["open_loop"] = _loop_figures(*loop)
        figures["calibration"] = [
            {"channel": name, **row}
            for number, name in enumerate(channels)
            for row in describe_bins(*counts[:, number])
        ]
        tables = {name: figures[name] for name in ("channels", "open_loop", "calibration")}
        # By planes and by rewards in turn; seats at one board share errors: each step once.
        by_error = [np.argsort(-error) for error in (errors.channel.sum(axis=1), errors.reward)]
        order = np.stack(by_error, axis=1).reshape(-1)
        _, first = np.unique(held.row[order], return_index=True)
        worst = order[np.sort(first)[:WORST]]
        shown = WorldShown(held.game, rewards, partial(self.predict, params, held.steps[worst]))
        return Measures("world", figures, tables, shown)

    def predict(self, params: World, steps: np.ndarray) -> list[tuple[Sample, Prediction]]:
        """What came of steps [M, 2], and what the model says comes, on the host."""
        host = jax.device_get(_predicted(self.setting.sampler, params, self.held.source, steps))
        return [jax.tree.map(lambda leaf: leaf[place], host) for place in range(len(steps))]  # noqa: B023


def name_channels(game: Game) -> list[str]:
    """What each plane of a view shows."""
    others = [f"other {number}" for number in range(1, game.seats)]
    return ["self", *others, "obstacles", *(f"{kind}s" for kind in game.targets)]


def psnr(mse: float) -> float:
    """The peak signal-to-noise ratio in decibels, of values from 0 to 1."""
    return float(-10 * np.log10(max(mse, LEAST_MSE)))


def describe_errors(errors: Errors, channels: list[str]) -> dict[str, Any]:
    """The figures of [M, ...] errors."""
    by_channel = errors.channel.mean(axis=0, dtype=np.float64)
    mse = float(by_channel.mean())
    yes, no = (getattr(errors, name).sum(axis=0) for name in ("true_count", "false_count"))
    means = {
        "reward_mse": errors.reward,
        "reward_mse_all_seats": errors.rewards,
        "seat_end_accuracy": errors.gone,
        "episode_end_accuracy": errors.done,
        "legality_accuracy": errors.legal,
        "exact_next_state": errors.exact,
        "exact_everything": errors.exact & errors.gone & errors.done & errors.legal,
    }
    laws = {"all": np.logical_and.reduce(list(errors.laws.values())), **errors.laws}
    return {
        "samples": len(errors.reward),
        "plane_mse": mse,
        "psnr": psnr(mse),
        **{name: float(values.mean(dtype=np.float64)) for name, values in means.items()},
        "consistency": {name: float(held.mean()) for name, held in laws.items()},
        "channels": [
            {
                "channel": name,
                "mse": by_channel[number],
                "psnr": psnr(by_channel[number]),
                "mean_where_1": _mean(errors.true_sum[:, number], yes[number]),
                "least_where_1": float(errors.true_least[:, number].min()) if yes[number] else None,
                "mean_where_0": _mean(errors.false_sum[:, number], no[number]),
                "most_where_0": float(errors.false_most[:, number].max()),
            }
            for number, name in enumerate(channels)
        ],
    }


def _mean(values: np.ndarray, count: float) -> float | None:
    return float(values.sum(dtype=np.float64) / count) if count else None


def _loop_figures(
    counts: np.ndarray, exact: np.ndarray, planes: np.ndarray, reward: np.ndarray
) -> list[dict[str, Any]]:
    """By the number of steps imagined, over the windows [M] that are so long."""
    return [
        {
            "steps": k + 1,
            "windows": int(counts[:, k].sum()),
            "exact": _mean(exact[:, k] & counts[:, k], counts[:, k].sum()),
            "plane_mse": _mean(planes[counts[:, k], k], counts[:, k].sum()),
            "reward_mse": _mean(reward[counts[:, k], k], counts[:, k].sum()),
        }
        for k in range(counts.shape[1])
    ]
