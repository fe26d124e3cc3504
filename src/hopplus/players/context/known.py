"""What is kept of each other who is held against known players (`types.py`)."""

from typing import Any

import equinox as eqx
import jax

from hopplus.players.context.rhythm import Rhythm
from hopplus.types import Memory


class Known(eqx.Module):
    """What is known of one other as one of the known players; P that it is held against, of T
    names."""

    members: tuple[Memory, ...]  # [T] of [members, ...] what each of them would remember
    belief: jax.Array  # [P] float32, log-chances that it is like each
    expected: jax.Array  # [P, A] float32, chances of its next act if it is
    time: jax.Array  # [] float32, of the view by which that is expected; -1 before any
    rhythm: Rhythm
    rests: jax.Array  # [2] float32, log-chances that it never rests, and that it may


class Stranger(eqx.Module):
    """What is known of one other as none of them, with J aims."""

    chance: jax.Array  # [2] float32, log-chances that it is one of them, and that it is none
    expected: jax.Array  # [J, A] float32, chances of its next act if it goes for each aim
    habits: Any  # `Habits`, or None where nobody is a stranger


class Other(eqx.Module):
    """One other, as either."""

    known: Known
    stranger: Stranger


class Cast(eqx.Module):
    """Players drawn for the N - 1 others."""

    known: Known  # [N - 1, ...] one member of each name, of whom P = 1 is held against
    name: jax.Array  # [N - 1] int32, the number of the one who plays
