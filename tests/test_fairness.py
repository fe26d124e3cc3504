"""Does a game treat its seats alike? Its rules on every turn of a board, and play by name and by
place."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.diagnosis.finding import Check
from hopplus.diagnosis.seats import checks as seats_checks
from hopplus.diagnosis.seats.checks import SeatsEvidence, SeatsSettings, check_play, check_rules
from hopplus.diagnosis.seats.fairness import (
    Placement,
    Symmetry,
    compare_placement,
    compare_turns,
    turn,
)
from hopplus.diagnosis.seats.ordering import Ordering
from hopplus.games import make_game
from hopplus.games.game import Game, views
from hopplus.games.stag_hunt import StagHunt
from hopplus.types import Outcome
from tiny_diagnosis import GAME, NONE
from toy_game import Coins, CoinsConfig, CoinsState

GAMES = 16


THREE = CoinsConfig(seats=3, horizon=6)  # since two can be turned in one way alone


class Dealt(Coins):
    """Beside the first place that is dealt there always is a gold coin; rules are equal."""

    def init(self, key: jax.Array) -> CoinsState:
        state = super().init(key)
        next_to = jnp.where(state.seats[0] % 3 == 0, 1, -1)
        return replace(state, coins=state.coins.at[0].set(state.seats[0] + next_to))


class Greedy(Coins):
    """Who has the second name gets more for a coin."""

    def step(
        self, state: CoinsState, joint: jax.Array, key: jax.Array
    ) -> tuple[CoinsState, Outcome]:
        after, outcome = super().step(state, joint, key)
        more = jnp.where(outcome.took.any(axis=1), jnp.array([0.0, 0.5, 0.0]), 0.0)
        return after, replace(outcome, reward=outcome.reward + more)


# Turning a board.


def test_a_turned_board_is_the_same_with_seats_renamed() -> None:
    game = make_game(GAME)
    state = game.parse("0 1S .\n. . 2h\nh . .\n")

    @jax.jit
    def seen(by: jax.Array) -> Any:
        other = turn(game, state, by)
        return other, views(game, state), views(game, other)

    for by, named in enumerate(("012", "201", "120")):
        other, before, after = seen(jnp.int32(by))
        order = (by + np.arange(3)) % 3
        np.testing.assert_array_equal(before.planes[order], after.planes)
        np.testing.assert_array_equal(before.legal[order], after.legal)
        expected = game.show(state).translate(str.maketrans("012", named))
        assert game.show(other).split() == expected.split()


def test_equal_rules_do_the_same_on_every_turn() -> None:
    found = compare_turns(make_game(GAME), 0, GAMES)
    assert found.known
    assert found.different == 0
    assert found.steps == GAMES * GAME.horizon * (GAME.seats - 1)
    assert found.example == ""


@pytest.mark.parametrize("game", [Coins(THREE), Dealt(THREE)], ids=["three", "dealt"])
def test_another_game_with_equal_rules(game: Coins) -> None:
    """What is dealt is no matter of rules."""
    found = compare_turns(game, 0, GAMES)
    assert (found.known, found.different) == (True, 0)


def test_unequal_strength_is_found_with_an_example() -> None:
    game = make_game(replace(GAME, strength=(1.0, 1.0, 2.0)))
    found = compare_turns(game, 0, GAMES)
    assert found.known
    assert 0 < found.different < found.steps
    for word in ("actions of seats 0 to 2: ", "hunt ", "rewards: ", "named first: "):
        assert word in found.example
    told = found.example.partition("rewards: ")[2].partition("; with seat")
    one = [float(number) for number in told[0].strip("[]").split(", ")]
    two = [float(number) for number in told[2].partition("[")[2].strip("]").split(", ")]
    assert sum(one) == pytest.approx(sum(two), abs=0.01)  # the same prey, shared otherwise
    assert one != two


def test_rewards_by_name_are_found_in_another_game() -> None:
    found = compare_turns(Greedy(THREE), 0, GAMES)
    assert found.known
    assert found.different > 0


@pytest.mark.parametrize("change", [{"sight": 1}, {"grace": 2}], ids=str)
def test_what_nobody_sees_cannot_be_turned(change: dict[str, Any]) -> None:
    found = compare_turns(make_game(replace(GAME, **change)), 0, 64)
    assert not found.known
    assert (found.different, found.example) == (0, "")


# Name and place.


def test_names_and_places_that_do_not_matter() -> None:
    found = compare_placement(Coins(THREE), "random", 0, 2400)
    assert found.episodes == 2400
    assert found.by_place is not None
    assert min(found.by_name.p_value, found.by_place.p_value) > 1e-3
    assert found.by_name.samples.shape == (800, 3)
    # The same returns, in another order.
    assert found.by_name.samples.sum() == pytest.approx(found.by_place.samples.sum())


def test_a_place_that_is_favoured() -> None:
    found = compare_placement(Dealt(THREE), "random", 0, 2400)
    assert found.by_place is not None
    assert found.by_place.p_value < 1e-6
    first, *others = (seat.mean for seat in found.by_place.seats)
    assert first > max(others) + 0.1
    assert found.by_name.p_value > 1e-3


def test_a_name_that_is_favoured() -> None:
    found = compare_placement(Greedy(THREE), "random", 0, 2400)
    assert found.by_name.p_value < 1e-6
    first, second, third = (seat.mean for seat in found.by_name.seats)
    assert second > max(first, third) + 0.2
    assert found.by_place is not None
    assert found.by_place.p_value > 1e-3


def test_episodes_are_of_whole_rounds_of_seats() -> None:
    found = compare_placement(Coins(THREE), "random", 0, 2398)
    assert found.episodes == 2400


# What is said of it.


EQUAL = Symmetry(10, 0, True, "")


@dataclass(frozen=True)
class Made:
    """Made-up results of the two."""

    symmetry: Symmetry = EQUAL
    by_name: float = 0.5
    by_place: float | None = 0.5

    def placement(
        self, game: Any, player: str, seed: int, episodes: int, turning: bool
    ) -> Placement:
        assert turning == self.symmetry.known
        returns = np.random.default_rng(0).normal(size=(9, 3))
        place = None if self.by_place is None else Ordering(returns, self.by_place)
        return Placement(player, episodes, Ordering(returns, self.by_name), place)


def game_checks(game: Game, settings: SeatsSettings, on_step: Any) -> list[Check]:
    """The rules, then play with each kind of player."""
    subject: Any = SimpleNamespace(learner=SimpleNamespace(game=game))
    evidence = SeatsEvidence(subject, NONE, settings, on_step)
    return [check_rules(evidence), *check_play(evidence)]


def said(made: Made, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str | None], list[str]]:
    """The faults that checks of rules, random, stag and hare players show, and their words."""
    monkeypatch.setattr(seats_checks, "compare_turns", lambda *given: made.symmetry)
    monkeypatch.setattr(seats_checks, "compare_placement", made.placement)
    done: list[str] = []
    checks = game_checks(make_game(replace(GAME, grace=2)), SeatsSettings(), done.append)
    assert len(done) == len(checks) == 4
    return [check.fault for check in checks], [check.says for check in checks]


def test_what_is_said_of_a_game(monkeypatch: pytest.MonkeyPatch) -> None:
    def faults(**given: Any) -> list[str | None]:
        return said(Made(**given), monkeypatch)[0]

    wrong = "unequal-game"
    assert faults() == [None] * 4
    assert faults(by_name=1e-4) == [None, wrong, wrong, wrong]
    assert faults(by_place=1e-4) == [None, wrong, wrong, wrong]
    assert faults(by_name=0.002) == [None] * 4  # may well be chance, of so many tests
    unlike = Symmetry(10, 2, True, "this board")
    assert faults(symmetry=unlike) == [wrong, None, None, None]
    words = said(Made(unlike), monkeypatch)[1][0]
    assert "2 of 10 steps" in words
    assert "this board" in words
    hidden = Symmetry(10, 0, False, "")
    assert faults(symmetry=hidden, by_place=None) == [None] * 4
    assert faults(symmetry=hidden, by_name=1e-4, by_place=None) == [None, wrong, wrong, wrong]
    words = said(Made(hidden, by_place=None), monkeypatch)[1][0]
    assert "does not see when the first prey was caught (game.grace)" in words


def test_a_game_with_sight_is_not_unequal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It treats its seats alike; only its boards cannot be turned."""
    game = make_game(replace(GAME, sight=1))
    monkeypatch.setattr(StagHunt, "shape", game.shape)
    monkeypatch.setattr(StagHunt, "targets", property(lambda self: {}))  # random players will do
    settings = SeatsSettings(episodes=3000, symmetric=GAMES)
    checks = game_checks(game, settings, lambda note: None)
    assert [check.fault for check in checks if check.fault] == []
