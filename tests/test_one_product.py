"""First layers that are computed as one product, as on a GPU: networks say the same as each by
itself."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import MemoryConfig, NetConfig, OpponentLearnerConfig, SearchConfig, TrainConfig
from hopplus.diagnosis.player_faults import DeafActor
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.models import one_product
from hopplus.models.nets import ActorCritic, Inputs
from hopplus.planning.dynamics import observe
from hopplus.players import planner as module
from hopplus.players.actor import Actor, make_actor
from hopplus.players.planner import Planner
from hopplus.types import View
from tiny_hop_plus import CONFIG, GAME, jit
from tiny_search import mind_of

PLACES = 5


class Blind(Actor):
    """Of one's own, with a policy that reads something else."""

    def inputs(self, policy: ActorCritic, view: View, context: jax.Array) -> Inputs:
        dark = replace(view, planes=jnp.zeros_like(view.planes))
        return super().inputs(policy, dark, context)


class Bold(Actor):
    """Whose value is not the network's."""

    def policy_and_value(
        self, policy: ActorCritic, view: View, context: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        prior, value = super().policy_and_value(policy, view, context)
        return prior, value + 1


def models_of(net: NetConfig) -> OpponentLearnerConfig:
    return OpponentLearnerConfig(net=net)


GOALS = replace(CONFIG, parts=("opponent", "goal"), opponent=models_of(CONFIG.net))
ALONE = replace(GOALS, parts=("opponent",))
FOUR = replace(GAME, seats=4, size=4, obstacles=2, stags=2, horizon=9)
AT_ONCE = {
    "goals": GOALS,
    "no goals": ALONE,
    "last actions": replace(GOALS, last_actions=True),
    "memory": replace(ALONE, memory=MemoryConfig(kind="episode", size=5)),
    "four": replace(GOALS, game=FOUR, opponent=models_of(NetConfig(hidden=12, layers=3))),
}
OTHERS = [NetConfig(kind=kind, hidden=8, channels=4) for kind in ("conv", "centred", "walking")]
APART = {
    **{f"{net.kind} policy": replace(GOALS, net=net) for net in OTHERS},
    **{f"{net.kind} models": replace(GOALS, opponent=models_of(net)) for net in OTHERS},
}


def planner_of(config: TrainConfig, kind: type[Actor] = Actor) -> Planner:
    game = make_game(config.game)
    made = make_actor("one", game, config)
    made = kind(**{name: getattr(made, name) for name in Actor.__dataclass_fields__})
    return Planner(made, game, SearchConfig(simulations=4))


def judged(
    planner: Planner, patch: pytest.MonkeyPatch, *, gpu: bool
) -> tuple[tuple[Any, Any], list[int]]:
    """What it thinks of some places, and how many networks it put together."""
    together, put = one_product.together, []

    def counted(*networks: Any) -> Any:
        put.append(len(networks))
        return together(*networks)

    game, context, params = planner.game, planner.actor.context, mind_of(planner)

    def judge(key: jax.Array, inferred: jax.Array) -> Any:
        acted = jax.random.randint(key, (game.seats,), 0, len(game.action_names))
        seen = jax.tree.map(lambda leaf: leaf[1], views(game, game.init(key)))
        observation = observe(game, replace(seen, last_actions=acted))
        return planner._judge(params)(observation, inferred, context.about_others(inferred))

    keys = jax.random.split(jax.random.key(1), PLACES)
    inferred = jax.random.uniform(jax.random.key(2), (PLACES, context.size))
    with patch.context() as patched:
        patched.setattr(module, "together", counted)
        for place in (module, one_product):
            patched.setattr(place, "on_gpu", lambda: gpu)
        return jax.device_get(jit(jax.vmap(judge))(keys, inferred)), put


def assert_near(some: Any, others: Any) -> None:
    for one, other in zip(jax.tree.leaves(some), jax.tree.leaves(others), strict=True):
        assert one.shape[0] == PLACES
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("what", [*AT_ONCE, "deaf"])
def test_policy_and_models_say_the_same(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of goals, of last actions, of a memory, with more seats and other sizes, and nothing."""
    kind = DeafActor if what == "deaf" else Actor
    planner = planner_of(AT_ONCE.get(what, GOALS), kind)
    apart, put = judged(planner, monkeypatch, gpu=False)
    assert not put
    at_once, put = judged(planner, monkeypatch, gpu=True)
    assert put == [2]
    assert_near(at_once, apart)


@pytest.mark.parametrize("what", [*APART, "blind", "bold"])
def test_what_reads_otherwise_is_left_apart(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either network's not being of dense layers is enough, and so is a player of one's own."""
    kind = {"blind": Blind, "bold": Bold}.get(what, Actor)
    planner = planner_of(APART.get(what, GOALS), kind)
    found, put = judged(planner, monkeypatch, gpu=True)
    assert not put
    assert_near(found, judged(planner, monkeypatch, gpu=False)[0])


def test_who_casts_players_has_no_need_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """At each place the players say what they do."""
    planner = planner_of(GOALS)
    monkeypatch.setattr(type(planner.actor.context), "casts", True)
    _, put = judged(planner, monkeypatch, gpu=True)
    assert not put
