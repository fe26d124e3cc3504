"""Certificates: who is shown what, who learns among whom, and whose returns are whose."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import (
    CoinConfig,
    ConfigError,
    NetConfig,
    PPOConfig,
    StagHuntConfig,
    TrainConfig,
)
from hopplus.evaluation import reference_players
from hopplus.evaluation.certificate import Certificate
from hopplus.evaluation.references import References, read_references
from hopplus.learning.compilation import Update, first_and_next
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.models.part import Metrics
from hopplus.play.rollout import Play, rollout
from hopplus.play.seeds import seed_keys
from hopplus.players.parameters import PlayerParams
from hopplus.report.pages.adaptation import certificate_page, certificate_rows
from hopplus.types import Trajectory

CONFIG = TrainConfig(
    game=StagHuntConfig(size=3, seats=3, hares=2, horizon=6),
    net=NetConfig(hidden=8),
    ppo=PPOConfig(games=64, unroll=8, minibatches=2, epochs=1),
    steps=3 * 512,
    seeds=2,
    trial=2,
)
COMPANIES = [("stag", "hare"), ("switch", "hare"), ("random", "random"), ("hare", "switch")]
KINDS = 4  # stag, hare, random; switch


def played(learner: Learner, oracle: bool) -> Trajectory:
    """Some episodes of the learner's games, at their beginning."""
    first = jax.jit(learner.init)(jax.random.key(0))
    params = reference_players._is_oracle(learner, first.params, jnp.array(oracle))

    def play(plays: Play) -> Trajectory:
        return rollout(learner.game, learner.seating, params, plays, 40)[1]

    found: Trajectory = jax.device_get(jax.jit(play)(first.plays))
    return found


def test_the_told_are_shown_who_the_others_are() -> None:
    """From the first step of every trial on, whoever is drawn; who is not told looks at zeros."""
    learner = Certificate(CONFIG, COMPANIES).drawing
    found = played(learner, oracle=True)
    drawn = found.choice[:, :, 1:]  # [T, B, M]
    trials = (found.begins & (found.episode == 0)).sum(axis=0)
    assert (trials >= 3).all()  # two are over in every game
    moved = (drawn[1:] != drawn[:-1]).any(axis=-1)
    assert moved.any()
    assert (found.begins & (found.episode == 0))[1:][moved].all()  # others come with a trial
    seen = found.act.inferred[:, :, 0].reshape(*drawn.shape, KINDS)
    np.testing.assert_array_equal(seen, np.eye(KINDS)[drawn])
    assert set(np.unique(drawn)) == {0, 1, 2}  # none but the mixtures'
    blind = played(learner, oracle=False)
    assert not blind.act.inferred[:, :, 0].any()
    assert (blind.act.logits[0, :, 0] != found.act.logits[0, :, 0]).any()  # its policy is told
    # Who is told or not changes nothing for the others, nor who they are.
    np.testing.assert_array_equal(blind.choice[0], found.choice[0])
    np.testing.assert_array_equal(blind.act.action[0, :, 1:], found.act.action[0, :, 1:])


def test_others_run_from_the_seat_after_ones_own() -> None:
    anyone = "stag|hare|random"
    config = replace(CONFIG, seats=f"{anyone},learn,{anyone}", context="oracle")
    learner = make_learner(config, {})
    memory = learner.seating.start(jnp.array([2, 0, 1]))  # random, the learner, hare
    who = memory[learner.learning]
    np.testing.assert_array_equal(who.reshape(2, 3), np.eye(3)[[1, 2]])


