"""First layers that are computed as one product, as on a GPU: networks say the same as each by
itself."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from hopplus.config import MemoryConfig, NetConfig, OpponentLearnerConfig, SearchConfig, TrainConfig
from hopplus.diagnosis.player_faults import DeafActor
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.models import one_product
from hopplus.planning.dynamics import observe
from hopplus.players import planner as module
from hopplus.players.actor import Actor, make_actor
from hopplus.players.planner import Planner
from tiny_hop_plus import CONFIG, jit
from tiny_search import mind_of

PLACES = 5
GOALS = replace(CONFIG, parts=("opponent", "goal"), opponent=OpponentLearnerConfig(net=CONFIG.net))
FOUR = replace(GOALS.game, seats=4, size=4, obstacles=2, stags=2, horizon=9)
WIDER = NetConfig(hidden=12, layers=3)


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


@pytest.mark.parametrize(
    ("config", "actor"),
    [
        (GOALS, Actor),
        (replace(GOALS, parts=("opponent",)), Actor),
        (replace(GOALS, last_actions=True), Actor),
        (replace(GOALS, parts=("opponent",), memory=MemoryConfig(kind="episode", size=5)), Actor),
        (replace(GOALS, game=FOUR, opponent=OpponentLearnerConfig(net=WIDER)), Actor),
        (GOALS, DeafActor),
    ],
    ids=["goals", "alone", "last-actions", "memory", "four", "deaf"],
)
def test_policy_and_models_say_the_same(
    config: TrainConfig, actor: type[Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of goals, of last actions, of a memory, with more seats and other sizes, and nothing."""
    game = make_game(config.game)
    made = make_actor("one", game, config)
    made = actor(**{name: getattr(made, name) for name in Actor.__dataclass_fields__})
    planner = Planner(made, game, SearchConfig(simulations=4))
    apart, put = judged(planner, monkeypatch, gpu=False)
    assert not put
    at_once, put = judged(planner, monkeypatch, gpu=True)
    assert put == [2]
    for one, other in zip(jax.tree.leaves(at_once), jax.tree.leaves(apart), strict=True):
        assert one.shape[0] == PLACES
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["conv", "centred", "walking"])
@pytest.mark.parametrize("whose", ["policy", "models"])
def test_others_than_dense_layers_are_left_apart(
    kind: Any, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either network's being of another kind is enough."""
    net = NetConfig(kind=kind, hidden=8, channels=4)
    config = replace(GOALS, net=net) if whose == "policy" else replace(GOALS)
    if whose == "models":
        config = replace(config, opponent=OpponentLearnerConfig(net=net))
    game = make_game(config.game)
    planner = Planner(make_actor("one", game, config), game, SearchConfig(simulations=4))
    found, put = judged(planner, monkeypatch, gpu=True)
    assert not put
    apart, _ = judged(planner, monkeypatch, gpu=False)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(apart), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
