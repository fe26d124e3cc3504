"""--last-actions: policy and critic are given what everyone did last."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.games import make_game
from hopplus.models.nets import first_layer
from hopplus.models.world import board_of
from hopplus.models.world_part import WorldPart
from hopplus.planning.dynamics import Dynamics, LearnedDynamics, TrueDynamics, observe
from hopplus.play.trained import Trained, read_player, write_player
from hopplus.players.actor import Actor, make_actor
from hopplus.players.parameters import PlayerParams
from hopplus.types import View
from tiny_hop_plus import CONFIG, GAME, jit, random_like

GAME_MADE = make_game(GAME)


def player(*, last_actions: bool) -> tuple[Actor, PlayerParams]:
    """Small HOP+ with any parameters."""
    actor = make_actor("any", GAME_MADE, replace(CONFIG, last_actions=last_actions))
    return actor, random_like(jax.eval_shape(actor.init, jax.random.key(0)), 0)


@pytest.fixture(scope="module")
def view() -> View:
    """Of a first step, at which nobody has done anything yet."""
    return GAME_MADE.view(GAME_MADE.init(jax.random.key(0)), 1)


def says(actor: Actor, params: PlayerParams, view: View, joints: Any) -> np.ndarray:
    """Policy and value after everyone did that, for each of several joint actions."""

    def one(joint: jax.Array) -> jax.Array:
        after = replace(view, legal=jnp.ones(7, bool), last_actions=joint)
        nothing = jnp.zeros(actor.context.size)
        return jnp.append(*actor.policy_and_value(params.policy, after, nothing))

    return np.asarray(jit(jax.vmap(one))(jnp.asarray(joints)))


def test_everyones_action_matters_and_whose_it_is(view: View) -> None:
    """To the policy and to the value; without the switch nothing of it does."""
    joints = [[-1, -1, -1], [0, 1, 2], [1, 1, 2], [0, 3, 2], [0, 1, 4], [0, 2, 1]]
    for told in (True, False):
        found = says(*player(last_actions=told), view, joints)
        for part in (found[:, :-1], found[:, -1:]):
            different = (np.abs(part[:, None] - part[None]) > 1e-5).any(axis=-1)
            assert (different == (told & ~np.eye(len(joints), dtype=bool))).all()


def test_each_seats_action_has_its_own_number(view: View) -> None:
    """A player that looks at nothing but whether the next seat did the third action."""
    actor, params = player(last_actions=True)
    board, acted = view.planes.size + 1, 3 * 7
    weight = first_layer(params.policy.body).weight
    assert len(weight) == board + acted + actor.context.size
    alone = jnp.zeros_like(weight).at[board + 1 * 7 + 2].set(1.0)
    looks = eqx.tree_at(lambda one: first_layer(one.policy.body).weight, params, alone)
    nothing, elsewhere, seen = says(actor, looks, view, [[-1, -1, -1], [2, 1, 2], [0, 2, 0]])
    np.testing.assert_array_equal(nothing, elsewhere)
    assert (nothing != seen).any()


def test_an_exported_player_is_told_too(view: View, tmp_path: Path) -> None:
    actor, params = player(last_actions=True)
    config = replace(CONFIG, last_actions=True)
    write_player(tmp_path / "one.safetensors", Trained(actor, params, config=config))
    back = read_player(tmp_path / "one.safetensors")
    joints = [[0, 1, 2], [0, 2, 1]]
    said = says(back.actor, back.params, view, joints)
    np.testing.assert_array_equal(said, says(actor, params, view, joints))
    assert (said[0] != said[1]).any()


@pytest.mark.parametrize("world", ["structured", "cells", "true"])
def test_imagined_views_carry_what_was_played(world: Any, view: View) -> None:
    """In every world that is imagined or searched in; of who had left before, nothing."""
    dynamics: Dynamics = TrueDynamics(GAME_MADE)
    if world != "true":
        part = WorldPart(board_of(GAME_MADE), replace(CONFIG.world.model, head=world))
        shapes = jax.eval_shape(part.init, jax.random.key(0))
        dynamics = LearnedDynamics(random_like(shapes, 0), GAME.horizon)
    gone = replace(view, planes=view.planes.at[..., 2].set(0))  # the seat before is not there
    joint = jnp.array([4, 1, 3])

    @jit
    def after(view: View) -> jax.Array:
        start = dynamics.enter(observe(GAME_MADE, view))
        place, _ = dynamics.simulate(start, joint, jax.random.key(0))
        return dynamics.observation(place).view.last_actions

    # An action that is not legal is played as staying by the true rules.
    legal = np.asarray(observe(GAME_MADE, view).legal)[range(3), joint]
    played = np.where(legal | (world != "true"), joint, 4)
    np.testing.assert_array_equal(after(view), played)
    assert after(gone)[2] == -1
