"""Proximal policy optimisation (Schulman et al. 2017): what one set of parameters learns from, in
which minibatches, and by which losses."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from hopplus.config import PPOConfig
from hopplus.models.part import Metrics
from hopplus.players.context.context import Context
from hopplus.types import Memory, Params, View

MOST_SHUFFLED = 2**20  # rows, which leaves twelve random bits to each
ROUNDS = 4  # after which neighbours are as far from each other as any two numbers


class Batch(eqx.Module):
    """Steps of play to learn from, [M, ...]."""

    view: View
    inferred: jax.Array  # [M, J] float32, what the others were taken to be after
    action: jax.Array  # [M] int32
    log_prob: jax.Array  # [M] float32, when it was played
    value: jax.Array  # [M] float32, when it was played
    reward: jax.Array  # [M] float32
    returns: jax.Array  # [M] float32
    present: jax.Array  # [M] bool; only these count for the policy
    valued: jax.Array  # [M] bool; only these count for the value
    scale: jax.Array | None = None  # [M] float32, that divides errors of the value; None for 1
    aim: jax.Array | None = None  # [M, A] log-probabilities after a search; None without any
    imagined: jax.Array | None = None  # [M] bool, was only imagined; None where nothing was
    before: Memory = None  # [M, ...] what was remembered before; None where it is not gone through
    begins: jax.Array | None = None  # [M] bool, an episode began; None likewise
    episode: jax.Array | None = None  # [M] int32, the episode's number in its trial; None likewise


class Improved(eqx.Module):
    """What the policy's loss improves, [sets, ...]."""

    policy: Any  # an ActorCritic, or what a `PolicySlope` has in its place
    context: Params | None  # None for one that learns by other means, or not at all


def replay_rows(context: Context, params: Params, part: Batch, seats: int, steps: int) -> jax.Array:
    """[M, size] the contexts of rows that run [k, T, g] as the parameters have them now, from what
    was remembered before the first steps of their games."""

    def games(leaf: jax.Array) -> jax.Array:  # [k * g, T, ...]
        rows = leaf.reshape(seats, steps, -1, *leaf.shape[1:])
        return jnp.moveaxis(rows, 1, 2).reshape(-1, steps, *leaf.shape[1:])

    def rows(leaf: jax.Array) -> jax.Array:
        split = leaf.reshape(seats, -1, steps, *leaf.shape[2:])
        return jnp.moveaxis(split, 2, 1).reshape(-1, *leaf.shape[2:])

    played = (part.before, part.view, part.begins, part.episode)
    given = jax.tree.map(games, (part.inferred, *played))
    return rows(jax.vmap(context.relearned, in_axes=(None, 0, 0, 0, 0, 0))(params, *given))


def minibatch_rows(
    key: jax.Array, rows: int, minibatches: int, games: int, whole_games: bool
) -> jax.Array:
    """[minibatches, rows / minibatches] int32, the rows of a batch in random parts.

    Rows run [..., B]: a row's game is its number modulo `games`. Parts are any rows; or, for
    players with memory and where shuffling all of them is not worth its time, `whole_games`, each
    game's steps together and in their order. Games that do not divide are left out this time.
    """
    if not whole_games:
        return shuffled(key, rows).reshape(minibatches, -1)
    kept = games - games % minibatches
    chosen = shuffled(key, games)[:kept].reshape(minibatches, 1, -1)
    first_rows = jnp.arange(0, rows, games)[None, :, None]
    return (first_rows + chosen).reshape(minibatches, -1)


def shuffled(key: jax.Array, count: int) -> jax.Array:
    """[count] int32, the numbers below it in an order good enough for parts.

    Each is sorted with random bits above its own: one array, once. `jax.random.permutation` sorts
    pairs, twice, which on CPU took a quarter of the time of all passes over a batch. Numbers whose
    random bits are alike stay in their order, which matters to none but those at the border of two
    parts; where too few random bits are left, it is JAX's. On a GPU, which takes several kernels to
    sort, numbers below a power of two are `scattered` instead.
    """
    if jax.default_backend() != "cpu" and count & (count - 1) == 0:
        return scattered(key, count)
    if count > MOST_SHUFFLED:
        return jax.random.permutation(key, count)
    own = jnp.uint32((1 << (count - 1).bit_length()) - 1)
    numbers = jnp.arange(count, dtype=jnp.uint32)
    mixed = jnp.sort((jax.random.bits(key, (count,)) & ~own) | numbers)
    return (mixed & own).astype(jnp.int32)


