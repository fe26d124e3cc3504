"""Settings by name, from Python and from TOML, and back."""

import inspect
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from hopplus.api import studies
from hopplus.cli import main, parse
from hopplus.cli.adapt import Adapt
from hopplus.cli.certify import Certify
from hopplus.cli.crossplay import CrossPlay
from hopplus.cli.evaluate import Evaluate
from hopplus.config import (
    ConfigError,
    NetConfig,
    PPOConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
    change,
    default_game,
    make_config,
    to_json,
    to_toml,
)
from hopplus.presets import PRESETS

ODD = replace(
    TrainConfig(),
    ppo=PPOConfig(entropy_end=None, learning_rate=1e-05),
    seats='learn,stag|hare,"x"\\,é',
    keep_stages=(0.1, 1.0),
    game=StagHuntConfig(size=5, height=7),
)


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("config", [*PRESETS.values(), ODD], ids=[*PRESETS, "odd"])
def test_toml_says_all_there_is_to_say(config: TrainConfig, everything: bool) -> None:
    text = to_toml(config, everything=everything)
    back = change(TrainConfig(), tomllib.loads(text))
    assert back == config
    assert to_json(back) == to_json(config)
    if everything:
        assert text.count("=") == len(_leaves(to_json(config)))


def _leaves(tree: dict[str, Any]) -> list[Any]:
    return [
        leaf
        for value in tree.values()
        for leaf in (_leaves(value) if isinstance(value, dict) else [value])
    ]


def test_what_is_as_usual_is_not_written() -> None:
    assert to_toml(PRESETS["ppo"]) == "\n"
    assert to_toml(replace(TrainConfig(), game=make_config("coin-v1", size=4))) == (
        '[game]\nname = "coin-v1"\nsize = 4\n'
    )


def test_what_follows_from_other_settings_is_not_written() -> None:
    config = replace(TrainConfig(), game=make_config("toy_environments:Uneven"))
    assert config.game.seats > 0
    assert "seats" not in tomllib.loads(to_toml(config, everything=True))["game"]
    assert change(TrainConfig(), tomllib.loads(to_toml(config))) == config


