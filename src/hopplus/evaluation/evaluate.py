"""How well do these players do together? Whole episodes, each played once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.games.game import Game
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import Seating
from hopplus.program_cache import kept_jit
from hopplus.types import Params, Trajectory


class Episodes(eqx.Module):
    """What came of each of E episodes."""

    returns: Any  # [E, N] float32
    took: Any  # [E, N, K] int32, things of each kind a seat had a share in
    taken: Any  # [E, K] int32, things of each kind that were taken
    illegal: Any  # [E, N] int32, illegal actions
    length: Any  # [E] int32, steps


def first_episodes(trajectory: Trajectory, number: int = 0) -> Episodes:
    """Add up the first episode of each game of a trajectory that began with fresh games, or that
    of another number, from 0 on."""
    done = trajectory.outcome.done.astype(jnp.int32)
    first = jnp.cumsum(done, axis=0) - done == number  # [T, B], up to and with its ending

    def total(leaf: jax.Array) -> jax.Array:
        mask = first.reshape(first.shape + (1,) * (leaf.ndim - 2))
        return jnp.where(mask, leaf, 0).sum(axis=0)

    outcome = trajectory.outcome
    return Episodes(
        returns=total(outcome.reward),
        took=total(outcome.took),
        taken=total(outcome.taken),
        illegal=total((outcome.illegal & trajectory.present).astype(jnp.int32)),
        length=first.sum(axis=0),
    )


@kept_jit
def play_episodes(
    game: Game,
    seating: Seating,
    params: tuple[Params, ...],
    key: jax.Array,
    numbers: jax.Array | np.ndarray,
    choices: jax.Array | None = None,
) -> Episodes:
    """An episode for each of the numbers [B]. All end within the horizon, so none is cut off.

    With [N] ones of the mixtures seated if `choices` are given; else they are drawn.
    """
    keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers)
    plays = jax.vmap(lambda key: start(game, seating, key, choices))(keys)
    return first_episodes(rollout(game, seating, params, plays, game.horizon)[1])


def evaluate(
    game: Game,
    seating: Seating,
    params: tuple[Params, ...],
    key: jax.Array,
    episodes: int,
    games: int = 1024,
    on_progress: Callable[[int, str], None] = lambda count, note: None,
    choices: jax.Array | None = None,
    focal: Sequence[int] | None = None,
) -> Episodes:
    """Play `episodes` episodes, `games` side by side; the same whatever the number side by side.

    `choices` as in `play_episodes`; progress shows the mean of the `focal` seats, of all if none
    are named.
    """
    shown = slice(None) if focal is None else list(focal)
    batch = min(games, episodes)
    parts = []
    for first in range(0, episodes, batch):
        numbers = np.arange(first, first + batch, dtype=np.int32)  # the last plays a few too many
        part = jax.device_get(play_episodes(game, seating, params, key, numbers, choices))
        parts.append(jax.tree.map(lambda leaf: leaf[: episodes - first], part))  # noqa: B023
        mean = float(np.mean(parts[-1].returns[:, shown]))
        on_progress(min(batch, episodes - first), f"mean return {mean:.2f}")
    together: Episodes = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return together


@dataclass(frozen=True)
class Measured:
    """A mean with two intervals: over episodes, for these very players, and over seeds."""

    episodes: Estimate
    seeds: Estimate | None  # None without several seeds
    by_seed: np.ndarray  # [S]

    def as_json(self) -> dict[str, Any]:
        return {
            **self.episodes.as_json(),
            "over_seeds": self.seeds.as_json() if self.seeds else None,
            "by_seed": self.by_seed.tolist(),
        }


@dataclass(frozen=True)
class Evaluation:
    """The episodes in figures; S is 1 where players have no seeds."""

    game: str
    players: tuple[str, ...]
    kinds: tuple[str, ...]
    episodes: int  # of each seed
    seeds: tuple[int, ...]  # those of the run; none without one
    focal: tuple[int, ...]  # the seats that the mean is over
    returns: tuple[Measured, ...]  # [N]
    mean_return: Measured  # of the focal seats' mean
    joint_return: Measured
    best_joint_return: float | None
    took: np.ndarray  # [N, K] per episode
    taken: np.ndarray  # [K] per episode
    illegal: np.ndarray  # [N] per episode
    length: Estimate

    def as_json(self) -> dict[str, Any]:
        seats = [
            {
                "seat": seat,
                "player": self.players[seat],
                "return": self.returns[seat].as_json(),
                "took": dict(zip(self.kinds, self.took[seat].tolist(), strict=True)),
                "illegal": float(self.illegal[seat]),
            }
            for seat in range(len(self.players))
        ]
        return {
            "game": self.game,
            "episodes": self.episodes,
            "seeds": list(self.seeds),
            "seats": seats,
            "mean_over_seats": list(self.focal),
            "mean_return": self.mean_return.as_json(),
            "joint_return": self.joint_return.as_json(),
            "best_joint_return": self.best_joint_return,
            "taken": dict(zip(self.kinds, self.taken.tolist(), strict=True)),
            "length": self.length.as_json(),
        }


def summarise(
    game: Game,
    seating: Seating,
    played: Sequence[Episodes],
    focal: Sequence[int] | None = None,
    seeds: Sequence[int] = (),
) -> Evaluation:
    """Means and intervals of what came of the episodes of each of [S] seeds; `focal` are the seats
    to take the mean over, all when not given."""
    everyone = tuple(range(game.seats))
    focal = tuple(focal) if focal is not None else everyone
    returns = np.stack([one.returns for one in played]).astype(np.float64)  # [S, E, N]
    together: Episodes = jax.tree.map(lambda *leaves: np.concatenate(leaves), *played)
    return Evaluation(
        game=game.name,
        players=seating.names,
        kinds=tuple(game.targets),
        episodes=returns.shape[1],
        seeds=tuple(seeds),
        focal=focal,
        returns=tuple(measured(returns[:, :, seat]) for seat in everyone),
        mean_return=measured(returns[:, :, list(focal)].mean(axis=2)),
        joint_return=measured(returns.sum(axis=2)),
        best_joint_return=game.best_joint_return,
        took=together.took.mean(axis=0),
        taken=together.taken.mean(axis=0),
        illegal=together.illegal.mean(axis=0),
        length=measured(np.stack([one.length for one in played]).astype(np.float64)).episodes,
    )


def measured(samples: np.ndarray) -> Measured:
    """Of [S, E] samples of as many episodes for each seed."""
    by_seed = samples.mean(axis=1)
    # All seeds play the same boards, so that an episode is one sample, whatever their number.
    over_episodes = estimate(samples.mean(axis=0))
    return Measured(over_episodes, estimate(by_seed) if len(by_seed) > 1 else None, by_seed)
