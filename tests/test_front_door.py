"""hopplus from Python: training, runs, studies, and what loaded players tell."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hopplus
from conftest import SMALL_RUN
from examples.follower import make_player
from examples.seen_acts import make_context
from hopplus.api.players import LoadedPlayer, _view
from hopplus.cli import main
from hopplus.config import (
    ConfigError,
    NetConfig,
    OpponentLearnerConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
)
from hopplus.games import make_game
from hopplus.games.pettingzoo import parallel_env
from hopplus.play.introspection import predict_others
from hopplus.play.trained import Trained
from hopplus.players.actor import make_actor
from hopplus.players.context.registry import CONTEXTS
from hopplus.players.scripted import SCRIPTED, scripted

SMALL: dict[str, Any] = {
    "game": {"size": 3, "seats": 2, "hares": 2},
    "net": {"hidden": 16},
    "ppo": {"games": 16, "unroll": 8, "minibatches": 2, "epochs": 1},
    "checkpoint_every": 4,
}


@pytest.fixture(scope="module")
def run(small_run: Path) -> hopplus.Run:
    return hopplus.Run(small_run)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("shared_programs")
def test_python_trains_as_the_command_line_does(
    run: hopplus.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--steps 3840" in " ".join(SMALL_RUN)
    own = hopplus.train("ppo", steps=3840, seeds=2, name="b", runs=tmp_path, quiet=True, **SMALL)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    assert own.path == tmp_path / "b"
    assert own.config == run.config
    ours, theirs = own.metrics(), run.metrics()
    assert ours.keys() == theirs.keys()
    for name, values in ours.items():
        np.testing.assert_array_equal(values, theirs[name], name)
    assert own.result is not None
    assert run.result is not None
    assert own.result["returns"] == run.result["returns"]
    with pytest.raises(ConfigError, match="b exists already"):
        hopplus.train("ppo", steps=3840, seeds=2, name="b", runs=tmp_path, quiet=True, **SMALL)
    with pytest.raises(ConfigError, match=r"--steps is 3,840, and .*b has 3,840 already"):
        own.resume(3840)


def test_progress_is_shown_unless_it_is_to_be_quiet(
    run: hopplus.Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """A finished run has nothing left to do, but says what it is."""
    run.resume()
    assert f"training: {run.path}, 3,840 steps" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("preset", "options", "says"),
    [
        ("pppo", {}, "no preset 'pppo': did you mean 'ppo'?"),
        ("ppo", {"sedes": 3}, "no setting 'sedes': did you mean seeds?"),
        ("ppo", {"ppo": {"learning_rte": 1}}, "did you mean ppo.learning_rate?"),
        ("ppo", {"name": "a/b"}, "--name is 'a/b'"),
        ("ppo", {"game": "coin-v1", "seats": "learn,stag"}, "no player is called 'stag'"),
        ("nowhere.toml", {}, "cannot read nowhere.toml"),
    ],
)
def test_what_cannot_be_trained_is_said_before_a_folder_is_made(
    preset: str, options: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as error:
        hopplus.train(preset, runs=tmp_path, **options)
    assert says in str(error.value)
    assert list(tmp_path.iterdir()) == []


def test_metrics_are_what_was_logged(run: hopplus.Run) -> None:
    records = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    metrics = run.metrics()
    assert metrics["steps"].tolist() == [record["steps"] for record in records]
    assert metrics["value_loss"].tolist() == [record["value_loss"] for record in records]
    last = records[-1]
    returns = [
        [total / n for total in one]
        for one, n in zip(last["return_sum"], last["episodes"], strict=True)
    ]
    np.testing.assert_allclose(metrics["returns"][-1], returns)
    frame = run.frame()
    assert len(frame) == 60
    row = frame[(frame.steps == 3840) & (frame.seed == 1)]
    assert row["returns/1"].item() == pytest.approx(returns[1][1])
    assert row["episodes"].item() == last["episodes"][1]


def test_a_frame_needs_pandas(run: hopplus.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="pip install pandas"):
        run.frame()


def test_studies_find_what_the_commands_find(
    run: hopplus.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run.evaluate(players="run,hare", episodes=32, quiet=True)
    assert capsys.readouterr().err == ""
    words = ("evaluate", str(run.path), "--players", "run,hare", "--episodes", "32")
    assert found.figures == said(capsys, *words)
    assert f"{found.figures['joint_return']['mean']:.3f}" in repr(found)
    table = hopplus.crossplay(run, "hare", episodes=8, quiet=True)
    shown = said(
        capsys, *f"crossplay {run.path} hare --episodes 8 --out {tmp_path / 'out'}".split()
    )
    assert table.figures.items() <= shown.items()
    assert table.write(tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_a_report_is_written(run: hopplus.Run, tmp_path: Path) -> None:
    page = run.report(tmp_path / "report.html", language="zh", quiet=True)
    assert 'lang="zh' in page.read_text(encoding="utf-8")


# What loaded players tell.

GAME = StagHuntConfig(size=3, seats=3, hares=2, horizon=8)


@pytest.fixture(scope="module")
def modelling() -> Trained:
    """A player with models of the others, as it begins."""
    config = TrainConfig(
        game=GAME,
        net=NetConfig(hidden=8),
        parts=("opponent",),
        opponent=OpponentLearnerConfig(net=NetConfig(hidden=8)),
    )
    actor = make_actor("one", make_game(GAME), config)
    return Trained(actor, actor.init(jax.random.key(3)), config=config)


def observed(seed: int) -> list[Any]:
    """What each seat sees of some board."""
    env = parallel_env(GAME)
    observations, _ = env.reset(seed=seed)
    for action in (0, 3):
        observations, *_ = env.step(dict.fromkeys(env.agents, action))
    return [observations[name] for name in env.agents]


def test_a_decision_is_the_act_and_what_led_to_it(modelling: Trained) -> None:
    acting, deciding = LoadedPlayer(modelling, seed=5), LoadedPlayer(modelling, seed=5)
    for seed in range(6):
        observation = observed(seed)[1]
        decision = deciding.decide(observation)
        assert decision.action == acting.act(observation)
        legal = np.asarray(observation["action_mask"], bool)
        assert decision.probabilities[~legal].sum() == 0
        assert decision.probabilities.sum() == pytest.approx(1)
        assert decision.others is not None
        assert decision.others.shape == (2, 7)
        np.testing.assert_allclose(decision.others.sum(axis=1), 1, rtol=1e-5)
        assert decision.visits is None


def test_the_others_are_predicted_from_what_they_may_do(modelling: Trained) -> None:
    """From what everyone sees, which the player is not shown: of seats 2 and 0, from the next."""
    seen = observed(1)
    legal = np.stack([seen[seat]["action_mask"] for seat in (1, 2, 0)]).astype(bool)
    own, told = _view(seen[1]), jnp.zeros(0)
    expected = predict_others(modelling.actor, modelling.params, own, jnp.asarray(legal), told)
    others = LoadedPlayer(modelling).decide(seen[1]).others
    assert others is not None
    np.testing.assert_allclose(others, expected, rtol=1e-5)
    assert (others[~legal[1:]] == 0).all()


def test_a_search_tells_where_it_looked(modelling: Trained) -> None:
    game, search = make_game(GAME), SearchConfig(simulations=8, trees=1)
    both = [LoadedPlayer(modelling, 5, game, search) for _ in range(2)]
    observation = observed(2)[1]
    decision = both[0].decide(observation)
    assert decision.action == both[1].act(observation)
    assert decision.visits is not None
    assert decision.visits.sum() == pytest.approx(1)
    assert decision.others is not None


def test_a_run_has_its_players(run: hopplus.Run) -> None:
    assert list(run.players) == [0, 1]
    observations, _ = parallel_env(run.config.game).reset(seed=1)
    decision = run.players[0].decide(observations["player_0"])
    assert decision.others is None  # PPO has no models of them
    assert decision.probabilities.argmax() in range(7)


# What users add.


def test_users_add_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (SCRIPTED, CONTEXTS):
        monkeypatch.setattr(table, "_rows", dict(table._rows))
    hopplus.register_player("mimic", make_player, "follows")
    player = scripted("mimic", make_game(GAME))
    assert player.name == "mimic"  # by which tables and runs know it
    hopplus.register_context("seen", make_context)
    config = TrainConfig(context="seen", game=GAME)
    assert make_actor("one", make_game(GAME), config).context.size == 2 * 7
    with pytest.raises(ConfigError, match="the player 'mimic' exists already"):
        hopplus.register_player("mimic", make_player, "follows")


def test_every_name_is_there_and_none_is_imported_unasked() -> None:
    for name in hopplus.__all__:
        assert getattr(hopplus, name).__doc__
    assert set(hopplus.__all__) <= set(dir(hopplus))
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        hopplus.trian  # noqa: B018
    code = "import hopplus, sys; assert not {'hopplus.api', 'hopplus.cli'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
