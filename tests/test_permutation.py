"""Learned players in any order: what follows the player, and what the place."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from hopplus.config import StagHuntConfig
from hopplus.diagnosis.seats.checks import SeatsEvidence, SeatsSettings, check_permuted
from hopplus.diagnosis.seats.permutation import Permuted, compare_permuted, list_orders
from hopplus.games import make_game
from hopplus.games.grid import STAY
from hopplus.games.stag_hunt import HUNT_HARE, HUNT_STAG
from hopplus.players.actor import make_actor
from tiny_diagnosis import CONFIG, GAME

RUNS, WEAK = 5, 1
STRONG = replace(GAME, strength=(1.0, 1.0, 2.0))


def test_everyone_sits_everywhere_equally_often() -> None:
    assert sorted(map(tuple, list_orders(3, 0))) == [
        (0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0),
    ]  # fmt: skip
    orders = list_orders(5, 0)
    assert orders.shape == (20, 5)
    for place in range(5):
        assert np.bincount(orders[:, place]).tolist() == [4] * 5
    neighbours = {tuple(np.roll(order, -order.tolist().index(0))) for order in orders}
    assert len(neighbours) > 1  # not turns of one order alone


def test_returns_are_given_to_who_sat_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where everyone gets its own number in every place."""

    def numbered(game: Any, actor: Any, players: Any, orders: Any, key: Any, boards: int) -> Any:
        return np.broadcast_to(orders[None, :, None], (RUNS, len(orders), boards, game.seats))

    monkeypatch.setattr("hopplus.diagnosis.seats.permutation._play_orders", numbered)
    nobody: Any = None
    players: Any = np.zeros((RUNS, GAME.seats))
    found = compare_permuted(make_game(GAME), nobody, players, 0, 300)
    assert found.by_player.samples.tolist() == [[0, 1, 2]] * RUNS
    assert (found.by_place.samples == 1).all()


@cache
def compared(game: StagHuntConfig, weak: bool) -> Permuted:
    """Players of five runs that go anywhere and hunt stags where they are, in twos or more; in each
    run the player of one seat hardly moves, if it is weak."""
    made = make_game(game)
    actor = make_actor("tiny", made, replace(CONFIG, game=game))
    keys = jax.random.split(jax.random.key(77), (RUNS, game.seats))
    players = jax.jit(jax.vmap(jax.vmap(actor.init)))(keys)
    bias = players.policy.policy.bias.at[..., HUNT_STAG].add(6.0).at[..., HUNT_HARE].add(-6.0)
    bias = bias.at[:, WEAK, STAY].add(6.0 * weak)
    players = eqx.tree_at(lambda params: params.policy.policy.bias, players, bias)
    return compare_permuted(made, actor, players, 1, 6000)


@pytest.mark.parametrize(
    ("game", "weak"), [(GAME, False), (GAME, True), (STRONG, False), (STRONG, True)]
)
def test_player_and_place_are_told_apart(game: StagHuntConfig, weak: bool) -> None:
    found = compared(game, weak)
    assert found.episodes == 6000
    assert found.by_player.samples.shape == (RUNS, 3)
    assert found.by_place.samples.shape == (200, 3)
    # The same returns, in another order.
    total = found.by_player.samples.mean(axis=0).sum()
    assert total == pytest.approx(found.by_place.samples.mean(axis=0).sum())
    assert (found.by_player.p_value < 0.01) == weak
    assert (found.apart.p_value < 1e-6) == weak
    assert (found.by_place.p_value < 0.001) == (game is STRONG)
    if weak:
        assert np.argmin(found.by_player.samples.mean(axis=0)) == WEAK
    if game is STRONG:
        assert np.argmax(found.by_place.samples.mean(axis=0)) == 2


def checks_of(found: Permuted, monkeypatch: pytest.MonkeyPatch, **learner: Any) -> list[Any]:
    """What is said of it."""
    monkeypatch.setattr("hopplus.diagnosis.seats.checks.compare_permuted", lambda *given: found)
    given = {"seats": np.arange(3), "actor": SimpleNamespace(shares_params=False)} | learner
    made = SimpleNamespace(**given, game=SimpleNamespace(seats=3), learning=0)
    subject: Any = SimpleNamespace(learner=made, learning=SimpleNamespace(params=[None]))
    nothing: Any = None
    evidence = SeatsEvidence(subject, nothing, SeatsSettings(), lambda note: None)
    return list(check_permuted(evidence))


def test_what_is_said_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(STRONG, True)
    player, place = checks_of(found, monkeypatch)
    assert (player.fault, place.fault) == (None, "unequal-game")
    assert "Over 5 runs" in player.says
    assert "so returns follow it" in player.says
    alike = replace(found, by_player=replace(found.by_player, p_value=0.02))
    assert "no sign that returns follow it" in checks_of(alike, monkeypatch)[0].says
    single = replace(found, by_player=replace(found.by_player, least=1.0))
    assert "The first run's players differ" in checks_of(single, monkeypatch)[0].says
    chance = replace(found, by_place=replace(found.by_place, p_value=0.002))
    assert checks_of(chance, monkeypatch)[1].fault is None
    # Where some seats do not learn, or all act by one set of parameters, there is nothing to say.
    assert checks_of(found, monkeypatch, seats=np.arange(2)) == []
    assert checks_of(found, monkeypatch, actor=SimpleNamespace(shares_params=True)) == []