def test_who_learns_among_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told and blind of a seed begin alike, and learn among the mixtures; the others' told among
    their lineups, for ever."""
    asked = Certificate(CONFIG, COMPANIES)
    assert asked.others.tolist() == [False, True, False, True]
    assert asked.total_steps == 2 * 3 * 3 * 512
    seen: list[Learning] = []

    def watched(learner: Learner, config: TrainConfig, keys: jax.Array) -> tuple[Learning, Update]:
        """Plays, and learns nothing."""
        first = jax.jit(learner.init_all)(keys)
        play = jax.jit(jax.vmap(lambda params, plays: learner._play(params, plays)[0]))

        def update(now: Learning) -> tuple[Learning, Metrics]:
            seen.append(now)
            return replace(now, plays=play(now.params, now.plays)), {}

        made: Any = update
        return first, made

    monkeypatch.setattr(reference_players, "first_and_next", watched)
    steps: list[int] = []
    both = (asked.drawing, None, [True, False])
    fresh, _ = asked._learned(*both, "", lambda n, _: steps.append(n))
    assert steps == [4 * 512] * 3
    oracle = [np.asarray(now.params[0].context) for now in seen]
    assert all((one == [[True], [False], [True], [False]]).all() for one in oracle)
    for leaf in jax.tree.leaves(fresh):
        np.testing.assert_array_equal(leaf[::2], leaf[1::2])
    boards = seen[0].plays.state
    for leaf in jax.tree.leaves(boards):
        np.testing.assert_array_equal(leaf[::2], leaf[1::2])
    own = jax.jit(asked.drawing.init)(seed_keys(CONFIG)[1])  # as the seed alone would begin
    for one, two in zip(*map(jax.tree.leaves, (own.plays.state, boards)), strict=True):
        np.testing.assert_array_equal(one, two[2])
    seen.clear()
    apart = asked._facing(asked._chosen[asked.others])[None]
    asked._learned(asked.table, apart, [True], "", lambda n, _: None)
    for now in seen:
        chosen = now.plays.choice[:, :, 1:]
        np.testing.assert_array_equal(chosen, np.tile([[3, 1], [1, 3]], (2, 32, 1)))
        assert now.params[0].context.all()
    # Best responses: every replica of a seed is among one lineup alone.
    seen.clear()
    alone = np.stack([asked._facing(one[None]) for one in asked._chosen])
    asked._learned(asked.table, alone, [True] * 4, "", lambda n, _: None)
    for now in seen:
        faced = np.asarray(now.plays.choice[:, :, 1:])
        assert (faced == np.tile(asked._chosen, (2, 1))[:, None]).all()


def test_the_blind_learn_as_plain_ppo_does() -> None:
    """As a run of the same seeds against all mixtures: the room for what others are shown, and
    their replicas beside, change nothing. Who is told comes to something else."""
    own_net = replace(CONFIG, net=NetConfig(kind="centred", hidden=8))
    asked = Certificate(own_net, COMPANIES)
    _, ended = asked._learned(asked.drawing, None, [True, False], "", lambda n, _: None)
    found = ended.policy
    config = replace(own_net, train_against="all")
    learner = make_learner(config, {})
    now, update = first_and_next(learner, config)
    for _ in range(config.updates):
        now = update(now)[0]
    plain = now.params[learner.learning].policy

    def seen(leaf: np.ndarray, like: np.ndarray) -> np.ndarray:
        return np.asarray(leaf)[:, :, : like.shape[2]] if like.ndim == 4 else np.asarray(leaf)

    pairs = list(zip(*map(jax.tree.leaves, (found, plain)), strict=True))
    for leaf, own in pairs:
        np.testing.assert_allclose(seen(leaf[1::2], own), own, rtol=1e-4, atol=1e-6)
    assert any(not np.allclose(seen(leaf[::2], own), own, atol=1e-3) for leaf, own in pairs)


def test_whose_returns_are_whose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With updates that mark everyone by replica, and returns that are the marks."""
    asked = Certificate(CONFIG, COMPANIES, best=True)

    def begun(learner: Learner, config: TrainConfig, keys: jax.Array) -> tuple[Learning, Update]:
        first = jax.jit(learner.init_all)(keys)
        param_sets = jax.tree.map(jnp.zeros_like, first.params[learner.learning])
        step = 100 if learner is asked.table else 1

        def marked(leaf: jax.Array) -> jax.Array:
            replica = jnp.arange(len(leaf)).reshape(-1, *[1] * (leaf.ndim - 1))
            return leaf + step * (replica + 1)

        def update(now: Learning) -> tuple[Learning, Metrics]:
            param_sets = jax.tree.map(marked, now.params[learner.learning])
            return replace(now, params=learner.with_param_sets(now.params, param_sets)), {}

        made: Any = update
        return replace(first, params=learner.with_param_sets(first.params, param_sets)), made

    def returns(
        self: Certificate, param_sets: PlayerParams, rows: np.ndarray, *, oracle: bool
    ) -> np.ndarray:
        leaf = np.asarray(jax.tree.leaves(param_sets)[0])
        marks = leaf.reshape(len(leaf), -1)[:, 0] + (0.5 if oracle else 0.0)
        return marks[np.broadcast_to(rows, (2, len(COMPANIES)))][..., None]  # of one episode

    monkeypatch.setattr(reference_players, "first_and_next", begun)
    monkeypatch.setattr(Certificate, "_returns", returns)
    played: list[int] = []
    found = asked.measure(tmp_path, lambda steps, note: played.append(steps))
    assert sum(played) == asked.total_steps
    # Three updates in replicas told, blind, told, blind; and in two of those among others.
    assert (found.oracle - 0.5).tolist() == [[3, 300, 3, 300], [9, 600, 9, 600]]
    assert found.blind.tolist() == [[6] * 4, [12] * 4]
    assert not found.random.any()
    assert found.best is not None
    assert (found.best - 0.5).tolist() == [[300, 600, 900, 1200], [1500, 1800, 2100, 2400]]
    again = asked.measure(tmp_path, lambda steps, note: played.append(steps))
    assert again.oracle.tolist() == found.oracle.tolist()
    assert again.best is not None
    assert again.best.tolist() == found.best.tolist()
    header, rows = certificate_rows(found)
    assert header[1] == "best responses"
    assert rows[1][1].mean == pytest.approx(1200.5)


