"""Every preset trains on every game. test_learner.py, test_search_presets.py and
test_resume_parts.py have Stag-Hunt."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from hopplus.config import TrainConfig, make_config
from hopplus.learning.from_run import make_learner
from hopplus.players.scripted.families import FAMILIES
from hopplus.presets import PRESETS
from tiny_hop_plus import PPO, TINY, begun, jit

SNOW, COIN = "snowdrift-v1", "coin-v1"
MOST = tuple(kind.name for kind in FAMILIES[2:])  # two are as good as all here
# As many seats as `begun` seats; an episode ends in every update.
GAMES = {
    SNOW: make_config(SNOW, size=3, seats=3, drifts=2, horizon=4),
    COIN: make_config(COIN, size=3, seats=3, coins=2, horizon=4),
}
PAIRS = {game: replace(config, seats=2) for game, config in GAMES.items()}


def tiny(name: str, game: str) -> TrainConfig:
    """A preset with all that it is about, as small as can be."""
    made = PRESETS[name]
    minibatches = min(2, made.ppo.minibatches)
    prior = made.goal.prior
    prior = replace(prior, size=4, ahead=2, net=replace(prior.net, hidden=8))
    few: dict[str, Any] = {"buffer": 200, "fits": 1, "batch": 16}
    return replace(
        made,
        game=(PAIRS if made.ppo.lola.step else GAMES)[game],
        net=replace(made.net, hidden=8),
        ppo=replace(made.ppo, games=PPO.games, unroll=8, minibatches=minibatches, epochs=1),
        goal=replace(made.goal, **few, every=1, hidden=8, prior=prior),
        opponent=replace(made.opponent, **few, net=TINY),
        world=replace(made.world, **few, model=replace(made.world.model, hidden=8)),
        imagine=replace(made.imagine, buffer=200, horizon=3, warm_up=0, gate=1.0),
        memory=replace(made.memory, size=5),
        search=replace(made.search, simulations=made.search.simulations and 3, trees=1),
        steps=20 * 8 * PPO.games,
        held_out=MOST if made.train_against == "population" else (),
    )


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_trains(name: str, game: str) -> None:
    learner = make_learner(tiny(name, game), {})
    before = now = begun(learner)
    now = replace(now, returns=now.returns[:, : learner.game.seats])
    update = jit(learner.update)
    for _ in range(2):
        now, metrics = update(now)
    for label, value in jax.device_get(metrics).items():
        assert np.isfinite(value).all(), label
    own = learner.learning
    changed = jax.tree.map(lambda a, b: bool((a != b).any()), before.params[own], now.params[own])
    assert all(jax.tree.leaves(changed))
    assert metrics["episodes"].sum() > 0
