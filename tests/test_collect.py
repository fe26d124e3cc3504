"""Recorded play: what happened, whole, in a format that says what it is."""

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import plain_stag_hunt as plain
from conftest import MIXTURE, SMALL_GAME, SMALL_RUN, record_small
from hopplus.cli import main
from hopplus.config import ConfigError
from hopplus.players.scripted import scripted
from hopplus.recorded import collect as collecting
from hopplus.recorded import dataset
from hopplus.recorded.dataset import Shard, is_held_out, open_data
from hopplus.recorded.record import view_at
from hopplus.recorded.samples import Sampler, seat_steps, source_of


@pytest.fixture(scope="module")
def data(recorded: Path) -> dataset.Data:
    return open_data(recorded)


@pytest.fixture(scope="module")
def shard(data: dataset.Data) -> Shard:
    assert data.shards == 1
    return data.shard(0)


def board_of(view: Any, seats: int) -> plain.Board:
    """The plain rules' board at the start of an episode, read from the first seat's planes."""
    planes = np.asarray(view.planes)
    where = [tuple(np.argwhere(planes[..., seat])[0].tolist()) for seat in range(seats)]
    prey = [
        plain.Prey(kind, *cell.tolist())
        for kind, plane in (("stag", seats + 1), ("hare", seats + 2))
        for cell in np.argwhere(planes[..., plane])
    ]
    return plain.Board(set(), where, prey, 0, [-1] * seats, None)  # type: ignore[arg-type]


def test_every_row_is_what_the_plain_rules_say(data: dataset.Data, shard: Shard) -> None:
    """Views, legality, rewards, presence, ends, of all seats, step by step."""
    rules, rows, seats = plain.Rules(3, 3, 3, 1, 3, horizon=12), shard.rows, 3
    for episode in range(40):
        first, length = shard.start[episode], shard.length[episode]
        board = board_of(view_at(data.game, rows, first, 0), seats)
        for row in range(first, first + length):
            for seat in range(seats):
                seen, expected = (
                    view_at(data.game, rows, row, seat),
                    plain.view(rules, board, seat),
                )
                np.testing.assert_array_equal(seen.planes, expected.planes)
                np.testing.assert_array_equal(seen.legal, expected.legal)
                np.testing.assert_array_equal(seen.last_actions, expected.last_actions)
                assert float(seen.time) == pytest.approx(expected.time)
            assert rows.present[row].tolist() == [place is not None for place in board.where]
            last = row == first + length - 1
            assert (rows.joint[row] == -1).all() == last
            if not last:
                board, result = plain.step(rules, board, rows.joint[row].tolist())
                np.testing.assert_allclose(rows.reward[row], result.rewards)
                assert bool(rows.done[row]) == result.done == (row == first + length - 2)


def test_who_sat_there_did_it(data: dataset.Data, shard: Shard) -> None:
    """The recorded player could have done it; the other one could not always."""
    players = [scripted(name, data.game) for name in ("stag", "hare")]
    path = data.path.with_name("pure")
    record_small(path, "--players", "stag|hare")
    pure = open_data(path).shard(0)
    steps = seat_steps(pure, 1.0, measured=True)

    def chance(step: Any) -> jax.Array:
        view = view_at(data.game, source.rows, step[0], step[1])
        acts = [p.act((), (), view, jax.random.key(0))[1].logits for p in players]
        return jax.numpy.exp(jax.numpy.stack(acts))[:, source.rows.joint[step[0], step[1]]]

    source = source_of(pure, pure.size)
    chances = np.asarray(jax.jit(jax.vmap(chance))(steps))  # [M, 2]
    who = pure.who[pure.episode[steps[:, 0]], steps[:, 1]]
    assert (chances[np.arange(len(who)), who] > 0).all()
    assert (chances[np.arange(len(who)), 1 - who] == 0).mean() > 0.3
    shares = np.bincount(pure.who.ravel(), minlength=2) / pure.who.size
    assert np.abs(shares - 0.5).max() < 0.1
    assert (pure.who[:, 0] != pure.who[:, 1]).mean() == pytest.approx(0.5, abs=0.15)
    assert (pure.who[:, 1] != pure.who[:, 2]).mean() == pytest.approx(0.5, abs=0.15)


