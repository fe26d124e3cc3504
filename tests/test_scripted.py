"""Scripted players: exact distributions, and names."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from hopplus.config import ConfigError, StagHuntConfig
from hopplus.games.game import views
from hopplus.games.stag_hunt import StagHunt
from hopplus.models.sampling import draw
from hopplus.play.seating import Seating, seat_players
from hopplus.players.scripted import player_names, scripted
from hopplus.types import Act

UP, DOWN, LEFT, RIGHT, STAY, STAG, HARE = range(7)
GAME = StagHunt(StagHuntConfig(size=4, seats=2, stags=2, hares=2))


def probabilities(player: str, text: str, seat: int = 0, game: StagHunt = GAME) -> list[float]:
    logits = logits_function(player, game.config)(game.parse(text), seat)
    found: list[float] = np.exp(np.asarray(logits)).tolist()
    return found


@cache
def logits_function(player: str, config: StagHuntConfig) -> Callable[[Any, int], jax.Array]:
    game = StagHunt(config)
    who = scripted(player, game)

    def logits(state: Any, seat: int) -> jax.Array:
        return who.act((), who.start(), game.view(state, seat), jax.random.key(0))[1].logits

    return jax.jit(logits)


def seen_first(text: str) -> Any:
    """What seat 0 sees of a board."""
    return jax.jit(lambda state: GAME.view(state, 0))(GAME.parse(text))


def test_ties_are_broken_uniformly() -> None:
    text = "S . . . \n . 0 . . \n . . . h \n 1 . . ."
    assert probabilities("stag", text) == pytest.approx([0.5, 0, 0.5, 0, 0, 0, 0])
    text = ". S . . \n S 0 S . \n . . . 1 \n . . . h"  # three stags are two too many for GAME
    game = StagHunt(StagHuntConfig(size=4, seats=2, stags=3, hares=1))
    third = pytest.approx([1 / 3, 0, 1 / 3, 1 / 3, 0, 0, 0])
    assert probabilities("stag", text, game=game) == third


def test_walks_around_obstacles() -> None:
    text = "0 # S . \n . # # . \n . . . . \n 1 . h ."
    assert probabilities("stag", text) == pytest.approx([0, 1, 0, 0, 0, 0, 0])


def test_hunts_when_there_and_stays_when_none_is_left() -> None:
    text = "0S . . . \n . 1h . . \n . . . . \n . . . ."
    assert probabilities("stag", text)[STAG] == pytest.approx(1)
    assert probabilities("hare", text, seat=1)[HARE] == pytest.approx(1)
    text = "0 . . . \n . 1h . . \n . . . . \n . . . ."
    assert probabilities("stag", text)[STAY] == pytest.approx(1)
    text = "0 # S . \n # # . . \n . . . . \n 1 . h ."  # walled in
    assert probabilities("stag", text)[STAY] == pytest.approx(1)
    text = ". . . . \n . 1h . . \n . . . . \n . . . ."  # seat 0 has left
    assert probabilities("hare", text)[STAY] == pytest.approx(1)


def test_random_and_noisy_distributions() -> None:
    text = "0S . . . \n . 1h . . \n . . . . \n . . . ."
    assert probabilities("random", text) == pytest.approx([0, 1 / 4, 0, 1 / 4, 1 / 4, 1 / 4, 0])
    noisy = [0, 0.05, 0, 0.05, 0.05, 0.85, 0]
    assert probabilities("noisy-stag:0.2", text) == pytest.approx(noisy)
    assert probabilities("noisy-stag:0", text) == probabilities("stag", text)


@pytest.mark.parametrize("name", ["random", "stag", "hare", "switch", "noisy-hare:0.3"])
def test_actions_follow_the_distribution_given(name: str) -> None:
    text = "0 . . S \n . h . . \n . . . . \n h . . 1"
    view = seen_first(text)
    who = scripted(name, GAME)
    act: Act
    _, act = jax.jit(jax.vmap(lambda key: who.act((), who.start(), view, key)))(
        jax.random.split(jax.random.key(3), 20_000)
    )
    np.testing.assert_allclose(np.exp(act.logits).sum(axis=1), 1, rtol=1e-5)
    chosen = np.take_along_axis(np.asarray(act.logits), np.asarray(act.action)[:, None], 1)[:, 0]
    np.testing.assert_array_equal(act.log_prob, chosen)
    assert np.isfinite(chosen).all()  # nothing of probability zero was done
    counts = np.bincount(act.action, minlength=7)
    expected = np.exp(np.asarray(act.logits, np.float64)).sum(axis=0)
    expected *= counts.sum() / expected.sum()  # 32 bits sum to nearly one
    assert not counts[expected == 0].any()
    some = expected > 0
    assert some.sum() == 1 or stats.chisquare(counts[some], expected[some]).pvalue > 0.001


def test_switch_draws_once_an_episode() -> None:
    view = seen_first("0 . . S \n . . . . \n . . . . \n h . . 1")
    who = scripted("switch", GAME)
    memory, act = jax.jit(jax.vmap(lambda key: who.act((), who.start(), view, key)))(
        jax.random.split(jax.random.key(4), 2000)
    )
    assert stats.binomtest(int(memory.sum()), 2000, 0.5).pvalue > 0.001
    np.testing.assert_array_equal(act.goal, np.eye(2)[memory])
    np.testing.assert_array_equal(act.action, np.where(np.asarray(memory) == 0, RIGHT, DOWN))
    again, act = jax.jit(jax.vmap(lambda memory, key: who.act((), memory, view, key)))(
        memory, jax.random.split(jax.random.key(5), 2000)
    )
    np.testing.assert_array_equal(again, memory)


def test_draw_never_takes_the_impossible() -> None:
    tiny = jnp.array([0.0, 1e-7, 0.0, 1.0, 0.0])
    drawn = jax.jit(jax.vmap(lambda key: draw(key, tiny)))(
        jax.random.split(jax.random.key(0), 100_000)
    )
    assert set(np.unique(drawn).tolist()) <= {1, 3}


def test_names() -> None:
    for name in player_names(GAME):
        assert scripted(name.replace("P", "0.25"), GAME).name == name.replace("P", "0.25")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("stagg", "did you mean stag?"),
        ("", "no player is called ''"),
        ("noisy-stag", "needs a rate"),
        ("noisy-stag:2", "needs a rate"),
        ("noisy-stag:x", "needs a rate"),
        ("noisy-random:0.1", "no player is called"),
    ],
)
def test_wrong_names(name: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        scripted(name, GAME)
    assert words in str(error.value)


def test_seating_puts_each_player_in_its_seat() -> None:
    """Seats out of order: what comes out of a seat is what its player alone would have done."""
    game = StagHunt(StagHuntConfig(size=6, seats=5, stags=2, hares=4))
    seating = seat_players("hare,stag,random,hare,stag", game)
    assert [seats.tolist() for _, seats in seating.groups] == [[0, 3], [1, 4], [2]]
    seen = jax.jit(lambda key: views(game, game.init(key)))(jax.random.key(2))
    keys = jax.random.split(jax.random.key(9), 5)
    params = seating.init(jax.random.key(0))
    nobody = jnp.zeros(5, jnp.int32)  # there is no mixture
    _, acts = jax.jit(seating.act)(params, seating.start(nobody), seen, keys, nobody)
    for seat, player in enumerate(seating.players):
        view = jax.tree.map(lambda leaf: np.asarray(leaf)[seat], seen)  # noqa: B023
        _, alone = jax.jit(player.act)((), player.start(), view, keys[seat])
        together = jax.tree.map(lambda leaf: np.asarray(leaf)[seat], acts)  # noqa: B023
        jax.tree.map(np.testing.assert_array_equal, together, alone)


def test_seating_counts() -> None:
    with pytest.raises(ConfigError, match="names 3 players but the game has 2 seats"):
        seat_players("stag,stag,hare", GAME)
    assert isinstance(seat_players(" stag , hare ", GAME), Seating)
