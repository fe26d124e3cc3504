"""A person can play with whoever was trained by any preset, by the name of its run."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from hopplus.cli.play import Play
from hopplus.evaluation.replay.session import Session, Table
from hopplus.games import make_game
from hopplus.learning.from_run import new_run
from hopplus.players.actor import make_actor
from hopplus.presets import PRESETS
from hopplus.report.pages.play import play_page
from hopplus.runs.checkpoint import PLAYERS
from test_presets_on_games import COIN, PAIRS, tiny
from tiny_hop_plus import random_like
from tiny_play import play_episode


@pytest.mark.parametrize("name", PRESETS)
def test_a_person_plays_with_every_preset(name: str, tmp_path: Path) -> None:
    """Two episodes of a trial, and what it thinks of the person is what its models can tell."""
    config = replace(tiny(name, COIN), game=PAIRS[COIN])
    run = new_run(tmp_path / "run", config)
    actor = make_actor("learn", make_game(config.game), config)
    sets = 1 if actor.shares_params or config.draws else config.game.seats

    def fresh(key: jax.Array) -> object:
        return jax.vmap(jax.vmap(actor.init))(jax.random.split(key, (1, sets)))

    params = random_like(jax.eval_shape(fresh, jax.random.key(0)), 0)
    run.save(1, {PLAYERS: params}, {"score": 0.0}, config.keep)

    _, game, lineup, _ = Play(run_name=str(run.path), episodes=2).setup()
    table = Table(game, lineup)
    session, rng = Session(table), np.random.default_rng(0)
    for _ in range(2):
        shown = play_episode(session, rng)
        session.go_on()
    _, other = shown["opinions"]
    assert np.isfinite(other["value"])
    assert (other["predicted"] is not None) == ("opponent" in config.parts)
    assert (table.goals == "belief") == ("belief" in config.parts)
    steps = shown["replay"]["episodes"][0]["steps"]
    looks = [step["looks"][1] for step in steps if "looks" in step]
    searched = any(look and look["visits"] for look in looks)
    assert searched == bool(config.search.simulations)
    json.dumps(shown, allow_nan=False)
    assert play_page(table, "zh").title