def test_the_same_whatever_runs_side_by_side_and_in_several_files(
    data: dataset.Data, shard: Shard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "SHARD_ROWS", 500)
    other = open_data(record_small(tmp_path / "parts", "--games", "50"))
    assert other.shards > 2
    assert all(500 <= file["rows"] < 500 + 13 for file in other.facts["files"][:-1])
    parts = list(other.iterate())
    for name in ("planes", "legal", "joint", "reward", "took", "present", "done", "aim"):
        joined = np.concatenate([getattr(part.rows, name) for part in parts])
        np.testing.assert_array_equal(joined, getattr(shard.rows, name))
    np.testing.assert_array_equal(np.concatenate([p.who for p in parts]), shard.who)
    np.testing.assert_array_equal(np.concatenate([p.number for p in parts]), np.arange(300))
    assert other.facts["summary"] == data.facts["summary"]
    again = open_data(record_small(tmp_path / "again"))
    assert [file["rows"] for file in again.facts["files"]] == [
        file["rows"] for file in other.facts["files"]
    ]
    assert again.fingerprint == other.fingerprint  # whatever the number side by side
    seeded = open_data(record_small(tmp_path / "seeded", "--seed", "1"))
    assert seeded.fingerprint != again.fingerprint
    assert seeded.origin != again.origin == data.origin


def test_the_summary_counts_what_is_there(data: dataset.Data, shard: Shard) -> None:
    steps = seat_steps(shard, 1.0, measured=True)
    who = shard.who[shard.episode[steps[:, 0]], steps[:, 1]]
    action = np.asarray(shard.rows.joint)[steps[:, 0], steps[:, 1]]
    for number, name in enumerate(data.players):
        told = data.facts["summary"][name]
        assert told["acted"] == (who == number).sum()
        counts = np.bincount(action[who == number], minlength=7) / (who == number).sum()
        np.testing.assert_allclose(list(told["actions"].values()), counts)
    assert data.facts["steps"] == shard.size - 300


