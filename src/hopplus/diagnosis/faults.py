"""Faults to try the diagnosis on: each is a mistake that somebody has made.

A fault is a learner that holds one wrong function, or a configuration. None of this is used in
training.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.config import ConfigError, PartName, TrainConfig, WorldConfig
from hopplus.diagnosis import mistakes
from hopplus.diagnosis.mistakes import SEAT
from hopplus.games.game import Game
from hopplus.learning.auxiliary.imagined_rollouts import act_without_goals
from hopplus.learning.auxiliary.learner import Fitted, by_set
from hopplus.learning.auxiliary.transitions import Transitions, other_samples
from hopplus.learning.learner import Learner, Step
from hopplus.learning.ppo import Batch
from hopplus.learning.returns import episode_metrics
from hopplus.learning.social_rewards import shared_reward
from hopplus.models.part import Metrics
from hopplus.types import Sample, Trajectory

ALONE = 1  # whom a fault of all seats but one spares


def assemble_first_seat(steps: Batch, count: int) -> Batch:
    """Every seat learns from what the first one saw, did and got: a name that is missing falls
    back to the first."""
    batch = by_set(steps, count)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], leaf.shape), batch)


def assemble_everyone(steps: Batch, count: int) -> Batch:
    """Steps after a player has left are learned from like any other."""
    batch = by_set(steps, count)
    everyone = jnp.ones_like(batch.present)
    return replace(batch, present=everyone, valued=everyone)


def credit_first(reward: jax.Array, prosociality: float) -> jax.Array:
    """Every seat is credited with what the first one gains: column 0 is read for all."""
    return jnp.broadcast_to(shared_reward(reward, prosociality)[..., :1], reward.shape)


def commit_half(old: Step, new: Step, updates: jax.Array) -> Step:
    """One seat is updated every second time."""

    def every_second(before: jax.Array, after: jax.Array) -> jax.Array:
        return after.at[SEAT].set(jnp.where(updates % 2 == 0, after[SEAT], before[SEAT]))

    return jax.tree.map(every_second, old, new)


def commit_third(old: Step, new: Step, updates: jax.Array) -> Step:
    """One seat takes steps of a third of the size."""

    def smaller(before: jax.Array, after: jax.Array) -> jax.Array:
        return after.at[SEAT].set(before[SEAT] + (after[SEAT] - before[SEAT]) / 3)

    (before, _), (after, state) = old, new
    return jax.tree.map(smaller, before, after), state


def commit_one_seat(old: Fitted, new: Fitted) -> Fitted:
    """Models of one seat alone are updated; those of all others stay as they were."""
    return jax.tree.map(lambda before, after: before.at[ALONE].set(after[ALONE]), old, new)


def sample_everyone(
    game: Game, transition: Transitions, seat: jax.Array, goals: jax.Array
) -> Sample:
    """A player that has left is learned from like any other, as one that stays of its own will."""
    samples = other_samples(game, transition, seat, goals)
    legal = samples.view.legal | ~samples.present[:, :1]
    view = replace(samples.view, legal=legal)
    return replace(samples, view=view, present=jnp.ones_like(samples.present))


def log_elsewhere(so_far: jax.Array, trajectory: Trajectory) -> tuple[jax.Array, Metrics]:
    """Returns are logged under the next seat's number."""
    returns, metrics = episode_metrics(so_far, trajectory)
    return returns, {**metrics, "return_sum": jnp.roll(metrics["return_sum"], 1, axis=-1)}


def _learner(**functions: Any) -> Callable[[Learner], Learner]:
    """With functions of the learner in the place of the right ones."""
    return lambda learner: replace(learner, **functions)


def _models(*names: str, **functions: Any) -> Callable[[Learner], Learner]:
    """With functions of the parts that are named, or of all, in the place of the right ones."""

    def changed(learner: Learner) -> Learner:
        parts = tuple(
            replace(part, **functions) if part.name in names or not names else part
            for part in learner.auxiliary.parts
        )
        return replace(learner, auxiliary=replace(learner.auxiliary, parts=parts))

    return changed


def _imagined_rollouts(**functions: Any) -> Callable[[Learner], Learner]:
    """With functions of its imagination in the place of the right ones."""

    def changed(learner: Learner) -> Learner:
        if learner.auxiliary.imagined_rollouts is None:  # nothing is imagined, so nothing wrongly
            return learner
        auxiliary = replace(
            learner.auxiliary,
            imagined_rollouts=replace(learner.auxiliary.imagined_rollouts, **functions),
        )
        return replace(learner, auxiliary=auxiliary)

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


FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        "strength": Fault(
            "the last seat is twice as strong",
            seats="unequal-game",
            config=lambda config: replace(config, game=config.game.favouring_last()),
        ),
        "first-seat": Fault(
            "every seat learns from the first seat's play",
            seats="wrong-seat-data",
            value_loss="wrong-seat-data",
            learner=_learner(assemble=assemble_first_seat),
            own=True,
        ),
        "first-reward": Fault(
            "every seat is credited with the first seat's reward",
            seats="wrong-reward",
            value_loss="wrong-reward",
            learner=_learner(credit=credit_first),
        ),
        "half-updates": Fault(
            f"seat {SEAT} is updated every second time",
            seats="fewer-updates",
            learner=_learner(commit=commit_half),
            own=True,
        ),
        "one-seat-models": Fault(
            f"models of seat {ALONE} alone are updated",
            seats="fewer-updates",
            learner=_models(commit=commit_one_seat),
            needs=("opponent",),
            own=True,
        ),
        "step-size": Fault(
            f"seat {SEAT} takes steps of a third of the size",
            seats="step-size",
            learner=_learner(commit=commit_third),
            own=True,
        ),
        "logged-elsewhere": Fault(
            "returns are logged under the next seat's number",
            seats="wrong-log",
            learner=_learner(log_episodes=log_elsewhere),
        ),
        "gone-kept": Fault(
            "steps after a player has left are kept",
            seats="steps-after-leaving",
            value_loss="steps-after-leaving",
            learner=_learner(assemble=assemble_everyone),
        ),
        "after-exit": Fault(
            "models of the others learn from steps after these have left",
            seats="steps-after-leaving",
            value_loss="steps-after-leaving",
            learner=_models("opponent", sample=sample_everyone),
            needs=("opponent",),
        ),
        "loud-world": Fault(
            "the world model's rewards are 20 times too large",
            value_loss="world-rewards",
            learner=_imagined_rollouts(dynamics=mistakes.LoudDynamics),
            needs=("imagination",),
        ),
        "zero-goals": Fault(
            "goals in imagination are zero",
            value_loss="goal-mismatch",
            learner=_imagined_rollouts(act=act_without_goals),
            needs=("goal", "imagination"),
        ),
        "zero-goals-one-seat": Fault(
            f"goals of seat {SEAT} in imagination are zero",
            seats="goal-mismatch",
            value_loss="goal-mismatch",
            learner=_imagined_rollouts(act=mistakes.act_one_seat_without_goals),
            needs=("goal", "imagination"),
            own=True,
        ),
        "late-returns": Fault(
            "every step learns the return of the step after it",
            seats="wrong-targets",
            value_loss="wrong-targets",
            learner=_learner(assemble=mistakes.assemble_next_returns),
        ),
        "decayed-seat": Fault(
            f"weights of seat {SEAT} alone decay",
            seats="unequal-learning",
            learner=_learner(commit=mistakes.commit_decayed),
            own=True,
        ),
        "scripted-seat": Fault(
            "a scripted player is left in the last seat",
            seats="different-players",
            config=lambda config: replace(
                config, seats=",".join(["learn"] * (config.game.seats - 1) + ["random"])
            ),
            own=True,
        ),
        "fading-models": Fault(
            "models of each seat take smaller steps than those of the seat before",
            seats="models-differ",
            learner=_models("opponent", commit=mistakes.commit_fading),
            needs=("opponent",),
            own=True,
        ),
        "backward-imagination": Fault(
            f"advantages of seat {SEAT}'s imagined steps have the wrong sign, in small updates",
            seats="part-orders",
            learner=mistakes.imagine_backwards,
            config=lambda config: replace(
                config,  # a world is right after some updates: it must be so early to do harm
                ppo=replace(config.ppo, games=min(config.ppo.games, 64)),
                imagine=replace(config.imagine, real_ratio=0.3, warm_up=0),
            ),
            needs=("imagination",),
            own=True,
        ),
        "zero-start": Fault(
            f"networks of seat {SEAT} begin with zeros alone",
            seats="unexplained",
            learner=mistakes.start_at_zero,
            own=True,
        ),
        "valued-imagination": Fault(
            "values learn from imagined steps too",
            value_loss="critic-on-imagined",
            learner=_imagined_rollouts(make_batch=mistakes.value_imagined),
            needs=("imagination",),
        ),
        "raw-world": Fault(
            "a world model of single cells, fitted twice an update, with no warm-up and no gate",
            value_loss="world-immature",
            config=lambda config: replace(
                config,
                world=replace(
                    config.world, model=WorldConfig(head="cells"), fits=2, learning_rate=1e-3
                ),
                imagine=replace(config.imagine, warm_up=0, gate=1.0),
            ),
            needs=("imagination",),
        ),
        "multiplied-returns": Fault(
            "imagined returns are multiplied by the steps of a rollout",
            value_loss="imagined-returns",
            learner=_imagined_rollouts(make_batch=mistakes.multiply_returns),
            needs=("imagination",),
        ),
        "uphill-models": Fault(
            "models of the others go up their loss",
            value_loss="opponents-wrong",
            learner=_models("opponent", commit=mistakes.commit_uphill),
            needs=("opponent", "imagination"),
        ),
        "large-rewards": Fault(
            "rewards are ten times as large",
            value_loss="reward-scale",
            config=lambda config: replace(config, game=config.game.with_large_rewards()),
        ),
        "monte-carlo": Fault(
            "returns are Monte Carlo, in unrolls of 64 steps",
            value_loss="horizon",
            config=lambda config: replace(
                config,
                ppo=replace(
                    config.ppo, gae_lambda=1.0, unroll=64, games=max(1, config.ppo.steps // 64)
                ),
            ),
        ),
        "paid-imagination": Fault(
            "every imagined step is paid, and values learn from it",
            value_loss="imagination",
            learner=_imagined_rollouts(make_batch=mistakes.reward_imagining),
            config=lambda config: replace(
                config, imagine=replace(config.imagine, critic_on="both")
            ),
            needs=("imagination",),
        ),
        "idle-critic": Fault(
            "the value loss has no weight",
            value_loss="value-behind",
            config=lambda config: replace(config, ppo=replace(config.ppo, value_weight=0.0)),
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
    if fault.own and (config.seats or config.train_against):
        raise ConfigError(f"--fault {name} is about seats that all learn")
    if fault.own and config.game.seats <= SEAT:
        raise ConfigError(f"--fault {name} hits seat {SEAT}: take at least {SEAT + 1} seats")
    return fault
