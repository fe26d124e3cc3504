"""Reference players, certificates, and returns by the number of the episode."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from fake_runs import write_run
from hopplus.cli import main
from hopplus.config import (
    SearchConfig,
    StagHuntConfig,
    default_game,
)
from hopplus.evaluation import fine_tuning
from hopplus.evaluation.adaptation import Adaptation, lineups
from hopplus.evaluation.certificate import Certificate
from hopplus.evaluation.fine_tuning import FineTuning
from hopplus.evaluation.reference_players import OnUpdate
from hopplus.evaluation.references import References, read_references
from hopplus.evaluation.trials import (
    AtTheEnd,
    ByEpisode,
    Names,
    Streams,
    Trials,
    make_trials,
    mixtures,
)
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.from_run import run_players
from hopplus.learning.safeguard import LEAST
from hopplus.play.lineup import Lineup
from hopplus.players.mixture import Mixture
from hopplus.players.scripted import scripted
from hopplus.report.figures.evaluation import draw_episodes
from hopplus.report.pages.adaptation import adaptation_page
from hopplus.runs.folder import open_run

GAME = StagHunt(StagHuntConfig(size=3, seats=3, hares=2, horizon=12))
_SMALL = "--game.size 3 --game.seats 3 --game.hares 2 --game.horizon 12 --net.hidden 8"
SMALL = _SMALL.split()
PPO = ["--ppo.games", "16", "--ppo.unroll", "16", "--ppo.minibatches", "2", "--ppo.epochs", "2"]


def test_mixtures_and_places() -> None:
    assert mixtures(GAME) == [
        ("stag", "stag"),
        ("stag", "hare"),
        ("stag", "random"),
        ("hare", "hare"),
        ("hare", "random"),
        ("random", "random"),
    ]
    others = tuple(scripted(name, GAME) for name in ("stag", "hare", "random"))
    table = Trials(GAME, scripted("stag", GAME), others, seat=0)
    assert table.choices(("hare", "random"))[1:] == [1, 2]
    turned = replace(table, seat=2)  # the seats after the last are the first ones
    assert turned.choices(("hare", "random"))[:2] == [1, 2]
    assert turned.group == 1
    asked = ["all", "hare,stag", "noisy-hare:.20,learn"]
    more = [("hare", "stag"), ("noisy-hare:0.2", "learn")]
    assert lineups(asked, GAME) == [*mixtures(GAME), *more]


def test_runs_among_the_others_are_named_in_full(tmp_path: Path) -> None:
    """The first seed of a run, by its own number, and the seat that its player will sit in."""
    run = write_run(tmp_path / "a", updates=2, seeds=3, first_seed=100)
    assert lineups([f"{run},{run}#102@0"], GAME) == [(f"{run}#100@1", f"{run}#102@0")]


def test_returns_by_episode() -> None:
    """Whoever sits there stays: a stag hunter finds its friend in every episode or in none."""
    others = tuple(scripted(name, GAME) for name in ("stag", "hare"))
    table = Trials(GAME, scripted("noisy-stag:0.0", GAME), others, seat=0)
    params = Lineup(table.seating, {}).init(jax.random.key(0))
    steps = 3 * GAME.horizon
    wanted = [("stag", "hare"), ("hare", "hare")]
    found = table.streams(params, wanted, steps, 64, jax.random.key(0))
    assert found.reward.shape == found.done.shape == (2, 64, steps)
    returns = found.by_episode(3)
    assert returns.shape == (2, 64, 3)
    assert (returns[0].mean(axis=0) > 4.5).all()
    assert not returns[1].any()
    some = table.streams(params, wanted[1:] + wanted[:1], steps, 64, jax.random.key(0))
    np.testing.assert_array_equal(some.reward[1], found.reward[0])  # the same boards


def test_what_is_read_from_streams() -> None:
    reward = np.array([[[1.0, 2, 0, 4, 0, 3, 9], [0, 0, 5, 0, 0, 0, 9]]])
    done = np.array([[[0, 1, 0, 1, 0, 1, 0], [0, 0, 1, 0, 1, 0, 0]]], bool)
    streams = Streams(reward, done)
    assert streams.by_episode(2).tolist() == [[[3, 4], [5, 0]]]
    assert ByEpisode(2)(streams).tolist() == [[4, 2]]
    with pytest.raises(ValueError, match="3 episodes"):
        streams.by_episode(3)
    # Episodes that ended with one of the last four steps: 4 and 3, and 0.
    assert AtTheEnd(7, 4)(streams) == pytest.approx(np.array([[7 / 3]]))
    assert AtTheEnd().columns == ["last 600 of 2,400 steps"]


def test_the_share_of_the_gap_that_is_closed() -> None:
    known = References(
        default_game(),
        [("stag", "stag"), ("hare", "hare")],
        oracle=np.array([[3.0, 1.0], [3.0, 1.2]]),
        blind=np.array([[2.0, 0.0], [2.0, 0.2]]),
        random=np.zeros((2, 2)),
    )
    returns = np.array([[[2.5, 3.0], [0.1, 1.1], [9.0, 9.0]], [[2.5, 3.0], [0.3, 1.1], [9.0, 9.0]]])
    places: list[Names] = [("stag", "stag"), ("hare", "hare"), ("stag", "hare")]
    found = Adaptation(places, ["episode 1", "episode 2"], returns)
    closed = found.closed(known)
    assert closed is not None
    assert [share.mean for share in closed] == pytest.approx([0.3, 1.0])
    assert [gap.mean for gap in known.gaps()] == pytest.approx([1.0, 1.0])
    alike = replace(known, blind=known.oracle + np.array([[0.1, 0.0], [-0.1, 0.0]]))
    assert found.closed(alike) is None  # no gap
    assert replace(found, lineups=places[2:], returns=returns[:, 2:]).closed(known) is None


def test_the_way_to_best_responses_and_what_is_missing_there() -> None:
    """Where episodes of a trial differ, each is held against the same one of the references."""
    blind = np.array([[2.0, 0.0], [2.0, 0.0]])
    best = np.array([[4.0, 1.0], [4.0, 1.0]])
    places: list[Names] = [("stag", "stag"), ("hare", "hare")]
    known = References(default_game(), places, best - 1, blind, blind, best=best)
    assert known.aim == "best"
    returns = np.array([[[2.0, 4.0], [1.0, 2.0]], [[2.0, 3.0], [1.0, 1.0]]])
    found = Adaptation(places, ["episode 1", "episode 2"], returns)
    # Best responses have 2.5 on average and blind 1; the player 1.5, then 3 and 2.
    assert [one.mean for one in found.closed(known) or ()] == pytest.approx([1 / 3, 1.0])
    assert [one.mean for one in found.regret(known) or ()] == pytest.approx([1.0, 0.0])
    assert [one.mean for one in found.regret(known, True) or ()] == pytest.approx([1.0, 1.0])
    later = {"best": np.stack([best, best + 3], -1), "blind": np.stack([blind, blind + 1], -1)}
    told = replace(known, by_episode=later)
    assert [one.mean for one in found.closed(told) or ()] == pytest.approx([1 / 3, 0.5 / 3.5])
    assert [one.mean for one in found.regret(told) or ()] == pytest.approx([1.0, 3.0])
    page = adaptation_page("a", found, told, "none")
    table, curve, _ = page.sections
    assert curve.title == "Episode by episode"
    names = [row[0] for row in table.rows]
    assert names[2:] == [
        "mean",
        "share of the gap to best responses closed",
        "regret",
        "regret, added up",
    ]
    (axes,) = draw_episodes(found, told).axes
    drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in axes.get_lines()}
    np.testing.assert_allclose(drawn["mean over lineups"], [1.5, 2.5])
    np.testing.assert_allclose(drawn["best responses"], [2.5, 5.5])
    np.testing.assert_allclose(drawn["blind"], [1.0, 2.0])
    assert found.regret(replace(known, best=None)) is None
    # Who looks ahead has less at first: of a way that leads down there is no share.
    down = replace(told, by_episode=later | {"best": np.stack([best - 3, best + 3], -1)})
    shares = [one.mean for one in found.closed(down) or ()]
    assert np.isnan(shares[0])
    assert shares[1] == pytest.approx(0.5 / 3.5)
    # At the end of a long trial one is held against the last episode.
    late = Adaptation(places, AtTheEnd().columns, returns[..., 1:])
    assert [one.mean for one in late.regret(told) or ()] == pytest.approx([3.0])


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    out = tmp_path_factory.mktemp("references")
    # Long enough for everyone to learn to join a stag hunter.
    length = [
        "--ppo.learning-rate",
        "5e-3",
        "--steps",
        "16000",
        "--seeds",
        "2",
        "--episodes",
        "256",
    ]
    command = ["certify", *SMALL, *PPO, *length, "--out", str(out)]
    measure = Certificate.measure

    def counted(asked: Certificate, folder: Path, on_update: OnUpdate) -> References:
        played: list[int] = []
        found = measure(asked, folder, lambda steps, note: played.append(steps))
        assert sum(played) == asked.total_steps  # as progress was told
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Certificate, "measure", counted)
        assert main(command) == 0
    (path,) = out.glob("*.json")
    assert "The value of knowing your co-players" in path.with_suffix(".html").read_text()
    return path, command


def test_references(
    certificate: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, command = certificate
    known = read_references(path)
    assert known.oracle.shape == known.blind.shape == (2, 6)
    assert known.random.shape == (2, 6)
    assert known.oracle.mean() > known.random.mean() + 0.3
    assert known.oracle[:, 1].mean() > 2 * known.random[:, 1].mean()  # with one stag hunter
    before = path.stat().st_mtime_ns
    assert main([*command, "--json"]) == 0  # the second time it is read
    assert path.stat().st_mtime_ns == before
    found = json.loads(capsys.readouterr().out)
    assert found["returns"]["oracle"] == known.oracle.tolist()


@pytest.fixture(scope="module")
def remembering(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two seeds that has hardly learned anything."""
    runs = tmp_path_factory.mktemp("runs")
    train = ["train", "ppo-memory", *SMALL, *PPO, "--steps", "1024", "--seeds", "2", "--trial", "2"]
    assert main([*train, "--runs", str(runs), "--name", "m"]) == 0
    return runs / "m"


