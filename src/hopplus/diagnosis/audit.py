"""Does every seat learn from its own play? Computed anew from what was played, apart from the
learner's own code."""

import hashlib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import equinox as eqx
import jax
import numpy as np

from hopplus.diagnosis.subject import replica_of
from hopplus.games.game import Game, views
from hopplus.learning.learner import Learner, Learning, Lesson
from hopplus.types import State, Trajectory, View

Digests = Counter[bytes]  # of rows, each as often as it occurs


@dataclass(frozen=True)
class SeatRows:
    """What one seat saw, did and got, row by row."""

    rows: list[bytes]
    present: np.ndarray  # [M] bool
    counts: np.ndarray  # [M] bool, it may be learned from: all, or what was played to the end

    @property
    def learned(self) -> np.ndarray:
        return self.present & self.counts

    @property
    def there(self) -> Digests:
        """Rows while it was present."""
        return self._of(self.learned)

    @property
    def all(self) -> Digests:
        return self._of(self.counts)

    def _of(self, mask: np.ndarray) -> Digests:
        return Counter(row for row, held in zip(self.rows, mask, strict=True) if held)


def digest(rows: Digests) -> str:
    """One short hash for rows in any order."""
    found = hashlib.sha256()
    for row, count in sorted(rows.items()):
        found.update(row + count.to_bytes(8, "big"))
    return found.hexdigest()[:12]


def _digests(view: Any, action: Any, reward: Any) -> list[bytes]:
    """A hash of each row [M, ...] of what was seen, done and got, as plain numbers."""
    parts = (view.planes, view.legal, view.time, view.last_actions, action, reward)
    plain = [np.ascontiguousarray(part, np.float32) for part in parts]
    rows = [part.reshape(len(part), -1).view(np.uint8) for part in plain]
    joined = np.ascontiguousarray(np.concatenate(rows, axis=1))
    return [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in joined]


@eqx.filter_jit
def _all_views(game: Game, states: State) -> View:
    """[T, B, N, ...] what everyone saw."""
    return jax.vmap(jax.vmap(lambda state: views(game, state)))(states)


def seat_rows(learner: Learner, lesson: Lesson, credited: int | None = None) -> list[SeatRows]:
    """[N] what each seat saw, did and got in a lesson of one replica; or would have got, were all
    of them `credited` with the reward of one seat."""
    game, trajectory = learner.game, lesson.trajectory
    seen = jax.device_get(_all_views(game, trajectory.state))
    reward = _shared(np.asarray(trajectory.outcome.reward), learner.config.prosociality)
    if credited is not None:
        reward = np.broadcast_to(reward[..., credited, None], reward.shape)
    present, counts = np.asarray(trajectory.present), _counted(learner, lesson)
    found = []
    for seat in range(game.seats):
        own, action, got = jax.tree.map(
            lambda leaf: leaf[:, :, seat].reshape(-1, *leaf.shape[3:]),  # noqa: B023
            (seen, np.asarray(trajectory.act.action), reward),
        )
        rows = _digests(own, action, got)
        masks = (part[:, :, seat].reshape(-1) for part in (present, counts))
        found.append(SeatRows(rows, *masks))
    return found


def _counted(learner: Learner, lesson: Lesson) -> np.ndarray:
    """[T, B, N] the steps that may be learned from at all: where only whole episodes are, those
    whose episode ended, or whose seat had left, by the end of what was played."""
    trajectory, config = lesson.trajectory, learner.config
    counts = np.ones(np.shape(trajectory.present), bool)
    if config.episodes == "any":
        return counts
    gone = ~np.asarray(jax.vmap(learner.game.present)(lesson.plays.state))
    known = gone & (config.prosociality == 0)  # [B, N] at the end, and then step by step back
    for step, done in reversed(list(enumerate(np.asarray(trajectory.outcome.done)))):
        known = known | done[:, None]
        counts[step] = known
    return counts


