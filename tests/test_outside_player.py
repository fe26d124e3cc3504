"""A scripted player with a memory for the trial, from outside the package: by a module's name."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import ConfigError, StagHuntConfig
from hopplus.games import make_game
from hopplus.play.names import Kind, kind_of
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import Seating
from hopplus.players.mixture import Mixture
from hopplus.players.scripted import SCRIPTED, Row, player_names, scripted
from hopplus.runs.folder import open_run
from tiny_hop_plus import jit


def _words(text: str) -> list[str]:
    return text.split()


ROOT = Path(__file__).resolve().parents[1]
NAME = "examples.follower:make_player"
GAME = StagHuntConfig(size=3, seats=3, hares=2, horizon=6)
BOARD = _words("--game.size 3 --game.seats 3 --game.hares 2 --game.horizon 6")
SMALL = [
    "--net.hidden",
    "8",
    "--ppo.games",
    "4",
    "--ppo.unroll",
    "6",
    "--ppo.minibatches",
    "2",
    "--ppo.epochs",
    "1",
    "--steps",
    "48",
]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that lie where one works are found."""
    monkeypatch.chdir(ROOT)


def test_it_plays_on_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def say(*words: str) -> Any:
        assert main([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    seats = f"{NAME},hare,{NAME}|stag"
    found = say("evaluate", "--players", seats, "--episodes", "8", *BOARD)
    assert [seat["player"] for seat in found["seats"]] == [NAME, "hare", f"{NAME}|stag"]
    data = tmp_path / "data"
    told = say("collect", "--players", seats, "--episodes", "8", "--out", str(data), *BOARD)
    assert NAME in told["summary"]
    options = ["--seats", f"learn,{NAME},{NAME}|hare", "--trial", "3", "--runs", str(tmp_path)]
    assert main(["train", "ppo", *options, "--name", "a", *BOARD, *SMALL]) == 0
    run = tmp_path / "a"
    assert open_run(run).config().seats == f"learn,{NAME},{NAME}|hare"
    capsys.readouterr()
    page = ["--out", str(tmp_path / "page.html")]
    against = ["--against", f"{NAME},hare", "--episodes", "2", "--trials", "4"]
    found = say("adapt", str(run), *against, *page)
    assert found["lineups"] == [[NAME, "hare"]]
    out = ["--out", str(tmp_path / "cross"), "--episodes", "4"]
    found = say("crossplay", str(run), NAME, "hare", *out)
    assert found["names"][1:] == [NAME, "hare"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("stag", Kind.PLAYER),
        ("noisy-hare:0.2", Kind.PLAYER),
        (NAME, Kind.PLAYER),
        ("ppo", Kind.PRESET),
        ("runs/a", Kind.RUN),
        ("runs/a#1@2", Kind.RUN),
        ("a@2", Kind.RUN),
        ("one.safetensors", Kind.FILE),
    ],
)
def test_what_a_name_means(name: str, kind: Kind) -> None:
    assert kind_of(name) is kind


def trial(name: str, others: str, episodes: int) -> Any:
    """[T, ...] of one game, in which nobody but the first seat is after anything but `others`."""
    game = make_game(GAME)
    players = (scripted(name, game), Mixture((scripted(others, game),)), scripted(others, game))
    seating = Seating(players, trial=episodes)

    @jit
    def played() -> Any:
        plays = jax.vmap(lambda key: start(game, seating, key))(
            jax.random.split(jax.random.key(0), 16)
        )
        return rollout(game, seating, seating.init(jax.random.key(0)), plays, 40)[1]

    return jax.device_get(played())


@pytest.mark.parametrize("name", [NAME, "grudge"])
def test_who_remembers_a_trial_changes_with_its_episodes(name: str) -> None:
    """After the others, who always go for hares, and anew with each trial."""
    found = trial(name, "hare", 3)
    stag, hare = np.eye(2)
    goal = found.act.goal[:, :, 0]
    first = found.begins & (found.episode == 0)
    assert first[1:].any()  # there are later trials, too
    assert (goal[first] == stag).all()
    later = found.begins & (found.episode > 0)
    taken = found.outcome.took[:, :, 1:, 1].any()
    assert taken
    assert (goal[later] == hare).any(axis=-1).mean() > 0.5
    alone = trial(name, "hare", 1)  # episodes that have nothing to do with each other
    assert (alone.act.goal[:, :, 0][alone.begins] == stag).all()


def test_a_row_of_ones_own() -> None:
    game = make_game(GAME)
    SCRIPTED.add("loafer", Row(lambda game: scripted("random", game), lambda game: "as random"))
    try:
        assert player_names(game)["loafer"] == "as random"
        assert scripted("loafer", game) == scripted("random", game)
    finally:
        del SCRIPTED._rows["loafer"]
    with pytest.raises(ConfigError, match="no player is called 'loafer'"):
        scripted("loafer", game)
    with pytest.raises(ConfigError, match="there is no module 'nowhere'"):
        scripted("nowhere:make", game)