def test_seatings(small_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One name or mixture per seat, of scripted players and of those of a run."""
    run = small_run
    few = ["--episodes", "40", "--games", "20", "--json"]
    capsys.readouterr()
    for number, (arguments, seats) in enumerate(
        [
            ([str(run), "--players", "run,stag|run"], [["a#0@0"], ["stag", "a#0@1"]]),
            (
                ["--players", f"stag|{run}@1,{run}", *SMALL_RUN[:6]],
                [["stag", f"{run}#0@1"], [f"{run}#0@1"]],
            ),
        ]
    ):
        out = tmp_path / f"data{number}"
        assert main(["collect", *arguments, *few, "--out", str(out)]) == 0
        told = json.loads(capsys.readouterr().out)
        found = open_data(out)
        assert found.seats == seats
        assert set(told["summary"]) == set(found.players)
        assert told["episodes"] == 40
        for seat, names in enumerate(seats):
            sat = {found.players[who] for who in found.shard(0).who[:, seat]}
            assert sat == set(names)


def test_nothing_is_left_of_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["collect", "--players", MIXTURE, *SMALL_GAME, "--episodes", "100", "--games", "64"]
    out = tmp_path / "data"

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(collecting.Tally, "add", stop)
    assert main([*command, "--out", str(out)]) == 130
    assert "nothing was kept" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    assert main([*command, "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    for players, words in (
        ("stag|hart", "no player is called 'hart'"),
        ("stag|hare,stag", "names 2 players but the game has 3 seats"),
    ):
        more = ["--players", players, "--out", str(tmp_path / "x")]
        assert main([*command, *more]) == 2
        assert words in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_damage_is_named(data: dataset.Data, tmp_path: Path) -> None:
    shutil.copytree(data.path, tmp_path / "data")
    file = tmp_path / "data" / "00000.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ConfigError, match=r"00000\.safetensors is damaged"):
        open_data(tmp_path / "data").shard(0)
    facts = json.loads((tmp_path / "data" / "data.json").read_text())
    broken: Any
    for broken in ({}, [], {**facts, "game": {"size": 0}}, {**facts, "files": []}):
        (tmp_path / "data" / "data.json").write_text(json.dumps(broken))
        with pytest.raises(ConfigError, match=r"not recorded play|game\.size"):
            open_data(tmp_path / "data")
    del facts["seats"]
    (tmp_path / "data" / "data.json").write_text(json.dumps(facts))
    with pytest.raises(ConfigError, match="not recorded play"):
        open_data(tmp_path / "data")
    with pytest.raises(ConfigError, match="there is no folder"):
        open_data(tmp_path / "nowhere")


def test_held_out_episodes_are_spread_evenly() -> None:
    assert is_held_out(np.arange(20), 0.1).nonzero()[0].tolist() == [9, 19]
    assert is_held_out(np.arange(9), 1 / 3).nonzero()[0].tolist() == [2, 5, 8]
    assert is_held_out(np.arange(5), 1.0).all()


def test_samples_look_ahead_only_while_the_seat_is_there(data: dataset.Data, shard: Shard) -> None:
    """`later` is 1 to `ahead` steps later, in the same episode, with the seat present; at its last
    step it is the step itself."""
    sampler, source = Sampler(data.game, ahead=3), source_of(shard, shard.size)
    steps = seat_steps(shard, 1.0, measured=True)[:2000]
    keys = jax.random.split(jax.random.key(0), len(steps))
    samples = jax.jit(jax.vmap(sampler, in_axes=(None, 0, 0, None)))(source, steps, keys, ())
    ahead = np.rint((np.asarray(samples.later.time) - np.asarray(samples.view.time)) * 12)
    row, seat = steps.T
    left = np.array(
        [
            np.flatnonzero(shard.rows.present[shard.episode == shard.episode[r], s]).max()
            + shard.start[shard.episode[r]]
            - r
            for r, s in steps
        ]
    )
    assert (ahead <= np.minimum(left, 3)).all()
    assert (ahead[left > 0] >= 1).all()
    assert set(ahead[left >= 3]) == {1, 2, 3}
    np.testing.assert_array_equal(np.asarray(samples.later.planes[..., 0]).sum(axis=(1, 2)), 1)
    caught = shard.caught[row, seat]
    for place in np.flatnonzero(left == 0)[:50]:  # whoever leaves has taken something, now
        took = np.asarray(shard.rows.took)[row[place], seat[place]]
        if took.any():
            assert caught[place] == took.argmax()
    assert set(np.unique(caught)) == {0, 1, 2}
    np.testing.assert_array_equal(
        np.asarray(samples.joint[:, 0]), np.asarray(shard.rows.joint)[row, seat]
    )
    for place in (1, 2):  # the others in cyclic order
        other = (seat + place) % 3
        for name in ("joint", "present", "reward"):
            expected = np.asarray(getattr(shard.rows, name))[row, other]
            np.testing.assert_array_equal(np.asarray(getattr(samples, name))[:, place], expected)
        after = np.asarray(shard.rows.present)[row + 1, other]
        np.testing.assert_array_equal(np.asarray(samples.present_after)[:, place], after)
    # The second plane of a view is that of the next seat, before and after.
    for view, when in ((samples.view, row), (samples.after, row + 1)):
        there = np.asarray(view.planes)[..., 1].any(axis=(1, 2))
        np.testing.assert_array_equal(there, np.asarray(shard.rows.present)[when, (seat + 1) % 3])
        last = np.asarray(shard.rows.last_actions)[when, (seat + 1) % 3]
        np.testing.assert_array_equal(np.asarray(view.last_actions)[:, 1], last)
