"""A learner whose updates can be looked into, and repeated under other conditions.

Seeds and conditions are lanes side by side in one program, so that whatever is asked of it is
compiled once.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import TrainConfig
from hopplus.learning.dreams import Dreams
from hopplus.learning.learner import Learner, Learning, Lesson
from hopplus.learning.ppo import Batch
from hopplus.learning.programs import start_options
from hopplus.learning.seeds import seed_keys
from hopplus.learning.train import record_of
from hopplus.planning.imagine import Dream

Record = dict[str, Any]
Tree = TypeVar("Tree")


class Switch(eqx.Module):
    """What imagination is allowed; arrays, so that lanes may differ."""

    imagine: jax.Array  # [] bool, learn from imagined steps at all
    reward: jax.Array  # [] float32, imagined rewards count this many times
    override: jax.Array  # [] bool, decide whether values learn from imagined steps
    critic: jax.Array  # [] bool, whether they do then


def _switched(learner: Learner, switch: Switch) -> Learner:
    """The learner with a switch at its imagination, if it has one."""
    dreams = learner.beside.dreams
    if dreams is None:
        return learner

    def make_batch(own: Dreams, dream: Dream, observed: jax.Array, open_: jax.Array) -> Batch:
        dream = replace(dream, reward=dream.reward * switch.reward)
        batch = dreams.make_batch(own, dream, observed, open_ & switch.imagine)
        forced = batch.present & switch.critic
        return replace(batch, valued=jnp.where(switch.override, forced, batch.valued))

    beside = replace(learner.beside, dreams=replace(dreams, make_batch=make_batch))
    return replace(learner, beside=beside)


class Laboratory:
    """Updates of `lanes` learnings side by side."""

    def __init__(
        self,
        learner: Learner,
        config: TrainConfig,
        lanes: int,
        make: Callable[[TrainConfig], Learner],
    ) -> None:
        self.learner, self.config, self.lanes = learner, config, lanes
        self.make = make  # such a learner for other settings, with the same company and fault
        axes = learner.axes

        def update(switch: Switch, now: Learning) -> tuple[Learning, Any, Lesson]:
            return _switched(learner, switch).update_shown(now)

        over_lanes = jax.vmap(update, in_axes=(0, axes), out_axes=(axes, 0, 0))
        self._update: Any = self._jit(over_lanes)
        self._compiled: dict[str, Callable[..., Any]] = {}

    def compiled(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, compiled once however often it is asked for by that name."""
        return self._compiled.setdefault(name, self._jit(function))

    def _jit(self, function: Callable[..., Any]) -> Any:
        return jax.jit(function, compiler_options=start_options(self.config))

    def first(self, seed: int) -> Learning:
        """Fresh beginnings, each lane with a seed of its own from that one on; the update is
        compiled meanwhile."""
        keys = seed_keys(replace(self.config, seeds=self.lanes, seed=seed))
        init = self.compiled("init", self.learner.init_all)
        with ThreadPoolExecutor(1) as beside:
            made = beside.submit(lambda: jax.block_until_ready(init(keys)))
            if isinstance(self._update, jax.stages.Wrapped):
                shapes = jax.eval_shape(self.learner.init_all, keys)
                self._update = self._update.lower(self.as_it_is(), shapes).compile()
            first: Learning = made.result()
        return first

    def as_it_is(self) -> Switch:
        """Everything as configured, in every lane."""
        return self.switches([self.usual()] * self.lanes)

    def usual(self, **changes: Any) -> dict[str, Any]:
        """The switch of one lane as it is, but for the changes."""
        usual = {"imagine": True, "reward": 1.0, "override": "critic" in changes, "critic": False}
        return {**usual, **changes}

    def switches(self, lanes: Sequence[dict[str, Any]]) -> Switch:
        return Switch(
            imagine=jnp.array([lane["imagine"] for lane in lanes]),
            reward=jnp.array([lane["reward"] for lane in lanes], jnp.float32),
            override=jnp.array([lane["override"] for lane in lanes]),
            critic=jnp.array([lane["critic"] for lane in lanes]),
        )

    def update(self, now: Learning, switch: Switch) -> tuple[Learning, Record, Lesson]:
        """One update of every lane: what is learned then, what would be logged, and from what."""
        after, metrics, lesson = self._update(switch, now)
        return after, record_of(int(now.updates) + 1, self.config, metrics), lesson


def lanes_of(learning: Learning, lanes: Sequence[int]) -> Learning:
    """The lanes of these numbers, any of them as often as it is named."""
    now = learning
    own = (now.params, now.optimiser, now.kept, now.plays, now.returns, now.key)
    params, optimiser, kept, plays, returns, key = _taken(own, np.asarray(lanes))
    return Learning(params, optimiser, kept, plays, returns, key, now.updates)  # one for all


def lane_of(tree: Tree, lane: int) -> Tree:
    """One lane of anything that has them all."""
    found: Tree = _taken(tree, lane)
    return found


@jax.jit  # one program, not one for every shape
def _taken(tree: Tree, where: jax.Array) -> Tree:
    found: Tree = jax.tree.map(lambda leaf: leaf[where], tree)
    return found
