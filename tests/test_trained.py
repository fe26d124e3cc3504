"""Players of finished runs: in evaluation, in other runs, in files, in other programs."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hopplus
from conftest import SMALL_RUN
from fake_runs import saved_arrays
from hopplus.cli import main
from hopplus.config import StagHuntConfig
from hopplus.games.game import views
from hopplus.games.pettingzoo import parallel_env
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.from_run import find_trained, run_players
from hopplus.runs.folder import open_run

GAME = StagHuntConfig(size=3, seats=2, hares=2)


@pytest.fixture(scope="module")
def run(small_run: Path) -> Path:
    return small_run


def test_players_are_those_of_their_seed_and_seat(run: Path) -> None:
    folder = open_run(run)
    saved = saved_arrays(folder.path / "checkpoints/30")  # the last one
    prefix = "players"  # [S, n, ...] by name
    for seed in range(2):
        for seat, trained in run_players(folder, seed).items():
            leaves, _ = jax.tree_util.tree_flatten_with_path(trained.params)
            assert len(leaves) > 3
            for path, leaf in leaves:
                whole = saved[prefix + jax.tree_util.keystr(path)]
                np.testing.assert_array_equal(leaf, whole[seed, seat])
                assert "bias" in str(path) or (whole[0, 0] != whole[1, 1]).any()


def test_loaded_players_play_pettingzoo(run: Path) -> None:
    players = hopplus.load_players(run)
    assert list(players) == [0, 1]
    env = parallel_env(GAME)
    observations, _ = env.reset(seed=1)
    while env.agents:
        actions = {n: players[int(n[-1])].act(observations[n]) for n in env.agents}
        for name, action in actions.items():
            assert observations[name]["action_mask"][action]
        observations, *_ = env.step(actions)


def test_loaded_players_are_the_runs_own(run: Path) -> None:
    """A greedy loaded player does what the run's network finds best, for each seat and seed."""
    game = StagHunt(GAME)
    seen = jax.jit(lambda key: views(game, game.init(key)))(jax.random.key(2))
    said = set()
    for seed in (0, 1):
        players = hopplus.load_players(run, seed=seed, greedy=True)
        for seat, trained in run_players(open_run(run), seed).items():
            view = jax.tree.map(lambda leaf: leaf[seat], seen)  # noqa: B023
            observation = {
                "observation": view.planes,
                "action_mask": view.legal,
                "time": np.reshape(view.time, 1),
                "last_actions": view.last_actions,
            }
            logits, _ = trained.params.policy(view, jnp.zeros(0))
            assert players[seat].act(observation) == int(np.argmax(logits))
            said.add(tuple(np.asarray(logits).tolist()))
    assert len(said) == 4  # two seats of two seeds, all different


def test_export_and_import(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "player.safetensors"
    assert main(["export", f"{run}#1@1", "--out", str(file)]) == 0
    before = run_players(open_run(run), 1)[1]
    after = find_trained(str(file))
    jax.tree.map(np.testing.assert_array_equal, before.params, after.params)
    assert hopplus.load_player(file).trained.actor.name == "a#1@1"


def test_mixed_company(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Evaluate and replay a run's players among others; learn beside frozen ones."""
    few = ["--episodes", "16", "--json"]
    assert main(["evaluate", str(run), "--seats", "run,hare", "--greedy", *few]) == 0
    seats = json.loads(capsys.readouterr().out)["seats"]
    assert [seat["player"] for seat in seats] == ["a@0", "hare"]
    gif = tmp_path / "x.gif"
    assert main(["replay", str(run), "--seats", "stag,run", "--out", str(gif)]) == 0
    assert gif.stat().st_size > 1000
    others = ["--runs", str(tmp_path), "--name", "b", "--seats", f"{run}@1,learn"]
    assert main(["train", "ppo", *others, *SMALL_RUN]) == 0
    capsys.readouterr()
    inside = find_trained(str(tmp_path / "b" / "players" / "0.safetensors"))
    frozen = run_players(open_run(run), 0)[1]
    jax.tree.map(np.testing.assert_array_equal, inside.params, frozen.params)
    assert list(run_players(open_run(tmp_path / "b"))) == [1]
    assert main(["evaluate", str(tmp_path / "b"), *few]) == 0  # its whole lineup


def test_a_run_named_for_several_seats_gives_each_its_own(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    game = ["--game.size", "3", "--game.seats", "2", "--game.hares", "2", "--seed", "4"]
    few = ["--episodes", "64", "--json"]
    assert main(["evaluate", "--players", f"{run},{run}", *game, *few]) == 0
    by_name = json.loads(capsys.readouterr().out)
    assert main(["evaluate", f"{run}#0", "--seed", "4", *few]) == 0
    by_run = json.loads(capsys.readouterr().out)
    assert [s["return"] for s in by_name["seats"]] == [s["return"] for s in by_run["seats"]]
    assert by_name["seats"][1]["player"] == f"{run}#0@1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evaluate", "{run}", "--game.size", "5"], "has a game of its own"),
        (["evaluate", "{run}#5"], "has the seeds 0 to 1, and no 5"),
        (["evaluate", "{run}@1"], "name it in --players, and here the run alone"),
        (["evaluate", "{run}@1#0"], "should have the seed before the seat"),
        (["evaluate", "{run}", "--players", "run@7,stag"], "the run has the seats 0 to 1"),
        (["evaluate", "{run}", "--players", "run#1,stag"], "behind the run itself"),
        (["evaluate", "--players", "run,stag", "--game.seats", "2"], "and there is none"),
        (["export", "{run}@1", "--seat", "1", "--out", "x"], "leave --seat out"),
        (["evaluate", "nowhere"], "there is no run nowhere"),
        (
            ["evaluate", "--players", "{run}@7,stag", "--game.seats", "2"],
            "learned in seat 7",
        ),
        (
            ["evaluate", "--players", "{run}@x,stag", "--game.seats", "2"],
            "a seat behind the @",
        ),
        (["evaluate", "--players", "{run},{run},stag,stag"], "cannot sit at one"),
        (["export", "{run}", "--seat", "4", "--out", "x"], "--seat is 4 but must be from 0 to 1"),
        (["evaluate", "--players", "{run}/x.safetensors,stag", "--game.seats", "2"], "cannot read"),
        (["evaluate", "--players", "{run}x,stag", "--game.seats", "2"], "there is no run"),
    ],
)
def test_wrong_use(
    arguments: list[str], words: str, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("{run}", str(run)) for word in arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
