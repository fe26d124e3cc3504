"""Presets from outside, by name and by registration; and rows that installed packages bring."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hopplus.cli import main, parse
from hopplus.config import GAMES, PARTS, ConfigError, PPOConfig, TrainConfig, make_config
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS
from hopplus.play.names import Kind, kind_of
from hopplus.players.context.registry import CONTEXTS
from hopplus.players.scripted import SCRIPTED, scripted
from hopplus.players.scripted.script import Random
from hopplus.presets import ABOUT, PRESETS, register_preset
from hopplus.registry import Registry

TABLES: tuple[Registry[Any], ...] = (GAMES, SCRIPTED, CONTEXTS, PARTS, AUXILIARY_MODELS, PRESETS)
SMALL = TrainConfig(
    game=make_config("coin-v1", size=4), ppo=PPOConfig(games=8, learning_rate=5e-4), steps=1000
)
NUMBER = 3

MODULE = """
from toy_game import ROW
from test_installed import SMALL
from examples.follower import make_player
from examples.seen_acts import make_context
from examples.reward_model import ROW as REWARD
"""
ENTRY_POINTS = """
[hopplus.games]
foreign-coins = foreign_games:ROW
broken-game = foreign_games:NOTHING
stag-hunt-v1 = foreign_games:ROW
[hopplus.players]
foreign-follower = foreign_games:make_player
[hopplus.contexts]
foreign-acts = foreign_games:make_context
[hopplus.parts]
foreign-reward = foreign_games:REWARD
[hopplus.presets]
foreign-small = foreign_games:SMALL
wrong-kind = foreign_games:ROW
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package as it lies where it is installed; what was read before is forgotten."""
    about = tmp_path / "foreign_games-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-games\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "foreign_games.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    for table in TABLES:
        monkeypatch.setattr(table, "_installed", None)
        monkeypatch.setattr(table, "_imported", {})
    yield "foreign-games"
    sys.modules.pop("foreign_games", None)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


# Presets.


def read(*words: str) -> TrainConfig:
    config: TrainConfig = parse(["train", *words]).config
    return config


def test_a_preset_is_named_by_its_module() -> None:
    assert read("test_installed:SMALL") == SMALL
    changed = read("test_installed:SMALL", "--ppo.games", "16", "--game.size", "5")
    assert (changed.ppo.games, changed.ppo.learning_rate) == (16, 5e-4)
    assert changed.game == make_config("coin-v1", size=5)
    other = read("test_installed:SMALL", "--game", "stag-hunt-v1")
    assert other.game == TrainConfig().game
    assert other.ppo == SMALL.ppo
    assert read("ppo") == TrainConfig()
    assert kind_of("test_installed:SMALL") is Kind.PRESET
    assert kind_of("examples.follower:make_player") is Kind.PLAYER
    assert kind_of("noisy-stag:0.1") is Kind.PLAYER


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("test_installed:NUMBER", "test_installed:NUMBER is no TrainConfig"),
        ("test_installed:GONE", "preset 'test_installed:GONE': test_installed has no 'GONE'"),
        ("nowhere:SMALL", "there is no module 'nowhere' here"),
        ("test_installed:SMALL --ppo.games 0", "--ppo.games is 0 but must be"),
        ("test_installed:SMALL --xyz 1", "see hopplus train test_installed:SMALL --help"),
        ("pqo", "no preset 'pqo' (did you mean ppo?)"),
    ],
)
def test_what_is_no_preset_is_said(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *words.split()]) == 2
    assert says in capsys.readouterr().err


def test_help_shows_its_own_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "test_installed:SMALL", "--help"])
    shown = capsys.readouterr().out
    assert "usage: hopplus train test_installed:SMALL [options]" in shown
    assert "Games side by side. (default: 8)" in shown
    assert "--game.coins" in shown


def test_a_preset_is_registered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for table in (PRESETS, ABOUT):
        monkeypatch.setattr(table, "_rows", dict(table._rows))
    register_preset("small", SMALL, "a small one")
    assert said(capsys, "list", "presets")["small"] == "a small one"
    assert read("small", "--steps", "5").steps == 5
    assert read("small").ppo == SMALL.ppo
    with pytest.raises(ConfigError, match="the preset 'small' exists already"):
        register_preset("small", SMALL, "another")


def test_a_preset_that_is_registered_first_has_its_game() -> None:
    """Before anything of the command line is there, as in a script of one's own."""
    code = """
from dataclasses import replace
from hopplus.config import make_config
from hopplus.presets import PRESETS, register_preset
game = make_config("coin-v1", size=4)
register_preset("mine", replace(PRESETS["ppo"], game=game), "mine")
from hopplus.cli import parse
assert parse(["train", "mine", "--steps", "9"]).config == replace(PRESETS["mine"], steps=9)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# Installed packages.


def test_an_installed_package_brings_rows(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "list", "presets")["foreign-small"] == f"of the package {package}"
    assert "foreign-small" not in PRESETS._imported  # it is listed without being loaded
    assert read("foreign-small", "--steps", "7").ppo == SMALL.ppo
    assert make_config("foreign-coins").name == "foreign-coins"
    config = read("ppo", "--game", "foreign-coins", "--game.size", "4", "--parts", "foreign-reward")
    assert config.game == make_config("foreign-coins", size=4)
    assert list(config.fitted) == ["foreign-reward"]
    assert AUXILIARY_MODELS["foreign-reward"].prefix == "reward"
    assert CONTEXTS["foreign-acts"].__name__ == "make_context"
    listed = said(capsys, "list", "players")
    assert listed["foreign-follower"] == "brought by an installed package"


def test_its_players_sit_down(package: str) -> None:
    from hopplus.games import make_game

    game = make_game(TrainConfig().game)
    player = scripted("foreign-follower", game)
    assert player.name == "foreign-follower"
    assert not isinstance(player, Random)


def test_the_packages_own_rows_stay(package: str) -> None:
    assert GAMES["stag-hunt-v1"].config.__name__ == "StagHuntConfig"
    assert "stag-hunt-v1" not in GAMES.installed()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "bench game --game broken-game",
            "game 'broken-game' of the package foreign-games cannot be loaded: AttributeError",
        ),
        ("bench game --game foreign-coin", "did you mean 'foreign-coins'?"),
        ("train wrong-kind", "wrong-kind is no TrainConfig"),
    ],
)
def test_what_it_brings_that_is_broken_is_said(
    words: str, says: str, package: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert says in capsys.readouterr().err


def test_nobody_looks_for_packages_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the table is found without reading what is installed, which takes its time."""
    for table in TABLES:
        monkeypatch.setattr(table, "_installed", None)
    monkeypatch.setattr("importlib.metadata.entry_points", None)
    with pytest.raises(SystemExit):
        main(["--help"])
    with pytest.raises(SystemExit):
        main(["train", "hop-plus", "--help"])
    assert read("hop-plus", "--game", "coin-v1").game.name == "coin-v1"
