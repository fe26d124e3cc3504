"""JaxMARL's environments as games: the package's own, stepped beside themselves, and odd ones."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import (
    ConfigError,
    GameConfig,
    GoalConfig,
    find_game,
    from_json,
    make_config,
    to_json,
)
from hopplus.games import make_game
from hopplus.games.game import has_board, views
from hopplus.games.jaxmarl import Jaxmarl, make_environment
from hopplus.games.pettingzoo import parallel_env
from hopplus.models.goal import GoalPart
from hopplus.runs.folder import open_run

STAG_HUNT = '{"payoff_matrix": [[[4, 0], [2, 2]], [[4, 2], [0, 2]]], "num_inner_steps": 152}'
COINS = '{"num_inner_steps": 4, "num_outer_steps": 2}'
REAL = {
    "jaxmarl:coin_game": COINS,
    "jaxmarl:MPE_simple_spread_v3": '{"num_agents": 2, "max_steps": 9}',
    "jaxmarl:storm_2p": STAG_HUNT,
}
TINY = "--net.hidden 8 --ppo.games 4 --ppo.unroll 8 --ppo.minibatches 1 --ppo.epochs 1 --steps 64"


def made(name: str, **settings: Any) -> Jaxmarl:
    game = make_game(make_config(name, **settings))
    assert isinstance(game, Jaxmarl)
    return game


# The package's own.


@pytest.mark.parametrize("name", REAL)
def test_steps_are_those_of_the_environment(name: str) -> None:
    """The same keys and actions, 1,600 transitions over many episodes, in both."""
    pytest.importorskip("jaxmarl")
    game, env = made(name, options=REAL[name]), make_environment(name, REAL[name])
    key_start, key_steps, key_acts = jax.random.split(jax.random.key(4), 3)
    steps = 1600
    keys = jax.random.split(key_steps, (steps, 2))
    joints = jax.random.randint(key_acts, (steps, game.seats), 0, min(game.actions))

    def ours(state: Any, given: Any) -> Any:
        (key, key_reset), joint = given
        after, outcome = game.step(state, joint, key)
        begun = game.init(key_reset)
        state = jax.tree.map(lambda a, b: jnp.where(outcome.done, a, b), begun, after)
        return state, (views(game, after).planes, outcome.reward, outcome.done)

    def theirs(state: Any, given: Any) -> Any:
        (key, key_reset), joint = given
        numbered = isinstance(env.agents[0], int)
        acts = tuple(joint) if numbered else dict(zip(env.agents, joint, strict=True))
        seen, after, rewards, dones, _ = env.step_env(key, state, acts)
        begun = env.reset(key_reset)[1]
        state = jax.tree.map(lambda a, b: jnp.where(dones["__all__"], a, b), begun, after)
        return state, (seen, rewards, dones["__all__"])

    @jax.jit
    def both() -> Any:
        ours_first, theirs_first = game.init(key_start), env.reset(key_start)[1]
        given = (keys, joints)
        return (
            jax.lax.scan(ours, ours_first, given)[1],
            jax.lax.scan(theirs, theirs_first, given)[1],
        )

    (planes, reward, done), (seen, rewards, dones) = jax.device_get(both())
    for seat, agent in enumerate(env.agents):
        own = seen[agent]
        numbers = [np.reshape(leaf, (steps, -1)) for leaf in jax.tree.leaves(own)]
        flat = planes[:, seat, ..., game.seats :].reshape(steps, -1)
        np.testing.assert_array_equal(flat, np.concatenate(numbers, axis=1))
        np.testing.assert_array_equal(reward[:, seat], rewards[agent])
    np.testing.assert_array_equal(done, dones)
    assert done.sum() >= 4
    assert len(np.unique(reward)) > 1
    # Whose view it is: the own, always.
    np.testing.assert_array_equal(planes[..., 0], 1)
    np.testing.assert_array_equal(planes[..., 1 : game.seats], 0)


def test_pictures_stay_pictures() -> None:
    pytest.importorskip("jaxmarl")
    game = made("jaxmarl:coin_game", options='{"cnn": true}')
    assert game.shape == (3, 3, 4 + 2)
    assert game.horizon == 100
    assert made("jaxmarl:coin_game").shape == (1, 1, 36 + 2)


def test_settings_are_read_back() -> None:
    pytest.importorskip("jaxmarl")
    config = make_config("jaxmarl:MPE_simple_spread_v3", options='{"num_agents": 4}', horizon=7)
    written = json.loads(json.dumps(to_json(config)))
    assert written["seats"] == config.seats == 4
    assert from_json(GameConfig, written) == config
    assert make_game(config) is make_game(from_json(GameConfig, written))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("jaxmarl")
    runs = tmp_path_factory.mktemp("runs")
    game = ["--game", "jaxmarl:MPE_simple_spread_v3", "--game.options", '{"num_agents": 2}']
    models = [
        "--opponent.fits",
        "1",
        "--goal.fits",
        "1",
        "--goal.every",
        "1",
        "--game.horizon",
        "4",
    ]
    words = ["train", "goal", *game, *models, "--runs", str(runs), "--name", "goal"]
    assert main([*words, *TINY.split()]) == 0
    return runs / "goal"


def test_it_is_learned_with_goals_and_models(run: Path) -> None:
    records = list(open_run(run).metrics())
    assert len(records) == 2
    for name in ("value_loss", "goal/loss/reconstruction", "opponent/loss/cross_entropy"):
        assert np.isfinite(records[-1][name]).all(), name


def test_evaluate_report_and_adapt(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["evaluate", str(run), "--episodes", "4", "--games", "4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["best_joint_return"] is None
    assert found["length"]["mean"] == 4
    assert found["mean_return"]["mean"] < 0  # a distance
    assert main(["report", str(run), "--quick"]) == 0
    assert "Mean return" in capsys.readouterr().out
    assert main(["adapt", str(run), "--trials", "1", "--episodes", "1", "--seat", "0"]) == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("replay RUN", "a replay needs a board, which jaxmarl:MPE_simple_spread_v3 does not have"),
        ("collect RUN", "recorded play needs a board"),
        ("evaluate RUN --search.simulations 2", "a search needs a board"),
        ("train hop-plus GAME", "a world model needs a board"),
        ("train one-step GAME", "a world model needs a board"),
        ("train direct-om GAME", "a search needs a board"),
        ("train hop GAME", "nobody sees the state behind an observation"),
        ("train belief GAME", "nobody sees the state behind an observation"),
        ("train ppo --parts opponent traits GAME", "a model that is told traits needs a board"),
        ("train ppo --net.kind walking GAME", "a network of the kind walking needs a board"),
        (
            "train ppo --parts opponent --opponent.net.kind walking GAME",
            "a network of the kind walking needs a board",
        ),
        ("certify GAME", "name others in --against"),
        ("evaluate GAME --players stag,random", "no player is called 'stag'; there are random"),
        ("evaluate GAME --players random,switch", "no player is called 'switch'"),
        ("bench game --game jaxmarl:coin_gam", "did you mean jaxmarl:coin_game?"),
        ("bench game --game jaxmarl:MPE_simple_v3", "has 1 agent"),
        ("bench game GAME --game.options 3", "must be of the form {NAME: VALUE}"),
        ("bench game GAME --game.options {", "is no JSON"),
        ('bench game GAME --game.options {"xyz":3}', "cannot be made with --game.options"),
        ("bench game GAME --game.horizon 0", "--game.horizon is 0"),
        ("bench game GAME --game.seats 3", "no option '--game.seats'"),
        ("bench game --game jaxmarl:storm", "does not say what is whose"),
    ],
)
def test_what_cannot_be_done_is_said(
    words: str, says: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = words.replace("RUN", str(run)).replace("GAME", "--game jaxmarl:coin_game").split()
    if given[0] == "train":
        given += ["--runs", str(tmp_path)]
    assert main(given) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_imports_it_unasked() -> None:
    program = (
        "import sys\nsys.modules['jaxmarl'] = None\n"
        "import hopplus.cli, hopplus.games.jaxmarl\n"
        "sys.exit(hopplus.cli.main(['bench', 'game', '--game', 'jaxmarl:coin_game']))\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode == 2
    assert "needs JaxMARL: pip install 'hopplus[jaxmarl]'" in found.stderr


def test_goals_tell_any_numbers() -> None:
    """The loss is least where they are told as they are, however large."""
    part = GoalPart((1, 1, 3), 2, GoalConfig(), bits=False)
    numbers = jnp.array([-3.0, 0.5, 4.0])
    slope = jax.grad(lambda told: part.reconstruction(told, numbers))
    np.testing.assert_allclose(slope(numbers), 0, atol=1e-6)
    assert (jnp.sign(slope(numbers + 1)) == 1).all()
    assert (jnp.sign(slope(numbers - 1)) == -1).all()


def test_json_is_all_that_is_printed() -> None:
    pytest.importorskip("jaxmarl")
    words = ["list", "players", "--game", "jaxmarl:coin_game", "--json"]
    found = subprocess.run([sys.executable, "-m", "hopplus", *words], capture_output=True)
    assert json.loads(found.stdout) == {"random": "any legal action, all alike"}


# Odd ones.


def test_agents_that_differ() -> None:
    game = made("toy_environments:Uneven")
    assert game.shape == (1, 1, 2 + 4)
    assert game.actions == (2, 3)
    assert len(game.action_names) == 3
    assert not has_board(game)
    state = jax.jit(game.init)(jax.random.key(0))
    np.testing.assert_array_equal(state.legal, [[1, 1, 0], [1, 1, 0]])
    step = jax.jit(game.step)
    state, outcome = step(state, jnp.array([2, 1]), jax.random.key(0))
    # Of the shorter one's actions there is no third: it counts as the first, and is told.
    np.testing.assert_array_equal(outcome.reward, [0, 1])
    np.testing.assert_array_equal(outcome.illegal, [True, False])
    np.testing.assert_array_equal(state.legal, [[1, 1, 0], [1, 1, 1]])
    np.testing.assert_array_equal(views(game, state).planes[0, 0, 0], [1, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(views(game, state).planes[1, 0, 0], [1, 0, 1, 1, -1, -1])
    np.testing.assert_array_equal(views(game, state).last_actions, [[2, 1], [1, 2]])


def test_who_is_done_has_left_and_an_episode_ends_once() -> None:
    game = made("toy_environments:Uneven")
    state, step = jax.jit(game.init)(jax.random.key(0)), jax.jit(game.step)
    joint, left, done, present = jnp.array([1, 1]), [], [], []
    for _ in range(4):
        state, outcome = step(state, joint, jax.random.key(0))
        left.append(outcome.left.tolist())
        done.append(bool(outcome.done))
        present.append(game.present(state).tolist())
    assert left == [[False, False], [True, False], [False, False], [False, False]]
    assert present == [[True, True], *[[False, True]] * 3]
    assert done == [False, False, False, True]
    assert state.last_actions.tolist() == [-1, 1]
    cut = made("toy_environments:Uneven", horizon=3)
    _, outcome = jax.jit(cut.step)(state.__class__(**vars(state)), joint, jax.random.key(0))
    assert bool(outcome.done)  # after more steps than an episode has


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Continuous", "has actions of the kind object"),
        ("Endless", "give --game.horizon"),
        ("Alone", "has 1 agent, and a game needs two or more"),
        ("Nothing", "is no GameRow, and makes no environment with JaxMARL's methods"),
    ],
)
def test_what_is_no_game_is_said(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        made(f"toy_environments:{name}")


def test_pettingzoo_has_boards_alone() -> None:
    with pytest.raises(ConfigError, match="PettingZoo's API needs a board"):
        parallel_env("toy_environments:Uneven")


def test_a_row_is_found_for_what_makes_one() -> None:
    assert find_game("toy_environments:Uneven") is find_game("jaxmarl:anything")
    with pytest.raises(ConfigError, match="is no GameRow"):
        find_game("toy_environments:__doc__")
