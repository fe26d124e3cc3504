"""`hopplus leave-one-out`: rows as they are typed, and a small study that is stopped, shared and
gone on with. Who trains and plays is a stand-in: others test that."""

import json
import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.cli.reading.rows import read_rows
from hopplus.cli.studies import leave_one_out as command
from hopplus.config import MemoryConfig, NetConfig, SearchConfig, StagHuntConfig, TrainConfig
from hopplus.evaluation import leave_one_out
from hopplus.evaluation.adaptation import adapt
from hopplus.evaluation.leave_one_out import FamilyTrials
from hopplus.evaluation.reference_players import ReferencePlayers
from hopplus.evaluation.trials import ByEpisode, play_trials
from hopplus.games import make_game
from hopplus.learning.from_run import new_run
from hopplus.learning.left_out import LeftOut
from hopplus.play.trained import Trained
from hopplus.players.actor import make_actor
from hopplus.presets import PRESETS
from hopplus.runs.executor import Tell
from hopplus.runs.folder import BusyError, RunFolder, locked, open_run

COMMON = {"steps": "500", "trial": "3", "train-against": "population", "held-out": "family-shy"}


def test_rows_are_read_as_train_reads_them() -> None:
    rows = read_rows(["ppo", "ppo-memory --net.hidden 8", "wide=ppo --memory.kind trial"], COMMON)
    assert list(rows) == ["ppo", "ppo-memory", "wide"]
    plain = replace(
        PRESETS["ppo"],
        steps=500,
        trial=3,
        train_against="population",
        held_out=("family-shy",),
    )
    assert rows["ppo"] == plain
    assert rows["wide"] == replace(plain, memory=MemoryConfig(kind="trial"))
    assert rows["ppo-memory"].net.hidden == 8
    assert rows["ppo-memory"].train_against == "population"  # its own is all


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["ppo --nets.hidden 8"], "the row 'ppo --nets.hidden 8': no option '--nets.hidden'"),
        (["pop"], "the row 'pop': no preset 'pop'"),
        (["ppo --ppo.minibatches 7"], "ppo.minibatches is 7"),
        (["ppo --steps=5"], "has --steps, which is not a row's own to say"),
        (["ppo --game.size 5"], "has --game, which"),
        (["ppo --name a"], "has --name, which"),
        (["ppo --seats learn,stag"], "has --seats, which"),
        (["ppo", "ppo --net.hidden 8"], "two rows are called ppo"),
        (["../a=ppo"], "must be a plain name"),
        (["'ppo"], "is no preset with options"),
        ([""], "is no preset with options"),
        ([], "which rows?"),
        (["ppo-memory"], "no row is blind"),
        (["ppo --parts opponent"], "no row is blind"),
        (["ppo", "--blind", "liam"], "--blind is 'liam', and the rows are ppo"),
        (["ppo", "liam", "--blind", "liam"], "--blind is liam, which is not"),
        (["ppo", "--families", "stag"], "--families has 'stag', and the families are family-dev"),
        (["ppo", "--episodes", "6"], "--episodes is 6 but must be from 1 to 5"),
        (["ppo", "--seat", "4"], "--seat is 4"),
        (["ppo", "--seeds", "0"], "--seeds is 0"),
        (["ppo", "--best-steps", "0"], "--best-steps is 0"),
        (["ppo", "lola"], "--ppo.lola.step needs a game of two seats that both learn"),
        (["ppo", "--no-train"], "no family is done with all rows"),
    ],
)
def test_wrong_input_is_one_sentence_and_makes_nothing(
    line: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "train_to_end", None)  # nobody trains meanwhile
    assert main(["leave-one-out", *line, "--runs", str(tmp_path / "made")]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.startswith("hopplus: ")
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


SMALL = "--game.seats 3 --game.size 3 --game.hares 2 --seeds 2 --seed 7 --trial 2 --trials 4"
FAMILIES = ("family-devoted", "family-shy")
# What the stand-ins below have a row get among a family, and best responses.
GETS = {"ppo": 1.0, "wide": 2.0, "family-devoted": 0.1, "family-shy": 0.3}


class Study:
    """A command line, and what was done for it by stand-ins for those who train and play."""

    def __init__(self, runs: Path, patch: pytest.MonkeyPatch) -> None:
        self.runs = runs
        self.options = SMALL.split()
        self.trained: list[str] = []
        self.together: list[int] = []
        self.played: list[str] = []
        self.responses: list[list[tuple[str, ...]]] = []
        self.stop_after = 99
        self.row = "wide=ppo-memory --net.hidden 8"
        self.searched: list[tuple[int, int]] = []
        patch.setattr(command, "train_to_end", self._train)
        patch.setattr(
            leave_one_out, "players_by_seed", lambda run, seeds: dict.fromkeys(seeds, run)
        )
        patch.setattr(leave_one_out, "adapt", self._adapt)
        patch.setattr(ReferencePlayers, "best_responses", lambda asked, _: self._best(asked))

    def __call__(self, *more: str) -> int:
        rows = ["ppo", self.row, "--families", *FAMILIES]
        return main(["leave-one-out", *rows, *self.options, "--runs", str(self.runs), *more])

    def _train(self, runs: Sequence[RunFolder], tell: Tell, everyone: Sequence[str]) -> None:
        with ExitStack() as held:
            for run in runs:
                held.enter_context(run.locked())
            if len(self.trained) == self.stop_after:
                raise KeyboardInterrupt
            assert len(runs) == 1 or LeftOut.of(runs, everyone)
            self.together.append(len(runs))
            for run in runs:
                self.trained.append("/".join(run.path.parts[-2:]))
                run.write_result({"steps": 1})

    def _adapt(self, game: Any, players: Any, wanted: Any, *rest: Any, **more: Any) -> Any:
        (run, _), (row, place) = players, players[0].path.parts[-2:]
        family = wanted[0][0] if place == "at-once" else place
        assert run is players[1]
        assert wanted == [(family,) * (game.seats - 1)]
        assert rest[1] == [0]  # its seat
        _, _, _, trials, search, *_ = rest
        if search.simulations:
            self.searched.append((search.simulations, trials))
        self.played.append(f"{row}/{family}")
        gets = GETS[row] + GETS[family] + np.array([[[0.0, 0.25]], [[0.1, 0.35]]])
        return SimpleNamespace(returns=gets[..., : rest[2].episodes])

    def _best(self, asked: ReferencePlayers) -> np.ndarray:
        self.responses.append(list(asked.lineups))
        assert asked.config.seed_numbers == range(7, 9)
        assert asked.numbers == 2
        gets = [4 + GETS[lineup[0]] for lineup in asked.lineups]
        return np.tile(np.array(gets)[:, None], (2, 1, 2))


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    return Study(tmp_path / "runs", monkeypatch)


EVERY = [f"{row}/{family}" for row in ("ppo", "wide") for family in FAMILIES]


def test_a_study_goes_on_where_it_was_stopped(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    study.stop_after = 3
    assert study() == 130
    assert "stopped; go on with the same command" in capsys.readouterr().err
    assert study.trained == EVERY[:3]
    study.stop_after = 99
    assert study("--no-train", "--json") == 0  # what is done: the first family, without an aim
    partly = json.loads(capsys.readouterr().out)
    assert partly["families"] == [FAMILIES[0]]
    assert partly["undone"] == [["wide", "family-shy"]]
    assert partly["rows"]["wide"]["share_of_mean_way"] is None
    assert not study.responses
    assert study("--json", "--best-steps", "9e5") == 0
    assert study.trained == EVERY
    assert sorted(study.played) == sorted(EVERY)  # each once, though there were two tables
    found = json.loads(capsys.readouterr().out)
    assert (found["steps"], found["best_steps"]) == (5_000_000, 900_000)
    assert found["seeds"] == [7, 8]
    gets = np.array(found["rows"]["wide"]["returns"])
    assert gets.shape == (2, 2, 2)
    np.testing.assert_allclose(gets[:, 1], [[2.3, 2.55], [2.4, 2.65]])
    np.testing.assert_allclose(np.array(found["best_responses"])[0, :, 0], [4.1, 4.3])
    share = found["rows"]["wide"]["share_of_mean_way"]
    assert share[0]["mean"] == pytest.approx(1 / (4 - 1.05))
    page = (study.runs / "leave-one-out.html").read_text(encoding="utf-8")
    assert "<td>family-shy</td>" in page
    assert page.count("<img") == 1
    # Nothing is done twice; best responses of other steps are others.
    assert study("--best-steps", "9e5") == 0
    assert len(study.responses) == 1
    assert study() == 0
    assert len(study.responses) == 2
    assert study.trained == study.played == EVERY


def test_each_has_learned_among_all_but_the_family_left_out(study: Study) -> None:
    assert study("--blind", "ppo") == 0
    for row in ("ppo", "wide"):
        for family in FAMILIES:
            config = open_run(study.runs / row / family).config()
            learner, *others = (config.seats or "").split(",")
            assert learner == "learn"
            for seat in others:
                families = seat.split("|")
                assert len(families) == 15
                assert family not in families
            assert (config.trial, config.seeds, config.seed) == (2, 2, 7)
            assert config.game.seats == 3
            assert config.memory.kind == ("trial" if row == "wide" else "none")


def test_other_trials_are_played_anew(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert study() == 0
    capsys.readouterr()
    assert study("--episodes", "1", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert np.shape(found["best_responses"]) == np.shape(found["rows"]["ppo"]["returns"])
    assert study.played == [*EVERY, *EVERY]
    assert study.trained == EVERY


def test_processes_share_the_work(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    """By families; or one leaves alone what the other is at, and who is done last learns best
    responses."""
    assert study("--families", "family-shy") == 0
    assert study.responses == [[("family-shy",) * 2]]
    study.stop_after = 2
    assert study() == 130
    busy = open_run(study.runs / "ppo" / "family-devoted")
    study.stop_after = 99
    capsys.readouterr()
    with busy.locked():
        assert study("--json") == 0
    out, err = capsys.readouterr()
    assert "ppo/family-devoted is being trained by another process" in err
    assert json.loads(out)["undone"] == [["ppo", "family-devoted"]]
    assert study.trained == ["ppo/family-shy", "wide/family-shy", "wide/family-devoted"]
    assert len(study.responses) == 1
    assert study() == 0
    assert study.responses[1:] == [[("family-devoted",) * 2]]


def test_rows_with_models_are_tried_with_a_search_too(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    look = ["--search.simulations", "2", "--search-trials", "4"]  # as many as without
    assert study("--json", *look) == 0
    assert list(json.loads(capsys.readouterr().out)["rows"]) == ["ppo", "wide"]  # without models
    study.row = "wide=ppo --parts opponent --net.hidden 8"
    study.runs = study.runs / "with"
    study.played.clear()
    assert study("--json", *look) == 0
    assert list(json.loads(capsys.readouterr().out)["rows"]) == ["ppo", "wide", "wide + search"]
    each = [f"wide/{family}" for family in FAMILIES]
    assert sorted(study.played) == sorted([*EVERY, *each])
    assert study.searched == [(2, 4)] * 2  # simulations, trials
    assert study("--search.simulations", "3", "--search-trials", "4") == 0
    assert study.searched[2:] == [(3, 4)] * 2  # another search is another row
    capsys.readouterr()
    study.row = "wide=ppo --parts opponent --ppo.trial-discount 1"
    study.runs = study.runs / "later"
    assert study(*look) == 2
    assert "has learned to value later episodes too" in capsys.readouterr().err
    assert not study.runs.exists()
    assert study("--search.trees", "2") == 2
    assert "--search options are given without --search.simulations" in capsys.readouterr().err


def test_families_are_left_out_at_once(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    """One run of each row, which has met none of them and is tried among each."""
    assert study("--at-once", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert study.trained == ["ppo/at-once", "wide/at-once"]
    assert sorted(study.played) == sorted(EVERY)
    assert found["families"] == list(FAMILIES)
    assert found["rows"]["wide"]["returns"][0][1] == [2.3, 2.55]
    run = open_run(study.runs / "wide" / "at-once")
    assert not set(FAMILIES) & set(run.config().seats.split(",")[1].split("|"))  # type: ignore[union-attr]
    assert study("--at-once") == 0
    assert len(study.trained) == 2
    line = ["leave-one-out", "ppo", "--at-once", *study.options, "--runs", str(study.runs / "b")]
    capsys.readouterr()
    assert main(line) == 2  # nobody is left
    assert "--at-once leaves nobody to learn among" in capsys.readouterr().err
    assert study("--at-once", "--side-by-side", "2") == 2
    assert "--at-once has one run for each row" in capsys.readouterr().err
    assert (study.runs / "at-once.html").exists()
    assert found["at_once"]


def test_families_are_left_out_side_by_side(
    study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for what another process is at."""
    study.stop_after = 0
    assert study() == 130
    study.stop_after = 99
    with open_run(study.runs / "wide" / "family-shy").locked():
        assert study("--side-by-side", "2") == 0
    assert "wide/family-shy is being trained by another process" in capsys.readouterr().err
    assert study.trained == EVERY[:3]
    assert study.together == [2, 1]
    assert study("--side-by-side", "2") == 0
    assert study.trained == EVERY
    capsys.readouterr()
    assert study("--side-by-side", "0") == 2
    assert "--side-by-side is 0" in capsys.readouterr().err


def test_processes_make_and_learn_one_after_the_other(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that begin together must not make the same run, nor learn the same best responses."""
    taken: list[str] = []

    def watch(folder: Path, what: str) -> None:
        with pytest.raises(BusyError), locked(folder):
            pass
        taken.append(what)

    def make(path: Path, config: TrainConfig) -> RunFolder:
        watch(study.runs, "run")
        return new_run(path, config)

    def learn(asked: ReferencePlayers, _: object) -> np.ndarray:
        watch(study.runs / "best-responses", "best")
        return study._best(asked)

    monkeypatch.setattr(command, "new_run", make)
    monkeypatch.setattr(ReferencePlayers, "best_responses", learn)
    assert study() == 0
    assert taken == ["run"] * 4 + ["best"]
    with locked(study.runs):  # they have let go
        pass


@pytest.mark.parametrize("game", ["coin-v1", "snowdrift-v1"])
def test_other_games(game: str, study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"--game {game} --game.size 4 --game.seats 2 --seeds 2 --seed 7 --trial 2"
    study.options = line.split()
    assert study("--json") == 0
    assert json.loads(capsys.readouterr().out)["families"] == list(FAMILIES)
    config = open_run(study.runs / "ppo" / "family-shy").config()
    assert config.game.name == game
    assert (config.seats or "").count(",") == 1


def test_other_settings_are_not_mixed_in(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert study() == 0
    before = sorted(study.runs.rglob("*"))
    assert study("--seed", "8") == 2
    said = capsys.readouterr().err
    assert re.search(r"family-devoted was made with other settings: take them, or another --", said)
    assert sorted(study.runs.rglob("*")) == before


def test_trials_of_all_families_share_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who else may be seated changes nothing; and what was played is kept with the run."""
    small = StagHuntConfig(size=3, seats=3, hares=2, horizon=6)
    config = TrainConfig(game=small, net=NetConfig(hidden=8), trial=2)
    run, game = new_run(tmp_path / "a", config), make_game(small)
    actor = make_actor("learn", game, config)
    player = Trained(actor, jax.jit(actor.init)(jax.random.key(0)), config=config)
    monkeypatch.setattr(leave_one_out, "players_by_seed", lambda run, seeds: {0: {0: player}})
    asked = FamilyTrials(game, episodes=2, trials=8, seat=1, seed=3)
    assert asked.played(run, "family-shy") is None
    found = asked.play(run, "family-shy", lambda count, note: None)
    assert found.shape == (1, 2)
    np.testing.assert_array_equal(asked.played(run, "family-shy"), found)
    assert asked.played(run, "family-lazy") is None
    assert replace(asked, trials=9).played(run, "family-shy") is None
    programs: Any = play_trials
    compiled = programs._cached._cache_size()
    other = asked.play(run, "family-devoted", lambda count, note: None)
    assert programs._cached._cache_size() == compiled
    assert (other != found).any()
    settings = ([1], ByEpisode(2), 8, SearchConfig(), jax.random.key(3))
    alone = adapt(game, [{0: player}], [("family-shy",) * 2], {}, *settings)
    np.testing.assert_array_equal(alone.returns[:, 0], found)


def test_a_damaged_file_is_said(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert study() == 0
    kept = next((study.runs / "best-responses").glob("*.json"))
    kept.write_text("{")
    assert study() == 2
    assert f"{kept} is damaged, so delete it" in capsys.readouterr().err
