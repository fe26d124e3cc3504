"""A run with every part on goes on bit for bit; its players can be exported and sit anywhere."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load as load_tensors

from conftest import SMALL_GAME
from fake_runs import saved_arrays
from hopplus.cli import main
from hopplus.config import ConfigError, FitConfig, PretrainWorld, TrainConfig, WorldConfig
from hopplus.diagnosis.subject import restore_subject
from hopplus.learning.compilation import Update, first_and_next
from hopplus.learning.from_run import learner_from_run, new_run, run_players
from hopplus.learning.learner import Learner
from hopplus.learning.ppo import annealed
from hopplus.learning.train import train
from hopplus.play.trained import read_player, write_player
from hopplus.recorded.pretrain import new_pretrain, open_session, pretrain
from hopplus.runs.folder import open_run

_SMALL = """
--net.hidden 8 --ppo.games 16 --ppo.unroll 8 --ppo.minibatches 2 --opponent.net.hidden 8
--goal.prior.net.hidden 8 --goal.prior.size 4 --goal.hidden 4 --goal.batch 4 --goal.every 2
--world.batch 16 --world.fits 2 --opponent.fits 2 --opponent.batch 16 --imagine.horizon 4
--imagine.warm-up 200 --imagine.gate 1 --imagine.buffer 256 --world.buffer 256 --steps 768
--checkpoint-every 3 --opponent.anneal
"""
SMALL = [*SMALL_GAME, *_SMALL.split()]


@pytest.fixture(scope="module")
def world(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that fitted a world model to recorded play."""
    settings = PretrainWorld(
        data=str(recorded), fit=FitConfig(epochs=1), world=WorldConfig(hidden=8)
    )
    run = new_pretrain(tmp_path_factory.mktemp("fitted") / "world", settings)
    pretrain(run, open_session(run))
    return run.path


@pytest.fixture(scope="module")
def compiled() -> list[tuple[Learner, Update]]:
    """The update of the run `whole` and what it was made of, once there is one."""
    return []


def made_of(learner: Learner) -> tuple[Any, ...]:
    """All that its program depends on."""
    auxiliary = learner.auxiliary
    parts = [(part.name, part.config, getattr(part, "updates", None)) for part in auxiliary.parts]
    imagined_rollouts = auxiliary.imagined_rollouts.config if auxiliary.imagined_rollouts else None
    own = (learner.game, learner.seating, learner.config, learner.updates, learner.learning)
    return *own, parts, imagined_rollouts


@pytest.fixture(scope="module")
def folder(world: Path, compiled: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run `whole` is, six updates long, begun with the world model of a run `world`."""
    here = tmp_path_factory.mktemp("runs")
    shutil.copytree(world, here / "world")
    start = ["--world.from", str(here / "world"), "--runs", str(here), "--name", "whole"]

    def remembered(learner: Learner, config: TrainConfig) -> Any:
        first, update = first_and_next(learner, config)
        compiled.append((learner, update))
        return first, update

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hopplus.learning.train.first_and_next", remembered)
        assert main(["train", "hop-plus", *SMALL, *start]) == 0
    return here


def test_it_goes_on_bit_for_bit(
    folder: Path, compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second half is made from what is in the folder of what the first was made of, whose
    program is compiled once; test_runs.py has runs that compile theirs anew."""
    shutil.rmtree(folder / "world")  # the run needs nothing outside it
    shutil.copytree(folder / "whole", folder / "half")
    shutil.rmtree(folder / "half/checkpoints/6")
    (folder / "half/result.json").unlink()

    def same(learner: Learner, config: TrainConfig, seeds: int) -> Update:
        ((first, update),) = compiled
        assert made_of(learner) == made_of(first)
        return update

    monkeypatch.setattr("hopplus.learning.train.update_from_kept", same)
    train(open_run(folder / "half"))
    one, two = (saved_arrays(folder / name / "checkpoints/6") for name in ("whole", "half"))
    assert set(one) == set(two)
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)
    for part in ("opponent", "goal", "world"):
        assert any(f".auxiliary_state.parts['{part}']" in name for name in one)
    assert any(".auxiliary_state.starts" in name for name in one)
    records = [open_run(folder / name).metrics() for name in ("whole", "half")]
    assert records[0] == records[1]
    last = records[0][-1]
    assert np.all(np.array(last["imagined/open"]) == 1)
    # For each seat: fits of the goal in every second of six updates, of the others in all.
    assert last["goal/fits"] == [[12, 12, 12]]
    assert last["world/fits"] == [[12, 12, 12]]
    assert len(last["opponent/count"][0]) == 3