def _shared(reward: np.ndarray, prosociality: float) -> np.ndarray:
    """[..., N] what is learned from: one's own reward and the mean of all, weighed."""
    if not prosociality:
        return reward
    return (1 - prosociality) * reward + prosociality * reward.mean(axis=-1, keepdims=True)


@dataclass(frozen=True)
class DataAudit:
    """For each set of parameters, whose play it learned from."""

    seats: list[list[int]]  # [sets] the seats whose play it should be
    hashes: list[str]  # [sets] of the rows that were learned from
    own_hashes: list[str]  # [sets] of the rows that should have been
    taken_from: list[list[int] | None]  # [sets] the seats whose rows they are; None: nobody's
    after_leaving: list[int]  # [sets] rows learned from of a seat that had left
    rows: list[int]  # [sets] rows learned from
    credited: list[int | None]  # [sets] the seat whose rewards they carry instead of their own
    presence: list[float]  # [sets] share of the steps at which its seats were present


def data_audit(learner: Learner, trajectory: Trajectory, lesson: Lesson) -> DataAudit:
    """Hold what was learned from (`lesson`, of one replica) against what was played."""
    prosociality = learner.config.prosociality
    sets = learner.auxiliary.seats
    batch = jax.device_get(lesson.batch)

    @cache
    def rows(credited: int | None) -> list[SeatRows]:
        return seat_rows(learner, lesson, credited)

    def audited(number: int, seats: list[int]) -> tuple[Any, ...]:
        def found(credited: int | None) -> tuple[Any, ...]:
            audit = _set_audit(rows(credited), batch, number, seats, prosociality > 0)
            return (*audit, credited)

        own = found(None)
        if own[2] == seats:
            return own
        # Its own play, but for the rewards? Then they are somebody's, or it is nobody's play.
        others = (found(seat) for seat in range(learner.game.seats))
        return next((other for other in others if other[2] == seats), own)

    audits = [audited(number, seats.tolist()) for number, seats in enumerate(sets)]
    columns = map(list, zip(*audits, strict=True))
    present = np.asarray(trajectory.present).mean(axis=(0, 1))
    presence = [float(present[seats].mean()) for seats in sets]
    fields: list[Any] = [sets.tolist(), *columns, presence]
    return DataAudit(*fields)


def _real(batch: Any, number: int) -> np.ndarray:
    """[M] rows of a set that were played."""
    if batch.imagined is None:
        return np.ones(batch.present[number].shape, bool)
    return np.asarray(~batch.imagined[number])


def _batch_rows(batch: Any, number: int) -> list[bytes]:
    """A hash of each row of a set, imagined ones too."""
    view = jax.tree.map(lambda leaf: leaf[number], batch.view)
    return _digests(view, batch.action[number], batch.reward[number])


def _set_audit(
    own: list[SeatRows], batch: Any, number: int, seats: list[int], prosocial: bool
) -> tuple[str, str, list[int] | None, int, int]:
    """The middle fields of a `DataAudit`. Rows that count for the policy and rows that count for
    the value, each for themselves: who is prosocial goes on valuing after it has left."""
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


def replay_audit(before: Learning, lesson: Lesson, replica: int) -> list[list[int]] | None:
    """[sets] of which sets' steps, new or kept from earlier updates, all rows are that each set
    learned from in a lesson of one replica; None where that was the lesson's batch itself."""
    if lesson.drawn is None:
        return None

    def held(batch: Any, number: int) -> set[bytes]:
        rows, counts = _batch_rows(batch, number), batch.present[number] | batch.valued[number]
        return {row for row, counted in zip(rows, counts, strict=True) if counted}

    drawn, batch, kept = jax.device_get(
        (lesson.drawn, lesson.batch, replica_of(before.replay, replica))
    )
    batches, sets = [batch], range(len(batch.present))
    for update in range(0 if kept is None else kept.action.shape[1]):  # [sets, U, M, ...]
        batches.append(jax.tree.map(lambda leaf: leaf[:, update], kept))  # noqa: B023
    known = [set().union(*(held(one, number) for one in batches)) for number in sets]
    return [[whose for whose in sets if held(drawn, own) <= known[whose]] for own in sets]


