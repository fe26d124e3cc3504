"""The folder of a tiny run with random minds: as one that was trained, without the training."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import TrainConfig
from hopplus.learning.checkpoints import empty_learning, split_learning
from hopplus.learning.from_run import make_learner, new_run
from hopplus.runs.folder import RunFolder
from tiny_hop_plus import begun


def random_run(path: Path, config: TrainConfig) -> RunFolder:
    """A run of one seed."""
    run = new_run(path, config)
    learner = make_learner(config, {})
    shapes = empty_learning(learner, config)
    tree = jax.tree.map(_shaped, begun(learner), shapes)
    run.save(1, split_learning(learner, tree), {"score": 0.0, "seconds": 1.0}, config.keep)
    return run


def _shaped(leaf: Any, like: Any) -> Any:
    """By NumPy where it can: JAX would compile a program for every shape."""
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return (leaf if is_key else np.asarray(leaf)).reshape(like.shape)
