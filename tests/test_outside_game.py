"""A game with chance from outside the package, by the public way alone: everything runs on it.

It is the game of docs/extending.md. Commands share settings, and so most of their programs.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.cli.commands import COMMANDS
from hopplus.config import ConfigError, GameConfig, find_game, from_json, make_config, to_json
from hopplus.games import GAMES, make_game, register_game
from hopplus.games.game import Game
from hopplus.games.pettingzoo import parallel_env
from hopplus.play.rollout import begin, rollout
from hopplus.play.seating import Seating
from hopplus.players.scripted import scripted
from hopplus.runs.folder import open_run
from toy_game import ROW, Coins, CoinsConfig

NAME = "toy_game:ROW"
GAME = ["--game", NAME]
_TINY = "--net.hidden 8 --ppo.games 4 --ppo.unroll 8 --ppo.minibatches 1 --ppo.epochs 1 --steps 64"
_MODELS = "--opponent.fits 1 --goal.fits 1 --world.fits 1 --imagine.warm-up 0"
TINY, MODELS = _TINY.split(), _MODELS.split()
SEARCH = ["--search.simulations", "2", "--search.trees", "1"]
PRESETS = {
    "ppo": [],
    "ppo-memory": [],
    "hop-plus": [*MODELS, "--imagine.gate", "1"],
    "hop": ["--opponent.fits", "1", *SEARCH],
    "one-step": ["--opponent.fits", "1", "--world.fits", "1", *SEARCH],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def ppo(runs: Path) -> Path:
    return trained(runs, "ppo")


def trained(runs: Path, preset: str) -> Path:
    words = ["train", preset, *GAME, "--runs", str(runs), "--name", preset]
    assert main([*words, *TINY, *PRESETS[preset]]) == 0
    return runs / preset


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """What a command prints as JSON."""
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def registered() -> Iterator[str]:
    register_game("coins-v1", ROW)
    yield "coins-v1"
    del GAMES._rows["coins-v1"]  # as there is no need for users to


# By name.


def test_it_is_found_by_name_once_registered(
    registered: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, "list", "games")[registered] == ROW.about
    players = list(said(capsys, "list", "players", "--game", registered))
    families = [name for name in players if name.startswith("family-")]
    assert {"family-devoted", "family-shy"} <= set(families)
    assert [name for name in players if name not in families] == [
        *("random", "gold", "silver", "switch"),  # nobody sees by acts who took what
        *("noisy-gold:P", "noisy-silver:P", "noisy-switch:P"),
    ]
    assert make_config(registered, size=4) == CoinsConfig(size=4)
    with pytest.raises(ConfigError, match="the game 'coins-v1' exists already"):
        register_game(registered, ROW)


def test_settings_are_read_by_the_games_name() -> None:
    config = make_config(NAME, seats=3)
    again = from_json(GameConfig, json.loads(json.dumps(to_json(config))))
    assert again == config
    assert make_game(config) == Coins(CoinsConfig(name=NAME, seats=3))
    assert make_game(config) is make_game(again)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--game xyz", "there is no game 'xyz', only stag-hunt-v1, snowdrift-v1, coin-v1"),
        ("--game stag-hunt", "did you mean 'stag-hunt-v1'?"),
        ("--game nowhere:ROW", "there is no module 'nowhere' here"),
        ("--game toy_game:COLUMN", "toy_game has no 'COLUMN'"),
        ("--game toy_game:Coins", "toy_game:Coins is no GameRow"),
        (f"--game {NAME} --game.stags 2", "no option '--game.stags'"),
        (f"--game {NAME} --game.seats 9", "--game.seats is 9 but must be from 2 to 4"),
        ("--game.name stag-hunt-v1", "it is --game"),
    ],
)
def test_what_is_wrong_is_said(words: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "game", *words.split()]) == 2
    assert says in capsys.readouterr().err


# Runs, data and the rows of a sweep have a game of their own.
WITHOUT = {"resume", "report", "export", "pretrain", "sweep"}


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in WITHOUT])
def test_every_command_offers_its_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    inner = {"train": ["ppo"], "diagnose": ["seats"], "bench": ["game"]}.get(command, [])
    with pytest.raises(SystemExit):
        main([command, *inner, *GAME, "--help-all"])
    shown = capsys.readouterr().out
    found = sorted(set(re.findall(r"--game(?:\.[a-z-]+)?(?= )", shown)))
    assert found == ["--game", "--game.horizon", "--game.seats", "--game.size"]
    assert "Coins that come back." in shown


# Chance.


def test_coins_come_back_by_the_key_alone() -> None:
    game = Coins()
    state = game.parse("0 g .\n1 . .\n. . s")
    right = jnp.array([3, 4])
    after = jax.jit(jax.vmap(game.step, in_axes=(None, None, 0)))
    keys = jax.random.split(jax.random.key(0), 400)
    states, outcome = after(state, right, keys)
    np.testing.assert_array_equal(outcome.reward, [[2.0, -1.0]] * 400)
    cells, counts = np.unique(states.coins[:, 0], return_counts=True)
    assert cells.tolist() == [0, 2, 4, 5, 6, 7]  # where neither a seat nor the other coin is
    assert counts.min() > 400 / 6 * 0.6
    np.testing.assert_array_equal(states.coins[:, 1], 8)
    np.testing.assert_array_equal(after(state, right, keys)[0].coins, states.coins)


def test_play_gives_every_game_a_key_of_its_own() -> None:
    """Both coins are taken at the first step of games that begin alike, and come back anywhere."""
    game = Coins()
    seating = Seating((scripted("gold", game), scripted("silver", game)))
    state = game.parse("0 g .\n. . .\n1 s .")
    keys = jax.random.split(jax.random.key(0), 64)

    @jax.jit
    def played() -> Any:
        plays = jax.vmap(lambda key: begin(game, seating, state, key))(keys)
        return rollout(game, seating, seating.init(jax.random.key(0)), plays, 2)[1]

    found = jax.device_get(played())
    np.testing.assert_array_equal(found.outcome.reward[0], [[2.0, 0.0]] * 64)
    for coin in (0, 1):
        assert len(np.unique(found.state.coins[1, :, coin])) > 4


def test_pettingzoo_takes_it() -> None:
    env = parallel_env(NAME, horizon=3, render_mode="ansi")
    env.reset(seed=3, options={"layout": "0 g .\n1 . .\n. . s"})
    _, rewards, ended, _, _ = env.step({"player_0": 3, "player_1": 4})
    assert rewards == {"player_0": 2.0, "player_1": -1.0}
    assert not any(ended.values())
    assert env.game.horizon == 3
    assert "player_0  right" in str(env.render())
    assert env.game.show(env._state).count("g") == 1  # it is back
    with pytest.raises(ConfigError, match="the game has no setting stags; it has seats, size"):
        parallel_env(NAME, stags=2)


# Commands.


@pytest.mark.parametrize("preset", [one for one in PRESETS if one != "ppo"])
def test_presets_learn_it(preset: str, runs: Path) -> None:
    run = open_run(trained(runs, preset))
    assert run.config().game == CoinsConfig(name=NAME)
    records = list(run.metrics())
    assert len(records) == 2
    assert np.isfinite(records[-1]["value_loss"]).all()
    if preset == "hop-plus":
        assert np.asarray(records[-1]["imagined/open"]).any()


def test_evaluate_and_replay(ppo: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "evaluate", str(ppo), "--episodes", "8", "--games", "8")
    assert set(found["taken"]) == {"gold", "silver"}
    seen = said(capsys, "replay", str(ppo), "--among", "4")
    assert seen["letters"] == ["g", "s"]
    assert seen["drawings"] == [target.drawing for target in Coins().targets.values()]
    assert "oval #f2c94c" in seen["drawings"][0]
    for episode in seen["episodes"]:
        assert len(episode["steps"]) == CoinsConfig().horizon + 1
        for step in episode["steps"]:
            assert all(step["seats"])  # nobody leaves
            assert len(step["targets"]) == 2  # and every coin is there, or back
    assert main(["replay", str(ppo), "--episode", "0", "--out", str(runs / "coins.gif")]) == 0
    assert (runs / "coins.gif").read_bytes()[:3] == b"GIF"


def test_report(ppo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(ppo)]) == 0
    page = (ppo / "report.html").read_text(encoding="utf-8")
    assert f"{NAME}, 3x3" in page
    assert '"drawings"' in page


def test_certify_and_adapt(ppo: Path, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(runs / "references"), "--episodes", "8", "--seeds", "1"]
    found = said(capsys, "certify", *GAME, *TINY, *out, "--against", "gold", "random")
    assert len(found["lineups"]) == 2
    adapted = said(capsys, "adapt", str(ppo), "--trials", "2", "--against", "gold")
    assert np.isfinite(adapted["returns"]).all()


def test_diagnose_seats(ppo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = said(capsys, "diagnose", "seats", str(ppo), "--quick", "--episodes", "64")
    rules = next(one for one in found["checks"] if one["title"] == "The game: rules")
    assert rules["known"]
    assert rules["different"] == 0


def test_docs_show_this_very_game() -> None:
    here = Path(__file__)
    page = (here.parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    shown = re.search(r"```python\n# coins\.py\n(.*?)```", page, re.DOTALL)
    assert shown
    assert shown[1] == here.with_name("toy_game.py").read_text(encoding="utf-8")


def test_the_row_is_all_there_is() -> None:
    game: Game = make_game(make_config(NAME))
    assert find_game(NAME) is ROW
    assert game.name == NAME