def test_it_began_with_the_model_from_the_run(folder: Path) -> None:
    run = open_run(folder / "whole")
    config = run.config()
    assert config.world.from_run == "parts/world.safetensors"
    assert config.world.model.hidden == 8
    learner = learner_from_run(run)
    begun = learner.auxiliary.warm_start["world"]
    param_sets = jax.eval_shape(learner.init, jax.random.key(0)).params[0]
    fresh = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), param_sets)
    for one, three in zip(
        jax.tree.leaves(begun), jax.tree.leaves(learner.auxiliary.known(fresh).world), strict=True
    ):
        for seat in range(3):
            np.testing.assert_array_equal(three[seat], one)
    stored = load_tensors((run.path / "parts/world.safetensors").read_bytes())
    np.testing.assert_array_equal(begun.seat.layers[0].weight, stored[".seat.layers[0].weight"])


def test_who_looks_into_it_goes_on_with_step_sizes_that_do_not_fall(folder: Path) -> None:
    run = open_run(folder / "whole")
    assert run.config().opponent.anneal
    as_it_was, steady = (restore_subject(run, 1, steady=one).learner for one in (False, True))
    rates = [float(annealed(one.config, one.updates)(10**6)) for one in (as_it_was, steady)]
    assert rates == pytest.approx([0, run.config().ppo.learning_rate / 2])
    assert [part.config.anneal for part in as_it_was.auxiliary.parts] == [True, False, False]
    assert not any(part.config.anneal for part in steady.auxiliary.parts)


def test_its_players_can_leave(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    players = run_players(open_run(folder / "whole"))
    write_player(folder / "alone.safetensors", players[1])
    back = read_player(folder / "alone.safetensors")
    assert back.actor.parts == players[1].actor.parts
    assert back.params.world is not None
    capsys.readouterr()
    seats = f"{folder / 'alone.safetensors'},stag,{folder / 'whole'}@0"
    command = ["evaluate", "--players", seats, *SMALL_GAME, "--episodes", "20", "--json"]
    assert main(command) == 0
    assert len(json.loads(capsys.readouterr().out)["seats"]) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--parts", "world", "imagination"], "needs opponent"),
        (["--parts", "world", "--goal.from", "runs/x"], "--parts has no goal"),
        (["--goal.from", "runs/nothing"], "there is no run runs/nothing"),
        (["--imagine.gate", "2"], "imagine.gate is 2.0"),
        (["--world.fits", "0"], "world.fits is 0"),
        (["--game.sight", "1"], "take --world.head cells"),
        (["--parts", "world", "--game.sight", "1"], "--world.head"),
        (["--ppo.inequity.alpha", "0.5"], "0 with imagination"),
        (["--ppo.unroll", "1"], "2 or more with the goal part"),
    ],
    ids=str,
)
def test_wrong_settings(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "hop-plus", *options, "--name", "never"]) == 2
    assert words in capsys.readouterr().err


def test_a_part_of_another_kind_or_board_is_refused(world: Path, tmp_path: Path) -> None:
    config = TrainConfig(parts=("goal", "world"))
    from_run = str(world)
    with pytest.raises(ConfigError, match="is a run of kind world, no goal"):
        new_run(tmp_path / "a", replace(config, goal=replace(config.goal, from_run=from_run)))
    with pytest.raises(ConfigError, match="is of boards"):
        new_run(tmp_path / "b", replace(config, world=replace(config.world, from_run=from_run)))
