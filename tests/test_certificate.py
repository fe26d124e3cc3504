"""Certificates: who is shown what, who learns among whom, and whose returns are whose."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import ConfigError, NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.evaluation import certificate
from hopplus.evaluation.certificate import Certificate
from hopplus.evaluation.trials import begun, shown
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.rollout import rollout
from hopplus.learning.seeds import seed_keys
from hopplus.players.mind import Mind
from hopplus.players.mixture import MixtureMemory
from hopplus.types import Params

CONFIG = TrainConfig(
    game=StagHuntConfig(size=3, seats=3, hares=2, horizon=6),
    net=NetConfig(hidden=8),
    ppo=PPOConfig(games=18, unroll=4, minibatches=2, epochs=1),
    steps=10 * 72,
    seeds=2,
)
COMPANIES = [("stag", "hare"), ("random", "random"), ("switch", "hare")]


def test_the_told_are_shown_who_the_others_are() -> None:
    """From the first step of every episode on, and whoever is not told looks at zeros."""
    asked = Certificate(CONFIG, COMPANIES)
    learner = asked.learner
    params = learner.company.init(jax.random.key(0))

    def seen(told: bool) -> tuple[np.ndarray, np.ndarray]:
        choices = jnp.array([3, 1])  # switch, hare, of stag, hare, random, switch
        play = begun(learner.game, learner.seating, jax.random.key(1), jnp.append(0, choices))
        play = replace(play, memory=shown(learner, play.memory, choices, jnp.array(told)))
        plays = jax.tree.map(lambda leaf: leaf[None], play)
        trajectory = jax.jit(lambda plays: rollout(learner.game, learner.seating, params, plays, 9))
        after = trajectory(plays)[1]
        assert after.outcome.done.any()  # a second episode is begun
        return np.asarray(after.act.inferred[:, 0, 0]), np.asarray(after.act.logits[:, 0, 0])

    inferred, logits = seen(True)
    assert inferred.tolist() == [[0, 0, 0, 1, 0, 1, 0, 0]] * 9
    nothing, blind = seen(False)
    assert not nothing.any()
    assert (logits[0] != blind[0]).any()  # its policy is told


def test_who_learns_among_whom() -> None:
    """Every lane faces its own company for ever; and those who go on alone go on with the run."""
    asked = Certificate(CONFIG, COMPANIES, alone_steps=2 * 72)
    assert (asked.pupils, asked.last, asked.others) == (3, 2, [False, False, True])
    assert asked.total_steps == 2 * (10 * 3 + 2 * 3) * 72
    learner = asked.learner
    assert learner.updates == 10  # one schedule for the whole run
    first = jax.jit(learner.init_all)(seed_keys(replace(CONFIG, seeds=6)))
    ways = [asked._ways, asked._ways, asked._apart]
    now, update = asked._facing(first, ways, [True, False, True]), jax.jit(learner.update_all)
    for _ in range(2):
        (kept,) = (kept for kept in now.plays.memory if isinstance(kept, MixtureMemory))
        chosen = np.asarray(kept.choice).reshape(2, 3, 18, 2)  # [S, pupils, B, M]
        of_all = chosen[:, :2].reshape(4, 18, 2)
        for lane in of_all:  # nine ways to seat three kinds in two seats, as often each
            found, often = np.unique(lane, axis=0, return_counts=True)
            assert found.tolist() == [[a, b] for a in range(3) for b in range(3)]
            assert often.tolist() == [2] * 9
        assert (chosen[:, 2] == [3, 1]).all()  # the company of others
        own = np.asarray(now.plays.memory[learner.learning].state)
        who = np.eye(4)[chosen].reshape(2, 3, 18, 8)
        who[:, 1] = 0
        np.testing.assert_array_equal(own.reshape(who.shape), who)
        now = update(now)[0]
    lanes = np.array([0, 1, 2, 2, 4, 5])
    later = certificate._going_on(learner, first, now, lanes)
    assert later.updates == now.updates == 2
    for part in ("optimiser", "params"):
        old, new = (jax.tree.leaves(getattr(one, part)) for one in (now, later))
        for before, after in zip(old, new, strict=True):
            np.testing.assert_array_equal(after, before[lanes])


def test_whose_returns_are_whose(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With updates that mark everyone by lane and nothing else, returns are those of the marks."""
    asked = Certificate(CONFIG, COMPANIES, alone_steps=3 * 72)
    widths: list[int] = []

    def mark(minds: Mind) -> jax.Array:
        leaf: jax.Array = jax.tree.leaves(minds)[0]
        return leaf.reshape(len(leaf), -1)[:, 0]

    def begun(
        learner: Learner, config: TrainConfig
    ) -> tuple[Learning, Callable[[Learning], tuple[Learning, dict[str, jax.Array]]]]:
        first = jax.jit(learner.init_all)(seed_keys(config))
        minds = jax.tree.map(jnp.zeros_like, first.params[learner.learning])
        widths.append(config.seeds)
        step = 100.0 ** (len(widths) - 1)  # lanes of the first part count ones, then hundreds

        def update(now: Learning) -> tuple[Learning, dict[str, jax.Array]]:
            def marked(leaf: jax.Array) -> jax.Array:
                lane = jnp.arange(len(leaf)).reshape(-1, *[1] * (leaf.ndim - 1))
                return leaf + step * (lane + 1)

            params = tuple(
                jax.tree.map(marked, kept) if group == learner.learning else kept
                for group, kept in enumerate(now.params)
            )
            return replace(now, params=params, updates=now.updates + 1), {}

        params = tuple(
            minds if group == learner.learning else kept for group, kept in enumerate(first.params)
        )
        return replace(first, params=params), update

    def returns(
        self: Certificate, guests: tuple[Params, ...], minds: Mind, *, told: bool
    ) -> np.ndarray:
        return np.asarray(mark(minds)).reshape(2, 3) + (0.5 if told else 0.0)

    monkeypatch.setattr(certificate, "first_and_next", begun)
    monkeypatch.setattr(Certificate, "_returns", returns)
    notes: list[tuple[int, str]] = []
    found = asked.measure(tmp_path, lambda steps, note: notes.append((steps, note)))
    assert widths == [6, 12]  # three pupils of each seed, then three more alone
    assert sum(steps for steps, _ in notes) == asked.total_steps
    # Seven updates in lanes told, blind, among others of two seeds; three as one of twelve.
    assert (found.told - 0.5).tolist() == [
        [7 * 1 + 300 * 1, 7 * 1 + 300 * 1, 7 * 3 + 300 * 3],
        [7 * 4 + 300 * 7, 7 * 4 + 300 * 7, 7 * 6 + 300 * 9],
    ]
    assert found.blind.tolist() == [[7 * 2 + 300 * 2] * 3, [7 * 5 + 300 * 8] * 3]
    assert found.alone is not None
    assert (found.alone - 0.5).tolist() == [
        [7 * 1 + 300 * 4, 7 * 1 + 300 * 5, 7 * 3 + 300 * 6],
        [7 * 4 + 300 * 10, 7 * 4 + 300 * 11, 7 * 6 + 300 * 12],
    ]
    assert not found.random.any()


def test_what_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", "--steps", "0"]) == 2
    assert "above 0" in capsys.readouterr().err
    assert main(["certify", "--alone-steps", "-1"]) == 2
    assert "above 0" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="plain PPO"):
        Certificate(TrainConfig(parts=("opponent",)), [])
    with pytest.raises(ConfigError, match="--alone-steps 720 are the last of --steps 720"):
        Certificate(CONFIG, [], alone_steps=720)
