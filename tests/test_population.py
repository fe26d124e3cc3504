"""Families of co-players: what is drawn for a trial, and that one learns among all but those held
out."""

from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli.train import result_page
from hopplus.config import ConfigError, NetConfig, PPOConfig, TrainConfig, make_config
from hopplus.evaluation.adaptation import lineups
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.learning.from_run import make_learner, new_run, seat_names
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import Seating
from hopplus.players.context.registry import make_context
from hopplus.players.mixture import Mixture
from hopplus.players.scripted import mixed_names, player_names, scripted
from hopplus.players.scripted.family import NUMBERS, Member, Together
from test_co_players import (
    KEY,
    SNOW,
    game_of,
)
from tiny_hop_plus import jit

HUNT = game_of("stag-hunt-v1", size=3, seats=3, hares=2, horizon=8)
SMALL = {
    "stag-hunt-v1": {"size": 4, "seats": 3, "hares": 3, "horizon": 12, "obstacles": 1},
    "snowdrift-v1": {"size": 4, "seats": 3, "drifts": 4, "horizon": 12},
    "coin-v1": {"size": 4, "seats": 3, "coins": 3, "horizon": 12},
    "examples.orchard:ROW": {"size": 4, "horizon": 12},
}
GAMES = list(SMALL)


@cache
def small(name: str) -> Any:
    return make_game(make_config(name, **SMALL[name]))


@cache
def everyone(game: Any) -> tuple[Any, ...]:
    return tuple(scripted(name, game) for name in mixed_names(game, "population"))


class Played(NamedTuple):
    """Games with a mixture of all families in every seat, in trials of two episodes."""

    numbers: np.ndarray  # [F, T, B, N, NUMBERS] of every family, seated or not, before the act
    begins: np.ndarray  # [T, B] bool, a trial does
    choice: np.ndarray  # [T, B, N]
    chances: np.ndarray  # [T, B, N, A] of who is seated
    own: np.ndarray  # [F, T, B, N, A] of every family
    legal: np.ndarray  # [T, B, N, A] bool
    present: np.ndarray  # [T, B, N] bool


def over_games(function: Any) -> Any:
    """Over steps, games and seats."""
    return jax.vmap(jax.vmap(jax.vmap(function)))


@cache
def played(name: str) -> Played:
    game = small(name)
    families = everyone(game)
    seating = Seating((Mixture(families),) * game.seats, trial=2)

    def play(key: jax.Array) -> Any:
        plays = jax.vmap(partial(start, game, seating))(jax.random.split(key, 48))
        params = seating.init(key)
        _, found = rollout(game, seating, params, plays, 60)
        seen = jax.vmap(jax.vmap(partial(views, game)))(found.state)  # [T, B, N]

        def acts(choice: jax.Array, memory: tuple[Member, ...], view: Any) -> jax.Array:
            return jnp.exp(Together(families, choice).act((), memory, view, key)[1].logits)

        each = over_games(partial(jax.vmap(acts, (0, None, None)), jnp.arange(len(families))))
        own = jnp.moveaxis(each(found.memory[0], seen), 3, 0)
        numbers = jnp.stack([memory.numbers for memory in found.memory[0]])
        begins = found.begins & (found.episode == 0)
        chances = jnp.exp(found.act.logits)
        return numbers, begins, found.choice, chances, own, seen.legal, found.present

    return Played(*map(np.asarray, jit(play)(jax.random.key(3))))


@pytest.mark.parametrize("name", GAMES)
def test_acts_are_legal_and_distributions_add_up(name: str) -> None:
    found = played(name)
    np.testing.assert_allclose(found.own.sum(axis=-1), 1, atol=1e-5)
    assert not found.own[:, ~found.legal].any()
    assert len(set(found.choice.ravel())) == len(found.own) == 16
    sat = np.take_along_axis(found.own, found.choice[None, ..., None], axis=0)[0]
    told = ~found.begins  # in a trial's first act numbers are drawn, here by another key
    np.testing.assert_allclose(found.chances[told], sat[told], atol=1e-6)


def test_a_mixture_acts_as_the_one_who_sits_there() -> None:
    """By its own memory and numbers, though these are drawn, and ways looked for, once for all."""
    game = small("coin-v1")
    mixture = Mixture((scripted("random", game), *everyone(game), scripted("defector", game)))
    key_act = jax.random.split(KEY)[1]

    def both(view: Any) -> Any:
        given = (mixture.init(KEY), mixture.start(), view, KEY)
        alone = [player.act((), player.start(), view, key_act) for player in mixture.players]
        numbers = jnp.arange(len(mixture.players))
        memories, acts = jax.vmap(lambda number: mixture.act(*given, number))(numbers)
        own = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(act for _, act in alone))
        kept = jax.tree.map(lambda leaf: leaf[0], memories)  # nobody's depends on who is seated
        return (acts, kept), (own, tuple(memory for memory, _ in alone))

    together, alone = jit(both)(game.view(game.init(KEY), 1))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), together, alone)


