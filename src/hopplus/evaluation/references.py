"""What could be had, and what is had without understanding anyone: measured, never guessed.

`told` has learned against one mixture alone, so it knows whom it faces. `blind` has learned against
all mixtures without memory. `random` does anything legal.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError, GameConfig, TrainConfig, from_json, to_json
from hopplus.evaluation.evaluate import first_episodes
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.evaluation.trials import mixtures
from hopplus.games import make_game
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.programs import first_and_next
from hopplus.learning.restore import make_learner
from hopplus.learning.rollout import Play, rollout, start
from hopplus.players.mixture import Mixture, MixtureMemory
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors
from hopplus.types import Params

FOR_EVER = 2**30  # episodes of a trial that never ends
OnUpdate = Callable[[int, str], None]  # environment steps that were played, and a note


@dataclass(frozen=True)
class References:
    """Returns of the first seat by seed and mixture, each a mean over many episodes."""

    game: GameConfig
    mixtures: list[tuple[str, ...]]  # [K]
    told: np.ndarray  # [S, K]
    blind: np.ndarray  # [S, K]
    random: np.ndarray  # [K]

    def gaps(self) -> list[Estimate]:
        """[K] what being told brings, over seeds."""
        return [estimate(self.told[:, k] - self.blind[:, k]) for k in range(len(self.mixtures))]

    def as_json(self) -> dict[str, Any]:
        return {
            "mixtures": [list(mixture) for mixture in self.mixtures],
            "told": self.told.tolist(),
            "blind": self.blind.tolist(),
            "random": self.random.tolist(),
        }


def references(config: TrainConfig, folder: Path, episodes: int, on_update: OnUpdate) -> References:
    """Train and measure all three, or read what an earlier call with the same settings has kept."""
    if config.parts or config.memory.kind != "none" or config.search.simulations:
        raise ConfigError("reference players are plain PPO: leave parts, memory and search out")
    path = kept_at(config, folder, episodes)
    if path.exists():
        on_update(2 * total_steps(config), "read from an earlier call")
        return read_references(path)
    game = make_game(config.game)
    mixed = mixtures(game)
    told = _told(config, mixed, episodes, on_update)
    blind, anyone = _blind(config, mixed, episodes, on_update)
    found = References(config.game, mixed, told, blind, anyone)
    with clear_errors(f"write {path}"):
        folder.mkdir(parents=True, exist_ok=True)
        about = {"config": to_json(config), "episodes": episodes}
        text = json.dumps({**about, **found.as_json()}, indent=2)
        write_durably(path, text.encode())
    return found


def kept_at(config: TrainConfig, folder: Path, episodes: int) -> Path:
    """The file that keeps what is measured with these settings."""
    about = json.dumps({"config": to_json(config), "episodes": episodes}, sort_keys=True)
    return folder / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.json"


def read_references(path: Path) -> References:
    """What an earlier call has kept."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        game = from_json(TrainConfig, kept["config"]).game
        mixed = [tuple(mixture) for mixture in kept["mixtures"]]
        measured = [np.array(kept[kind], np.float64) for kind in ("told", "blind", "random")]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"cannot read the references {path}: {error}") from error
    return References(game, mixed, *measured)


def total_steps(config: TrainConfig) -> int:
    """Environment steps of the blind players, or of those told about one mixture, of all seeds."""
    return config.updates * config.ppo.steps * config.seeds


def _seated(config: TrainConfig, seeds: int, trial: int) -> TrainConfig:
    return replace(config, train_against="all", seats=None, trial=trial, seeds=seeds)


def _choices(learner: Learner, mixture: Sequence[str]) -> np.ndarray:
    """[N - 1] who of the others' mixtures that is, by number."""
    player = next(p for p in learner.seating.players if isinstance(p, Mixture))
    names = [one.name for one in player.players]
    return np.array([names.index(name) for name in mixture])


def _with_choices(learner: Learner, memory: Any, choices: jax.Array) -> Any:
    """The memories [..., ...] of everyone with the others chosen, [..., N - 1]."""
    return tuple(
        kept._replace(choice=jnp.broadcast_to(choices, kept.choice.shape))
        if isinstance(kept, MixtureMemory)
        else kept
        for kept in memory
    )


def facing(learner: Learner, learning: Learning, choices: jax.Array) -> Learning:
    """The learning with the others [L, N - 1] of each lane chosen in all its games."""
    memory = _with_choices(learner, learning.plays.memory, choices[:, None])
    return replace(learning, plays=replace(learning.plays, memory=memory))


def _told(
    config: TrainConfig, mixed: Sequence[tuple[str, ...]], episodes: int, on_update: OnUpdate
) -> np.ndarray:
    """[S, K] one player for each seed and mixture, all side by side in one program."""
    lanes = config.seeds * len(mixed)
    every = _seated(config, lanes, FOR_EVER)
    learner = make_learner(every, {})
    first, update = first_and_next(learner, every)
    chosen = np.array([_choices(learner, mixture) for mixture in mixed])  # [K, N - 1]
    choices = jnp.asarray(np.tile(chosen, (config.seeds, 1)), jnp.int32)  # [S * K, N - 1]
    now = facing(learner, first, choices)
    for number in range(every.updates):
        now, _ = update(now)
        on_update(config.ppo.steps * config.seeds, f"told, update {number + 1}")
    returns = _returns(learner, now, choices, config.seed, episodes)
    return returns.reshape(config.seeds, len(mixed))


def _blind(
    config: TrainConfig, mixed: Sequence[tuple[str, ...]], episodes: int, on_update: OnUpdate
) -> tuple[np.ndarray, np.ndarray]:
    """[S, K] players that have learned against all, and [K] random ones."""
    every = _seated(config, config.seeds, 1)
    learner = make_learner(every, {})
    now, update = first_and_next(learner, every)
    fresh = now.params  # before the first update a policy is as good as random
    fresh = jax.tree.map(jnp.copy, fresh)
    begun = replace(now, params=fresh)
    for number in range(every.updates):
        now, _ = update(now)
        on_update(config.ppo.steps * config.seeds, f"blind, update {number + 1}")
    blind, anyone = [], []
    for mixture in mixed:
        choices = jnp.asarray(_choices(learner, mixture), jnp.int32)
        together = jnp.broadcast_to(choices, (config.seeds, len(mixture)))
        blind.append(_returns(learner, now, together, config.seed, episodes))
        anyone.append(_returns(learner, begun, together, config.seed, episodes).mean())
    return np.array(blind).T, np.array(anyone)


def _returns(
    learner: Learner, now: Learning, choices: jax.Array, seed: int, episodes: int
) -> np.ndarray:
    """[L] mean returns of the first seat of each lane, with the others [L, N - 1] chosen."""
    game, seating = learner.game, learner.seating

    def lane(params: tuple[Params, ...], choices: jax.Array, key: jax.Array) -> jax.Array:
        def begun(key: jax.Array) -> Play:
            play = start(game, seating, key)
            return replace(play, memory=_with_choices(learner, play.memory, choices))

        plays = jax.vmap(begun)(jax.random.split(key, episodes))
        trajectory = rollout(game, seating, params, plays, game.horizon)[1]
        returns: jax.Array = first_episodes(trajectory).returns[:, 0].mean()
        return returns

    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 7), len(choices))
    played = jax.jit(jax.vmap(lane))(now.params, choices, keys)
    return np.asarray(played, np.float64)
