"""What tests of games on a board share: random layouts and joint actions, play that is compiled
once, boards turned or mirrored, and frequencies. It knows no rules of a game."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chisquare

from hopplus.config import CoinConfig, SnowdriftConfig
from hopplus.games import make_game
from hopplus.games.game import Game, views
from hopplus.types import Outcome

Config = SnowdriftConfig | CoinConfig
Player = Callable[[Any, Any, int], Any]


def random_layouts(config: Config, count: int, seed: int) -> list[str]:
    """With some of the drifts, or with all coins and nobody on them: whatever play can lead to."""
    rng = np.random.default_rng(seed)
    if isinstance(config, SnowdriftConfig):
        drifts = rng.integers(1, config.drifts + 1, count)
        return [random_layout(rng, config, "D" * number, apart=False) for number in drifts]
    owners = rng.choice(list("abcd"[: config.seats]), (count, config.coins))
    return [random_layout(rng, config, coins, apart=True) for coins in owners]


def random_layout(rng: np.random.Generator, config: Any, things: Sequence[str], apart: bool) -> str:
    """Obstacles anywhere and things on cells of their own. Seats often share cells: those of
    things, or where they are to be `apart` from those, others."""
    cells = config.rows * config.columns
    walls = rng.integers(0, min(cells - config.pieces, cells // 3) + 1)
    free = rng.permutation(cells)[walls:]
    gathering = free[len(things) :] if apart else free[: 2 * len(things)]
    gathering = gathering[: rng.integers(1, len(gathering) + 1)]
    contents = ["#"] * cells
    for cell in free:
        contents[cell] = ""
    for seat, cell in enumerate(rng.choice(gathering, config.seats)):
        contents[cell] += str(seat)
    for thing, cell in zip(things, free, strict=False):
        contents[cell] += thing
    rows = [contents[i : i + config.columns] for i in range(0, cells, config.columns)]
    return "\n".join(" ".join(cell or "." for cell in row) for row in rows)


def parse_all(game: Game, texts: Sequence[str]) -> Any:
    """States [B]."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *[game.parse(text) for text in texts])


@cache
def compiled(config: Config) -> tuple[Any, Player]:
    """A game, and what plays it: joint actions [T, B, N] from states [B] with the keys of a seed;
    views before, states after and outcomes, all [T, B]."""
    game = make_game(config)

    @jax.jit
    def play(states: Any, joints: jax.Array, key: jax.Array) -> Any:
        def body(states: Any, now: Any) -> Any:
            joint, key = now
            keys = jax.random.split(key, joint.shape[0])
            after, outcome = jax.vmap(game.step)(states, joint, keys)
            return after, (jax.vmap(lambda state: views(game, state))(states), after, outcome)

        return jax.lax.scan(body, states, (joints, jax.random.split(key, joints.shape[0])))[1]

    def player(states: Any, joints: Any, seed: int) -> Any:
        return jax.device_get(play(states, jnp.asarray(joints, jnp.int32), jax.random.key(seed)))

    return game, player


def play_layout(config: Config, text: str, *joints: tuple[int, ...]) -> tuple[Any, Outcome, Any]:
    """Plays joint actions from a layout; the last state and outcome, and the game."""
    game, player = compiled(config)
    states = parse_all(game, [text])
    for joint in joints:  # one by one: one program does for any number of them
        _, states, outcome = at(player(states, [[joint]], 0), 0)
    return at(states, 0), at(outcome, 0), game


def at(tree: Any, *index: Any) -> Any:
    """The same place of every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def plain_rules(rules: Any, config: Config) -> Any:
    """The settings as the `Rules` of a plain reading."""
    names = [name for name in rules.__dataclass_fields__ if name not in ("height", "width")]
    same = {name: getattr(config, name) for name in names}
    return rules(height=config.rows, width=config.columns, **same)


def assert_equal(one: Any, two: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, two)


def assert_same_views(seen: Any, expected: list[list[Any]]) -> None:
    """Of some steps and all seats [T, N] at once, which is quicker than one by one."""
    for name in ("planes", "legal", "time", "last_actions"):
        found = getattr(seen, name)
        told = np.array([[getattr(view, name) for view in views] for views in expected])
        assert found.shape == told.shape
        np.testing.assert_array_equal(found, told.astype(found.dtype), err_msg=name)


def turned_cells(rows: int, columns: int, turns: int, flip: bool) -> tuple[np.ndarray, np.ndarray]:
    """Of a board mirrored (left to right), then turned counter-clockwise: the old cell at each new
    place, and the new place of each old cell."""
    cells = np.arange(rows * columns).reshape(rows, columns)
    old = np.rot90(np.fliplr(cells) if flip else cells, turns).ravel()
    new = np.empty_like(old)
    new[old] = np.arange(old.size)
    return old, new.astype(np.int32)


def turned_actions(actions: Any, turns: int, flip: bool) -> np.ndarray:
    """The names that moves have on such a board; whatever is no move keeps its own."""
    names = np.arange(4)
    if flip:
        names = np.array([0, 1, 3, 2])[names]
    for _ in range(turns):  # up becomes left, left down, down right, right up
        names = np.array([2, 3, 1, 0])[names]
    actions = np.asarray(actions)
    is_move = (actions >= 0) & (actions < 4)
    return np.where(is_move, names[np.clip(actions, 0, 3)], actions).astype(np.int32)


def turned_planes(planes: Any, turns: int, flip: bool) -> np.ndarray:
    """[..., H, W, C] planes of such a board."""
    planes = np.asarray(planes)
    return np.rot90(np.flip(planes, -2) if flip else planes, turns, axes=(-3, -2))


def assert_uniform(drawn: Any, kinds: int) -> None:
    """That the numbers `drawn` are below `kinds`, and all alike as far as chance lets one tell."""
    counts = np.bincount(np.asarray(drawn).ravel(), minlength=kinds)
    assert counts.size == kinds
    assert counts.sum() >= 50 * kinds
    assert chisquare(counts).pvalue > 1e-4