def scattered(key: jax.Array, count: int) -> jax.Array:
    """[count] int32, the numbers below a power of two in an order that is computed: rounds of odd
    factors, sums and shifts with drawn numbers, each of which can be undone, so that no two numbers
    come to the same."""
    bits, last = (count - 1).bit_length(), jnp.uint32(count - 1)
    drawn = jax.random.bits(key, (ROUNDS, 2))
    numbers = jnp.arange(count, dtype=jnp.uint32)
    for factor, more in drawn:
        numbers = (numbers * (factor | 1) + more) & last
        numbers ^= numbers >> max(1, bits // 2)
    return numbers.astype(jnp.int32)


def mean_of(values: jax.Array, mask: jax.Array) -> jax.Array:
    """The mean over masked entries; 0 when there are none."""
    return jnp.where(mask, values, 0.0).sum() / jnp.maximum(mask.sum(), 1)


def normalised(values: jax.Array, mask: jax.Array) -> jax.Array:
    """Shifted and scaled to mean 0 and variance 1 over masked entries."""
    centred = values - mean_of(values, mask)
    return centred / (jnp.sqrt(mean_of(centred**2, mask)) + 1e-8)


def explained(value: jax.Array, returns: jax.Array, mask: jax.Array) -> jax.Array:
    """The share of the returns' variance that the values explain: 1 all, 0 none."""
    spread = mean_of((returns - mean_of(returns, mask)) ** 2, mask)
    error = returns - value
    return 1 - mean_of((error - mean_of(error, mask)) ** 2, mask) / (spread + 1e-8)


def source_metrics(source: str, batch: Batch, mask: jax.Array, valued: jax.Array) -> Metrics:
    """Mean and variance of what steps of one source are like, the size of their goals and how many
    have any: steps that were played and steps that were imagined should be alike."""
    found = {}
    kinds = {"reward": mask, "return": valued, "value": valued}
    steps = {"reward": batch.reward, "return": batch.returns, "value": batch.value}
    for name, values in steps.items():
        mean = mean_of(values, kinds[name])
        found[f"{source}/{name}"] = mean
        found[f"{source}/{name}_variance"] = mean_of((values - mean) ** 2, kinds[name])
    if batch.inferred.shape[-1]:
        squares = (batch.inferred**2).mean(axis=-1)
        found[f"{source}/goal_size"] = jnp.sqrt(mean_of(squares, mask))  # root mean square
        found[f"{source}/steps"] = mask.sum()
        found[f"{source}/goals"] = (mask & (squares != 0)).sum()
    return found


def entropies(logits: jax.Array, legal: jax.Array) -> jax.Array:
    """[M] those of log-probabilities [M, A]; what is not legal adds nothing, nor to gradients."""
    each = jnp.where(legal, -jnp.exp(logits) * jnp.where(legal, logits, 0.0), 0.0)
    return each.sum(axis=-1)


def annealed(config: PPOConfig, updates: int) -> optax.Schedule:
    """The learning rate by the number of gradient steps, of a run with so many updates."""
    begin, steps = config.learning_rate, updates * config.epochs * config.minibatches
    return optax.linear_schedule(begin, 0.0 if config.anneal else begin, steps)


def anneal_entropy(config: PPOConfig, updates: jax.Array, total: int) -> jax.Array:
    """The weight of the entropy bonus after so many updates of a run's total."""
    end = config.entropy if config.entropy_end is None else config.entropy_end
    # A diagnosis may go on from the end of a run: the bonus must not turn negative there.
    return config.entropy + (end - config.entropy) * jnp.minimum(updates, total) / total


def ppo_loss(
    logits: jax.Array,
    value: jax.Array,
    batch: Batch,
    config: PPOConfig,
    entropy_weight: jax.Array,
    imagined_value_weight: float = 1.0,
) -> tuple[jax.Array, Metrics]:
    """The loss over present steps, and its named parts, those of imagined steps apart.

    `logits` [M, A] and `value` [M] are what the parameters say now. `value_loss` is the clipped
    mean squared error of the value. Advantages are normalised over real and over imagined steps
    each for themselves, so that what is only imagined cannot drown what happened.
    """
    log_prob = jnp.take_along_axis(logits, batch.action[:, None], axis=-1)[:, 0]
    # Masked before the exponential: an infinity there would be no number in the gradient.
    change = jnp.where(batch.present, log_prob - batch.log_prob, 0.0)
    ratio = jnp.exp(change)
    clipped = jnp.clip(ratio, 1 - config.clip, 1 + config.clip)

    near = batch.value + jnp.clip(value - batch.value, -config.value_clip, config.value_clip)
    error = jnp.maximum((value - batch.returns) ** 2, (near - batch.returns) ** 2)

    entropy = entropies(logits, batch.view.legal)

    def parts(mask: jax.Array, valued: jax.Array) -> Metrics:
        advantage = normalised(batch.returns - batch.value, mask)
        return {
            "policy_loss": mean_of(-jnp.minimum(ratio * advantage, clipped * advantage), mask),
            "value_loss": mean_of(error, valued),
            "entropy": mean_of(entropy, mask),
            "kl": mean_of(ratio - 1 - change, mask),
            "clipped": mean_of((jnp.abs(ratio - 1) > config.clip).astype(jnp.float32), mask),
        }

    def policy_loss(found: Metrics) -> jax.Array:
        return found["policy_loss"] - entropy_weight * found["entropy"]

    if batch.imagined is None:
        found = parts(batch.present, batch.valued)
        return policy_loss(found) + config.value_weight * found["value_loss"], found
    found = parts(batch.present & ~batch.imagined, batch.valued & ~batch.imagined)
    imagined = parts(batch.present & batch.imagined, batch.valued & batch.imagined)
    # Every present step counts alike for the policy, whatever its source. The value's loss is a
    # mean of its own, over the steps that values learn from: it weighs the same as the policy's,
    # however much is imagined.
    share = (batch.present & batch.imagined).sum() / jnp.maximum(batch.present.sum(), 1)
    weights = jnp.where(batch.imagined, imagined_value_weight, 1.0) * batch.valued
    value_share = (weights * batch.imagined).sum() / jnp.maximum(weights.sum(), 1e-8)
    value_loss = (1 - value_share) * found["value_loss"] + value_share * imagined["value_loss"]
    total = (1 - share) * policy_loss(found) + share * policy_loss(imagined)
    total += config.value_weight * value_loss
    found["value_loss_mixed"] = value_loss
    return total, found | {f"imagined/{name}": value for name, value in imagined.items()}