@pytest.mark.parametrize(
    ("given", "config"),
    [
        ({"steps": 1e6, "seeds": 3}, TrainConfig(steps=1_000_000, seeds=3)),
        ({"ppo": {"games": 8}}, TrainConfig(ppo=PPOConfig(games=8))),
        ({"ppo.learning-rate": 1}, TrainConfig(ppo=PPOConfig(learning_rate=1.0))),
        ({"ppo": PPOConfig(games=8)}, TrainConfig(ppo=PPOConfig(games=8))),
        ({"game": "coin-v1"}, TrainConfig(game=make_config("coin-v1"))),
        ({"game": {"size": 5}}, TrainConfig(game=StagHuntConfig(size=5))),
        ({"game": "coin-v1", "game.size": 4}, TrainConfig(game=make_config("coin-v1", size=4))),
        ({"parts": ["opponent"]}, TrainConfig(parts=("opponent",))),
        ({"ppo.entropy_end": "None"}, TrainConfig(ppo=PPOConfig(entropy_end=None))),
    ],
)
def test_settings_are_changed_by_name(given: dict[str, Any], config: TrainConfig) -> None:
    changed = change(TrainConfig(), given)
    assert changed == config
    assert isinstance(changed.steps, int)
    assert isinstance(changed.ppo.learning_rate, float)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"ppo": {"lerning_rate": 1}}, "no setting 'ppo.lerning_rate': did you mean ppo.learning_"),
        ({"ppo.lr": 1}, "did you mean ppo.learning_rate"),
        ({"stepz": 1}, "no setting 'stepz': did you mean steps?"),
        ({"game": {"sise": 3}}, "no setting 'game.sise': did you mean game.size?"),
        ({"game": "coin"}, "no game 'coin': did you mean 'coin-v1'?"),
        ({"steps": 1.5}, "--steps is 1.5 but must be a whole number"),
        ({"steps": "many"}, "--steps is 'many' but must be a whole number"),
        ({"parts": "goal"}, "--parts is 'goal' but must be a list"),
        ({"ppo": 3}, "--ppo is 3 but must be a PPOConfig"),
        ({"last_actions": 1}, "--last-actions is 1 but must be yes or no"),
    ],
)
def test_what_is_no_setting_is_said(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as said:
        change(TrainConfig(), given)
    assert says in str(said.value)


# On the command line.

FILE = 'preset = "hop-plus"\nsteps = 1234\n[game]\nsize = 5\n[ppo]\nlearning_rate = 1e-4\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(FILE)
    return path


def read(*words: str) -> TrainConfig:
    config: TrainConfig = parse(["train", *words]).config
    return config


def test_options_go_on_top_of_a_file(file: Path) -> None:
    plus = PRESETS["hop-plus"]
    written = replace(
        plus, steps=1234, game=StagHuntConfig(size=5), ppo=replace(plus.ppo, learning_rate=1e-4)
    )
    assert read("--config", str(file)) == written
    assert read("hop-plus", f"--config={file}", "--seeds", "2") == replace(written, seeds=2)
    assert read("--steps", "9", "--config", str(file), "hop-plus") == replace(written, steps=9)
    other = read("--config", str(file), "--game", "coin-v1")
    assert other == replace(written, game=make_config("coin-v1"))
    file.write_text("steps = 5\n")
    assert read("lola", "--config", str(file)) == replace(PRESETS["lola"], steps=5)
    assert read("--config", str(file)) == TrainConfig(steps=5)


@pytest.mark.parametrize("preset", ["ppo", "lola", "hop-plus-trial"])
@pytest.mark.parametrize("which", [(), ("all",)])
def test_what_is_printed_is_read_again(
    preset: str, which: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["train", preset, "--print-config", *which, "--seed", "7"]) == 0
    path = tmp_path / "run.toml"
    path.write_text(capsys.readouterr().out)
    assert read("--config", str(path)) == replace(PRESETS[preset], seed=7)


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        (FILE, "ppo", "says preset 'hop-plus': leave ppo out"),
        ("preset = 3", "", "says preset 3"),
        ('preset = "pppo"', "", "no preset 'pppo': did you mean 'ppo'?"),
        ("[ppo]\nlerning_rate = 1", "", "did you mean ppo.learning_rate?"),
        ("steps = ", "", "run.toml cannot be read"),
        ("steps = 0", "", "--steps is 0 but must be from 1"),
        (FILE, "--print-config none", "'none' is not expected there"),
        (None, "", "run.toml: No such file"),
    ],
)
def test_a_file_that_is_wrong_is_said(
    text: str | None, words: str, says: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.unlink()
    if text is not None:
        file.write_text(text)
    assert main(["train", *words.split(), "--config", str(file)]) == 2
    assert says in capsys.readouterr().err


# The functions of the API have the options of the commands.


@pytest.mark.parametrize(
    ("made", "function", "apart"),
    [
        (Evaluate(), studies.evaluate, {"run_name"}),
        (Adapt(()), studies.adapt, {"subject", "out", "on"}),
        (Certify(), studies.certify, {"on"}),  # devices.using says that, for all of them
        (CrossPlay(()), studies.crossplay, {"members", "out"}),
    ],
)
def test_the_api_has_the_options_of_the_command(made: Any, function: Any, apart: set[str]) -> None:
    def plain(default: Any) -> Any:
        usual = {default_game(), SearchConfig(), NetConfig(), PPOConfig()}
        return None if default in usual else str(default) if isinstance(default, Path) else default

    asked = {
        one.name: plain(getattr(made, one.name))
        for one in fields(made)
        if one.name not in apart | {"json"}
    }
    takes = {
        name: one.default
        for name, one in inspect.signature(function).parameters.items()
        if one.kind is one.KEYWORD_ONLY or name == "game"
    }
    assert takes.pop("quiet") is False
    assert takes == asked
