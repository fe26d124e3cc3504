"""Faults of players to try the diagnosis of adaptation on: each is a mistake between what a player
has learned and how it plays. None of this is used in training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.config import ConfigError
from hopplus.players.actor import Actor
from hopplus.types import Memory, Params, View


class DeafActor(Actor):
    """Its policy is given zeros in the place of what is inferred."""

    def told(self, context: jax.Array) -> jax.Array:
        return jnp.zeros_like(context)


def wipe_memory(actor: Actor) -> Actor:
    """Every view is read as if it were the first of a trial."""
    kind: Any = type(actor.context)

    class Forgetful(kind):  # type: ignore[misc]
        def infer(self, params: Params, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
            found: tuple[Memory, jax.Array] = super().infer(params, self.start(), view)
            return found

    return replace(actor, context=Forgetful(**_settings(actor.context)))


def shift_goals(actor: Actor) -> Actor:
    """Models of the others are told of each what was inferred of the one after it."""
    kind: Any = type(actor.context)

    class Shifted(kind):  # type: ignore[misc]
        def about_others(self, context: jax.Array) -> jax.Array:
            return jnp.roll(super().about_others(context), -1, axis=0)

    return replace(actor, context=Shifted(**_settings(actor.context)))


def _settings(record: Any) -> dict[str, Any]:
    return {one.name: getattr(record, one.name) for one in fields(record)}


@dataclass(frozen=True)
class PlayerFault:
    """A mistake, and the illness that it should be recognised as."""

    about: str
    adaptation: str
    actor: Callable[[Actor], Actor]


PLAYER_FAULTS: Mapping[str, PlayerFault] = MappingProxyType(
    {
        "wiped-memory": PlayerFault(
            "every view is read as if it were the first", "lost-in-inference", wipe_memory
        ),
        "shifted-goals": PlayerFault(
            "models of the others are told goals of the next one", "lost-in-models", shift_goals
        ),
        "deaf-policy": PlayerFault(
            "the policy is given zeros in the place of what is inferred",
            "lost-in-policy",
            lambda actor: DeafActor(**_settings(actor)),
        ),
    }
)


def build_in(name: str | None, actor: Actor) -> Actor:
    """The player with the fault of that name; as it is for None."""
    if name is None:
        return actor
    if name not in PLAYER_FAULTS:
        raise ConfigError(f"--fault is {name!r} but must be one of {', '.join(PLAYER_FAULTS)}")
    if not actor.context.infers:
        raise ConfigError(f"--fault {name} is about what is inferred: {actor.name} infers nothing")
    return PLAYER_FAULTS[name].actor(actor)
