"""A goal prior that has been learned, and the file in which a run that uses one keeps it."""

import json
from dataclasses import dataclass
from pathlib import Path

import jax

from hopplus.config import ConfigError, GoalConfig, from_json, to_json
from hopplus.games.game import Game
from hopplus.models.goal import GoalPart
from hopplus.runs.checkpoint import filled, read_arrays, write_arrays
from hopplus.types import Params

PRIOR_FILE = "goal.safetensors"


@dataclass(frozen=True)
class Prior:
    """A goal prior and what it has learned."""

    part: GoalPart
    params: Params


def write_prior(folder: Path, prior: Prior | None) -> None:
    """Put a goal prior into a run's folder, so that the run needs nothing outside."""
    if prior is not None:
        about = {"goal": json.dumps(to_json(prior.part.config))}
        write_arrays(folder / PRIOR_FILE, prior.params, about)


def read_prior(folder: Path, game: Game) -> Prior | None:
    """The goal prior that a run's folder holds, if it holds one."""
    path = folder / PRIOR_FILE
    if not path.exists():
        return None
    arrays, about = read_arrays(path, "the goal prior")
    try:
        config = from_json(GoalConfig, json.loads(about["goal"]))
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"cannot read the goal prior {path}: {error}") from error
    part = GoalPart(game.shape, len(game.action_names), config)
    like = jax.eval_shape(part.init, jax.random.key(0))
    return Prior(part, filled(like, arrays, str(path)))
