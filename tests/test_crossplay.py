"""Players of different making at one board."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from conftest import SMALL_RUN
from hopplus.cli import main
from hopplus.config import SearchConfig, StagHuntConfig
from hopplus.evaluation.crossplay import Member, crossplay, make_member, make_table
from hopplus.evaluation.evaluate import evaluate
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.from_run import run_seats
from hopplus.play.seating import seat_players
from hopplus.runs.folder import open_run

GAME = StagHunt(StagHuntConfig(size=3, seats=2, hares=2))


def scripted_member(name: str) -> Member:
    return make_member(name, [name] * GAME.seats, {}, GAME, SearchConfig())


@pytest.fixture(scope="module")
def run(small_run: Path) -> Path:
    return small_run


def test_a_stag_hunter_alone_gets_nothing_and_two_share() -> None:
    found = crossplay(
        GAME, [scripted_member("stag"), scripted_member("hare")], jax.random.key(0), 64
    )
    (both, alone), (neighbour, rivals) = (
        [cell.mean for cell in row] for row in found.focal
    )  # rows: stag, hare
    assert both == pytest.approx(5.0)
    assert alone == 0.0
    assert neighbour == pytest.approx(1.0)
    assert 0.5 < rivals < 1.0  # who meets at a hare shares it
    assert found.co_players[0][1].mean == pytest.approx(1.0)  # the hare hunter
    assert found.co_players[1][0].mean == 0.0
    assert found.by_seat.shape == (2, 2, 2)


def test_who_is_chosen_sits_there(run: Path) -> None:
    """One program for all kinds gives what a seating of just these players gives."""
    seated = run_seats(open_run(run))
    called, known = seated.names, seated.known
    learned = make_member("a", called, known, GAME, SearchConfig())
    table = make_table([learned, scripted_member("hare")])
    params, choices = table.seated([scripted_member("hare"), learned])
    assert choices.tolist() == [1, 0]
    key = jax.random.key(3)
    mixed = evaluate(GAME, table.seating, params, key, 400, choices=choices).returns
    assert (mixed[:, 0] == 1).mean() > 0.9  # a hare hunter, in the first seat
    together, _ = table.seated([learned, learned])
    for seat, name in enumerate(called):  # each with what it has learned itself
        held = jax.tree.map(lambda leaf: np.asarray(leaf[seat]), together[0][0])  # noqa: B023
        assert jax.tree.all(jax.tree.map(np.array_equal, held, known[name].params))


def test_scripted_players_as_evaluated() -> None:
    members = [scripted_member("hare"), scripted_member("random")]
    table = make_table(members)
    params, choices = table.seated(members)
    key = jax.random.key(0)
    mixed = evaluate(GAME, table.seating, params, key, 2000, choices=choices).returns
    seating = seat_players("hare,random", GAME)
    plain = evaluate(GAME, seating, seating.init(key), key, 2000).returns
    spread = plain.std(axis=0) / np.sqrt(len(plain))
    assert (np.abs(mixed.mean(axis=0) - plain.mean(axis=0)) < 5 * spread + 1e-6).all()


def test_the_command(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    command = ["crossplay", str(run), f"{run}#1", "hare", "--episodes", "20", "--out", str(out)]
    assert main([*command, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["names"] == [f"{run}#0", f"{run}#1", "hare"]
    assert np.shape(found["by_seat"]) == (3, 3, 2)
    assert json.loads((out / "crossplay.json").read_text())["names"] == found["names"]
    assert (out / "crossplay.png").read_bytes().startswith(b"\x89PNG")
    # Two seeds of the run, each among the other one and among the hare hunter.
    ((name, seeds),) = found["across_seeds"].items()
    assert name == str(run)
    means = [[cell["mean"] for cell in row] for row in found["focal"]]
    among = [means[0][1], means[0][2], means[1][0], means[1][2]]
    middle = sorted(among)[1:3]  # of four, the quarters at both ends are left out
    assert seeds["iqm"]["figure"] == pytest.approx(np.mean(middle))
    assert seeds["probability_of_improvement"] is None  # over whom?
    page = (out / "crossplay.html").read_text(encoding="utf-8")
    assert f"{seeds['iqm']['figure']:.3f} [" in page
    assert "2 are too few to tell" in page


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (["stag"], "two or more"),
        (["stag", "nobody"], "nobody"),
        (["stag", "runs/nowhere#3"], "nowhere"),
        (["stag", "hare", "--out", "."], "exists already: take another --out"),
        (["stag", "hare", "--episodes", "0"], "episodes"),
    ],
)
def test_clear_errors(members: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crossplay", *members]) == 2
    assert said in capsys.readouterr().err


def test_seeds_and_seats_are_told_apart(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was a seed here and a seat elsewhere is refused; both can be said."""
    assert main(["crossplay", f"{run}@1", "hare"]) == 2
    said = capsys.readouterr().err
    assert f"write {run}#1 for seed 1" in said
    out = ["--episodes", "20", "--out", str(tmp_path / "out"), "--json"]
    assert main(["crossplay", f"{run}#1@0", "hare", *out]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["names"] == [f"{run}#1@0", "hare"]
    assert main(["export", f"{run}#1@0", "--out", str(tmp_path / "a.safetensors")]) == 0
    capsys.readouterr()
    out = ["--episodes", "20", "--out", str(tmp_path / "again"), "--json"]
    game = SMALL_RUN[:6]  # which a player alone does not say
    assert main(["crossplay", str(tmp_path / "a.safetensors"), "hare", *game, *out]) == 0
    assert json.loads(capsys.readouterr().out)["by_seat"] == found["by_seat"]  # the same player


def test_the_learners_of_a_run_play(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a run with a scripted seat its learner sits in every seat, never the script."""
    words = ["train", "ppo", "--seats", "hare,learn", "--runs", str(tmp_path), "--name", "b"]
    assert main([*words, *SMALL_RUN, "--steps", "512"]) == 0
    capsys.readouterr()
    out = ["--episodes", "20", "--out", str(tmp_path / "one"), "--json"]
    assert main(["crossplay", str(tmp_path / "b"), "hare", *out]) == 0
    whole = json.loads(capsys.readouterr().out)
    out = ["--episodes", "20", "--out", str(tmp_path / "two"), "--json"]
    assert main(["crossplay", f"{tmp_path / 'b'}#0@1", "hare", *out]) == 0
    assert json.loads(capsys.readouterr().out)["by_seat"] == whole["by_seat"]


def test_runs_of_other_games_are_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (run / "config.json").read_text()
    other = tmp_path / "other"
    other.mkdir()
    (other / "config.json").write_text(text.replace('"hares": 2', '"hares": 1'))
    assert main(["crossplay", str(run), str(other)]) == 2
    assert "different games" in capsys.readouterr().err
