"""Does every seat learn as often and by as much as the others, and is that what is logged? Computed
anew, apart from the learner's own code."""

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from hopplus.diagnosis.subject import Laboratory, Record, learned_from, replica_of
from hopplus.learning.auxiliary.transitions import Transitions
from hopplus.learning.learner import Learner, Learning, Lesson
from hopplus.types import Trajectory


@dataclass(frozen=True)
class LogAudit:
    """[N] returns of the episodes that ended in an update, as logged and added up anew."""

    logged: list[float]
    true: list[float]

    @property
    def right(self) -> bool:
        return bool(np.allclose(self.logged, self.true, atol=1e-2, rtol=1e-4))

    @property
    def moved(self) -> list[int] | None:
        """For each seat, whose return was logged as its own; None where that cannot be told."""
        found = []
        for logged in self.logged:
            near = np.flatnonzero(np.isclose(self.true, logged, atol=1e-2, rtol=1e-4))
            if len(near) != 1:
                return None
            found.append(int(near[0]))
        return found

    def as_json(self) -> dict[str, Any]:
        return {"logged": self.logged, "true": self.true, "moved": self.moved}


def log_audit(before: Learning, trajectory: Trajectory, record: Record, replica: int) -> LogAudit:
    """Hold an update's record against its trajectory, of one replica."""
    returns = np.array(before.returns[replica], np.float64)  # [B, N] of episodes in flight
    reward, done = (
        np.asarray(part) for part in (trajectory.outcome.reward, trajectory.outcome.done)
    )
    total = np.zeros(returns.shape[1])
    for got, ended in zip(reward, done, strict=True):
        returns += got
        total += returns[ended].sum(axis=0)
        returns[ended] = 0
    return LogAudit([float(value) for value in record["return_sum"][replica]], total.tolist())


@dataclass(frozen=True)
class BufferAudit:
    """What one part keeps to learn from: [sets] steps of each set's own seats, and their age."""

    part: str
    fill: list[int]
    age: list[float]  # in updates, on average; NaN for nothing


def buffer_audits(learner: Learner, learning: Learning, replica: int) -> list[BufferAudit]:
    """Every part whose buffer holds steps of play."""
    states = replica_of(learning.auxiliary_state.parts, replica)
    found = []
    for part in learner.auxiliary.parts:
        buffer = states[part.name].buffer
        if not isinstance(buffer, Transitions) or buffer.joint.ndim != 2:
            continue
        rows, steps = len(buffer.joint), learner.config.steps
        slots = rows // steps
        age = (int(learning.updates) - 1 - np.arange(rows) // steps) % slots
        present = np.asarray(part.usable(buffer))
        own = [present[:, seats].any(axis=1) for seats in learner.auxiliary.seats]
        ages = [float(age[there].mean()) if there.any() else float("nan") for there in own]
        fill = [int(present[:, seats].sum()) for seats in learner.auxiliary.seats]
        found.append(BufferAudit(part.name, fill, ages))
    return found


@dataclass(frozen=True)
class FitAudit:
    """How often one part was fitted: [sets] gradient steps, as the state that is kept counts
    them."""

    part: str
    counts: list[int]
    expected: int  # of which there should have been so many


def fit_audits(learner: Learner, learning: Learning, replica: int) -> list[FitAudit]:
    """Every part that is fitted at all."""
    states = replica_of(learning.auxiliary_state.parts, replica)
    found = []
    for part in learner.auxiliary.parts:
        if part.config.every:
            rounds = -(-int(learning.updates) // part.config.every)  # the first update has one
            counts = np.asarray(part.count_fits(states[part.name].optimiser))
            found.append(FitAudit(part.name, counts.tolist(), rounds * part.config.fits))
    return found


@dataclass(frozen=True)
class StepAudit:
    """How often and by how much each set of parameters was changed."""

    counts: list[int]  # [sets] gradient steps so far
    expected: int  # of which there should have been so many
    sizes: list[float]  # [sets] of a step, as a share of the step size that was asked for
    unlike: list[float]  # [sets] how differently the same play is learned from in the next place


def step_audit(
    laboratory: Laboratory, learning: Learning, lesson: Lesson, replica: int
) -> StepAudit:
    """Take one more gradient step with everything in one batch; how far it should go is known."""
    learner = laboratory.learner
    sets = learner.improved(learning.params[learner.learning])
    policy, optimiser = replica_of((sets, learning.optimiser), replica)
    batch = replica_of(learned_from(lesson), replica)
    counts = np.asarray(optax.tree.get_all_with_path(optimiser, "count")[0][1])
    c = learner.config
    # The step size may have fallen to nothing at the end of a run.
    still = replace(learner, config=replace(c, epochs=1, minibatches=1, anneal=False))

    def step(
        policy: Any, state: Any, batch: Any, updates: Any, key: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        def turned(tree: Any, by: int) -> Any:
            return jax.tree.map(lambda leaf: jnp.roll(leaf, by, axis=0), tree)

        # The same sets of parameters, each in the next one's place: they must learn the same.
        there: list[Any] = [*turned((policy, state, batch), 1), updates, key]
        moved = still.improve(*there)
        after, state, _ = still.improve(policy, state, batch, updates, key)
        apart = jax.tree.map(
            lambda a, b: jnp.abs(a - b).reshape(len(a), -1).max(axis=1), after, turned(moved[0], -1)
        )
        unlike = jnp.stack(jax.tree.leaves(apart)).max(axis=0) / c.learning_rate
        adam = state[1][0]
        count = adam.count.astype(jnp.float32)

        def wanted(mean: jax.Array, square: jax.Array) -> jax.Array:
            by_set = count.reshape(-1, *[1] * (mean.ndim - 1))
            scale = jnp.sqrt(square / (1 - 0.999**by_set)) + 1e-5
            return -mean / (1 - 0.9**by_set) / scale

        change = jax.tree.map(lambda new, old: new - old, after, policy)
        towards = jax.tree.map(wanted, adam.mu, adam.nu)

        def dot(one: Any, two: Any) -> jax.Array:
            sums = jax.tree.map(lambda a, b: (a * b).reshape(len(a), -1).sum(axis=1), one, two)
            return jnp.stack(jax.tree.leaves(sums)).sum(axis=0)

        size: jax.Array = dot(change, towards) / dot(towards, towards)
        return size / c.learning_rate, unlike

    # Two in a row: one that is left out every second time cannot hide.
    key = jax.random.key(0)
    compiled = laboratory.compiled("step", step)
    found = [compiled(policy, optimiser, batch, learning.updates + more, key) for more in range(2)]
    sizes = np.minimum(*(np.asarray(size) for size, _ in found))
    unlike = np.maximum(*(np.asarray(apart) for _, apart in found))
    expected = int(learning.updates) * c.epochs * c.minibatches
    return StepAudit(counts.tolist(), expected, sizes.tolist(), unlike.tolist())
