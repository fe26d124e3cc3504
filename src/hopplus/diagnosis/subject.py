"""What is diagnosed: a run as it was left, or a preset that is trained for a while. Both in a
laboratory, where updates of a learner can be looked into, and repeated under other conditions.

Seeds and conditions are replicas side by side in one program, so that whatever is asked of it is
compiled once.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError, TrainConfig
from hopplus.diagnosis.faults import Fault
from hopplus.learning.auxiliary.imagined_rollouts import ImaginedRollouts
from hopplus.learning.checkpoints import load_learning
from hopplus.learning.compilation import start_options
from hopplus.learning.from_run import learner_from_run, make_learner, maker
from hopplus.learning.learner import Learner, Learning, Lesson
from hopplus.learning.ppo import Batch
from hopplus.learning.train import record_of
from hopplus.planning.imagined_rollouts import ImaginedRollout
from hopplus.play.seeds import seed_keys
from hopplus.runs.folder import RunFolder

Record = dict[str, Any]
Tree = TypeVar("Tree")
Make = Callable[[TrainConfig], Learner]
OnStep = Callable[[str], None]  # told what was just done, once for each unit of work
OnLesson = Callable[[int, Lesson], None]  # shown what the update of that number was made from


class Switch(eqx.Module):
    """What imagination is allowed; arrays, so that replicas may differ."""

    imagine: jax.Array  # [] bool, learn from imagined steps at all
    zero: jax.Array  # [] bool, imagined rewards are zero
    override: jax.Array  # [] bool, decide whether values learn from imagined steps
    critic: jax.Array  # [] bool, whether they do then


def _switched(learner: Learner, switch: Switch) -> Learner:
    """The learner with a switch at its imagination, if it has one."""
    imagined_rollouts = learner.auxiliary.imagined_rollouts
    if imagined_rollouts is None:
        return learner

    def make_batch(
        own: ImaginedRollouts, rollout: ImaginedRollout, observed: jax.Array, open_: jax.Array
    ) -> Batch:
        # None, whatever becomes of rewards on the way: the range that was seen is nothing then.
        rollout = replace(rollout, reward=jnp.where(switch.zero, 0.0, rollout.reward))
        observed = jnp.where(switch.zero, 0.0, observed)
        batch = imagined_rollouts.make_batch(own, rollout, observed, open_ & switch.imagine)
        forced = batch.present & switch.critic
        return replace(batch, valued=jnp.where(switch.override, forced, batch.valued))

    auxiliary = replace(
        learner.auxiliary, imagined_rollouts=replace(imagined_rollouts, make_batch=make_batch)
    )
    return replace(learner, auxiliary=auxiliary)


class Laboratory:
    """Updates of `replicas` learnings side by side."""

    def __init__(self, learner: Learner, config: TrainConfig, replicas: int, make: Make) -> None:
        self.learner, self.config, self.replicas = learner, config, replicas
        self.make = make  # such a learner for other settings, with the same co-players and fault
        axes = learner.axes

        def update(switch: Switch, now: Learning) -> tuple[Learning, Any, Lesson]:
            return _switched(learner, switch).update_shown(now)

        over_replicas = jax.vmap(update, in_axes=(0, axes), out_axes=(axes, 0, 0))
        self._update: Any = self._jit(over_replicas)
        self._compiled: dict[str, Callable[..., Any]] = {}

    def compiled(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, compiled once however often it is asked for by that name."""
        return self._compiled.setdefault(name, self._jit(function))

    def _jit(self, function: Callable[..., Any]) -> Any:
        return jax.jit(function, compiler_options=start_options(self.config))

    def first(self, seed: int) -> Learning:
        """Fresh beginnings, each replica with a seed of its own from that one on; the update is
        compiled meanwhile."""
        keys = seed_keys(replace(self.config, seeds=self.replicas, seed=seed))
        init = self.compiled("init", self.learner.init_all)
        with ThreadPoolExecutor(1) as executor:
            made = executor.submit(lambda: jax.block_until_ready(init(keys)))
            if isinstance(self._update, jax.stages.Wrapped):
                shapes = jax.eval_shape(self.learner.init_all, keys)
                self._update = self._update.lower(self.as_it_is(), shapes).compile()
            first: Learning = made.result()
        return first

    def as_it_is(self) -> Switch:
        """Everything as configured, in every replica."""
        return self.switches([{}] * self.replicas)

    def switches(self, changes: Sequence[dict[str, Any]]) -> Switch:
        """A replica for each of these, as configured but for its changes."""
        usual = {"imagine": True, "zero": False, "critic": False}
        assert not set().union(*changes) - set(usual), "no such switch"
        rows = [{**usual, "override": "critic" in one, **one} for one in changes]
        return Switch(
            **{name: jnp.array(np.array([row[name] for row in rows])) for name in rows[0]}
        )

    def update(self, now: Learning, switch: Switch) -> tuple[Learning, Record, Lesson]:
        """One update of every replica: what is learned then, what would be logged, and from
        what."""
        after, metrics, lesson = self._update(switch, now)
        return after, record_of(int(now.updates) + 1, self.config, metrics), lesson


