"""The command line as people use it: tables, JSON, files, and one clear sentence when wrong."""

import contextlib
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from PIL import Image

from fake_runs import write_run
from hopplus.cli import main, parse
from hopplus.cli.commands import COMMANDS, SUBCOMMANDS
from hopplus.cli.reading.manual import path_of
from hopplus.config import (
    BeliefConfig,
    ConfigError,
    DistilConfig,
    FitConfig,
    GoalConfig,
    GoalLearnerConfig,
    ImagineConfig,
    MemoryConfig,
    NetConfig,
    OpponentLearnerConfig,
    PPOConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
    WorldConfig,
    WorldLearnerConfig,
)
from hopplus.presets import ABOUT, PRESETS

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


def test_switches_may_be_given_both_ways_and_the_last_one_holds() -> None:
    """Whatever a preset has, so that a line of settings can be taken over and changed."""
    off, on = "--goal.no-anneal", "--goal.anneal"
    for preset in ("goal", "goal-trial"):
        for words, held in (([off], False), ([on, off], False), ([off, on], True)):
            command: Any = parse(["train", preset, *words])
            assert command.config.goal.anneal == held


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("train --steps 4e4 ppo", "train ppo --steps 4e4"),
        ("train --name goal ppo --seed 3", "train ppo --name goal --seed 3"),  # a name, not goal
        ("train --json hop --steps=4e4", "train hop --json --steps=4e4"),  # takes no value
        ("train --parts opponent goal ppo", "train ppo --parts opponent goal"),
        ("pretrain --data x world", "pretrain world --data x"),
        ("bench --games 8 game", "bench game --games 8"),
        ("diagnose --quick seats ppo", "diagnose seats --quick ppo"),
    ],
)
def test_options_may_stand_before_the_preset(before: str, after: str) -> None:
    assert parse(before.split()) == parse(after.split())


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("evalute", "no command 'evalute' (did you mean evaluate?)"),
        ("train pop", "no preset 'pop' (did you mean ppo?)"),
        ("evaluate --size 8", "--game.size"),
        ("train ppo --ppo.lr 1", "--ppo.learning-rate"),
        ("train ppo --lr 1", "--ppo.learning-rate"),
        ("train --lr 1 ppo", "--ppo.learning-rate"),
        ("pretrain world --data x --lr 1", "--fit.learning-rate"),
        ("train ppo --gamma 1", "--ppo.discount"),
        ("train ppo --ppo.lam 1", "--ppo.gae-lambda"),
        ("train ppo --gae_lambda 1", "--ppo.gae-lambda"),
        ("train ppo --batch-size 1", "--ppo.minibatches"),
        ("pretrain goal --data x --batch-size 1", "--fit.batch"),
        ("train ppo --hidden 1", "--net.hidden"),
        ("train ppo --n-envs 1", "--ppo.games"),
        ("evaluate --num-envs 1", "--games"),
        ("train ppo --num-steps 1", "--ppo.unroll"),
        ("train ppo --ent-coef 1", "--ppo.entropy"),
        ("train ppo --clip-coef 1", "--ppo.clip"),
        ("train ppo --vf-coef 1", "--ppo.value-weight"),
        ("train ppo --total-timesteps 1", "--steps"),
        ("train ppo --max-grad-norm 1", "--ppo.gradient-norm"),
        ("train ppo --gaem.size 1", "--game.size"),
        ("train ppo --checkpoint 1", "--checkpoint-every"),
        ("train ppo --goal.foresigt 1", "--goal.foresight"),  # one that the help does not show
        ("replay --deterministic", "--greedy"),
        ("certify --n-seeds 1", "--seeds"),
        ("ablate ladder --rung 1", "--rungs"),
    ],
)
def test_what_may_be_meant(command: str, meant: str) -> None:
    """By a mistyped option, one of the same command: what another one has would help nobody."""
    with pytest.raises(ConfigError) as error:
        parse(command.split())
    said = str(error.value)
    assert (meant if " " in meant else f"(did you mean {meant}?)") in said


@pytest.mark.parametrize(
    "command", ["train ppo --zebra 1", "evaluate --learning-rate 1", "list games --steps 3"]
)
def test_nothing_is_suggested_that_is_not_like_it(command: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(command.split())
    assert "did you mean" not in str(error.value)
    assert f"see hopplus {' '.join(path_of(command.split()))} --help" in str(error.value)


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("train ppo --world.model.head cells", "it is --world.head"),
        ("pretrain goal --data x --goal.kl 1", "it is --goal.prior.kl"),
        ("pretrain goal --data x --goal.net.hidden 1", "it is --goal.prior.net.hidden"),
        ("ablate ladder --games 8", "it is --ppo.games"),
        ("ablate ladder --unroll 8", "it is --ppo.unroll"),
        ("adapt runs/a --learning-rate 8", "it is --ppo.learning-rate"),
    ],
)
def test_old_names_are_refused_with_the_new_one(command: str, instead: str) -> None:
    with pytest.raises(ConfigError, match=f": {instead};"):
        parse(command.split())