@dataclass(frozen=True)
class TargetAudit:
    """What each set of parameters was given to learn, against what its seats thought and got: the
    largest difference; NaN where rows cannot be matched."""

    value: list[float]
    log_prob: list[float]
    returns: list[float]
    tolerance: float  # what rounding may make of them


def target_audit(learner: Learner, before: Learning, lesson: Lesson, replica: int) -> TargetAudit:
    """Values and log-probabilities as played, and returns added up anew, of one replica.

    Where hindsight's goals are mixed in, values and log-probabilities are not those of play.
    """
    trajectory, batch = lesson.trajectory, jax.device_get(lesson.batch)
    own = seat_rows(learner, lesson)
    param_sets = replica_of(before.params[learner.learning], replica)
    last = jax.tree.map(lambda leaf: leaf[:, learner.seats], lesson.plays.view)
    after = learner.actor.values(param_sets, lesson.plays.memory[learner.learning], last)
    present_after = jax.vmap(learner.game.present)(lesson.plays.state)
    returns = _returns(learner, lesson, np.asarray(after), np.asarray(present_after))
    truth = {
        "value": np.asarray(trajectory.act.value),
        "log_prob": np.asarray(trajectory.act.log_prob),
        "returns": returns,
    }
    found: dict[str, list[float]] = {name: [] for name in truth}

    def pairs(rows: list[bytes], values: np.ndarray, held: np.ndarray) -> list[tuple[bytes, float]]:
        of_rows = zip(rows, values.reshape(-1), held, strict=True)
        return [(row, float(value)) for row, value, counts in of_rows if counts]

    for number, seats in enumerate(learner.auxiliary.seats):
        rows, real = _batch_rows(batch, number), _real(batch, number)
        for name, true in truth.items():
            expected = sorted(
                pair
                for seat in seats
                for pair in pairs(own[seat].rows, true[:, :, seat], own[seat].learned)
            )
            given = getattr(batch, name)[number]
            learned = sorted(pairs(rows, given, real & batch.present[number]))
            same = [row for row, _ in expected] == [row for row, _ in learned]
            apart = [abs(a - b) for (_, a), (_, b) in zip(expected, learned, strict=False)]
            found[name].append(max(apart, default=0.0) if same else float("nan"))
    largest = float(np.abs(returns).max())
    return TargetAudit(**found, tolerance=0.01 * (1 + largest))  # GPUs round to three digits


def _returns(
    learner: Learner, lesson: Lesson, after: np.ndarray, present_after: np.ndarray
) -> np.ndarray:
    """[T, B, N] lambda returns of the learning seats, step by step from the last one on."""
    c, seats, trajectory = learner.config, learner.seats, lesson.trajectory
    number, after_all = np.asarray(trajectory.episode), np.asarray(lesson.plays.episode)
    episode_next = np.concatenate([number, after_all[None]])[1:]
    between = np.where(episode_next > 0, c.trial_discount, 0.0)
    worth = np.where(np.asarray(trajectory.outcome.done), between, learner.discount)
    reward = _shared(np.asarray(trajectory.outcome.reward, np.float64), c.prosociality)
    value = np.asarray(trajectory.act.value, np.float64)
    there = np.asarray(trajectory.present) | c.gains_after_leaving
    next_value = np.zeros(reward.shape[1:])
    next_value[:, seats] = after
    next_there = present_after | c.gains_after_leaving
    later = np.where(next_there, next_value, 0.0)
    found = np.zeros(reward.shape)
    for step in reversed(range(len(reward))):
        gae_lambda = np.where(next_there, c.gae_lambda, 1.0)
        ahead = (1 - gae_lambda) * next_value + gae_lambda * later
        later = reward[step] + worth[step][:, None] * ahead
        found[step] = later
        next_value, next_there = value[step], there[step]
    return found
