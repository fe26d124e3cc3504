"""The command line as people use it: tables, JSON, files, and one clear sentence when wrong."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from fake_runs import write_run
from hopplus.cli import main

FOUR = "stag,stag,hare,random"
EVALUATE = ["evaluate", "--players", FOUR, "--episodes", "64", "--games", "32"]


def test_evaluate_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(EVALUATE) == 0
    out = capsys.readouterr().out
    for word in ("seat", "return ± 95%", "stags", "hares", "random", "64 episodes"):
        assert word in out
    assert "joint return" in out
    assert "of 12 at best" in out


def test_evaluate_prints_json_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVALUATE, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 64
    assert [seat["player"] for seat in result["seats"]] == FOUR.split(",")
    seat = result["seats"][3]["return"]  # the random one: never the same twice
    assert seat["low"] < seat["mean"] < seat["high"]
    assert result["joint_return"]["mean"] == pytest.approx(4 * result["mean_return"]["mean"])


def test_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    def result(seed: str) -> str:
        main([*EVALUATE, "--json", "--seed", seed])
        return capsys.readouterr().out

    assert result("1") == result("1")
    assert result("1") != result("2")


def test_counts_may_be_written_shortly(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVALUATE, "--episodes", "1e2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 100


def test_others_are_counted_without_the_player(
    small_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["adapt", str(small_run), "--against", "stag,stag"]) == 2
    words = (
        "names 2 players but the game has 2 seats: one for the player and one other to be filled"
    )
    assert words in capsys.readouterr().err


def test_runs_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that does not exist is told with those that do, the most similar first."""

    def complaint(path: Path) -> str:
        assert main(["evaluate", str(path)]) == 2
        return capsys.readouterr().err

    assert f"there is no run {tmp_path}/nope, and {tmp_path} holds no runs" in complaint(
        tmp_path / "nope"
    )
    for name in ("alpha", "beta", "gamma", "delta", "epsilon", "gamma-2"):
        write_run(tmp_path / name)
    found = complaint(tmp_path / "gama")
    assert f"there is no run {tmp_path}/gama; there are {tmp_path}/gamma, " in found
    assert found.endswith(" and 2 more\n")
    assert f"it holds {tmp_path}/alpha, " in complaint(tmp_path)


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "games"]) == 0
    assert "stag-hunt-v1" in capsys.readouterr().out
    assert main(["list", "players", "--json"]) == 0
    assert "noisy-stag:P" in json.loads(capsys.readouterr().out)


def test_replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = tmp_path / "board.txt"
    board.write_text("0 1S . .\n. . . .\n. 2h . .\n. . . 3\n")
    common = ["replay", "--players", "stag,stag,hare,hare", "--layout", str(board)]
    assert main(common) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "2h" in out
    gif = tmp_path / "new" / "game.gif"
    assert main([*common, "--out", str(gif)]) == 0
    assert Image.open(gif).n_frames >= 3  # type: ignore[attr-defined]
    assert main([*common, "--out", str(tmp_path / "game.png")]) == 0
    assert Image.open(tmp_path / "game.png").width > 100


def test_replay_shows_the_episodes_of_evaluate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def last_returns(*options: str) -> list[float]:
        assert main(["replay", "--players", FOUR, *options]) == 0
        last = [line for line in capsys.readouterr().out.splitlines() if "returns" in line][-1]
        return [float(part.split(":")[1]) for part in last.split()[-4:]]

    assert main(["evaluate", "--players", FOUR, "--episodes", "1", "--seed", "9", "--json"]) == 0
    seats = json.loads(capsys.readouterr().out)["seats"]
    means = [round(seat["return"]["mean"], 2) for seat in seats]
    assert last_returns("--seed", "9", "--episode", "0") == means
    boards = set()
    for options in (["--seed", "9"], ["--seed", "8"], ["--seed", "9", "--episode", "1"]):
        assert main(["replay", "--players", FOUR, *options]) == 0
        boards.add(capsys.readouterr().out)
    assert len(boards) == 3


def test_bench_game(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", "game", "--games", "32", "--seconds", "0.1"]
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["rate"] > 0
    assert result["compared_steps"] == 2048  # the plain rules agreed on so many
    assert result["ratio"] == pytest.approx(result["rate"] / result["plain_rate"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected one of {train,"),
        (["evalute", "--players", FOUR], "no command 'evalute' (did you mean evaluate?)"),
        (["evaluate"], "who plays?"),
        (["evaluate", "--player", FOUR], "no option '--player' (did you mean --players?)"),
        (["list"], "hopplus list needs {games,players,presets,zoo}"),
        (
            ["bench", "gmae"],
            "no command 'gmae' (did you mean game?); there are game, train, update,",
        ),
        (["evaluate", "--players", FOUR, "--episodes", "inf"], "'inf' is not a whole number"),
        (["evaluate", "--players", "stag,stag,hare,rndom"], "did you mean random?"),
        (["evaluate", "--players", "stag"], "names 1 player but the game has 4 seats"),
        (["evaluate", "--players", FOUR, "--game.size", "2"], "2x2 has 4 cells"),
        (["evaluate", "--players", FOUR, "--game.size", "-1"], "game.size is -1"),
        (["evaluate", "--players", FOUR, "--game.sise", "4"], "did you mean --game.size?"),
        (["evaluate", "--players", FOUR, "--game", "chess"], "chess"),
        (["evaluate", "--players", FOUR, "--episodes", "-5"], "--episodes is -5"),
        (["evaluate", "--players", FOUR, "--episodes", "many"], "'many' is not a whole number"),
        (["evaluate", "--players", FOUR, "--episodes", "1.5"], "'1.5' is not a whole number"),
        (["evaluate", "--players", FOUR, "--seed", "-1"], "--seed is -1"),
        (["evaluate", "--players", FOUR, "--game.horizon", "x"], "--game.horizon"),
        (["replay", "--players", FOUR, "--out", "x.mp4"], "must end in .gif or .png"),
        (["replay", "--players", FOUR, "--layout", "no-such-file"], "cannot read no-such-file"),
        (["replay", "--players", FOUR, "--out", "/dev/null/x.gif"], "cannot write"),
        (["list", "cows"], "cows"),
        (["bench"], "expected one of {game, train, update, search}"),
        (["bench", "soak"], "no command 'soak': it is python -m benchmarks.soak"),
        (["bench", "game", "--seconds", "0"], "--seconds is 0"),
    ],
)
def test_wrong_input_is_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.startswith("hopplus: ")
    assert captured.err.count("\n") == 1
    assert "│" not in captured.err


def test_broken_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = tmp_path / "board.txt"
    board.write_text("0 1S . .\n. . x .\n. 2h . .\n. . . 3\n")
    assert main(["replay", "--players", FOUR, "--layout", str(board)]) == 2
    assert "'x' in row 2, column 3" in capsys.readouterr().err


def test_ctrl_c_exits_130() -> None:
    """A person stops a long evaluation: a word, no traceback."""
    arguments = ["evaluate", "--players", FOUR, "--episodes", "1e9"]
    process = subprocess.Popen(
        [sys.executable, "-m", "hopplus", *arguments],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr
    assert "evaluating: " in process.stderr.readline()  # it is in the midst of its work
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "hopplus: stopped" in err
    assert "Traceback" not in err
