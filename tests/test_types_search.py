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
from hopplus.players.planner import Planner
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
ASKED = SearchConfig(simulations=8, trees=2, others="types")


def trained(config: TrainConfig = LEARNED) -> Trained:
    actor = make_actor("learn", make_game(config.game), config)
    return Trained(actor, actor.init(jax.random.key(0)), config=config)


def planner(asked: SearchConfig = ASKED) -> tuple[Trained, Planner]:
    one = trained()
    found = one.playing(make_game(RULES), asked)
    assert isinstance(found, Planner)
    return one, found


def seen(other: str, steps: int) -> Any:
    """[steps] views of seat 0, who stands about while another plays."""
    game = make_game(RULES)
    seating = replace(seat_players(f"random,{other}", game), trial=9)
    plays = start(game, seating, jax.random.key(4))
    plays = jax.tree.map(lambda leaf: leaf[None], plays)
    params: Any = tuple(() for _ in seating.groups)
    states = rollout(game, seating, params, plays, steps)[1].state
    one = [jax.tree.map(lambda leaf, t=t: leaf[t, 0], states) for t in range(steps)]
    return [game.view(state, 0) for state in one]


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


@pytest.mark.parametrize("other", ["stag", "hare"])
def test_the_others_act_as_whom_they_have_acted_like(other: str) -> None:
    """As the script itself would, after a few steps; by its own policy it would take anything."""
    one, searching = planner()
    views = seen(other, 7)
    context = searching.actor.context
    memory, _ = told(context, context.params_of(one.params), views[:-1])
    look = jax.jit(
        lambda memory, view, key: (
            searching.supposing(one.params, searching.root(one.params, memory, view)[0], key).others
        )
    )
    keys = jax.random.split(jax.random.key(1), 8)
    found = np.stack([look(memory, views[-1], key) for key in keys])  # [8, 1, A]
    names = ("stag", "hare")
    assert isinstance(context, CastingContext)
    belief = context.infer(context.params_of(one.params), memory, views[-1])[0][1].belief
    assert jax.nn.softmax(belief[0])[names.index(other)] > 0.9
    unseen, _ = searching.root(one.params, searching.start(), views[-1])
    assert np.abs(found.mean(axis=0) - np.asarray(unseen.others)).max() > 0.3
    assert found.max(axis=2).mean() > 0.5


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
    assert grown.visits.sum() == ASKED.trees * ASKED.simulations
    assert jnp.isfinite(act.value)
    assert len(memory) == 2
    assert isinstance(one.playing(make_game(RULES), None), Actor)  # unasked, no search


def test_refusals(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"search\.others is 'types' but must be models"):
        replace(LEARNED, search=ASKED)
    with pytest.raises(ConfigError, match="nobody of those who are drawn is one"):
        trained(replace(LEARNED, seats="learn,switch")).playing(make_game(RULES), ASKED)
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
