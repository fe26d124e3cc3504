"""Reference players, certificates, and returns by the number of the episode."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import (
    GameConfig,
    NetConfig,
    PPOConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
)
from hopplus.evaluation.adaptation import Adaptation, companies
from hopplus.evaluation.crossplay import Member, make_member
from hopplus.evaluation.references import References, facing, read_references
from hopplus.evaluation.trials import Trials, mixtures, turned
from hopplus.games.stag_hunt import StagHunt
from hopplus.learning.restore import make_learner
from hopplus.learning.seeds import seed_keys
from hopplus.players.mixture import MixtureMemory

GAME = StagHunt(StagHuntConfig(size=3, seats=3, hares=2, horizon=12))
_SMALL = "--game.size 3 --game.seats 3 --game.hares 2 --game.horizon 12 --net.hidden 8"
SMALL = _SMALL.split()
PPO = ["--ppo.games", "16", "--ppo.unroll", "16", "--ppo.minibatches", "2", "--ppo.epochs", "2"]


def member(*names: str) -> Member:
    return make_member(",".join(names), names, {}, GAME, SearchConfig())


def test_mixtures_and_places() -> None:
    assert mixtures(GAME) == [
        ("stag", "stag"),
        ("stag", "hare"),
        ("stag", "random"),
        ("hare", "hare"),
        ("hare", "random"),
        ("random", "random"),
    ]
    assert turned(("stag", "hare"), 0)[1:] == ["stag", "hare"]
    named = turned(("stag", "hare"), 2)  # the seats after the last are the first ones
    assert named[:2] == ["stag", "hare"]
    assert companies(["all", "hare,stag"], GAME) == [*mixtures(GAME), ("hare", "stag")]


def test_returns_by_episode() -> None:
    """Whoever sits there stays: a stag hunter finds its friend in every episode or in none."""
    friend, foes = member("hare", "stag", "hare"), member("hare", "hare", "hare")
    table = Trials(GAME, [member("stag", "stag", "stag"), friend, foes], 3)
    focal = member("stag", "stag", "stag")
    key = jax.random.key(0)
    with_friend = table.returns(focal, friend, 0, 64, key)
    assert with_friend.shape == (64, 3)
    assert (with_friend.mean(axis=0) > 4.5).all()
    assert not table.returns(focal, foes, 0, 64, key).any()


def test_the_share_of_the_gap_that_is_closed() -> None:
    known = References(
        GameConfig(),
        [("stag", "stag"), ("hare", "hare")],
        told=np.array([[3.0, 1.0], [3.0, 1.0]]),
        blind=np.array([[2.0, 0.0], [2.0, 0.0]]),
        random=np.zeros(2),
    )
    returns = np.array([[[2.5, 3.0], [0.0, 1.0], [9.0, 9.0]]])  # the last was not measured
    found = Adaptation([("stag", "stag"), ("hare", "hare"), ("stag", "hare")], returns)
    assert found.closed(known) == pytest.approx([0.25, 1.0])
    assert [gap.mean for gap in known.gaps()] == [1.0, 1.0]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    out = tmp_path_factory.mktemp("references")
    # Long enough for those who are told that one friend hunts stags to learn to join it.
    length = [
        "--ppo.learning-rate",
        "5e-3",
        "--steps",
        "30000",
        "--seeds",
        "2",
        "--episodes",
        "256",
    ]
    command = ["certify", *SMALL, *PPO, *length, "--out", str(out)]
    assert main(command) == 0
    (path,) = out.iterdir()
    return path, command


def test_references(
    certificate: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    path, command = certificate
    known = read_references(path)
    assert known.told.shape == known.blind.shape == (2, 6)
    assert known.random.shape == (6,)
    assert known.told.mean() > known.random.mean() + 0.3
    assert known.told[:, 1].mean() > 2 * known.random[1]  # with one stag hunter
    before = path.stat().st_mtime_ns
    assert main([*command, "--json"]) == 0  # the second time it is read
    assert path.stat().st_mtime_ns == before
    found = json.loads(capsys.readouterr().out)
    assert np.array(found["told"]).tolist() == known.told.tolist()


def test_adapt(
    certificate: tuple[Path, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = certificate
    train = ["train", "ppo-memory", *SMALL, *PPO, "--steps", "1024", "--seeds", "2", "--trial", "2"]
    assert main([*train, "--runs", str(tmp_path), "--name", "m"]) == 0
    capsys.readouterr()
    run = str(tmp_path / "m")
    options = ["--trials", "8", "--episodes", "3", "--references", str(path), "--json"]
    assert main(["adapt", run, *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert np.shape(found["returns"]) == (2, 6, 3)
    assert len(found["closed"]) == 3
    assert found["learning"] == "none"
    few = ["--against", "noisy-hare:0.2,switch", "--trials", "4", "--episodes", "2", "--seat", "1"]
    assert main(["adapt", run, *few]) == 0
    assert "noisy-hare:0.2, switch" in capsys.readouterr().out
    for wrong, said in (
        (["--seat", "3"], "from 0 to 2"),
        (["--against", "stag"], "names 1 player but"),
        (["--references", run], "cannot read the references"),
        (["--episodes", "0"], "above 0"),
    ):
        assert main(["adapt", run, *wrong]) == 2
        assert said in capsys.readouterr().err


def test_every_lane_faces_its_own_mixture() -> None:
    config = TrainConfig(
        game=GAME.config,
        net=NetConfig(hidden=8),
        ppo=PPOConfig(games=4, unroll=2),
        train_against="all",
        trial=1000,
        seeds=3,
    )
    learner = make_learner(config, {})
    first = jax.jit(learner.init_all)(seed_keys(config))
    choices = jnp.array([[0, 0], [0, 1], [2, 1]])
    now = facing(learner, first, choices)
    for _ in range(2):
        (kept,) = (kept for kept in now.plays.memory if isinstance(kept, MixtureMemory))
        assert kept.choice.shape == (3, 4, 2)
        assert (kept.choice == choices[:, None]).all()
        now = jax.jit(learner.update_all)(now)[0]  # and goes on facing it


def test_references_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", "--steps", "0"]) == 2
    assert "above 0" in capsys.readouterr().err