def replicas_of(learning: Learning, replicas: Sequence[int]) -> Learning:
    """The replicas of these numbers, any of them as often as it is named."""
    own = {
        name: value for name, value in vars(learning).items() if name != "updates"
    }  # one for all
    return replace(learning, **_taken(own, np.asarray(replicas)))


def replica_of(tree: Tree, replica: int) -> Tree:
    """One replica of anything that has them all."""
    return _taken(tree, replica)


@jax.jit  # one program, not one for every shape
def _taken(tree: Tree, where: jax.Array) -> Tree:
    return jax.tree.map(lambda leaf: leaf[where], tree)


def learned_from(lesson: Lesson) -> Batch:
    """[..., sets, M, ...] what the policy learned from in a lesson."""
    return lesson.batch if lesson.drawn is None else lesson.drawn


def last_fifth(records: Sequence[Record]) -> Sequence[Record]:
    """What was logged last: what a run has come to, without the noise of one update."""
    return records[-max(1, round(0.2 * len(records))) :]


def late_returns(records: Sequence[Record]) -> np.ndarray:
    """[S, N] mean returns over the last fifth of a run's updates; NaN without episodes."""
    totals, episodes = _add_up(last_fifth(records))
    return _divide(totals.sum(axis=0), episodes.sum(axis=0))


def return_curves(records: Sequence[Record]) -> np.ndarray:
    """[U, S, N] mean returns of the episodes that ended in each update; NaN without any."""
    return _divide(*_add_up(records))


def _add_up(records: Sequence[Record]) -> tuple[np.ndarray, ...]:
    """[U, S, N] returns of the episodes that ended, added up, and [U, S] how many they were."""
    names = ("return_sum", "episodes")
    return tuple(np.array([record[name] for record in records]) for name in names)


def _divide(totals: np.ndarray, episodes: np.ndarray) -> np.ndarray:
    count = episodes[..., None]
    return np.where(count > 0, totals / np.maximum(count, 1), np.nan)


@dataclass(frozen=True)
class Subject:
    """A learner, how far it has come in each of its replicas, and what was logged on the way."""

    name: str
    config: TrainConfig
    laboratory: Laboratory
    learning: Learning  # [replicas, ...]
    records: list[Record]

    @property
    def learner(self) -> Learner:
        return self.laboratory.learner


def restore_subject(run: RunFolder, replicas: int, steady: bool = False) -> Subject:
    """A run at its newest checkpoint; its seeds fill the replicas, as often as needed.

    Where the run goes on from there, `steady` keeps step sizes from falling any further: at the
    end of a run there would be none left.
    """
    config = run.config()
    learner = learner_from_run(run)
    saved = load_learning(run, learner, config)
    # A run that was killed has logged more than it saved: that was forgotten with what it learned.
    records = [one for one in run.metrics() if saved and one["update"] <= int(saved[0].updates)]
    if saved is None or not records:
        raise ConfigError(f"{run.path} has no usable checkpoint and log yet: train it for a while")
    if steady:
        learner = maker(run)(config.steady)
    if steady and config.ppo.anneal:
        rate = config.ppo.learning_rate / 2
        learner = replace(learner, config=replace(learner.config, learning_rate=rate))
    laboratory = Laboratory(learner, config, replicas, maker(run))
    seeds = [replica % config.seeds for replica in range(replicas)]
    learning = replicas_of(saved[0], seeds)
    return Subject(run.path.name, config, laboratory, learning, records)


def make_laboratory(config: TrainConfig, fault: Fault, replicas: int) -> Laboratory:
    """Of a configuration with a fault built in."""
    config = replace(fault.config(config), seeds=replicas)
    return build_laboratory(
        config, lambda config: fault.learner(make_learner(config, {})), replicas
    )


def build_laboratory(config: TrainConfig, make: Make, replicas: int) -> Laboratory:
    """Of whatever learner is made for the configuration."""
    return Laboratory(make(config), config, replicas, make)


def train_subject(
    name: str,
    laboratory: Laboratory,
    seed: int,
    on_step: OnStep,
    switch: Switch | None = None,
    on_lesson: OnLesson = lambda update, lesson: None,
) -> Subject:
    """Train all replicas to the configuration's steps, each with a seed of its own; as configured
    unless a switch is given."""
    config = replace(laboratory.config, seed=seed)
    learning = laboratory.first(seed)
    switch = switch or laboratory.as_it_is()
    records = []
    for number in range(config.updates):
        learning, record, lesson = laboratory.update(learning, switch)
        records.append(record)
        on_lesson(number + 1, lesson)
        on_step(f"training {name}, update {number + 1} of {config.updates}")
    return Subject(name, config, laboratory, learning, records)
