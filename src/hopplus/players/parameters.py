"""What a learning player has learned."""

from collections.abc import Mapping
from dataclasses import field

import equinox as eqx
import jax

from hopplus.models.goal import GoalPrior
from hopplus.models.nets import ActorCritic
from hopplus.models.opponent import OpponentModel
from hopplus.models.world import World
from hopplus.types import Params


class PlayerParams(eqx.Module):
    """Everything one seat has learned; None for models it does without."""

    policy: ActorCritic
    prior: GoalPrior | None = None
    context: Params = ()  # of what it makes of the others
    opponents: OpponentModel | None = None  # [N - 1, ...] one for each other, in the seats' order
    world: World | None = None
    outside: Mapping[str, Params] = field(default_factory=dict)  # of models that are somebody's own
    trusts: jax.Array | None = None  # [] bool, to search in that world; None where nobody asks
