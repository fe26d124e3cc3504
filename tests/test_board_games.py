"""What Snowdrift and the coin game both keep: symmetry [11], states that views show, PettingZoo.

Coins that come back are drawn anew, so what is compared of them is where the others are.
"""

import warnings
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from board_checks import (
    Config,
    assert_equal,
    at,
    compiled,
    parse_all,
    random_layouts,
    turned_actions,
    turned_cells,
    turned_planes,
)
from hopplus.config import CoinConfig, SnowdriftConfig, make_config
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.games.pettingzoo import HopplusEnv, parallel_env
from hopplus.models.opponent import others_views
from hopplus.models.world import board_of

BATCH = 512
SQUARE = {
    "snowdrift": SnowdriftConfig(size=5, drifts=5, cost=0.7),
    "coin": CoinConfig(size=4, seats=4, coins=6, harm=0.7),
}
WIDE = {
    "snowdrift": SnowdriftConfig(height=3, width=5, seats=6, drifts=5, reward=0.3),
    "coin": CoinConfig(height=2, width=5, seats=3, coins=5, reward=0.3),
}
ACTIONS = {
    "snowdrift-v1": [-1, 0, 1, 2, 3, 4, *[5] * 7, 6, 8],
    "coin-v1": [-1, *[0, 1, 2, 3] * 4, 4, 5, 8],
}
EVERY = {
    f"{name} {kind}": config
    for kind, configs in (("square", SQUARE), ("wide", WIDE))
    for name, config in configs.items()
}


@cache
def positions(config: Config) -> tuple[Any, np.ndarray]:
    """States [B] after a step from crowded layouts, and joint actions for them."""
    game, player = compiled(config)
    rng = np.random.default_rng(4)
    first, second = rng.choice(ACTIONS[config.name], (2, BATCH, config.seats)).astype(np.int32)
    start = parse_all(game, random_layouts(config, BATCH, seed=4))
    return at(player(start, first[None], 0)[1], 0), second


@pytest.mark.parametrize("name", SQUARE)
def test_starts_among_obstacles(name: str) -> None:
    """Everything begins on free cells of its own [1, 2], and not always on the same board."""
    config = replace(SQUARE[name], obstacles=2)
    init = jax.jit(jax.vmap(compiled(config)[0].init))
    state = jax.device_get(init(jax.random.split(jax.random.key(5), BATCH)))
    things = state.drifts if hasattr(state, "drifts") else state.coins
    cells = np.concatenate([state.seats, things], axis=1)
    assert (np.diff(np.sort(cells, axis=1)) > 0).all()
    assert not np.take_along_axis(state.walls, cells, axis=1).any()
    assert len(np.unique(state.walls, axis=0)) > 20
    assert set(state.walls.sum(axis=1)) <= {6, 7, 8}  # pieces of three or four cells


@pytest.mark.parametrize("name", EVERY)
def test_positions_are_worth_testing(name: str) -> None:
    """In some steps several things are taken, and in some, several seats take one."""
    state, joint = positions(EVERY[name])
    _, _, outcome = at(compiled(EVERY[name])[1](state, joint[None], 0), 0)
    taken, takers = outcome.taken.sum(axis=1), outcome.took.sum(axis=(1, 2))
    assert (taken > 1).sum() > 5
    assert (takers > taken).sum() > 5
    assert state.walls.any()


def without_new(state: Any, before: Any) -> Any:
    """A state [B] without the coins that have come back in the step."""
    if not hasattr(state, "coins"):
        return state
    taken = (before.coins[:, :, None] == state.seats[:, None, :]).any(axis=2)
    coins, owners = np.where(taken, -1, state.coins), np.where(taken, -1, state.owners)
    return replace(state, coins=coins, owners=owners)


def renamed(state: Any, by: np.ndarray) -> Any:
    """Seat i of the new state is seat by[i] of the old one."""
    new = replace(state, seats=state.seats[:, by], last_actions=state.last_actions[:, by])
    if not hasattr(state, "owners"):
        return new
    owners = np.where(state.owners < 0, -1, np.argsort(by)[state.owners])
    return replace(new, owners=owners.astype(np.int32))


def took_by_names(outcome: Any, by: np.ndarray) -> np.ndarray:
    """Who took what, of a renamed state: where things are owned, kinds are renamed as the seats
    are, and every seat counts them from its own."""
    took: np.ndarray = outcome.took
    if took.shape[2] == 1:
        return took[:, by]
    seats = range(len(by))
    by_owner = np.stack([np.roll(took[:, seat], seat, axis=1) for seat in seats], axis=1)
    new = by_owner[:, by][..., by]
    return np.stack([np.roll(new[:, seat], -seat, axis=1) for seat in seats], axis=1)


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (2, 3, 1, 0), (1, 2, 3, 0), (3, 2, 0, 1)])
@pytest.mark.parametrize("name", SQUARE)
def test_renaming_seats(name: str, order: tuple[int, ...]) -> None:
    by = np.array(order)
    player, (state, joint) = compiled(SQUARE[name])[1], positions(SQUARE[name])
    new = renamed(state, by)
    seen, after, outcome = at(player(state, joint[None], 0), 0)
    seen_new, after_new, outcome_new = at(player(new, joint[None][..., by], 0), 0)
    assert_equal(without_new(after_new, new), renamed(without_new(after, state), by))
    for field in ("reward", "left", "illegal"):
        np.testing.assert_array_equal(getattr(outcome_new, field), getattr(outcome, field)[:, by])
    np.testing.assert_array_equal(outcome_new.took, took_by_names(outcome, by))
    np.testing.assert_array_equal(outcome_new.taken.sum(axis=1), outcome.taken.sum(axis=1))
    np.testing.assert_array_equal(outcome_new.done, outcome.done)
    if order == (1, 2, 3, 0):  # views list the others cyclically
        assert_equal(seen_new, jax.tree.map(lambda leaf: leaf[:, by], seen))
        np.testing.assert_array_equal(outcome_new.taken, outcome.taken)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("name", EVERY)
