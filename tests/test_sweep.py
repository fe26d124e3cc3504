"""`hopplus sweep`: what it goes over, a small one that is killed, stopped and gone on with, and
successive halving. Where nothing depends on what is learned, who trains is a stand-in."""

import csv
import json
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import share_programs
from hopplus.cli import main
from hopplus.cli.studies import halving
from hopplus.cli.studies.space import draw, grid, name_settings, read_axis, words_of
from hopplus.config import ConfigError, StagHuntConfig
from hopplus.evaluation.ablation import Trace, read_trace
from hopplus.learning.from_run import new_run
from hopplus.presets import PRESETS
from hopplus.runs.executor import Here, Task, Tell, best_so_far
from hopplus.runs.folder import RunError, RunFolder, open_run
from hopplus.runs.progress import Progress

_SMALL = """
ppo --game.size 3 --game.seats 2 --game.hares 2 --net.hidden 8 --ppo.games 16 --ppo.unroll 8
--ppo.minibatches 2 --ppo.epochs 1
"""
SMALL = " ".join(_SMALL.split())
OVER = ["--over", "ppo.learning_rate=1e-3,1e-2", "--over", "keep=1,2"]
NAMES = [f"learning-rate={rate}+keep={keep}" for rate in ("1e-3", "1e-2") for keep in (1, 2)]


