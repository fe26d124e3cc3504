"""When does somebody rest? By what it did in its last acts, whatever the rhythm.

Chains that look at none to five of the last acts each count how often a rest came next, and are
believed by how well each has foretold so far: a mixture of Markov chains, as in universal coding.
Who looks farther back than the episode goes sees that it has just begun.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

CHAINS = 6  # the longest looks at one less of the last acts
PASTS = 2 * (2**CHAINS - 1)  # of all chains
FORGOTTEN = 0.02  # share with which any chain may be the best one from now on


class Rhythm(eqx.Module):
    """What was seen of one player."""

    counts: jax.Array  # [PASTS, 2] float32, acts and rests after each past of each chain
    belief: jax.Array  # [CHAINS] float32, log-chances
    past: jax.Array  # [] int32, a one, and behind it a bit for each of the last acts of the
    # episode, set for a rest

    @property
    def chances(self) -> jax.Array:
        """[CHAINS] that it rests next, by each of them."""
        counts = self.counts[self._pasts]
        return counts[:, 1] / counts.sum(axis=1)

    @property
    def chance(self) -> jax.Array:
        """[] that it rests next."""
        return jax.nn.softmax(self.belief) @ self.chances

    @property
    def _pasts(self) -> jax.Array:
        """[CHAINS] int32 the place of what each of them looks at: a one, and its bits or all that
        there are; behind those of the chains before it."""
        ones = 1 << jnp.arange(CHAINS)
        return jnp.minimum(self.past, self.past & (ones - 1) | ones) + 2 * (ones - 1)

    def after(self, rests: jax.Array) -> "Rhythm":
        """It rests [] bool, or acts."""
        told = jnp.log(jnp.where(rests, self.chances, 1 - self.chances))
        belief = shared(self.belief + told, jnp.full(CHAINS, -jnp.log(CHAINS)), FORGOTTEN)
        counts = self.counts.at[self._pasts, rests.astype(int)].add(1.0)
        return Rhythm(counts, belief, _cut(self.past << 1 | rests))

    def next_episode(self) -> "Rhythm":
        """The same, before its first act."""
        return Rhythm(self.counts, self.belief, jnp.ones_like(self.past))


def unknown_rhythm() -> Rhythm:
    """Before anything was seen: half a rest and half an act after every past."""
    counts = jnp.full((PASTS, 2), 0.5)
    return Rhythm(counts, jnp.full(CHAINS, -jnp.log(CHAINS)), jnp.int32(1))


def _cut(past: jax.Array) -> jax.Array:
    """A past of which no more is kept than anyone looks at."""
    most = 1 << (CHAINS - 1)
    return jnp.where(past < 2 * most, past, most | past & (most - 1))


def shared(belief: jax.Array, prior: jax.Array, share: float) -> jax.Array:
    """[P] log-chances made to sum to one, a share of which is given back to the prior [P]: what has
    become true lately is not ruled out by what was before."""
    kept = jax.nn.log_softmax(belief) + jnp.log1p(-share)
    return jnp.logaddexp(kept, prior + jnp.log(share))