def test_one_thing_has_one_name() -> None:
    """In every command whose settings hold it."""
    for path in (("train", "hop-plus"), ("pretrain", "world")):
        shown = helped(*path, "--help-all")
        for name in ("--world.head", "--world.hidden", "--world.channel-weights"):
            assert f"  {name} " in shown
    for path in (("train", "hop-plus"), ("pretrain", "goal")):
        shown = helped(*path, "--help-all")
        for name in ("kind", "size", "loss", "kl", "ahead", "temperature", "net.hidden"):
            assert f"  --goal.prior.{name} " in shown
    for command in ("train ppo", "ablate", "certify", "bench train"):
        assert "  --ppo.games " in helped(*command.split(), "--help-all")


def test_a_wrong_value_is_told_by_the_name_that_was_typed() -> None:
    for name in ("--net.hidden", "--opponent.net.hidden", "--goal.prior.net.hidden"):
        with pytest.raises(ConfigError, match=f"^{name} is 0 but must be from 1 to 8192"):
            parse(["train", "ppo", name, "0"])


def helped(*words: str) -> str:
    """What the help prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0
    return out.getvalue()


def test_help_shows_what_acts_in_a_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = helped("train", "ppo", "--help")
    lines = text.splitlines()
    assert len(lines) <= 110
    assert max(map(len, lines)) <= 100
    assert ABOUT["ppo"] in text
    for name in ("--steps", "--parts", "--search.simulations", "--memory.kind", "--ppo.clip"):
        assert f"  {name} " in text
    for name in ("--goal.", "--belief.", "--opponent.", "--world.", "--imagine.", "--memory.size"):
        assert f"  {name}" not in text
    assert lines[-1].endswith(
        "more options that do nothing here by default: hopplus train ppo --help-all"
    )
    everything = helped("train", "ppo", "--help-all")
    assert "  --goal.prior.size INT" in everything
    assert "--help-all" not in everything


def test_help_shows_what_acts_with_search_distillation() -> None:
    text = helped("train", "hop", "-h")
    for name in ("--belief.floor", "--opponent.fits", "--search.trees", "--ppo.value-weight"):
        assert f"  {name} " in text
    for name in ("--ppo.clip", "--ppo.entropy", "--imagine.", "--goal.", "--world."):
        assert f"  {name}" not in text
    assert "  --imagine.gate " in helped("train", "hop-plus", "--help")


def test_hidden_options_work() -> None:
    command: Any = parse(["train", "ppo", "--goal.kl", "0.5"])
    assert command.config.goal.kl == 0.5


def test_help_of_every_command() -> None:
    """There is one, it names what there is, and only the tuning of searches is left out."""
    assert all(f"  {name} " in helped("--help") for name in COMMANDS)
    assert all(f"  {name} " in helped("train", "--help") for name in PRESETS)
    assert all(text[:40] in helped("train", "--help") for text in ABOUT.values())
    for command in COMMANDS:
        inner = [[name] for name in SUBCOMMANDS[command]] if command in SUBCOMMANDS else [[]]
        for more in inner if command != "train" else []:
            text = helped(command, *more, "--help")
            assert text.startswith(f"usage: {' '.join(['hopplus', command, *more])} ")
            assert ("--help-all" in text) == ("--search.simulations" in text and more != ["search"])


def test_help_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (60, 80, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = helped("evaluate", "--help").splitlines()
        wide = [line for line in lines if len(line) > width]
        assert all(line.startswith("usage") for line in wide)


@pytest.mark.parametrize(
    ("command", "ends"),
    [
        ("train ppo --ppo.games 1e9", "--ppo.games is 1000000000 but must be from 1 to 16777216"),
        ("train ppo --seed -1", "--seed is -1 but must be from 0 to 2147483647"),
        ("train ppo --seeds 1e9", "must be from 1 to 4096"),
        ("train ppo --ppo.clip 0", "must be above 0 and at most 1000000"),
        ("train ppo --goal.mixing-until 2", "--goal.mixing-until is 2.0 but must be from 0 to 1"),
    ],
)
def test_a_range_is_told_with_both_ends(command: str, ends: str) -> None:
    with pytest.raises(ConfigError, match=ends):
        parse(command.split())


SETTINGS = (
    BeliefConfig,
    DistilConfig,
    FitConfig,
    GoalConfig,
    GoalLearnerConfig,
    ImagineConfig,
    MemoryConfig,
    NetConfig,
    OpponentLearnerConfig,
    PPOConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
    WorldConfig,
    WorldLearnerConfig,
)


@pytest.mark.parametrize("kind", SETTINGS)
def test_no_check_tells_one_end_of_two(kind: type) -> None:
    """Every number of the settings is refused below and above what makes sense, with both ends."""
    for name, hint in get_type_hints(kind).items():
        types = {hint, *get_args(hint)}
        for given in (-(10**7), 10**16) if int in types else (-1e7, 1e16) if float in types else ():
            if get_origin(hint) is tuple:
                continue
            with pytest.raises(ConfigError) as error:
                kind(**{name: given})
            said = str(error.value)
            assert said.startswith("--")
            assert re.search(r" must be (from \S+ to \S|above \S+ and (at most|below) \S)", said)


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
        (["list"], "hopplus list needs {games,players,presets}"),
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
