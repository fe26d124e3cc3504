"""What is each other like? Numbers that models of the others are told, fitted to what each was seen
to do in this trial, and how sure they are.

A co-player's traits are drawn from a normal distribution before the trial, and drift a
little. Each act that is seen tells of them by Bayes' rule, by the slope of its log-probability: an
extended Kalman filter with independent traits. The models learn what traits mean, as they are told
those of the moment: a factor model of co-players, whose loadings are the models themselves. Nothing
is said about which kinds of co-players there are, so that one never met has traits like any other.
"""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import TraitsConfig
from hopplus.models.opponent import OpponentModel, others_logits
from hopplus.planning.dynamics import observe
from hopplus.players.context.reader import ModelReader
from hopplus.types import View


class TraitsMemory(eqx.Module):
    """Of each of the N - 1 others, in the seats' order; D traits."""

    mean: jax.Array  # [N - 1, D] float32
    variance: jax.Array  # [N - 1, D] float32, as drawn where nothing is known
    expected: jax.Array  # [N - 1, A] float32, log-probabilities of its next act
    slopes: jax.Array  # [N - 1, A, D] float32, of these by its traits; zeros before they are known


@dataclass(frozen=True)
class TraitsContext(ModelReader):
    """The policy is told the traits and their variances; models of the others, the traits."""

    config: TraitsConfig

    @property
    def size(self) -> int:
        return self.others * 2 * self.config.size

    @property
    def carries(self) -> bool:
        return self.config.across

    def start(self) -> TraitsMemory:
        traits = jnp.zeros((self.others, self.config.size))
        return self._begun(traits, jnp.full_like(traits, self.config.spread**2))

    def carry(self, memory: TraitsMemory, view: View) -> TraitsMemory:
        return self._begun(memory.mean, memory.variance) if self.config.across else self.start()

    def _begun(self, mean: jax.Array, variance: jax.Array) -> TraitsMemory:
        expected = jnp.zeros((self.others, len(self._game.action_names)))
        return TraitsMemory(mean, variance, expected, jnp.zeros((*expected.shape, mean.shape[1])))

    def infer(
        self, params: OpponentModel, memory: TraitsMemory, view: View
    ) -> tuple[TraitsMemory, jax.Array]:
        mean, variance = self._learned(memory, view.last_actions[1:])
        expected, slopes = self._expected(params, view, mean)
        after = TraitsMemory(mean, variance, expected, slopes)
        told = [mean / self.config.spread, variance / self.config.spread**2]
        return after, jnp.concatenate(told, axis=1).reshape(-1)

    def about_others(self, context: jax.Array) -> jax.Array:
        return context.reshape(self.others, -1)[:, : self.config.size] * self.config.spread

    def _learned(self, memory: TraitsMemory, last: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Means and variances [N - 1, D] after the acts [N - 1]; below 0 where there was none."""
        stays, acted = 1 - self.config.drift, (last >= 0)[:, None]
        drifted = stays * memory.variance + (1 - stays) * self.config.spread**2
        mean = jnp.where(acted, jnp.sqrt(stays) * memory.mean, memory.mean)
        variance = jnp.where(acted, drifted, memory.variance)
        place = jnp.maximum(last, 0)[:, None, None]
        slope = jnp.where(acted, jnp.take_along_axis(memory.slopes, place, axis=1)[:, 0], 0.0)
        # What an act tells on average: one that was hardly expected must not decide alone, so the
        # step is no longer than for what it tells itself either.
        chances = jnp.where(acted, jnp.exp(memory.expected), 0.0)
        told = (chances[..., None] * memory.slopes**2).sum(axis=1)
        within = 1 + (variance * slope**2).sum(axis=1, keepdims=True)
        return mean + variance * slope / within, variance / (1 + variance * told)

    def _expected(
        self, models: OpponentModel, view: View, traits: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """[N - 1, A] log-probabilities of what each would do next, and [N - 1, A, D] their slopes
        by its traits."""
        legal = observe(self._game, view).legal

        def logits(traits: jax.Array) -> jax.Array:
            return others_logits(models, view, legal, traits)

        def along(trait: jax.Array) -> tuple[jax.Array, jax.Array]:
            return jax.jvp(logits, (traits,), (jnp.broadcast_to(trait, traits.shape),))

        directions = jnp.eye(self.config.size)
        expected, slopes = jax.vmap(along, out_axes=(None, -1))(directions)
        return expected, jnp.where(legal[1:, :, None], slopes, 0.0)