def test_whom_returns_are_among(monkeypatch: pytest.MonkeyPatch) -> None:
    """With play that tells who plays among whom, and whether it is told."""
    asked = Certificate(CONFIG, COMPANIES, episodes=3)

    def unplayed(_: object, seating: object, params: Any, plays: Play, steps: int) -> Any:
        return plays, (params, plays)

    def told_apart(played: Any, number: int) -> Any:
        params, plays = played
        oracle = params[0].context[0]
        mark = jax.tree.leaves(params[0])[0].reshape(-1)[0]
        value = mark + 10 * plays.choice[:, 1] + 100 * plays.choice[:, 2] + 0.5 * oracle
        return SimpleNamespace(returns=jnp.stack([value] * 3, axis=1))

    monkeypatch.setattr(reference_players, "rollout", unplayed)
    monkeypatch.setattr(reference_players, "first_episodes", told_apart)
    param_sets = jax.jit(asked.table.init_all)(seed_keys(CONFIG)).params[0]
    marked = jax.tree.map(
        lambda leaf: jnp.ones_like(leaf) * jnp.arange(2).reshape(-1, *[1] * (leaf.ndim - 1)),
        param_sets,
    )
    among = np.array([100, 130, 220, 310])  # by the lineups' numbers 01, 31, 22, 13
    of_seeds = np.arange(2)[:, None]
    found = asked._returns(marked, of_seeds, oracle=False)
    np.testing.assert_array_equal(found[..., 0], among + of_seeds)
    np.testing.assert_array_equal(asked._returns(marked, of_seeds, oracle=True), found + 0.5)
    each = np.array([[0, 1, 1, 0], [1, 0, 0, 1]])
    np.testing.assert_array_equal(asked._returns(marked, each, oracle=False)[..., 0], among + each)


def test_mixtures_and_practised_company_are_told_apart() -> None:
    """Where told has learned and blind has not, their difference is more than being told."""
    oracle = np.array([[2.0, 9.0, 4.0, 8.0], [2.2, 9.0, 4.0, 8.0]])
    zeros = np.zeros_like(oracle)
    found = References(CONFIG.game, list(COMPANIES), oracle, zeros, zeros)
    assert found.practised.tolist() == [False, True, False, True]
    assert found.gap.mean == pytest.approx(3.05)
    assert found.widest == 2
    header, rows = certificate_rows(found)
    assert header == ["others", "oracle", "blind", "oracle − blind", "random"]
    assert [row[0] for row in rows[-2:]] == ["mean", "mean, practised"]
    assert str(rows[-1][1]).startswith("8.5")
    assert replace(found, lineups=[("switch", "hare")] * 4).widest == 1


