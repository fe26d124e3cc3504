"""Does every seat learn from its own play, as often and by as much as the others, and is that what
is logged? Computed anew from what was played, beside the learner's own code."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from hopplus.diagnosis.laboratory import Laboratory, Record, lane_of
from hopplus.games.game import Game, views
from hopplus.learning.learner import Learner, Learning, Lesson
from hopplus.learning.moments import Moments
from hopplus.types import State, Trajectory, View

Digests = Counter[bytes]  # of rows, each as often as it occurs


@dataclass(frozen=True)
class SeatRows:
    """What one seat saw, did and got, row by row."""

    rows: list[bytes]
    present: np.ndarray  # [M] bool

    @property
    def there(self) -> Digests:
        """Rows while it was present."""
        return Counter(row for row, held in zip(self.rows, self.present, strict=True) if held)

    @property
    def all(self) -> Digests:
        return Counter(self.rows)


def digest(rows: Digests) -> str:
    """One short hash for rows in any order."""
    found = hashlib.sha256()
    for row, count in sorted(rows.items()):
        found.update(row + count.to_bytes(8, "big"))
    return found.hexdigest()[:12]


def _digests(parts: Sequence[np.ndarray]) -> list[bytes]:
    """A hash of each row of arrays [M, ...]."""
    rows = [np.ascontiguousarray(part).reshape(len(part), -1).view(np.uint8) for part in parts]
    joined = np.ascontiguousarray(np.concatenate(rows, axis=1))
    return [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in joined]


def _content(view: Any, action: Any, reward: Any) -> list[np.ndarray]:
    """Rows [M, ...] of what was seen, done and got, as plain numbers."""
    parts = (view.planes, view.legal, view.time, view.last_actions, action, reward)
    return [np.asarray(part, np.float32) for part in parts]


@eqx.filter_jit
def _all_views(game: Game, states: State) -> View:
    """[T, B, N, ...] what everyone saw."""
    return jax.vmap(jax.vmap(lambda state: views(game, state)))(states)


def seat_rows(game: Game, trajectory: Trajectory, prosociality: float) -> list[SeatRows]:
    """[N] what each seat saw, did and got in a trajectory [T, B, ...] of one lane."""
    seen = jax.device_get(_all_views(game, trajectory.state))
    reward = np.asarray(trajectory.outcome.reward)
    mean = reward.mean(axis=-1, keepdims=True)
    reward = (1 - prosociality) * reward + prosociality * mean if prosociality else reward
    present = np.asarray(trajectory.present)
    found = []
    for seat in range(game.seats):
        own, action, got = jax.tree.map(
            lambda leaf: leaf[:, :, seat].reshape(-1, *leaf.shape[3:]),  # noqa: B023
            (seen, np.asarray(trajectory.act.action), reward),
        )
        rows = _digests(_content(own, action, got))
        found.append(SeatRows(rows, present[:, :, seat].reshape(-1)))
    return found


@dataclass(frozen=True)
class DataAudit:
    """For each set of parameters, whose play it learned from."""

    seats: list[list[int]]  # [sets] the seats whose play it should be
    hashes: list[str]  # [sets] of the rows that were learned from
    own_hashes: list[str]  # [sets] of the rows that should have been
    taken_from: list[list[int] | None]  # [sets] the seats whose rows they are; None: nobody's
    after_leaving: list[int]  # [sets] rows learned from of a seat that had left
    rows: list[int]  # [sets] rows learned from
    presence: list[float]  # [sets] share of the steps at which its seats were present

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def data_audit(learner: Learner, trajectory: Trajectory, lesson: Lesson) -> DataAudit:
    """Hold what was learned from (`lesson`, of one lane) against what was played."""
    prosociality = learner.config.prosociality
    own = seat_rows(learner.game, trajectory, prosociality)
    sets = learner.beside.seats
    batch = jax.device_get(lesson.batch)
    audits = [
        _set_audit(own, batch, number, seats.tolist(), prosociality > 0)
        for number, seats in enumerate(sets)
    ]
    present = np.asarray(trajectory.present).mean(axis=(0, 1))
    return DataAudit(
        seats=sets.tolist(),
        hashes=[audit[0] for audit in audits],
        own_hashes=[audit[1] for audit in audits],
        taken_from=[audit[2] for audit in audits],
        after_leaving=[audit[3] for audit in audits],
        rows=[audit[4] for audit in audits],
        presence=[float(present[seats].mean()) for seats in sets],
    )


def _real(batch: Any, number: int) -> np.ndarray:
    """[M] rows of a set that were played."""
    if batch.imagined is None:
        return np.ones(batch.present[number].shape, bool)
    return np.asarray(~batch.imagined[number])


def _batch_rows(batch: Any, number: int) -> list[bytes]:
    """A hash of each row of a set, imagined ones too."""
    view = jax.tree.map(lambda leaf: leaf[number], batch.view)
    return _digests(_content(view, batch.action[number], batch.reward[number]))


def _set_audit(
    own: list[SeatRows], batch: Any, number: int, seats: list[int], prosocial: bool
) -> tuple[str, str, list[int] | None, int, int]:
    """Rows that count for the policy and rows that count for the value, each for themselves: who
    is prosocial goes on valuing after it has left."""
    rows, real = _batch_rows(batch, number), _real(batch, number)

    def counted(mask: np.ndarray) -> Digests:
        return Counter(row for row, held in zip(rows, real & mask, strict=True) if held)

    policy, value = counted(batch.present[number]), counted(batch.valued[number])
    there: Digests = Counter()
    whole: Digests = Counter()
    for seat in seats:
        there += own[seat].there
        whole += own[seat].all
    valued = whole if prosocial else there
    if policy == there and value == valued:
        return digest(policy), digest(there), seats, 0, policy.total()
    wrong, should = (policy, there) if policy != there else (value, valued)
    of_seats = [seat for seat, rows in enumerate(own) if rows.there and not rows.there - wrong]
    gone = sum(((wrong & own[seat].all) - own[seat].there).total() for seat in of_seats)
    if of_seats == seats and not gone:  # its own, and something besides
        of_seats = []
    return digest(wrong), digest(should), of_seats or None, gone, wrong.total()


@dataclass(frozen=True)
class TargetAudit:
    """What each set of parameters was given to learn, against what its seats thought and got: the
    largest difference; NaN where rows cannot be matched."""

    value: list[float]
    log_prob: list[float]
    returns: list[float]
    tolerance: float  # what rounding may make of them

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def target_audit(learner: Learner, before: Learning, lesson: Lesson, lane: int) -> TargetAudit:
    """Values and log-probabilities as played, and returns added up anew, of one lane.

    Where hindsight's goals are mixed in, values and log-probabilities are not those of play.
    """
    trajectory, batch = lesson.trajectory, jax.device_get(lesson.batch)
    own = seat_rows(learner.game, trajectory, learner.config.prosociality)
    minds = lane_of(before.params[learner.learning], lane)
    last = jax.tree.map(lambda leaf: leaf[:, learner.seats], lesson.plays.view)
    after = learner.values(minds, lesson.plays.memory[learner.learning], last)
    present_after = jax.vmap(learner.game.present)(lesson.plays.state)
    returns = _returns(learner, trajectory, np.asarray(after), np.asarray(present_after))
    found: dict[str, list[float]] = {"value": [], "log_prob": [], "returns": []}
    for number, seats in enumerate(learner.beside.seats):
        rows, real = _batch_rows(batch, number), _real(batch, number)
        counted = real & batch.present[number]
        given = {name: getattr(batch, name)[number] for name in found}
        truth = {
            "value": np.asarray(trajectory.act.value),
            "log_prob": np.asarray(trajectory.act.log_prob),
            "returns": returns,
        }
        for name in found:
            expected = sorted(
                (row, float(value))
                for seat in seats
                for row, value, held in zip(
                    own[seat].rows,
                    truth[name][:, :, seat].reshape(-1),
                    own[seat].present,
                    strict=True,
                )
                if held
            )
            learned = sorted(
                (row, float(value))
                for row, value, held in zip(rows, given[name], counted, strict=True)
                if held
            )
            same = [row for row, _ in expected] == [row for row, _ in learned]
            apart = [abs(a - b) for (_, a), (_, b) in zip(expected, learned, strict=False)]
            found[name].append(max(apart, default=0.0) if same else float("nan"))
    largest = float(np.abs(returns).max())
    return TargetAudit(**found, tolerance=0.01 * (1 + largest))  # GPUs round to three digits


def _returns(
    learner: Learner, trajectory: Trajectory, after: np.ndarray, present_after: np.ndarray
) -> np.ndarray:
    """[T, B, N] lambda returns of the learning seats, step by step from the last one on."""
    c, seats = learner.config, learner.seats
    reward = np.asarray(trajectory.outcome.reward, np.float64)
    if c.prosociality:
        mean = reward.mean(axis=-1, keepdims=True)
        reward = (1 - c.prosociality) * reward + c.prosociality * mean
    value = np.asarray(trajectory.act.value, np.float64)
    there = np.asarray(trajectory.present) | (c.prosociality > 0)
    next_value = np.zeros(reward.shape[1:])
    next_value[:, seats] = after
    next_there = present_after | (c.prosociality > 0)
    later = np.where(next_there, next_value, 0.0)
    found = np.zeros(reward.shape)
    for step in reversed(range(len(reward))):
        mix = np.where(next_there, c.mix, 1.0)
        ahead = (1 - mix) * next_value + mix * later
        done = np.asarray(trajectory.outcome.done)[step][:, None]
        later = reward[step] + learner.discount * np.where(done, 0.0, ahead)
        found[step] = later
        next_value, next_there = value[step], there[step]
    return found


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


def log_audit(before: Learning, trajectory: Trajectory, record: Record, lane: int) -> LogAudit:
    """Hold an update's record against its trajectory, of one lane."""
    returns = np.array(before.returns[lane], np.float64)  # [B, N] of episodes in flight
    reward, done = (
        np.asarray(part) for part in (trajectory.outcome.reward, trajectory.outcome.done)
    )
    total = np.zeros(returns.shape[1])
    for got, ended in zip(reward, done, strict=True):
        returns += got
        total += returns[ended].sum(axis=0)
        returns[ended] = 0
    return LogAudit([float(value) for value in record["return_sum"][lane]], total.tolist())