@pytest.mark.parametrize("name", GAMES)
def test_parameters_are_drawn_once_for_each_trial(name: str) -> None:
    found = played(name)
    numbers, begins = found.numbers, found.begins
    assert (numbers[:, begins] == -1).all()
    same = ~begins[1:] & ~begins[:-1]
    np.testing.assert_array_equal(numbers[:, 1:][:, same], numbers[:, :-1][:, same])
    drawn = numbers[:, 1:][:, begins[:-1] & ~begins[1:]]  # [F, trials, N, NUMBERS]
    assert drawn.shape[1] > 90
    for family in drawn.reshape(len(drawn), -1, NUMBERS):
        assert len(np.unique(family[:, 0])) > 0.95 * len(family)
        for number in family.T:
            shares = np.histogram(number, 5, (0, 1))[0] / len(number)
            assert (abs(shares - 0.2) < 0.1).all()
            assert number.min() < 0.05
            assert number.max() > 0.95


@pytest.mark.parametrize("name", GAMES)
def test_families_differ(name: str) -> None:
    """With the same numbers, in the same situations: by a mean total variation of at least 0.03."""
    found = played(name)
    names = mixed_names(small(name), "population")
    far = {
        (names[a], names[b]): (abs(found.own[a] - found.own[b]).sum(axis=-1) / 2)[
            found.present
        ].mean()
        for a, b in combinations(range(len(names)), 2)
    }
    assert min(far.values()) > 0.03, min(far, key=lambda pair: far[pair])


# Learning among them

PPO = PPOConfig(games=4, unroll=6, minibatches=2, epochs=1)


def learning(name: str, *held_out: str) -> TrainConfig:
    return TrainConfig(
        game=make_config(name, **SMALL[name]),
        net=NetConfig(hidden=8),
        ppo=PPO,
        trial=2,
        train_against="population",
        held_out=held_out,
        steps=PPO.steps,
    )


@pytest.mark.parametrize("name", ["stag-hunt-v1", "snowdrift-v1", "coin-v1"])
def test_who_is_held_out_never_sits_there(name: str, tmp_path: Path) -> None:
    config = learning(name, "family-slow", "family-follower")
    run = new_run(tmp_path / "run", config)
    seats = run.config().seats
    assert seats is not None
    met = seats.split(",")[1].split("|")
    families = mixed_names(make_game(config.game), "population")
    assert met == [one for one in families if one not in ("family-slow", "family-follower")]
    assert run.config().held_out == ()  # the seats say it
    learner = make_learner(config, {})
    assert learner.seating.names == ("learn", *["|".join(met)] * 2)
    now, metrics = jit(lambda key: learner.update(learner.init(key))[:2])(KEY)
    assert np.isfinite([np.asarray(leaf).sum() for leaf in jax.tree.leaves(metrics)]).all()
    assert int(now.plays.choice.max()) < len(met)


def test_a_result_does_not_name_a_dozen_families_above_each_column() -> None:
    result = {
        "learning_seats": [0],
        "seeds": [0],
        "returns": [[1.0, 2.0, 3.0]],
        "mean_return_by_seed": [1.0],
        "seat_order_p": None,
        "steps_per_second": None,
        **dict.fromkeys(("steps", "mean_return", "value_loss", "seconds"), 1),
        "first_update_seconds": 1,
    }
    run: Any = SimpleNamespace(path=Path("runs/a"), facts=dict)
    header = result_page(run, learning("coin-v1", "family-lazy"), result).sections[0].header
    assert header == [
        "seed",
        "seat 0\n* learn",
        *(f"seat {n}\none of 15" for n in (1, 2)),
        "mean\nof *",
    ]


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="--train-against population alone"):
        replace(learning("coin-v1"), train_against="all", held_out=("family-slow",))
    for held_out, words in (
        (("family-sloow",), "'family-sloow', and the families are family-devoted"),
        (mixed_names(HUNT, "population"), "nobody is left"),
    ):
        with pytest.raises(ConfigError, match=words):
            seat_names(learning("coin-v1", *held_out))


def test_oracles_are_told_who_and_what_they_are_after() -> None:
    config = replace(learning("coin-v1", "family-lazy"), context="oracle")
    assert make_context(make_game(config.game), config).size == 2 * (15 + 3)


def test_lineups_are_each_family_alone() -> None:
    found = lineups(["population"], small("coin-v1"))
    assert found == [(name,) * 2 for name in mixed_names(small("coin-v1"), "population")]
    assert len(lineups(["all"], HUNT)) == 6  # as ever


def test_families_are_listed_and_may_be_noisy() -> None:
    assert "family-devoted" in player_names(SNOW)
    assert "noisy-family-devoted:P" not in player_names(SNOW)
    noisy = scripted("noisy-family-devoted:0.5", SNOW)
    assert noisy.carries