def test_what_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", "--steps", "0"]) == 2
    assert "must be from 1 to" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="plain PPO"):
        Certificate(TrainConfig(parts=("opponent",)), COMPANIES)
    with pytest.raises(ConfigError, match="names no lineup"):
        Certificate(CONFIG, [])
    one = replace(CONFIG, ppo=replace(CONFIG.ppo, games=1, minibatches=1))
    with pytest.raises(ConfigError, match=r"2 lineups to learn among, but --ppo\.games are 1"):
        Certificate(one, COMPANIES)


def test_episodes_of_a_trial_where_co_players_remember_it(tmp_path: Path) -> None:
    """Anyone takes the coins of others now and then: a grudger gets worse for it, and who does not
    care does not."""
    config = replace(CONFIG, game=CoinConfig(size=3, horizon=8), trial=3)
    asked = Certificate(config, [("grudger",), ("cooperator",)], episodes=1024)
    assert asked.conditional
    learner = asked.table
    first = jax.jit(learner.init_all)(seed_keys(config))
    rows = np.arange(2)[:, None]
    returns = asked._returns(first.params[learner.learning], rows, oracle=False)
    assert returns.shape == (2, 2, 3)
    lost = returns[..., 0] - returns[..., -1]  # [S, K]
    assert (lost[:, 0] > 1).all()
    assert (np.abs(lost[:, 1]) < 0.5).all()
    by_episode = {"oracle": returns + 1, "blind": returns, "random": returns}
    alone: dict[str, Any] = {name: one[..., 0] for name, one in by_episode.items()}
    found = References(config.game, list(asked.lineups), **alone, by_episode=by_episode)
    assert [one.mean for one in found.lost_by_episode()] == pytest.approx([1.0] * 3)
    path = tmp_path / "kept.json"
    path.write_text(json.dumps({**asked.about, **found.as_json()}))
    np.testing.assert_array_equal(read_references(path).by_episode["oracle"], returns + 1)
    page = certificate_page(found, "3x3")
    assert page.payload["lost_by_episode"] == found.lost_by_episode()
    assert page.sections[1].rows[-1][1:] == found.lost_by_episode()
    # Among who remembers nothing, one episode is as good as another.
    assert not Certificate(CONFIG, [("stag", "hare")]).conditional
    assert "trial_episodes" not in Certificate(CONFIG, [("stag", "hare")]).about


def test_reference_players_look_ahead_over_the_trial(tmp_path: Path) -> None:
    """Both know how far the trial has come; the oracle alone is told who the other is, of the kinds
    that are named, and what it is after."""
    game, ppo = CoinConfig(size=3, horizon=8), replace(CONFIG.ppo, trial_discount=1.0)
    config = replace(CONFIG, game=game, trial=3, ppo=ppo)
    kinds = ("cooperator", "grudger")
    asked = Certificate(config, [(kind,) for kind in kinds], episodes=64, kinds=kinds)
    for oracle in (True, False):
        told = played(asked.drawing, oracle).act.inferred[:, :, 0]
        assert told.shape[-1] == 2 + 2 + 1
        assert np.unique(told[..., -1]).tolist() == [0, 0.5, 1]
        assert told[..., :2].any() == told[..., 2:4].any() == oracle
    found = asked.measure(tmp_path, lambda count, note: None)
    assert not found.practised.any()
    assert found.by_episode["oracle"].shape == (2, 2, 3)
    np.testing.assert_allclose(found.oracle, found.by_episode["oracle"].mean(axis=-1))
    gap = (found.oracle - found.blind).mean()
    assert found.share.mean == pytest.approx(gap / found.oracle.mean())
    again = read_references(asked.kept_at(tmp_path))
    assert again.kinds == kinds
    assert not again.practised.any()
    # Who is of none of the kinds stays, and forgets all the same when a trial ends.
    other = Certificate(config, [("tit-for-tat",)], kinds=("cooperator", "defector"))
    assert other.others.all()
    trials = played(other.table, True)
    assert (trials.choice[..., 1] == trials.choice[:1, :, 1]).all()
    new = trials.begins & (trials.episode == 0)
    assert new.sum() > new.shape[1]  # each game has come to a second trial
    assert not trials.memory[1][2].wrongs[new].any()
    assert trials.memory[1][2].wrongs.any()
