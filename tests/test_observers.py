"""The best possible figure: exact, and reached by nobody who knows less."""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from conftest import record_small
from hopplus.diagnosis.models.classes import score_top
from hopplus.diagnosis.models.heldout import HeldOut, held_out
from hopplus.diagnosis.models.observers import Observer, observe
from hopplus.players.scripted import scripted
from hopplus.recorded.dataset import open_data
from hopplus.recorded.record import view_at


def recorded(path: Path, players: str) -> HeldOut:
    return held_out(open_data(record_small(path, "--players", players)), 1.0, 100_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("observers")


@pytest.fixture(scope="module")
def held(folder: Path) -> HeldOut:
    return recorded(folder / "mixed", "noisy-stag:0.1|noisy-hare:0.1")


@pytest.fixture(scope="module")
def observers(held: HeldOut) -> dict[str, Observer]:
    return observe(held)


def distributions(held: HeldOut, names: list[str]) -> Any:
    players = [scripted(name, held.game) for name in names]

    @jax.jit
    def of(row: int, seat: int) -> Any:
        view = view_at(held.game, held.source.rows, row, seat)
        acts = [p.act((), p.start(), view, jax.random.key(0))[1].logits for p in players]
        return jax.numpy.exp(jax.numpy.stack(acts))

    return of


def test_watching_is_the_rule_of_bayes(held: HeldOut, observers: dict[str, Observer]) -> None:
    """Worked out step by step, episode by episode, with plain products."""
    names = ["noisy-stag:0.1", "noisy-hare:0.1"]
    assert held.players == names
    of = distributions(held, names)
    number = {tuple(step): place for place, step in enumerate(held.steps.tolist())}
    for episode in range(12):
        first = held.shard.start[episode]
        for seat in range(3):
            belief = np.array([0.5, 0.5])
            for row in range(first, first + held.shard.length[episode] - 1):
                if not held.shard.rows.present[row, seat]:
                    continue
                place = number[row, seat]
                chances = np.asarray(of(row, seat), np.float64)
                np.testing.assert_allclose(
                    observers["watching"].probabilities[place], belief @ chances, atol=1e-5
                )
                np.testing.assert_allclose(
                    observers["guessing"].probabilities[place], chances.mean(axis=0), atol=1e-6
                )
                who = held.shard.who[episode, seat]
                np.testing.assert_allclose(
                    observers["oracle"].probabilities[place], chances[who], atol=1e-6
                )
                belief = belief * chances[:, held.action[place]]
                belief /= belief.sum()


def test_who_knows_more_foresees_more(held: HeldOut, observers: dict[str, Observer]) -> None:
    figures = {name: observer.figures() for name, observer in observers.items()}
    top1 = [figures[name]["top1"] for name in ("oracle", "watching", "guessing")]
    assert top1[0] > top1[1] > top1[2]
    loss = [figures[name]["cross_entropy"] for name in ("oracle", "watching", "guessing")]
    assert loss[0] < loss[1] < loss[2]
    # What is expected is what happens, but for chance: three standard errors.
    for name, observer in observers.items():
        log_probs = np.log(np.maximum(observer.probabilities, 1e-30))
        happened = score_top(log_probs, held.action, 1)
        error = (figures[name]["top1"] * (1 - figures[name]["top1"]) / len(held.action)) ** 0.5
        assert abs(happened - figures[name]["top1"]) < 3 * error


def test_figures_by_hand() -> None:
    truth = np.array([[0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]])
    observer = Observer(np.array([[0.6, 0.4, 0.0, 0.0], [0.4, 0.3, 0.2, 0.1]]), truth)
    figures = observer.figures()
    assert figures["top1"] == pytest.approx((0.5 + 0.1) / 2)
    assert figures["top3"] == pytest.approx((1.0 + 0.6) / 2)
    first = -(0.5 * np.log(0.6) + 0.5 * np.log(0.4))
    second = -(0.1 * np.log(0.4) + 0.2 * np.log(0.3) + 0.3 * np.log(0.2) + 0.4 * np.log(0.1))
    assert figures["cross_entropy"] == pytest.approx((first + second) / 2)
    np.testing.assert_allclose(observer.recall(), [1, 0, 0, 0])


def test_players_that_draw_what_they_are_after(folder: Path) -> None:
    """A switch is a stag or a hare hunter of even chances; told, one knows which it drew."""
    held = recorded(folder / "switch", "switch,noisy-switch:0.2,switch")
    observers = observe(held)
    of = distributions(held, ["stag", "hare", "noisy-stag:0.2", "noisy-hare:0.2"])
    for place in range(0, len(held.steps), 97):
        row, seat = held.steps[place]
        chances = np.asarray(of(row, seat))
        expected = chances[2 * held.who[place] + held.aim[place]]
        np.testing.assert_allclose(observers["oracle"].probabilities[place], expected, atol=1e-6)
        if held.time[place] == 0:  # not told the seat either: two of three are switches
            expected = np.array([2, 2, 1, 1]) / 6 @ chances
            np.testing.assert_allclose(
                observers["watching"].probabilities[place], expected, atol=1e-6
            )


def test_nobody_knows_a_learned_player(held: HeldOut) -> None:
    from dataclasses import replace

    assert observe(replace(held, players=["runs/a@0", "noisy-hare:0.1"])) == {}