class Killed(BaseException):
    """What no program expects."""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of three updates; the second was killed after two, and the third stopped there."""
    runs = tmp_path_factory.mktemp("runs")
    advances: list[int] = []

    def until(count: int, end: Callable[[], None]) -> Callable[..., None]:
        def advance(progress: Progress, units: int, note: str = "") -> None:
            progress.done += units
            if "lear" in progress.what:
                advances.append(units)
                if len(advances) == count:
                    end()

        return advance

    def kill() -> None:
        raise Killed

    def go(count: int, end: Callable[[], None]) -> int:
        advances.clear()
        with pytest.MonkeyPatch.context() as patch:
            share_programs(patch)
            patch.setattr(Progress, "advance", until(count, end))
            return again(runs / "all")

    with pytest.raises(Killed):
        go(5, kill)
    assert open_run(runs / "all" / NAMES[0]).result() is not None
    assert len(open_run(runs / "all" / NAMES[1]).metrics()) == 2
    assert go(5, lambda: os.kill(os.getpid(), signal.SIGINT)) == 130
    assert advances == [128] * 5  # what was killed had no checkpoint; what is done is left alone
    assert go(99, kill) == 0
    assert advances == [384, 128, 128, 128]  # one update more for what was stopped, which had saved
    return runs / "all"


def again(folder: Path, *more: str) -> int:
    common = ["--steps", "384", "--seeds", "2", "--runs", str(folder.parent), "--name", folder.name]
    return main(["sweep", SMALL, *OVER, *common, *more])


def test_every_run_is_an_ordinary_one(swept: Path, tmp_path: Path, shared_programs: None) -> None:
    """Also the one that was killed: bit for bit as `hopplus train` has it."""
    for name in NAMES:
        run = open_run(swept / name)
        assert [record["update"] for record in run.metrics()] == [1, 2, 3]
        assert f"learning-rate={run.config().ppo.learning_rate}" == {
            "1e-3": "learning-rate=0.001",
            "1e-2": "learning-rate=0.01",
        }.get(name.partition("+")[0].partition("=")[2])
        assert run.config().keep == int(name[-1])
    own = ["--ppo.learning-rate", "1e-3", "--keep", "2", "--steps", "384", "--seeds", "2"]
    command = ["train", *SMALL.split(), *own, "--runs", str(tmp_path), "--name", "twin"]
    assert main(command) == 0
    twin, killed = open_run(tmp_path / "twin"), open_run(swept / NAMES[1])
    assert killed.metrics() == twin.metrics()
    for file in (twin.checkpoints / "3").glob("*.safetensors"):
        assert (killed.checkpoints / "3" / file.name).read_bytes() == file.read_bytes()


def test_again_trains_nothing_and_names_the_best(
    swept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("hopplus.api.training.train_side_by_side", refuse)
    assert again(swept, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    means = {one["name"]: one["mean_return"]["mean"] for one in found["runs"]}
    assert list(means) == sorted(NAMES, key=lambda name: -means[name])
    for name in NAMES:
        result = open_run(swept / name).result()
        assert result is not None
        assert means[name] == pytest.approx(result["mean_return"])
    best = found["best"][0]
    assert best["name"] == next(iter(means))
    assert best["setting"]["keep"] == best["name"][-1]
    assert found["failed"] == {}
    assert found["seeds"] == [0, 1]
    assert again(swept) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "On average over all other settings" in out
    # A run of another keep learns the same, so nobody can tell them apart.
    assert "No significant difference" in out
    assert f"--keep={best['name'][-1]} --seed 100" in out
    with (swept / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == list(means)
    assert float(rows[0]["return_mean"]) == pytest.approx(best["mean_return"]["mean"])
    page = (swept / "sweep.html").read_text(encoding="utf-8")
    assert f'"name":"{NAMES[0]}","x":[' in page  # its curves
    capsys.readouterr()
    assert again(swept, "--seed", "7") == 2
    assert "was made with other settings: take them, or another --name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["ppo"], "over what? Give --over ppo.learning-rate=1e-3,5e-4"),
        (["ppo", "--over", "ppo.lr=1,2"], "lr=1: no option '--ppo.lr' (did you mean --ppo.learnin"),
        (["ppo", "--over", "ppo.games"], "--over is 'ppo.games' without values"),
        (["ppo", "--over", "=3"], "--over is '=' without values"),
        (["ppo", "--over", "ppo.clip=0.1,x"], "clip=x: --ppo.clip: 'x' is not a number"),
        # Each for itself can be, but not the last with the first.
        (
            ["ppo --ppo.unroll 1", "--over", "ppo.games=5,8", "--over", "ppo.minibatches=1,8"],
            "games=5+minibatches=8: --ppo.minibatches is 8",
        ),
        (["ppo", "--over", "seed=1,2"], "seeds are an axis of every run: give --seeds"),
        (["ppo", "--over", "runs=a,b"], "--over has runs, which is no setting of training"),
        (["ppo --name a", "--over", "keep=1,2"], "has --name, which is no setting of training"),
        (["ppo", "--over", "ppo.clip=0.1..0.2"], "ppo.clip is a range, to be drawn from with --"),
        (["ppo", "--random", "2", "--over", "ppo.clip=0.2..0.1"], "its ends must be in order"),
        (["ppo", "--random", "2", "--over", "ppo.clip=log:0..1"], "must be above 0 and in order"),
        (["ppo", "--over", "ppo.clip=0.1,1e-1"], "clip=0.1 and clip=1e-1 are the same settings"),
        (["pop", "--over", "keep=1,2"], "no preset 'pop'"),
        (["ppo", "--over", "keep=1,2", "--halving", "1"], "--halving is 1 but must be from 2 to"),
        (["ppo", "--over", "steps=1e5,2e5", "--halving", "2"], "--over has steps, which --halving"),
        (
            ["ppo", "--over", "keep=1,2", "--halving", "3", "--steps", "9000"],
            "so the first rung of keep=1 has 2,250 steps, less than an update's 4,096",
        ),
        (["ppo", "--over", "keep=1,2", "--random", "0"], "--random is 0"),
        (["ppo", "--over", "keep=1,2", "--seeds", "0"], "--seeds is 0"),
        (["ppo", "--over", "keep=1,2", "--name", "../a"], "must be a plain name"),
        (["ppo", "--over", "keep=1,2", "--address", "a:1"], "--address is given without --engine"),
        (["ppo", "--over", "keep='1"], "whose quotes do not end"),
        (["ppo", "--over", "keep=1,2", "--level", "x"], "--level is 'x' but must be a number"),
        (
            ["ppo", "--over", "keep=1,2", "--level", "2", "--halving", "2"],
            "--level is given, but --halving goes by returns",
        ),
        (["no.toml"], "cannot read no.toml"),
        (["ppo", "--net.hidden", "8"], "quote it with the preset, as 'ppo --net.hidden ...'"),
    ],
)
def test_wrong_input_is_one_sentence_and_makes_nothing(
    line: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", *line, "--runs", str(tmp_path / "made")]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.startswith("hopplus: ")
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_ray_that_is_not_installed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    runs = ["--runs", str(tmp_path / "made"), "--engine", "ray"]
    assert main(["sweep", "ppo", "--over", "keep=1,2", *runs]) == 2
    assert "Ray is not installed here: pip install 'hopplus[ray]'" in capsys.readouterr().err
    assert main(["ablate", "ladder", *runs]) == 2
    assert main(["leave-one-out", "ppo", *runs]) == 2
    assert not list(tmp_path.iterdir())


def test_draws() -> None:
    axes = [
        read_axis("ppo.learning_rate=log:1e-4..1e-2"),
        read_axis("ppo.entropy=0..0.5"),
        read_axis("net.hidden=10..20"),
        read_axis("parts=,opponent,opponent goal"),
    ]
    drawn = draw(axes, 200, 0, PRESETS["ppo"])
    assert draw(axes, 300, 0, PRESETS["ppo"])[:200] == drawn
    assert draw(axes, 1, 1, PRESETS["ppo"]) != drawn[:1]
    rates = np.log10([float(one["ppo.learning-rate"]) for one in drawn])
    assert -4 <= rates.min() < -3.9 < -2.1 < rates.max() <= -2
    assert abs(rates.mean() + 3) < 0.1  # by factors: half of them below 1e-3
    entropies = np.array([float(one["ppo.entropy"]) for one in drawn])
    assert abs(entropies.mean() - 0.25) < 0.03
    hidden = {int(one["net.hidden"]) for one in drawn}  # whole numbers, with both ends
    assert hidden == set(range(10, 21))
    assert {one["parts"] for one in drawn} == {"opponent", "opponent goal"}
    assert len(draw([read_axis("keep=1,2")], 50, 0, PRESETS["ppo"])) == 2  # each once


def test_settings_on_a_command_line_and_as_names() -> None:
    axes = [read_axis(text) for text in ("ppo.anneal=True,false", "parts=opponent goal")]
    one, other = (words_of(setting, PRESETS["ppo"]) for setting in grid(axes))
    assert one == ["--ppo.anneal", "--parts", "opponent", "goal"]
    assert other == ["--ppo.no-anneal", "--parts", "opponent", "goal"]
    assert words_of({"a.b": "-1"}, PRESETS["ppo"]) == ["--a.b=-1"]
    named = name_settings(grid(axes))
    assert list(named) == ["anneal=True+parts=opponent-goal", "anneal=false+parts=opponent-goal"]
    axes = [read_axis(text) for text in ("opponent.net.hidden=8", "net.hidden=8,16")]
    assert next(iter(name_settings(grid(axes)))) == "opponent.net.hidden=8+net.hidden=8"
    long = name_settings([{"seats": "x" * 200}, {"seats": "x" * 199}])
    assert len(long) == 2
    assert max(map(len, long)) < 200


class Standin:
    """Trains nobody: returns come from settings, and fall short in shorter runs."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.trained: list[tuple[str, int]] = []
        self.stop_after = 99
        self.fails: str | None = None
        patch.setattr(halving, "train_to_end", self.train)

    def train(self, runs: Sequence[RunFolder], tell: Tell) -> None:
        (run,) = runs
        if len(self.trained) == self.stop_after:
            raise KeyboardInterrupt
        if run.path.name == self.fails:
            raise RunError("the value loss is not a finite number")
        config: Any = run.config()
        self.trained.append((run.path.name, config.steps))
        worth = 100 * config.ppo.entropy + config.game.size
        for number in range(len(run.metrics()) + 1, config.updates + 1):
            run.log(self.record(number, config, worth))
        mean = worth * config.updates
        result = {"mean_return": mean, "seconds": 1.0, "first_update_seconds": 0.5}
        run.write_result({**result, "steps_per_second": 9.0, "value_loss": 1.0})

    def record(self, number: int, config: Any, worth: float) -> dict[str, Any]:
        total = 10 * worth * number
        return {
            "update": number,
            "steps": number * config.ppo.steps,
            "episodes": [10.0] * config.seeds,
            "return_sum": [[total] * config.game.seats] * config.seeds,
            "value_loss": [[1.0]] * config.seeds,
        }


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Standin:
    return Standin(monkeypatch)