@dataclass(frozen=True)
class BufferAudit:
    """What one part keeps to learn from: [sets] steps of each set's own seats, and their age."""

    part: str
    fill: list[int]
    age: list[float]  # in updates, on average; NaN for nothing

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def buffer_audits(learner: Learner, learning: Learning, lane: int) -> list[BufferAudit]:
    """Every part whose buffer holds steps of play."""
    kept = lane_of(learning.kept.parts, lane)
    found = []
    for part in learner.beside.parts:
        ring = kept[part.name].ring
        if not isinstance(ring, Moments) or ring.joint.ndim != 2:
            continue
        rows, steps = len(ring.joint), learner.config.steps
        slots = rows // steps
        age = (int(learning.updates) - 1 - np.arange(rows) // steps) % slots
        present = np.asarray(jax.vmap(learner.game.present)(ring.state))
        own = [present[:, seats].any(axis=1) for seats in learner.beside.seats]
        ages = [float(age[there].mean()) if there.any() else float("nan") for there in own]
        fill = [int(present[:, seats].sum()) for seats in learner.beside.seats]
        found.append(BufferAudit(part.name, fill, ages))
    return found


@dataclass(frozen=True)
class StepAudit:
    """How often and by how much each set of parameters was changed."""

    counts: list[int]  # [sets] gradient steps so far
    expected: int  # of which there should have been so many
    sizes: list[float]  # [sets] of a step, as a share of the step size that was asked for
    unlike: list[float]  # [sets] how differently the same play is learned from in the next place

    def as_json(self) -> dict[str, Any]:
        return dict(vars(self))


def step_audit(laboratory: Laboratory, learning: Learning, lesson: Lesson, lane: int) -> StepAudit:
    """Take one more gradient step with everything in one batch; how far it should go is known."""
    learner = laboratory.learner
    minds, optimiser = lane_of((learning.params[learner.learning], learning.optimiser), lane)
    policy = learner.improved(minds)
    batch = lane_of(lesson.batch, lane)
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
        there = turned((policy, state, batch), 1)
        moved = still.improve(there[0], there[1], there[2], updates, key)
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
            way: jax.Array = -mean / (1 - 0.9**by_set) / scale
            return way

        change = jax.tree.map(lambda new, old: new - old, after, policy)
        towards = jax.tree.map(wanted, adam.mu, adam.nu)

        def dot(one: Any, two: Any) -> jax.Array:
            sums = jax.tree.map(lambda a, b: (a * b).reshape(len(a), -1).sum(axis=1), one, two)
            total: jax.Array = jnp.stack(jax.tree.leaves(sums)).sum(axis=0)
            return total

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
