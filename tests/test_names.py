"""Names of learned players: one syntax on every command, with the seed and the seat."""

from pathlib import Path

import jax
import numpy as np
import pytest

import hopplus
from fake_runs import write_run
from hopplus.cli import main
from hopplus.config import ConfigError
from hopplus.learning.from_run import find_trained, run_players
from hopplus.play.names import RunName, full_name, read_run_name
from hopplus.runs.folder import check_name, open_run


@pytest.mark.parametrize(
    ("text", "seed", "seat", "stage"),
    [
        ("runs/a", None, None, None),
        ("runs/a#1", 1, None, None),
        ("runs/a@2", None, 2, None),
        ("runs/a#103@2", 103, 2, None),
        ("runs/a~0.5", None, None, 0.5),
        ("runs/a#1~0@2", 1, 2, 0),
        ("runs/a~1@0", None, 0, 1),
    ],
)
def test_what_is_said(text: str, seed: int | None, seat: int | None, stage: float | None) -> None:
    said = read_run_name(text)
    assert said == RunName(Path("runs/a"), seed, seat, stage)
    assert str(said) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runs/a@2#1", "the seed before the seat"),
        ("runs/a@x", "the number of a seat behind the @"),
        ("runs/a#", "the number of a seed behind the #"),
        ("runs/a#-1", "the number of a seed behind the #"),
        ("runs/a@1@2", "the number of a seat behind the @"),
        ("runs/a@1~0.5", "the stage between them"),
        ("runs/a~0.5#1@2", "the stage between them"),
        ("runs/a~1.5@2", "from 0 to 1, behind the ~"),
        ("runs/a~half", "from 0 to 1, behind the ~"),
    ],
)
def test_what_cannot_be_meant(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_run_name(text)


def test_a_folder_with_a_mark_in_its_name(tmp_path: Path) -> None:
    odd = tmp_path / "odd@1"
    odd.mkdir()
    assert read_run_name(str(odd)) == RunName(odd)
    assert read_run_name(f"{odd}#0@3") == RunName(odd, 0, 3)
    (tmp_path / "odd").mkdir()
    with pytest.raises(ConfigError, match="could mean"):
        read_run_name(str(odd))


def test_seeds_go_by_their_own_numbers(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", updates=2, seeds=3, first_seed=100)
    assert full_name(str(run), 2) == f"{run}#100@2"
    assert full_name(f"stag|{run}#101@0", 2) == f"stag|{run}#101@0"
    with pytest.raises(ConfigError, match="has the seeds 100 to 102, and no 1"):
        full_name(f"{run}#1", 2)


def test_every_seed_and_seat_is_another_player(small_run: Path) -> None:
    """The same name is the same player, whether a command or a program asks for it."""
    found = {
        f"{seed}@{seat}": find_trained(f"{small_run}#{seed}@{seat}").params.policy
        for seed in (0, 1)
        for seat in (0, 1)
    }
    first = {name: jax.tree.leaves(params)[0] for name, params in found.items()}
    for one in first:
        for other in first:
            assert np.array_equal(first[one], first[other]) == (one == other)
    players = hopplus.load_players(f"{small_run}#1")
    assert np.array_equal(jax.tree.leaves(players[1].trained.params.policy)[0], first["1@1"])
    players = hopplus.load_players(small_run, seed=1)
    assert np.array_equal(jax.tree.leaves(players[0].trained.params.policy)[0], first["1@0"])
    own = run_players(open_run(small_run))
    assert np.array_equal(jax.tree.leaves(own[1].params.policy)[0], first["0@1"])


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", "..", ".", "", ".hidden", "a@1", "a#1", " a", "a,b"]
)
@pytest.mark.parametrize("command", ["train ppo", "pretrain world --data x", "ablate ladder"])
def test_names_of_runs_stay_inside(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    assert main([*command.split(), "--runs", str(folder), "--name", name]) == 2
    assert "must be a plain name" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_plain_names() -> None:
    for name in ("first", "hop-plus_2", "8x8 two stags", "lr=1e-3", "v1.2", "试验"):
        assert check_name(name) == name
