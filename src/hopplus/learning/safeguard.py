"""Learning that does not hurt: what was learned plays only while it has shown to be better than
what there was before, as in high-confidence policy improvement (Thomas et al. 2015)."""

from dataclasses import dataclass, replace
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import DistilConfig
from hopplus.learning.learner import Learner, Learning, Lesson
from hopplus.learning.ppo import Batch, mean_of
from hopplus.players.parameters import PlayerParams

Tree = TypeVar("Tree")
LEAST = 5  # updates before anything is decided: deviations of fewer are not to be relied on
FARTHEST = 1.0  # difference of two probabilities' ratios that counts: beyond it, a step is luck


class Evidence(eqx.Module):
    """What there is for and against the learned policies, [sets, ...]."""

    trained: PlayerParams  # the players as they were
    count: jax.Array  # float32, updates since the learned policy was the trained one
    mean: jax.Array  # float32, of what it would have gained in each
    squares: jax.Array  # float32, sum of squared deviations from that mean

    def bounds(self, caution: float) -> tuple[jax.Array, jax.Array]:
        """So many standard errors below and above the mean gain; nothing is known at first."""
        variance = self.squares / jnp.maximum(self.count - 1, 1) / jnp.maximum(self.count, 1)
        margin = jnp.where(self.count < LEAST, jnp.inf, caution * jnp.sqrt(variance))
        return self.mean - margin, self.mean + margin

    def with_gain(self, gain: jax.Array) -> "Evidence":
        """After another update, by Welford's recursion."""
        count, off = self.count + 1, gain - self.mean
        mean = self.mean + off / count
        squares = self.squares + off * (gain - mean)
        return replace(self, count=count, mean=mean, squares=squares)


def no_evidence(trained: PlayerParams) -> Evidence:
    """At the beginning, for players [sets, ...]."""
    none = jnp.zeros(jax.tree.leaves(trained)[0].shape[0])
    return Evidence(trained, none, none, none)


def expected_gain(learned: jax.Array, trained: jax.Array, batch: Batch) -> jax.Array:
    """[] what one policy would have gained more than another in steps [M] of a batch, to the first
    order (Kakade and Langford 2002),

        sum_t (p(a_t) - q(a_t)) / b(a_t) * A_t,

    with their log-probabilities [M] of the actions that b has played. Advantages are centred: in
    expectation that changes nothing, and values may be far off among strangers.
    """
    counted = batch.present if batch.imagined is None else batch.present & ~batch.imagined
    advantage = batch.returns - batch.value
    advantage -= mean_of(advantage, counted)
    ratios = jnp.exp(learned - batch.log_prob) - jnp.exp(trained - batch.log_prob)
    gain = jnp.clip(ratios, -FARTHEST, FARTHEST) * advantage
    return jnp.where(counted, gain, 0.0).sum()


def all_so_far(
    batch: Batch,
    kept: Batch | None,
    config: DistilConfig,
    trusts: object,
    updates: jax.Array,
    *_: object,
) -> tuple[Batch, Batch | None]:
    """In place of `distilled`: all that is kept [sets, U, M, ...] is learned from, with the real
    steps of a batch, as if each update's were another game; then what the batch has imagined."""
    assert kept is not None
    room, rows = kept.action.shape[1:]
    real = replace(jax.tree.map(lambda leaf: leaf[:, :rows], batch), imagined=None)
    kept = jax.tree.map(lambda old, new: old.at[:, updates % room].set(new), kept, real)

    def flat(leaf: jax.Array) -> jax.Array:  # [sets, M * U, ...], a row's game by its number
        return jnp.moveaxis(leaf, 1, 2).reshape(len(leaf), room * rows, *leaf.shape[3:])

    given: Batch = jax.tree.map(flat, kept)
    if batch.imagined is None:
        return given, kept
    given = replace(given, imagined=jnp.zeros_like(given.present))
    given = jax.tree.map(lambda a, b: jnp.concatenate([a, b[:, rows:]], axis=1), given, batch)
    return given, kept


