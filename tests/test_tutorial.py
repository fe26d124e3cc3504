"""The tutorial of docs/extending.md, as it stands: its file, its commands, and its rules."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docs_markdown import Command, steps_of
from hopplus.cli import main
from hopplus.config import ConfigError
from hopplus.games.game import views
from hopplus.games.layout import taken_apart

from examples.orchard import Orchard, OrchardConfig  # isort: skip

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
TUTORIAL = PAGE[PAGE.index("## A game and a co-player") : PAGE.index("## A game of your own")]
SMALL = {
    "train": "--net.hidden 8 --ppo.games 4 --ppo.unroll 20 --ppo.minibatches 1 --ppo.epochs 1"
    " --steps 80",
    "evaluate": "--episodes 8 --games 8",
}


def test_it_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = re.search(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)
    assert shown
    assert len(shown[1].splitlines()) < 80
    (tmp_path / "orchard.py").write_text(shown[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    commands = [step for step in steps_of(TUTORIAL) if isinstance(step, Command)]
    words = [list(step.words[1:]) for step in commands if step.words[0] == "hopplus"]
    assert " ".join(one[0] for one in words) == "list evaluate train evaluate replay report"
    for one in words:
        assert main([*one, *SMALL.get(one[0], "").split()]) == 0, one
    assert (tmp_path / "orchard.gif").read_bytes()[:3] == b"GIF"
    page = (tmp_path / "runs" / "orchard" / "report.html").read_text(encoding="utf-8")
    assert "orchard:ROW" in page
    assert '"replays"' in page


# The rules that a gathering game has, on layouts worked by hand: 3x3, two seats.

GAME = Orchard(OrchardConfig(size=3, apples=2, saplings=1))
UP, DOWN, LEFT, RIGHT, STAY = range(5)


class Once(Orchard):
    returns = False


@cache
def step_of(game: Orchard) -> Any:
    return jax.jit(game.step)


def played(game: Orchard, text: str, *joint: int, seed: int = 0) -> tuple[Any, Any]:
    after, outcome = step_of(game)(game.parse(text), jnp.array(joint), jax.random.key(seed))
    return after, outcome


def test_who_walks_onto_a_thing_takes_it() -> None:
    after, outcome = played(GAME, "0 a .\n. s 1\n. . a", RIGHT, LEFT)
    np.testing.assert_array_equal(outcome.reward, [1 - 1, 2])  # the sapling costs the other 1
    np.testing.assert_array_equal(outcome.took, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(outcome.taken, [1, 1])
    np.testing.assert_array_equal(after.seats, [1, 4])
    board = taken_apart(GAME.show(after))
    assert sorted(map(len, board.things.values())) == [1, 2]  # both are back
    assert 8 in board.things["a"]
    assert not {1, 4} & {*board.things["a"], *board.things["s"]}


def test_who_comes_at_once_shares() -> None:
    _, outcome = played(GAME, "0 s 1\n. . .\n. . .", RIGHT, LEFT)
    np.testing.assert_array_equal(outcome.reward, [0.5, 0.5])
    np.testing.assert_array_equal(outcome.took, [[0, 1], [0, 1]])
    np.testing.assert_array_equal(outcome.taken, [0, 1])


def test_what_cannot_be_done_counts_as_staying() -> None:
    after, outcome = played(GAME, "0 a .\n. . .\n. . 1", UP, STAY)
    np.testing.assert_array_equal(outcome.illegal, [True, False])
    np.testing.assert_array_equal(after.last_actions, [STAY, STAY])
    np.testing.assert_array_equal(after.seats, [0, 8])


def test_things_come_back_anywhere_free_by_the_key_alone() -> None:
    found = [
        taken_apart(GAME.show(played(GAME, "0 a .\n. . .\n. . 1", RIGHT, STAY, seed=seed)[0]))
        for seed in range(40)
    ]
    cells = {board.things["a"][0] for board in found}
    assert cells == {0, 2, 3, 4, 5, 6, 7}
    assert {len(board.things["a"]) for board in found} == {1}


def test_without_return_an_episode_ends_with_the_last_thing() -> None:
    game = Once(GAME.config)
    after, outcome = played(game, "0 a .\n. . .\n. a 1", RIGHT, STAY)
    assert not outcome.done
    assert "a" in game.show(after)
    after, outcome = step_of(game)(after, jnp.array([STAY, LEFT]), jax.random.key(0))
    assert outcome.done
    assert "a" not in game.show(after)
    np.testing.assert_array_equal(outcome.reward, [0, 1])


def test_what_is_seen_is_all_there_is() -> None:
    """A seat's view shows itself first, and the state of it goes on as the board does."""
    state = GAME.parse("0 a .\n. s 1\n. . a")
    seen = jax.jit(lambda state: views(GAME, state))(state)
    np.testing.assert_array_equal(np.argwhere(seen.planes[1, ..., 0]), [[1, 2]])
    np.testing.assert_array_equal(np.argwhere(seen.planes[1, ..., 1]), [[0, 0]])
    np.testing.assert_array_equal(np.argwhere(seen.planes[1, ..., 3]), [[0, 1], [2, 2]])
    np.testing.assert_array_equal(np.argwhere(seen.planes[1, ..., 4]), [[1, 1]])
    turned = jax.jit(GAME.seen)(jax.tree.map(lambda leaf: leaf[1], seen))
    assert GAME.show(turned) == GAME.show(GAME.parse("1 a .\n. s 0\n. . a"))
    _, outcome = step_of(GAME)(turned, jnp.array([LEFT, RIGHT]), jax.random.key(0))
    np.testing.assert_array_equal(outcome.reward, [2, 0])


def test_what_is_gone_is_not_seen() -> None:
    text = GAME.show(GAME.parse("0 a .\n. . 1\n. . ."))
    seen = jax.jit(lambda state: GAME.seen(GAME.view(state, 0)))(GAME.parse(text))
    assert GAME.show(seen) == text


def test_layouts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="the layout has 2 s but the game is set to 1"):
        GAME.parse("0 s s\n. . .\n. . 1")
    with pytest.raises(ConfigError, match="lacks seat 1"):
        GAME.parse("0 s .\n. . .\n. . .")
