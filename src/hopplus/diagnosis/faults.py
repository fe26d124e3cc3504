"""Faults to try the diagnosis on: each is a mistake that somebody has made.

A fault is a learner that does one thing wrongly, or a configuration. None of this is used in
training.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import optax

from hopplus.config import ConfigError, PartName, TrainConfig
from hopplus.learning.dreams import Dreams
from hopplus.learning.learner import Learner, Metrics
from hopplus.learning.ppo import Batch
from hopplus.learning.rollout import Play
from hopplus.planning.imagine import Imagination
from hopplus.planning.simulate import LearnedStage, Scene, Turn
from hopplus.players.actor import Actor
from hopplus.players.mind import Mind
from hopplus.types import Memory, Params, Trajectory, View

SEAT = 2  # whom a fault of one seat hits


class FirstSeatsPlay(Learner):
    """Every seat learns from what the first one saw, did and got: a name that is missing falls
    back to the first."""

    def batch(self, minds: Mind, plays: Play, trajectory: Trajectory) -> Batch:
        batch = super().batch(minds, plays, trajectory)
        first: Batch = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), batch)
        return first


class KeepsTheGone(Learner):
    """Steps after a player has left are learned from like any other."""

    def batch(self, minds: Mind, plays: Play, trajectory: Trajectory) -> Batch:
        batch = super().batch(minds, plays, trajectory)
        everyone = jnp.ones_like(batch.present)
        return replace(batch, present=everyone, valued=everyone)


class _OneSeatImproves(Learner):
    """Something is different in how one seat improves."""

    def _changed(self, old: Any, new: Any, updates: jax.Array) -> Any:
        """What comes of an update instead."""
        return new

    def improve(
        self,
        sets: Params,
        optimiser: optax.OptState,
        batch: Batch,
        updates: jax.Array,
        key: jax.Array,
    ) -> tuple[Params, optax.OptState, Metrics]:
        policy, state, metrics = super().improve(sets, optimiser, batch, updates, key)
        policy, state = self._changed((sets, optimiser), (policy, state), updates)
        return policy, state, metrics


class HalfTheUpdates(_OneSeatImproves):
    """One seat is updated every second time."""

    def _changed(self, old: Any, new: Any, updates: jax.Array) -> Any:
        def kept(before: jax.Array, after: jax.Array) -> jax.Array:
            return after.at[SEAT].set(jnp.where(updates % 2 == 0, after[SEAT], before[SEAT]))

        return jax.tree.map(kept, old, new)


class OtherStepSize(_OneSeatImproves):
    """One seat takes steps of a third of the size."""

    def _changed(self, old: Any, new: Any, updates: jax.Array) -> Any:
        def smaller(before: jax.Array, after: jax.Array) -> jax.Array:
            return after.at[SEAT].set(before[SEAT] + (after[SEAT] - before[SEAT]) / 3)

        (before, _), (after, state) = old, new
        return jax.tree.map(smaller, before, after), state


class LoggedElsewhere(Learner):
    """Returns are logged under the next seat's number."""

    def episodes(self, so_far: jax.Array, trajectory: Trajectory) -> tuple[jax.Array, Metrics]:
        returns, metrics = super().episodes(so_far, trajectory)
        return returns, {**metrics, "return_sum": jnp.roll(metrics["return_sum"], 1, axis=-1)}


class LoudStage(LearnedStage):
    """A world in which everything is worth twenty times as much."""

    def simulate(self, place: Scene, joint: jax.Array, key: jax.Array) -> tuple[Scene, Turn]:
        after, turn = super().simulate(place, joint, key)
        return after, Turn(20 * turn.reward, turn.ended)


class LoudDreams(Dreams):
    def imagination(self, mind: Mind) -> Imagination:
        made = super().imagination(mind)
        assert mind.world is not None
        return replace(made, stage=LoudStage(mind.world, self.game.horizon))


class Forgetful(Actor):
    """Takes the others to be after nothing at all."""

    def infer(self, params: Mind, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
        memory, inferred = super().infer(params, memory, view)
        return memory, jnp.zeros_like(inferred)


def _as(kind: type[Any], made: Any) -> Any:
    """The same thing, of another kind."""
    return kind(**{part.name: getattr(made, part.name) for part in fields(made)})


def _learner(kind: type[Learner]) -> Callable[[Learner], Learner]:
    return lambda learner: _as(kind, learner)


def _dreams(change: Callable[[Dreams], Dreams]) -> Callable[[Learner], Learner]:
    def changed(learner: Learner) -> Learner:
        if learner.beside.dreams is None:  # nothing is imagined, so nothing wrongly
            return learner
        beside = replace(learner.beside, dreams=change(learner.beside.dreams))
        return replace(learner, beside=beside)

    return changed


@dataclass(frozen=True)
class Fault:
    """A mistake, and the illness that it should be recognised as by each of the two commands."""

    about: str
    seats: str | None = None
    value_loss: str | None = None
    learner: Callable[[Learner], Learner] = lambda learner: learner
    config: Callable[[TrainConfig], TrainConfig] = lambda config: config
    needs: tuple[PartName, ...] = field(default_factory=tuple)
    own: bool = False  # whether seats must have parameters of their own


def _uneven(config: TrainConfig) -> TrainConfig:
    return replace(config, game=config.game.favouring_last())


FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        "strength": Fault("the last seat is twice as strong", seats="unequal-game", config=_uneven),
        "first-seat": Fault(
            "every seat learns from the first seat's play",
            seats="wrong-seat-data",
            value_loss="wrong-seat-data",
            learner=_learner(FirstSeatsPlay),
            own=True,
        ),
        "half-updates": Fault(
            f"seat {SEAT} is updated every second time",
            seats="fewer-updates",
            learner=_learner(HalfTheUpdates),
            own=True,
        ),
        "step-size": Fault(
            f"seat {SEAT} takes steps of a third of the size",
            seats="step-size",
            learner=_learner(OtherStepSize),
            own=True,
        ),
        "logged-elsewhere": Fault(
            "returns are logged under the next seat's number",
            seats="wrong-log",
            learner=_learner(LoggedElsewhere),
        ),
        "gone-kept": Fault(
            "steps after a player has left are kept",
            seats="steps-after-leaving",
            value_loss="steps-after-leaving",
            learner=_learner(KeepsTheGone),
        ),
        "loud-world": Fault(
            "the world model's rewards are 20 times too large",
            value_loss="world-rewards",
            learner=_dreams(lambda dreams: _as(LoudDreams, dreams)),
            needs=("imagination",),
        ),
        "zero-goals": Fault(
            "goals in imagination are zero",
            value_loss="goal-mismatch",
            learner=_dreams(lambda dreams: replace(dreams, actor=_as(Forgetful, dreams.actor))),
            needs=("goal", "imagination"),
        ),
    }
)


def find_fault(name: str | None, config: TrainConfig) -> Fault:
    """The fault of that name, if the parts it needs are there; one that is none for None."""
    if name is None:
        return Fault("none")
    if name not in FAULTS:
        raise ConfigError(f"--fault is {name!r} but must be one of {', '.join(FAULTS)}")
    fault = FAULTS[name]
    if lacking := [part for part in fault.needs if part not in config.parts]:
        raise ConfigError(f"--fault {name} needs the parts {' and '.join(lacking)}: try hop-plus")
    if fault.own and config.ppo.parameters == "shared":
        raise ConfigError(f"--fault {name} is about seats with parameters of their own")
    if fault.own and config.game.seats <= SEAT:
        raise ConfigError(f"--fault {name} hits seat {SEAT}: take at least {SEAT + 1} seats")
    return fault