def with_room(learner: Learner, steps: int) -> Learner:
    """The learner, keeping so many steps to learn from."""
    return replace(learner, distil=replace(learner.distil, replay=steps))


@dataclass(frozen=True)
class Safeguard:
    """Lets the policy of a learner play while it is better than the trained one by so many standard
    errors, on steps that it had not learned from; and has it begin again where it is worse by as
    many. Whoever plays, the learner learns, from all that it keeps: the clipped ratios of PPO are
    to those who have played, so that it stays near the trained policy while that plays. What a
    player makes of the others stays as trained: its policy relies on what that means."""

    learner: Learner  # `with_room`
    caution: float

    @property
    def studious(self) -> Learner:
        """The learner as it learns from all that is kept."""
        c = self.learner.config
        games = c.games * -(-self.learner.distil.replay // c.steps)
        return replace(self.learner, config=replace(c, games=games), recall=all_so_far)

    def begin(self, learning: Learning) -> tuple[Learning, Evidence]:
        """At the beginning, with the trained players in place."""
        kept = learning.replay
        assert kept is not None
        # Rows that are empty count for nothing, but some action must be legal in them.
        view = replace(kept.view, legal=jnp.ones_like(kept.view.legal))
        learning = replace(learning, replay=replace(kept, view=view))
        # A copy, as an update may give the memory of what it replaces away.
        trained = jax.tree.map(jnp.copy, learning.params[self.learner.learning])
        return learning, no_evidence(trained)

    def acting(self, learned: PlayerParams, evidence: Evidence) -> PlayerParams:
        """[sets, ...] the trained players, with the policies that have shown to be better."""
        better = evidence.bounds(self.caution)[0] > 0
        return self._with_policy(evidence.trained, better, learned, evidence.trained)

    def update(self, now: Learning, evidence: Evidence) -> tuple[Learning, Evidence, Lesson]:
        """One update of the learner, and what it says of the policy before it."""
        learner, trained = self.studious, evidence.trained
        learned: PlayerParams = now.params[learner.learning]
        after, _, lesson = learner.update_shown(now, self.acting(learned, evidence))
        evidence = evidence.with_gain(self._gains(learned, trained, lesson.batch))
        holds = evidence.bounds(self.caution)[1] >= 0
        improved: PlayerParams = after.params[learner.learning]
        param_sets = self._with_policy(improved, holds, improved, trained)
        fresh = jax.vmap(learner.optimiser.init)(learner.improved(trained))
        after = replace(
            after,
            params=learner.with_param_sets(after.params, param_sets),
            optimiser=_where(holds, after.optimiser, fresh),
        )
        return after, _where(holds, evidence, no_evidence(trained)), lesson

    def _gains(self, learned: PlayerParams, trained: PlayerParams, batch: Batch) -> jax.Array:
        """[sets] what the learned policies would have gained in their steps [sets, M]."""

        def log_prob(players: PlayerParams) -> jax.Array:  # [sets, M]
            logits, _ = jax.vmap(self.learner.policy_loss.rows_now)(
                self.learner.improved(players), batch
            )
            return jnp.take_along_axis(logits, batch.action[..., None], axis=-1)[..., 0]

        return jax.vmap(expected_gain)(log_prob(learned), log_prob(trained), batch)

    def _with_policy(
        self, players: PlayerParams, which: jax.Array, one: PlayerParams, other: PlayerParams
    ) -> PlayerParams:
        """The players with what the policy's loss improves of one, or of the other [sets]."""
        chosen = _where(which, self.learner.improved(one), self.learner.improved(other))
        return self.learner.with_improved(players, chosen)


def _where(which: jax.Array, yes: Tree, no: Tree) -> Tree:
    """Leaves [sets, ...] of one or the other, by set."""

    def leaf(yes: jax.Array, no: jax.Array) -> jax.Array:
        return jnp.where(which.reshape(-1, *(1,) * (yes.ndim - 1)), yes, no)

    chosen: Tree = jax.tree.map(leaf, yes, no)
    return chosen
