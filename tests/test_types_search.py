"""A search whose others are played by those that each other has acted like, beside a player that
has learned nothing of the kind."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import (
    ConfigError,
    MemoryConfig,
    NetConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
    TypesConfig,
)
from hopplus.games import make_game
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import seat_players
from hopplus.play.trained import Trained
from hopplus.players.actor import Actor, make_actor
from hopplus.players.context.casting import CastingContext
from hopplus.players.context.context import Context
from hopplus.players.context.known import Other
from hopplus.players.context.types import TypesContext
from hopplus.players.planner import Planner
from hopplus.players.scripted import scripted
from refusals import refused

RULES = StagHuntConfig(size=4, seats=2, hares=3, horizon=12)
LEARNED = TrainConfig(
    game=RULES,
    net=NetConfig(hidden=8),
    memory=MemoryConfig(kind="trial", size=8),
    context="recurrent+record",
    trial=3,
    seats="learn,stag|hare",
    types=TypesConfig(slip=0.05, change=0.002, rhythm=False),
)
SIMULATIONS = 8
ASKED = SearchConfig(simulations=SIMULATIONS, trees=2, others="types")


def trained(config: TrainConfig = LEARNED) -> Trained:
    actor = make_actor("learn", make_game(config.game), config)
    return Trained(actor, actor.init(jax.random.key(0)), config=config)


def planner(asked: SearchConfig = ASKED) -> tuple[Trained, Planner]:
    one = trained()
    found = one.playing(make_game(RULES), asked)
    assert isinstance(found, Planner)
    return one, found


def played(other: str, steps: int) -> list[Any]:
    """[steps] states of a game of seat 0, who stands about, with another."""
    game = make_game(RULES)
    seating = replace(seat_players(f"random,{other}", game), trial=9)
    plays = jax.tree.map(lambda leaf: leaf[None], start(game, seating, jax.random.key(4)))
    params: Any = tuple(() for _ in seating.groups)
    states = rollout(game, seating, params, plays, steps)[1].state
    return [jax.tree.map(lambda leaf, t=t: leaf[t, 0], states) for t in range(steps)]


def seen(other: str, steps: int) -> list[Any]:
    """[steps] what seat 0 sees of it."""
    return [make_game(RULES).view(state, 0) for state in played(other, steps)]


def told(context: Context, params: Any, views: Any) -> tuple[Any, list[jax.Array]]:
    memory, said = context.start(), []
    infer = jax.jit(lambda memory, view: context.infer(params, memory, view))
    for view in views:
        memory, one = infer(memory, view)
        said.append(one)
    return memory, said


def test_the_policy_is_told_what_it_was_told() -> None:
    """To the last bit, from the first step of a trial into its next episode."""
    one, searching = planner()
    plain, beside = one.actor.context, searching.actor.context
    assert isinstance(beside, CastingContext)
    assert (beside.size, beside.casts, beside.carries) == (plain.size, True, True)
    views = seen("stag", 6)
    before, said = told(plain, plain.params_of(one.params), views)
    after, same = told(beside, beside.params_of(one.params), views)
    np.testing.assert_array_equal(np.stack(said), np.stack(same))
    for a, b in zip(
        jax.tree.leaves(plain.carry(before, views[-1])),
        jax.tree.leaves(beside.carry(after, views[-1])[0]),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("other", "steps"), [("stag", 7), ("hare", 3)])
def test_the_others_act_as_whom_they_have_acted_like(other: str, steps: int) -> None:
    """As the script itself would in every tree, but for slips, after a few steps."""
    one, searching = planner()
    *before, last = played(other, steps)
    game, context = make_game(RULES), searching.actor.context
    memory, _ = told(context, context.params_of(one.params), [game.view(s, 0) for s in before])
    root, _ = searching.root(one.params, memory, game.view(last, 0))
    keys = jax.random.split(jax.random.key(1), 8)
    found = jax.vmap(lambda key: searching.supposing(one.params, root, key).others)(keys)
    script: Any = scripted(other, game)
    _, chances = script.expected(script.start(), game.view(last, 1))
    np.testing.assert_allclose(found[:, 0].mean(axis=0), chances, atol=0.06)
    rival: Any = scripted("hare" if other == "stag" else "stag", game)
    _, others = rival.expected(rival.start(), game.view(last, 1))
    assert np.abs(chances - others).max() > 0.2  # here it makes a difference who it is


def test_families_and_scripts_in_any_order() -> None:
    """Members act as the scripts do one by one, when they are awaited and in a search."""
    game = make_game(RULES)
    names = ("stag", "family-lazy", "hare", "family-shy")
    context = TypesContext(RULES, replace(LEARNED.types, members=6), names)
    first, second = played("hare", 2)
    view = game.view(second, 0)
    memory, _ = context.infer((), context.start(), game.view(first, 0))
    known, _ = context.infer((), memory, view)
    slip = LEARNED.types.slip
    even = game.view(second, 1).legal / game.view(second, 1).legal.sum()
    want = []
    for name, members in zip(names, memory.known.members, strict=True):
        script: Any = scripted(name, game)
        count = len(jax.tree.leaves(members)[0][0]) if jax.tree.leaves(members) else 1
        for number in range(count):
            own = jax.tree.map(lambda leaf, number=number: leaf[0, number], members)
            _, chances = script.expected(own, game.view(second, 1))
            want.append((1 - slip) * chances + slip * even)
    np.testing.assert_allclose(known.known.expected[0], np.stack(want), atol=1e-6)
    counts = np.array([1, 3, 1, 3])
    assert len(want) == counts.sum()
    for place, first_of in enumerate(np.cumsum(counts) - counts):
        belief = jnp.full((1, len(want)), -1e9).at[0, first_of].set(0.0)
        sure = replace(memory, known=replace(memory.known, belief=belief))
        cast, _ = context.cast(sure, jax.random.key(0))
        assert cast.name[0] == place
        _, chances = context.rehearse(cast, view)
        np.testing.assert_allclose(chances[0], want[first_of], atol=1e-6)


def test_who_has_met_nobody_known_holds_others_against_all_families() -> None:
    one = trained(replace(LEARNED, seats="learn,switch")).playing(make_game(RULES), ASKED)
    assert isinstance(one, Planner)
    context = one.actor.context
    assert isinstance(context, CastingContext)
    assert isinstance(context.watching, TypesContext)
    assert "family-shy" in context.watching.names


def test_who_knows_types_already_is_asked_itself() -> None:
    config = replace(LEARNED, memory=MemoryConfig(), context="types")
    found = trained(config).playing(make_game(RULES), ASKED)
    assert isinstance(found, Planner)
    assert found.actor.context == trained(config).actor.context


def test_it_acts_and_decides() -> None:
    one, searching = planner()
    memory, act, grown = jax.jit(searching.decide)(
        one.params, searching.start(), seen("hare", 1)[0], jax.random.key(2)
    )
    assert grown.visits.sum() == ASKED.trees * SIMULATIONS
    assert jnp.isfinite(act.value)
    assert len(memory) == 2
    assert isinstance(one.playing(make_game(RULES), None), Actor)  # unasked, no search


def test_refusals(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"search\.others is 'types' but must be models"):
        replace(LEARNED, search=ASKED)
    with pytest.raises(ConfigError, match=r"search\.infer-every"):
        replace(ASKED, infer_every=1)
    with pytest.raises(ConfigError, match="this one has other settings"):
        trained().playing(make_game(replace(RULES, horizon=20)), ASKED)
    refused("bench search --search.others types", "leave --search.others out", capsys)
    refused("train hop --search.others types", "--context types", capsys)


def test_the_command(tmp_path: Path, monkeypatch: Any) -> None:
    """Of a player that has met two names, among a family that it has not met."""
    monkeypatch.chdir(tmp_path)
    learn = (
        "train ppo-memory --game.size 3 --game.seats 2 --game.hares 1 --game.horizon 5 --trial 2"
        " --train-against None --seats learn,stag|family-lazy --steps 64 --ppo.games 2"
        " --ppo.unroll 8 --ppo.minibatches 1 --net.hidden 8 --memory.size 8 --name one"
    )
    assert main(learn.split()) == 0
    adapt = (
        "adapt runs/one --seat 0 --against family-shy --trials 2 --episodes 2"
        " --search.simulations 4 --search.others types"
    )
    assert main(adapt.split()) == 0


def test_a_stranger_is_played_by_who_is_most_like_it() -> None:
    """However sure it is that the other is none of the known players."""
    game = make_game(RULES)
    context = TypesContext(RULES, LEARNED.types, ("stag", "hare"))
    view = game.view(played("hare", 1)[0], 0)
    memory, _ = context.infer((), context.start(), view)
    for _ in range(40):  # it acts a third likelier by its habits than as a hare hunter
        chances = jnp.asarray([[0.1, 0.3]])
        known = replace(memory.known, belief=memory.known.belief + jnp.log(chances))
        both = memory.stranger.chance + jnp.log(jnp.asarray([[0.3, 0.4]]))
        memory = Other(known, replace(memory.stranger, chance=both))
    assert jax.nn.softmax(memory.stranger.chance)[0, 1] > 0.99
    keys = jax.random.split(jax.random.key(0), 50)
    cast, _ = jax.vmap(lambda key: context.cast(memory, key))(keys)
    assert (cast.name == 1).all()


def test_who_watches_looks_for_no_strangers() -> None:
    """Nobody is told of them, and none is cast."""
    one = trained(LEARNED).playing(make_game(RULES), ASKED)
    assert isinstance(one, Planner)
    assert LEARNED.types.strange > 0
    context = one.actor.context
    assert isinstance(context, CastingContext)
    assert isinstance(context.watching, TypesContext)
    assert context.watching.config.strange == 0
