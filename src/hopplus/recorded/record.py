"""Whole episodes as rows: every step of play, with what everyone saw, did and got."""

import math
from dataclasses import replace
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.games.game import Game, views
from hopplus.play.seating import Seating
from hopplus.types import Act, Outcome, Params, State, View


class Rows(eqx.Module):
    """Steps of play, [R, ...]. An episode of L steps has L + 1: the last only shows how it ended.

    Where they are kept, planes and legality are packed into [R, N, bytes] uint8; see `packed`.
    """

    planes: jax.Array  # [R, N, H, W, C] bool, what each seat sees
    legal: jax.Array  # [R, N, A] bool
    time: jax.Array  # [R] float32
    last_actions: jax.Array  # [R, N] int8, by seat; -1 none
    present: jax.Array  # [R, N] bool
    joint: jax.Array  # [R, N] int8, as given; -1 in an episode's last row
    reward: jax.Array  # [R, N] float32
    took: jax.Array  # [R, N, K] uint8, things of each kind the seat had a share in taking
    done: jax.Array  # [R] bool, the step from here ends the episode
    aim: jax.Array  # [R, N] int8, the kind of thing the player says it is after; -1 none


def record(
    game: Game, seating: Seating, params: tuple[Params, ...], choices: jax.Array, key: jax.Array
) -> tuple[Rows, jax.Array]:
    """Play one episode, with [N] ones of the mixtures seated: rows [horizon + 1], and how many
    of them there are before they repeat its end, [] int32."""
    key_game, key = jax.random.split(key)
    state = game.init(key_game)

    def step(carry: Any, _: None) -> tuple[Any, tuple[Rows, jax.Array]]:
        state, memory, key, over = carry
        key_step = jax.random.fold_in(key, 1 + game.seats)  # as one more of the split would be
        key, *keys_act = jax.random.split(key, 1 + game.seats)
        seen = views(game, state)
        memory, act = seating.act(params, memory, seen, jnp.stack(keys_act), choices)
        after, outcome = game.step(state, act.action, key_step)
        row = row_of(game, state, seen, act, outcome, over)
        return (after, memory, key, over | outcome.done), (row, over)

    start = (state, seating.start(choices), key, jnp.bool_(False))
    _, (rows, over) = jax.lax.scan(step, start, None, length=game.horizon + 1)
    return rows, (~over).sum() + 1


def row_of(
    game: Game, state: State, seen: View, act: Act, outcome: Outcome, over: jax.Array
) -> Rows:
    """A step as a row: everyone's views and acts [N, ...], and what came of them unless the episode
    was over."""
    return Rows(
        planes=seen.planes > 0,
        legal=seen.legal,
        time=seen.time[0],
        last_actions=seen.last_actions[0].astype(jnp.int8),
        present=game.present(state),
        joint=jnp.where(over, -1, act.action).astype(jnp.int8),
        reward=jnp.where(over, 0.0, outcome.reward),
        took=jnp.where(over, 0, outcome.took).astype(jnp.uint8),
        done=outcome.done & ~over,
        aim=aims(act, len(game.targets)),
    )


def aims(act: Act, kinds: int) -> jax.Array:
    """[...] int8 the kind that the players' goals point at, if they are such goals."""
    if act.goal.shape[-1] != kinds:
        return jnp.full(act.action.shape, -1, jnp.int8)
    return jnp.where(act.goal.any(axis=-1), act.goal.argmax(axis=-1), -1).astype(jnp.int8)


def packed(rows: Rows) -> Rows:
    """The rows, on the host, with eight yes-or-no values in a byte, the first in its lowest bit."""

    def pack(bits: jax.Array) -> jax.Array:
        flat = np.asarray(bits).reshape(*bits.shape[:2], -1)
        return cast(jax.Array, np.packbits(flat, axis=-1, bitorder="little"))

    return replace(rows, planes=pack(rows.planes), legal=pack(rows.legal))


def unpacked(packs: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """[..., *shape] bool of [..., bytes] as `packed` made them."""
    bits = packs[..., None] >> jnp.arange(8, dtype=jnp.uint8) & 1
    flat = bits.reshape(*packs.shape[:-1], -1)[..., : math.prod(shape)]
    return flat.reshape(*packs.shape[:-1], *shape) > 0


def view_at(game: Game, rows: Rows, row: jax.Array | int, seat: jax.Array | int) -> View:
    """What a seat saw in a row of packed ones."""
    return View(
        planes=unpacked(rows.planes[row, seat], game.shape).astype(jnp.float32),
        legal=unpacked(rows.legal[row, seat], (len(game.action_names),)),
        time=rows.time[row],
        last_actions=jnp.roll(rows.last_actions[row].astype(jnp.int32), -seat),
    )