def test_adapt(
    certificate: tuple[Path, list[str]], remembering: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = json.loads(certificate[0].read_text())
    path = remembering.parent / "wide.json"  # with a gap of 2 everywhere
    returns = kept["returns"]
    wide = {**returns, "oracle": (np.array(returns["blind"]) + 2).tolist()}
    path.write_text(json.dumps({**kept, "returns": wide}))
    run = str(remembering)
    options = ["--trials", "8", "--episodes", "3", "--references", str(path), "--json"]
    capsys.readouterr()
    assert main(["adapt", run, *options, "--seat", "1"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert np.shape(found["returns"]) == (2, 6, 3)
    known = read_references(path)
    own = np.mean(found["returns"], axis=(0, 1)) - known.blind.mean()
    assert [share["mean"] for share in found["closed"]] == pytest.approx(list(own / 2))
    assert found["learning"] == "none"
    assert "hare, random" in (remembering / "adaptation.html").read_text()
    player, page = (str(remembering.parent / name) for name in ("one.safetensors", "page.html"))
    assert main(["export", run, "--out", player]) == 0
    few = ["--out", page, "--trials", "2", "--protocol", "hop", "--references", str(path)]
    among = ["--against", "noisy-hare:0.2,switch", f"{player},{run}@0"]
    assert main(["adapt", player, *SMALL[:-2], *few, *among]) == 0  # each seat in turn
    out = capsys.readouterr().out
    assert "noisy-hare:0.2, switch" in out
    assert "last 600 of 2,400 steps" in out
    assert "oracle and blind were measured in seat 0" in out
    assert "one seed: no interval" in out
    assert "noisy-hare:0.2, switch" in Path(page).read_text()
    for wrong, said in (
        (["--seat", "3"], "from 0 to 2"),
        (["--against", "stag"], "names 1 player but"),
        (["--against", "stag,learn"], "needs --learning online"),
        (["--references", run], "cannot read the references"),
        (["--episodes", "0"], "--episodes is 0"),
        (["--protocol", "hop", "--episodes", "3"], "leave --episodes out"),
        (["--steps", "5"], "is for presets"),
        (["--ppo.learning-rate", "0.1"], "--learning is none"),
        (["--caution", "1"], "--caution is given, but --learning is none"),
        (["--learning", "online", "--caution", "-1"], "--caution is -1"),
    ):
        assert main(["adapt", run, *wrong]) == 2
        assert said in capsys.readouterr().err
    path.write_text(json.dumps({**kept, "oracle": returns["oracle"]}))
    assert main(["adapt", run, "--references", str(path)]) == 2
    assert "is of an earlier version" in capsys.readouterr().err
    other = {**kept, "background": {f"{run}#0@0": "of another run"}}
    path.write_text(json.dumps(other))
    named = ["--references", str(path), "--against", f"{run}@0,stag"]
    assert main(["adapt", run, *named]) == 2
    assert f"was measured with another {run}#0@0" in capsys.readouterr().err
    assert main(["adapt", "ppo-memry"]) == 2
    assert "did you mean ppo-memory?" in capsys.readouterr().err
    assert main(["adapt", player, "--learning", "online"]) == 2
    assert "takes a run" in capsys.readouterr().err


def test_online_begins_with_what_was_learned(remembering: Path) -> None:
    """In each trial it is its run's player, among the co-players that was named, that goes on."""
    run = open_run(remembering)
    first, second = (run_players(run, seed) for seed in (0, 1))
    online = FineTuning(run.config(), unroll=6, caution=0.0)
    learner, update = online._learner(("learn", "", "learn"), ["hare", "stag"], {}, 12, 0)
    seated = [("learn", "hare", "learn"), ("learn", "stag", "learn")]
    keys = list(jax.random.split(jax.random.key(0)))
    pairs = [(0, 1), (1, 0)]
    now, evidence = online._begun(learner, [first, second], seated, pairs, 3, keys)
    assert evidence is None
    held = now.params[learner.learning]
    for which, own in enumerate((first, second)):
        mine = jax.tree.map(lambda leaf: leaf[3 * which : 3 * which + 3], held)  # noqa: B023
        for old, new in zip(jax.tree.leaves(own[0].params), jax.tree.leaves(mine), strict=True):
            assert new.shape[:2] == (3, 2)  # the run has one player, who sits in both seats
            assert (new == old).all()
    (mixture,) = (p for p, _ in learner.seating.groups if isinstance(p, Mixture))
    names = [mixture.players[one].name for one in now.plays.choice[:, 0, 1]]
    assert names == ["stag"] * 3 + ["hare"] * 3
    before = jax.tree.map(np.asarray, held)
    after = update((now, None))[0][0].params[learner.learning]
    moved = [
        np.abs(a - b).max(axis=tuple(range(2, a.ndim)))  # of each trial and seat
        for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(before), strict=True)
    ]
    assert (np.max(moved, axis=0) > 0).all()
    assert online.learns == "online, from its own steps, by PPO"


def test_what_has_not_shown_to_be_better_does_not_play(remembering: Path) -> None:
    """Who is cautious without end gets what nobody who learns gets, step by step; who is not, plays
    what it learns."""
    run = open_run(remembering)
    players = run_players(run, 0)
    wanted, key, steps = [("hare", "stag"), ("random", "random")], jax.random.key(5), 72
    table, params = make_trials(GAME, players[0], wanted, {}, 0, SearchConfig())
    still = table.streams(params, wanted, steps, 3, key)
    asked = FineTuning(run.config(), unroll=6, learning_rate=0.1)
    found = {
        caution: replace(asked, caution=caution).streams([players], wanted, {}, 0, steps, 3, [key])
        for caution in (1e9, 1e-9)
    }
    np.testing.assert_array_equal(found[1e9][0].reward, still.reward)
    np.testing.assert_array_equal(found[1e9][0].done, still.done)
    first = LEAST * asked.unroll  # until then nothing is decided
    np.testing.assert_array_equal(found[1e-9][0].reward[..., :first], still.reward[..., :first])
    assert (found[1e-9][0].reward != still.reward).any()
    assert "better by 1 standard errors" in FineTuning(run.config()).learns


def test_online_trials_side_by_side_are_those_one_by_one(
    remembering: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_run(remembering)
    players = [run_players(run, seed) for seed in (0, 1)]
    online = FineTuning(run.config(), unroll=6)
    wanted = [("hare", "learn"), ("stag", "learn"), ("stag", "stag")]
    keys = list(jax.random.split(jax.random.key(0)))
    told: list[int] = []
    given: tuple[Any, ...] = (wanted, {}, 0, 12, 3, keys, lambda count, note: told.append(count))
    found = online.streams(players, *given)
    assert sum(told) == 2 * 3 * 3
    assert [one.reward.shape for one in found] == [(3, 3, 12)] * 2
    assert all(one.done.any(axis=-1).all() for one in found)  # twelve steps are the horizon
    assert (found[0].reward != found[1].reward).any()
    assert (found[0].reward[0] != found[0].reward[1]).any()
    monkeypatch.setattr(fine_tuning, "MOST_TRIALS", 3)
    for one, again in zip(found, online.streams(players, *given), strict=True):
        np.testing.assert_array_equal(one.done, again.done)
        np.testing.assert_allclose(one.reward, again.reward)
