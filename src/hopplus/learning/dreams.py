"""Imagined play as something the policy learns from."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ImagineConfig, PPOConfig
from hopplus.games.game import Game, views
from hopplus.learning.moments import Moments, empty_steps
from hopplus.learning.online import flat
from hopplus.learning.ppo import Batch
from hopplus.learning.returns import lambda_returns, shared_reward
from hopplus.learning.ring import drawn_rows, pushed, rows_at
from hopplus.models.part import Metrics
from hopplus.models.world import World
from hopplus.planning.imagine import Dream, Imagination
from hopplus.planning.simulate import LearnedStage, Scene
from hopplus.players.actor import Actor
from hopplus.players.context.context import suppose
from hopplus.players.mind import Mind
from hopplus.types import Act, Memory, View


@dataclass(frozen=True)
class Dreams:
    """Imagines for each set of parameters, from moments that its own seats have been in."""

    game: Game
    actor: Actor
    config: ImagineConfig
    ppo: PPOConfig
    seats: np.ndarray  # [sets, k]
    # Functions, as fields: the diagnosis puts others in their place.
    dynamics: Callable[[World, int], LearnedStage] = LearnedStage
    act: Callable[[Actor, Mind, Memory, View, jax.Array], tuple[Memory, Act]] = Actor.act
    make_batch: "Callable[[Dreams, Dream, jax.Array, jax.Array], Batch]" = (
        lambda dreams, dream, observed, open_: dreams.batch(dream, observed, open_)
    )

    @property
    def lanes(self) -> int:
        """Imagined games side by side, of a set."""
        real = self.ppo.steps * int(self.seats.shape[1])
        wanted = real * (1 - self.config.real_ratio) / self.config.real_ratio
        return max(self.ppo.minibatches, round(wanted / self.config.horizon))

    @property
    def rows(self) -> int:
        """Imagined steps of an update, of a set."""
        return self.lanes * self.config.horizon

    def init(self, played: Moments) -> Moments:
        """An empty buffer of moments to begin from, for play shaped as that [T, B, ...]."""
        return empty_steps(flat(_kept(played)), self.config.buffer)

    def keep(self, ring: Moments, played: Moments, updates: jax.Array) -> Moments:
        return pushed(ring, flat(_kept(played)), updates)

    def __call__(
        self, minds: Mind, ring: Moments, observed: jax.Array, open_: jax.Array, key: jax.Array
    ) -> tuple[Batch, Metrics]:
        """[sets, rows, ...] steps to learn from, and what they are like.

        Rewards are kept within `observed` [sets, 2] if they are to be clipped. Where the gate is
        not open [sets], nobody is present in them.
        """
        key_rows, key_dreams = jax.random.split(key)
        scenes, memories = self.starts(ring, key_rows)
        keys = jax.random.split(key_dreams, (len(self.seats), self.lanes))

        def of_set(
            mind: Mind, scenes: Scene, memories: Any, keys: jax.Array, *known: jax.Array
        ) -> tuple[Batch, Metrics]:
            over_lanes = jax.vmap(self.imagination(mind), in_axes=(1, 1, 0), out_axes=1)
            dream = over_lanes(scenes, memories, keys)  # [H, lanes, ...]
            batch = self.make_batch(self, dream, *known)
            return batch, dream_metrics(dream, batch, known[1])

        in_axes = (0, 1, 1, 0, 0, 0)
        return jax.vmap(of_set, in_axes=in_axes)(minds, scenes, memories, keys, observed, open_)

    def imagination(self, mind: Mind) -> Imagination:
        """A mind's own imagination; it acts there as it does in play."""
        assert mind.opponents is not None
        assert mind.world is not None

        def decide(memory: Any, view: Any, key: jax.Array) -> Any:
            return self.act(self.actor, mind, memory, view, key)

        def supposed(inferred: jax.Array, key: jax.Array) -> jax.Array:
            return suppose(context, context.about_others(inferred), key)

        context = self.actor.context
        stage = self.dynamics(mind.world, self.game.horizon)
        return Imagination(decide, mind.opponents, stage, supposed)

    def starts(self, ring: Moments, key: jax.Array) -> tuple[Scene, Any]:
        """[H, sets, lanes] real moments in which seats of the set were present, and their memories
        before them."""
        sets, shape = len(self.seats), (self.config.horizon, self.lanes)
        present = jax.vmap(self.game.present)(ring.state)  # [R, N]
        learning = jnp.asarray(np.sort(self.seats.reshape(-1)))

        def chosen(seats: jax.Array, key: jax.Array) -> tuple[jax.Array, ...]:
            row, which = drawn_rows(key, present[:, seats], self.rows)
            return row.reshape(shape), seats[which].reshape(shape)

        keys = jax.random.split(key, sets)
        row, seat = jax.vmap(chosen, out_axes=1)(jnp.asarray(self.seats), keys)
        own = jnp.searchsorted(learning, seat)

        def one(row: jax.Array, seat: jax.Array, own: jax.Array) -> tuple[Scene, Any]:
            moment = rows_at(ring, row)
            order = (seat + jnp.arange(self.game.seats)) % self.game.seats
            legal = views(self.game, moment.state).legal[order]
            memory = jax.tree.map(lambda leaf: leaf[own], moment.memory)
            return Scene(self.game.view(moment.state, seat), legal), memory

        return jax.vmap(jax.vmap(jax.vmap(one)))(row, seat, own)

    def batch(self, dream: Dream, observed: jax.Array, open_: jax.Array) -> Batch:
        """[rows, ...] the steps of a dream [H, lanes, ...] of one set."""
        c, ppo = self.config, self.ppo
        reward = shared_reward(dream.reward, ppo.prosociality)[..., 0]
        match c.reward:
            case "clipped":
                reward = jnp.clip(reward, observed[0], observed[1])
            case "zero":
                reward = jnp.zeros_like(reward)
        value = jnp.append(dream.act.value, dream.last, axis=0)
        valued = jnp.ones(value.shape, bool)
        over_lanes = jax.vmap(lambda_returns, in_axes=(1, 1, 1, 1, None, None), out_axes=1)
        returns = over_lanes(reward, value, valued, dream.ended, ppo.discount, ppo.mix)
        present = jnp.broadcast_to(open_, returns.shape)
        steps = Batch(
            view=dream.view,
            inferred=dream.act.inferred,
            action=dream.act.action,
            log_prob=dream.act.log_prob,
            value=dream.act.value,
            reward=reward,
            returns=returns,
            present=present,
            valued=present if c.critic_on == "both" else jnp.zeros_like(present),
            imagined=jnp.ones_like(present),
        )
        if self.actor.context.learned_by_policy:
            # Each real moment comes with its memory, so that nothing before it matters.
            number = jnp.zeros_like(dream.begins, jnp.int32)
            steps = replace(steps, before=dream.memory, begins=dream.begins, episode=number)
        return flat(steps)


def dream_metrics(dream: Dream, batch: Batch, open_: jax.Array) -> Metrics:
    """What a dream [H, lanes, ...] of one set is like, to hold against real play."""
    predicted = dream.reward[..., 0]
    found = {
        "reward": batch.reward.mean(),
        "predicted_most": predicted.max(),
        "predicted_least": predicted.min(),
        "return": batch.returns.mean(),
        "value": batch.value.mean(),
        "ended": dream.ended.mean(),
        "open": open_.astype(jnp.float32),
    }
    return {f"imagined/{name}": value for name, value in found.items()}


def _kept(played: Moments) -> Moments:
    return Moments(played.state, played.joint, memory=played.memory)
