"""A player that acts by a learned policy, and the auxiliary models that it may have."""

import zlib
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from hopplus.config import NetConfig, TrainConfig, find_part
from hopplus.games.game import Game, check_board, has_board
from hopplus.models.goal import GoalPart
from hopplus.models.nets import ActorCritic, Inputs
from hopplus.models.opponent import OpponentPart
from hopplus.models.part import Part
from hopplus.models.sampling import draw
from hopplus.models.world import board_of
from hopplus.models.world_part import WorldPart
from hopplus.players.context.context import Context, NoContext, goal_size
from hopplus.players.context.registry import make_context
from hopplus.players.parameters import PlayerParams
from hopplus.players.player import act_from
from hopplus.types import Act, Memory, View, ViewShape


@dataclass(frozen=True)
class PlayerModels:
    """The auxiliary models of one seat; None for those it does without."""

    prior: GoalPart | None = None
    opponent: OpponentPart | None = None
    world: WorldPart | None = None
    others: int = 0
    outside: tuple[tuple[str, Part], ...] = ()  # somebody's own, by the prefixes of their rows

    def init(self, key: jax.Array) -> dict[str, Any]:
        """Fresh parameters, by the field of `PlayerParams`."""
        key_prior, key_others, key_world = (jax.random.fold_in(key, n) for n in (1, 3, 4))
        keys_others = jax.random.split(key_others, self.others)
        return {
            "prior": self.prior.init(key_prior) if self.prior else None,
            "opponents": jax.vmap(self.opponent.init)(keys_others) if self.opponent else None,
            "world": self.world.init(key_world) if self.world else None,
            "outside": {  # by its name, so that it begins the same whatever else there is
                name: part.init(jax.random.fold_in(key, zlib.crc32(name.encode())))
                for name, part in self.outside
            },
        }


@dataclass(frozen=True)
class Actor:
    """Draws from its policy, or with `greedy` takes what it finds best.

    Its policy is given the view and the context: what it makes of the others.
    """

    name: str
    shape: ViewShape
    actions: int
    goal_size: int  # of the acts of others at the board; its own goals are zero
    net: NetConfig
    context: Context = field(default_factory=NoContext)
    parts: PlayerModels = field(default_factory=PlayerModels)
    shares_params: bool = False  # one set of parameters for all its seats
    recalled_seats: int = 0  # whose last actions its policy is given
    greedy: bool = False
    gated: bool = False  # it does not search in its own world before that foresees what comes

    def init(self, key: jax.Array) -> PlayerParams:
        size = self.context.size
        make = partial(ActorCritic, self.shape, self.actions, self.net, key)
        if self.context.ignored_at_first:  # the same first weights as of a player without it
            policy = make(recalled_seats=self.recalled_seats)
            policy = policy.widened(size, jax.random.fold_in(key, 6))
        else:
            policy = make(size, recalled_seats=self.recalled_seats)
        trusts = jnp.bool_(False) if self.gated else None
        models = self.parts.init(key)
        return PlayerParams(policy, context=self.context.init(key), trusts=trusts, **models)

    @property
    def given_size(self) -> int:
        """Of what the policy is given along with a view."""
        return self.recalled_seats * self.actions + self.context.size

    def start(self) -> Memory:
        return self.context.start()

    @property
    def carries(self) -> bool:
        return self.context.carries

    def carry(self, memory: Memory, view: View) -> Memory:
        return self.context.carry(memory, view)

    def meet(self, memory: Memory, others: jax.Array) -> Memory:
        return self.context.meet(memory, others)

    def overhear(self, memory: Memory, goals: jax.Array) -> Memory:
        return self.context.overhear(memory, goals)

    def policy_and_value(
        self, policy: ActorCritic, view: View, context: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """[A] log-probabilities and [] value of one view, with the context."""
        return policy.from_inputs(self.inputs(policy, view, context), view.legal)

    def inputs(self, policy: ActorCritic, view: View, context: jax.Array) -> Inputs:
        """What the policy's first dense layer reads of one view, with the context: when it plays
        and when it learns."""
        return policy.inputs(view, self.told(context))

    def told(self, context: jax.Array) -> jax.Array:
        """What the policy is told of the context."""
        return context

    def infer(self, params: PlayerParams, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
        """The memory after a view, and the context."""
        with jax.named_scope("infer"):
            return self.context.infer(self.context.params_of(params), memory, view)

    def values(self, param_sets: PlayerParams, memory: Memory, seen: View) -> jax.Array:
        """[B, n] what its seats hope for, with parameters [sets, ...], memories and views [B, n,
        ...]."""
        shares = self.shares_params

        def value(params: PlayerParams, memory: Memory, view: View) -> jax.Array:
            _, context = self.infer(params, memory, view)
            return self.policy_and_value(params.policy, view, context)[1]

        own = jax.tree.map(lambda leaf: leaf[0], param_sets) if shares else param_sets
        over_seats = jax.vmap(value, in_axes=(None if shares else 0, 0, 0))
        return jax.vmap(over_seats, in_axes=(None, 0, 0))(own, memory, seen)

    def act(
        self, params: PlayerParams, memory: Memory, view: View, key: jax.Array
    ) -> tuple[Memory, Act]:
        memory, context = self.infer(params, memory, view)
        logits, value = self.policy_and_value(params.policy, view, context)
        action = jnp.argmax(logits) if self.greedy else draw(key, jnp.exp(logits))
        return memory, act_from(logits, action, value, jnp.zeros(self.goal_size), context)


def make_actor(name: str, game: Game, config: TrainConfig, context: Context | None = None) -> Actor:
    """A learning player for a game, with the context that the configuration names or that one."""
    nets = [config.net]
    nets += [config.opponent.net] * ("opponent" in config.parts)
    nets += [config.goal.prior.net] * ("goal" in config.parts)
    if any(net.kind == "walking" for net in nets):
        check_board(game, "a network of the kind walking")
    context = context or make_context(game, config)
    return Actor(
        name,
        game.shape,
        len(game.action_names),
        len(game.targets),
        config.net,
        context,
        make_player_models(game, config, context),
        shares_params=config.ppo.parameters == "shared",
        recalled_seats=game.seats if config.last_actions else 0,
        gated=config.distil.gate < 1,
    )


def make_player_models(game: Game, config: TrainConfig, context: Context) -> PlayerModels:
    """The models that a configuration asks for, of a player with that context."""
    actions, others = len(game.action_names), game.seats - 1
    prior = opponent = world = None
    if "goal" in config.parts:
        prior = GoalPart(game.shape, actions, config.goal.prior, has_board(game))
    if "opponent" in config.parts:
        weights, net = (1.0,) * actions, config.opponent.net
        opponent = OpponentPart(game.shape, game.seats, actions, goal_size(context), net, weights)
    if "world" in config.parts:
        world = WorldPart(board_of(game), config.world.model)
    rules = [(find_part(name), settings) for name, settings in config.fitted.items()]
    outside = [(rule.prefix, rule.model(game, one)) for rule, one in rules if rule.model]
    return PlayerModels(prior, opponent, world, others, tuple(outside))