def test_turning_the_board(name: str, turns: int, flip: bool) -> None:
    config = EVERY[name]
    old, new = turned_cells(config.rows, config.columns, turns, flip)

    def turned(state: Any) -> Any:
        last = turned_actions(state.last_actions, turns, flip)
        things = "drifts" if hasattr(state, "drifts") else "coins"
        cells = getattr(state, things)
        moved = {"seats": new[state.seats], things: np.where(cells < 0, -1, new[cells])}
        return replace(state, walls=state.walls[:, old], last_actions=last, **moved)

    sides: dict[str, Any] = {"height": config.columns, "width": config.rows} if turns % 2 else {}
    other = compiled(replace(config, **sides) if config.rows != config.columns else config)[1]
    state, joint = positions(config)
    start, named = turned(state), turned_actions(joint, turns, flip)
    seen, after, outcome = at(compiled(config)[1](state, joint[None], 0), 0)
    seen_turned, after_turned, outcome_turned = at(other(start, named[None], 0), 0)
    assert_equal(without_new(after_turned, start), turned(without_new(after, state)))
    assert_equal(outcome_turned, outcome)
    np.testing.assert_array_equal(seen_turned.planes, turned_planes(seen.planes, turns, flip))
    names = turned_actions(np.arange(seen.legal.shape[-1]), turns, flip)
    np.testing.assert_array_equal(seen_turned.legal[..., names], seen.legal)


@pytest.mark.parametrize("name", EVERY)
def test_what_is_seen_goes_on_like_the_real_state(name: str) -> None:
    """In two times 512 states of each game, for every seat: its next view, and the outcome."""
    config = EVERY[name]
    game, _ = compiled(config)
    names = ("reward", "left", "illegal", "took")
    rounding = 1e-6 if isinstance(config, CoinConfig) else 0.0

    @jax.jit
    @jax.vmap
    def both(state: Any, joint: jax.Array) -> Any:
        things = game.view(state, 0).planes[..., game.seats + 1 :].any(axis=-1, keepdims=True)

        def without_new(view: Any) -> Any:
            """Nothing comes back where anything was: that is still there, or who took it is."""
            kept = view.planes[..., game.seats + 1 :] * things
            return replace(view, planes=view.planes.at[..., game.seats + 1 :].set(kept))

        def seen_by(seat: jax.Array) -> Any:
            own_first = game.seen(game.view(state, seat))
            after, outcome = game.step(own_first, jnp.roll(joint, -seat), jax.random.key(1))
            by_seat = {name: jnp.roll(getattr(outcome, name), seat, axis=0) for name in names}
            return without_new(game.view(after, 0)), replace(outcome, **by_seat)

        after, outcome = game.step(state, joint, jax.random.key(0))
        real = jax.vmap(without_new)(views(game, after))
        return (real, outcome), jax.vmap(seen_by)(jnp.arange(game.seats))

    (real, outcome), (seen, told) = jax.device_get(both(*positions(config)))
    assert_equal(seen, real)
    for seat in range(config.seats):
        one = at(told, slice(None), seat)
        # Coins may have other numbers there, and harms are summed in the order of those.
        np.testing.assert_allclose(one.reward, outcome.reward, rtol=0, atol=rounding)
        assert_equal(replace(one, reward=outcome.reward), outcome)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("snowdrift-v1", {}),
        ("snowdrift-v1", {"size": 3, "seats": 2, "drifts": 2, "horizon": 6}),
        ("coin-v1", {}),
        ("coin-v1", {"size": 3, "seats": 3, "coins": 6, "horizon": 6}),
    ],
)
def test_pettingzoo_accepts_it(name: str, settings: dict[str, Any]) -> None:
    def make() -> HopplusEnv:
        return parallel_env(name, **settings)

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # PettingZoo warns of what it dislikes
        parallel_api_test(make(), num_cycles=100)
        parallel_seed_test(make, num_cycles=50)


@pytest.mark.parametrize("seats", [2, 3, 4])
def test_others_views_of_coins(seats: int) -> None:
    """The others' views are this seat's, turned, with the coins as each of them sees them."""
    game = make_game(make_config("coin-v1", seats=seats, coins=4))
    state = game.init(jax.random.key(seats))
    seen = views(game, state)
    for seat in range(seats):
        legal = jnp.roll(seen.legal, -seat, axis=0)
        theirs = others_views(game.view(state, seat), legal, board_of(game).own_kinds)
        for place in range(1, seats):
            true = seen.planes[(seat + place) % seats]
            np.testing.assert_array_equal(theirs.planes[place - 1], true)