HALVED = ["--over", "ppo.entropy=0.01,0.04,0.02,0.03", "--halving", "3", "--steps", "16384"]


def test_halving_trains_the_better_half_for_longer(
    standin: Standin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["sweep", "ppo", *HALVED, "--runs", str(tmp_path), "--json"]
    standin.stop_after = 5  # within the second rung
    assert main(command) == 130
    assert "stopped; go on with the same command" in capsys.readouterr().err
    standin.stop_after = 99
    assert main(command) == 0
    first = [(f"entropy={value}", 4096) for value in ("0.01", "0.04", "0.02", "0.03")]
    second = [("entropy=0.04", 8192), ("entropy=0.03", 8192)]
    assert standin.trained == [*first, *second, ("entropy=0.04", 16384)]
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"][-1], one["steps"]) for one in found["runs"]] == [
        ("4", 16384),
        ("3", 8192),
        ("2", 4096),
        ("1", 4096),
    ]
    run = open_run(tmp_path / "sweep-ppo" / "entropy=0.04")
    assert run.facts()["steps_before"] == [4096, 8192]
    assert main(command) == 0
    assert len(standin.trained) == 7


def test_every_game_has_a_best_of_its_own(
    standin: Standin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the large board everything gets more: that says nothing for these settings."""
    over = ["--over", "game.size=4,8", "--over", "ppo.entropy=0.01,0.02"]
    command = ["sweep", "ppo", *over, "--steps", "8192", "--halving", "2", "--runs", str(tmp_path)]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["best"]] == ["size=4+entropy=0.02", "size=8+entropy=0.02"]
    assert [name for name, steps in standin.trained if steps == 8192] == [
        "size=4+entropy=0.02",
        "size=8+entropy=0.02",
    ]
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "game.size=8: size=8+entropy=0.02 has the highest return: 20.000" in " ".join(
        out.split()
    )


def test_who_is_first_at_a_level_stands_first(
    swept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever their last returns are; those that never come to it stand behind, by returns."""
    soon = {NAMES[2]: 4000, NAMES[0]: 9000}
    monkeypatch.setattr(Trace, "steps_to", lambda trace, level: soon.get(trace.name))
    assert again(swept, "--level", "0.5", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    means = {one["name"]: one["mean_return"]["mean"] for one in found["runs"]}
    late = [name for name in NAMES if name not in soon]  # in order, as they may be level
    others = sorted(late, key=lambda name: -means[name])
    assert list(means) == [NAMES[2], NAMES[0], *others]
    assert [one["steps_to_level"] for one in found["runs"]] == [4000, 9000, None, None]
    assert {one["level"] for one in found["runs"]} == {0.5}
    assert again(swept, "--level", "0.5") == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"{NAMES[2]} is first at 0.5: 4,000 steps" in out
    page = (swept / "sweep.html").read_text(encoding="utf-8")
    assert "steps to 0.5" in page
    assert "never" in page
    with (swept / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["steps_to_level"] for row in rows] == ["4000", "9000", "", ""]
    soon.clear()
    assert again(swept, "--level", "0.5") == 0
    assert "none has come to 0.5" in " ".join(capsys.readouterr().out.split())


def test_the_level_is_of_the_logged_returns(
    swept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Over all three updates of so short runs."""
    means = {name: read_trace(name, name, open_run(swept / name)).curve()[-1] for name in NAMES}
    level = float(np.median([mean.mean() for mean in means.values()]))
    assert again(swept, "--level", str(level), "--json") == 0
    found = {
        one["name"]: one["steps_to_level"] for one in json.loads(capsys.readouterr().out)["runs"]
    }
    assert found == {name: 384 if mean.mean() >= level else None for name, mean in means.items()}
    assert 384 in found.values()


def test_a_file_says_all_of_it(
    standin: Standin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        'train = "ppo --net.hidden 32"\nsteps = 4096.0\nseeds = 2\n[over]\n'
        'ppo.entropy = [0.01, 2e-2]\n"ppo.anneal" = [true, false]\nparts = [["opponent", "goal"]]\n'
    )
    command = ["sweep", str(file), "--runs", str(tmp_path / "made")]
    assert main(command) == 0
    names = [name for name, _ in standin.trained]
    assert names[0] == "entropy=0.01+anneal=True+parts=opponent-goal"
    assert len(names) == 4
    config = open_run(tmp_path / "made" / "mine" / names[3]).config()
    assert (config.steps, config.seeds, config.net.hidden) == (4096, 2, 32)
    assert (config.ppo.entropy, config.ppo.anneal) == (0.02, False)
    assert config.parts == ("opponent", "goal")
    # What the command line says goes before it.
    more = ["--over", "ppo.entropy=0.05", "--seeds", "1", "--name", "other"]
    assert main([*command, *more]) == 0
    assert len(standin.trained) == 6
    assert standin.trained[-1][0].startswith("entropy=0.05")
    assert open_run(tmp_path / "made" / "other" / standin.trained[-1][0]).config().seeds == 1
    capsys.readouterr()
    for text, words in (
        ("train = 'ppo'\nstpes = 3\n", "has 'stpes', and takes train, over, level, st"),
        ("[over]\nkeep = [1]\n", "does not say what to train"),
        ("train = 'ppo'\nover = 3\n", "has an over that is no table"),
        ("train = 'ppo'\nsteps = 'many'\n", "has steps: 'many' is not a whole number"),
        ("train = 'ppo'\nlevel = 'high'\n", "has level: 'high' is not a number"),
        ("train =", "is no TOML"),
    ):
        file.write_text(text)
        assert main(command) == 2
        assert words in capsys.readouterr().err


def test_one_that_fails_does_not_take_the_others_with_it(
    standin: Standin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    standin.fails = "entropy=0.02"
    over = ["--over", "ppo.entropy=0.01,0.02,0.03", "--steps", "4096"]
    assert main(["sweep", "ppo", *over, "--runs", str(tmp_path)]) == 0
    assert [name for name, _ in standin.trained] == ["entropy=0.01", "entropy=0.03"]
    out = " ".join(capsys.readouterr().out.split())
    assert "not done: entropy=0.02: the value loss is not a finite number" in out
    assert "One seed cannot tell" in out
    alone = ["--over", "ppo.entropy=0.02", "--runs", str(tmp_path / "b")]
    assert main(["sweep", "ppo", *alone]) == 1
    assert "no run has come to its end" in capsys.readouterr().err


def test_done_running_and_best_so_far_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other; a run that another process holds is left to it."""
    runs = [new_run(tmp_path / name, PRESETS["ppo"]) for name in ("a", "b", "c")]

    def work(runs: Sequence[RunFolder], tell: Tell) -> None:
        with runs[0].locked():
            tell(4096, "return 1.00")
            runs[0].write_result({"mean_return": float(ord(runs[0].path.name))})

    tasks = [Task(run.path.name, (run,), work) for run in runs]
    assert best_so_far(tasks) == ""
    after: list[str] = []
    with runs[1].locked():
        failed = Here().execute(tasks, lambda task: after.append(task.what))
    assert [one.task.what for one in failed] == ["b"]
    assert "is being trained by another process" in failed[0].why
    assert after == ["a", "c"]
    said = capsys.readouterr().err
    assert "training a, 1 of 3: " in said
    assert "training c, 3 of 3, best so far 97.00 (a): " in said
    assert Here().execute(tasks) == []
    assert best_so_far(tasks) == "best so far 99.00 (c)"
    large = new_run(tmp_path / "d", replace(PRESETS["ppo"], game=StagHuntConfig(size=8)))
    assert best_so_far([*tasks, Task("d", (large,), work)]) == ""  # returns of two games
    assert "training b, 2 of 3" in capsys.readouterr().err


def test_documents_show_the_example() -> None:
    root = Path(__file__).parents[1]
    shown = (root / "examples" / "sweep.toml").read_text().partition("\n\n")[2]
    assert f"```text\n{shown}```" in (root / "docs" / "sweeps.md").read_text(encoding="utf-8")


def test_values_of_an_axis() -> None:
    assert read_axis("--ppo.learning_rate= 1e-3 ,5e-4,").values == ("1e-3", "5e-4")
    assert read_axis("ppo.learning-rate=log:1E-4..1e-2").ends == (1e-4, 1e-2)
    assert read_axis("ppo.clip=-1..2.5").ends == (-1.0, 2.5)
    with pytest.raises(ConfigError):
        read_axis("ppo.clip=2..1")


def test_the_log_tells_how_far_a_run_is(tmp_path: Path) -> None:
    run = new_run(tmp_path / "a", PRESETS["ppo"])
    assert run.steps_logged() == 0
    run.log({"update": 1, "steps": 10, "more": [0.5] * 1000})
    run.log({"update": 2, "steps": 20})
    assert run.steps_logged() == 20
    with run.metrics_file.open("a") as file:
        file.write('{"update": 3, "ste')  # being written
    assert run.steps_logged() == 20
