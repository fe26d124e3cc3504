"""The records everything shares.

Axes: T time, B games, N seats, A actions, H height, W width, C planes, K kinds of things on the
board, G size of a goal. Shapes are those of one game and one seat; `vmap` adds the others in front.
"""

from typing import Any, TypeAlias

import equinox as eqx
import jax

Params = Any  # what a player has learned: any pytree, empty for scripted players
Memory = Any  # what a player carries from step to step: any pytree
State = Any  # a game's state: a pytree that only the game reads
ViewShape: TypeAlias = tuple[int, int, int]  # height, width, planes


class View(eqx.Module):
    """What one seat sees."""

    planes: jax.Array  # [H, W, C] float32, 0 or 1; own first, then the others cyclically
    legal: jax.Array  # [A] bool
    time: jax.Array  # [] float32, steps played / horizon
    last_actions: jax.Array  # [N] int32, own first, then the others cyclically; -1 none


class Outcome(eqx.Module):
    """What one step of a game brought."""

    reward: jax.Array  # [N] float32
    left: jax.Array  # [N] bool, the seats that left in this step
    done: jax.Array  # [] bool, the episode ended with this step
    illegal: jax.Array  # [N] bool, the action given was not legal and counted as stay
    took: jax.Array  # [N, K] int32, things of each kind the seat had a share in taking
    taken: jax.Array  # [K] int32, things of each kind that were taken off the board


class Act(eqx.Module):
    """What a player does, and what it thought."""

    action: jax.Array  # [] int32
    logits: jax.Array  # [A] float32, normalised log-probabilities, -inf where it never acts so
    log_prob: jax.Array  # [] float32, of the action taken
    value: jax.Array  # [] float32, expected return; 0 for players that do not estimate one
    goal: jax.Array  # [G] float32, what it is after; size 0 for players without goals
    inferred: jax.Array  # [J] float32, its context: what it makes of the others; size 0 for nothing
    extras: jax.Array  # [E] float32, what else it tells, for people to look at; size 0 for nothing


class Trajectory(eqx.Module):
    """Play, step by step. Views are not stored: they are `game.view` of the stored states."""

    state: State  # [T, B, ...] before the step
    present: jax.Array  # [T, B, N] bool, seats on the board before the step
    memory: tuple[Memory, ...]  # [T, B, ...] of each distinct player before the step
    act: Act  # [T, B, N, ...]
    outcome: Outcome  # [T, B, ...]
    key: jax.Array  # [T, B, 2] uint32, the data of the step's key, with which it can be repeated
    choice: jax.Array  # [T, B, N] int32, who of each seat's possible players sat there
    episode: jax.Array  # [T, B] int32, number of the episode in its trial
    begins: jax.Array  # [T, B] bool, it is an episode's first step


class Sample(eqx.Module):
    """One seat's step and what came of it: what models learn from. Seats run own first."""

    view: View  # of the seat, before the step
    present: jax.Array  # [N] bool, before the step
    joint: jax.Array  # [N] int32; anything for a seat that is not present
    reward: jax.Array  # [N] float32
    after: View  # of the seat, after the step
    present_after: jax.Array  # [N] bool
    legal_after: jax.Array  # [N, A] bool
    done: jax.Array  # [] bool, the episode ended with the step
    later: View  # of the seat, some steps later while it is present: where it was going
    caught: jax.Array  # [] int32, the kind of thing the seat takes last in the episode; K for none
    goal: jax.Array  # [G] float32, what a model is told about the seat; size 0 for nothing
