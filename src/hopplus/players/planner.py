"""A player that looks ahead before it acts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import ConfigError, SearchConfig, TrainConfig, check
from hopplus.games import make_game
from hopplus.games.game import Game, check_board
from hopplus.kernels import on_gpu
from hopplus.models.nets import Mlp
from hopplus.models.one_product import policy_over_view, together
from hopplus.models.opponent import others_views, over_view, predictor
from hopplus.models.sampling import draw, drawn_by
from hopplus.models.world import board_of
from hopplus.planning.dynamics import (
    Chance,
    Dynamics,
    Embedding,
    LearnedDynamics,
    Observation,
    TrueDynamics,
    draw_chance,
    observe,
)
from hopplus.planning.root import averaged, choice_of, with_noise
from hopplus.planning.search import SearchResult, one_step, search
from hopplus.planning.tree import Leaf, Reached, RecurrentFn
from hopplus.players.actor import Actor
from hopplus.players.context.casting import CastingContext
from hopplus.players.context.context import suppose
from hopplus.players.context.registry import make_types
from hopplus.players.parameters import PlayerParams
from hopplus.players.player import Around, Player, act_from
from hopplus.types import Act, Memory, View

# [N - 1, A] log-probabilities of what the others do, from an observation, what is inferred and
# goals
Others = Callable[[Observation, jax.Array, jax.Array], jax.Array]
# What is thought of a place, and the probabilities of what the others do there, from the same
Judge = Callable[[Observation, jax.Array, jax.Array], tuple[Leaf, jax.Array]]


class Thought(eqx.Module):
    """A state in a planner's tree."""

    embedding: Embedding
    memory: Memory  # the seat's own, with what it has seen up to here
    inferred: jax.Array  # [J] what the others are taken to be after
    goals: jax.Array  # [N - 1, G] what models of them are told about that
    others: jax.Array  # [N - 1, A] probabilities of what they do next
    depth: jax.Array  # [] int32, steps ahead
    cast: Any = ()  # who plays them, where the context knows players


@dataclass(frozen=True)
class Planner(Around):
    """Searches with the parameters of an actor: its policy is the prior, its value the leaves', and
    the others act as players that its context knows, as its models of them say or, without either,
    as it would in their place."""

    actor: Actor
    game: Game
    config: SearchConfig
    shows_own: bool = False  # the search's own value, and not the network's

    @property
    def inner(self) -> Actor:
        return self.actor

    def act(
        self, params: PlayerParams, memory: Memory, view: View, key: jax.Array
    ) -> tuple[Memory, Act]:
        memory, act, _ = self.decide(params, memory, view, key)
        return memory, act

    def decide(
        self, params: PlayerParams, memory: Memory, view: View, key: jax.Array
    ) -> tuple[Memory, Act, SearchResult]:
        """As `act`, with what each tree [trees, ...] says."""
        key_trees, key_chance, key_act = jax.random.split(key, 3)
        c = self.config.within(self.game.horizon)
        with jax.named_scope("prepare"):
            root, leaf = self.root(params, memory, view)
            chance = draw_chance(key_chance, (c.trees, c.simulations or 0), self.game.seats - 1)

        look = search if c.kind == "tree" else one_step

        def grow(chance: Chance, key: jax.Array) -> SearchResult:
            key_goals, key_noise = jax.random.split(key)
            supposed = self.supposing(params, root, key_goals)
            if not c.infer_every:  # nothing is remembered on the way: no node has to keep it
                supposed = replace(supposed, memory=())
            return look(
                self.recurrent_fn(params), supposed, with_noise(leaf, c, key_noise), chance, c
            )

        grown = jax.vmap(grow)(chance, jax.random.split(key_trees, c.trees))
        found = averaged(grown)
        logits = choice_of(found, leaf, c)
        if params.trusts is not None and c.world == "learned":
            logits = jnp.where(params.trusts, logits, leaf.prior)
            found = replace(found, value=jnp.where(params.trusts, found.value, leaf.value))
        action = jnp.argmax(logits) if self.actor.greedy else draw(key_act, jnp.exp(logits))
        goal = jnp.zeros(self.actor.goal_size)
        # The search's own, with few draws of what the others do, hopes for luck.
        value = found.value if self.shows_own else leaf.value
        act = act_from(logits, action, value, goal, root.inferred)
        return root.memory, act, grown

    def root(self, params: PlayerParams, memory: Memory, view: View) -> tuple[Thought, Leaf]:
        """Where trees begin: the state that the seat sees, with its memory after that."""
        memory, inferred = self.actor.infer(params, memory, view)
        observation = observe(self.game, view)
        embedding = self.dynamics(params).enter(observation)
        goals = self.actor.context.about_others(inferred)
        leaf, others = self._judge(params)(observation, inferred, goals)
        return Thought(embedding, memory, inferred, goals, others, depth=jnp.int32(0)), leaf

    def supposing(self, player_params: PlayerParams, root: Thought, key: jax.Array) -> Thought:
        """The root of one tree: with the goals that are drawn for it, where there are chances of
        several."""
        if self.actor.context.casts:
            cast, others = self.actor.context.cast(root.memory, key)
            return replace(root, cast=cast, others=others)
        if not self.actor.context.gives_chances:  # or the others would be asked again for nothing
            return root
        goals = suppose(self.actor.context, root.goals, key)
        observation = self.dynamics(player_params).observation(root.embedding)
        others = jnp.exp(self._others(player_params)(observation, root.inferred, goals))
        return replace(root, goals=goals, others=others)

    def dynamics(self, player_params: PlayerParams) -> Dynamics:
        """Where it imagines."""
        if self.config.world == "true":
            return TrueDynamics(self.game)
        assert player_params.world is not None
        return LearnedDynamics(player_params.world, self.game.horizon, self.game.sees_all)

    def recurrent_fn(self, player_params: PlayerParams) -> RecurrentFn:
        """How a thought leads to another."""
        dynamics, every = self.dynamics(player_params), self.config.infer_every
        judge = self._judge(player_params)

        def recurrent_fn(thought: Thought, action: jax.Array, chance: Chance) -> Reached:
            joint = jnp.append(action, drawn_by(chance.others, thought.others))
            embedding, transition = dynamics.simulate(thought.embedding, joint, chance.world)
            if on_gpu():  # once, and not wherever something of it is read
                embedding = jax.lax.optimization_barrier(embedding)
            observation, depth = dynamics.observation(embedding), thought.depth + 1
            memory, inferred, goals = thought.memory, thought.inferred, thought.goals
            if every:
                memory, fresh = self.actor.infer(player_params, memory, observation.view)
                inferred = jnp.where(depth % every == 0, fresh, inferred)
                goals = self.actor.context.about_others(inferred)
            leaf, next_acts = judge(observation, inferred, goals)
            cast = thought.cast
            if self.actor.context.casts:  # and what models say is not asked for
                cast, next_acts = self.actor.context.rehearse(cast, observation.view)
            after = Thought(embedding, memory, inferred, goals, next_acts, depth, cast)
            return Reached(after, leaf, transition.reward[0], transition.ended)

        return recurrent_fn

    def _judge(self, player_params: PlayerParams) -> Judge:
        """Both, for many places: on a GPU with one product for the first layers of policy and
        models, where these are dense. Cores do two products side by side."""
        policy, models, game = player_params.policy, player_params.opponents, self.game
        dense = models is not None and {type(policy.body), type(models.body)} == {Mlp}
        if models is None or not dense or not on_gpu() or not self._needs_both:
            others = self._others(player_params)

            def one_by_one(
                observation: Observation, inferred: jax.Array, goals: jax.Array
            ) -> tuple[Leaf, jax.Array]:
                leaf = self._leaf(player_params, observation.view, inferred)
                return leaf, jnp.exp(others(observation, inferred, goals))

            return one_by_one

        board = game.shape, game.seats, len(game.action_names)
        say = together(policy_over_view(policy, *board), over_view(models, *board))

        def at_once(
            observation: Observation, inferred: jax.Array, goals: jax.Array
        ) -> tuple[Leaf, jax.Array]:
            view, legal = observation.view, observation.legal
            leaf, others = say(view, (view.legal, self.actor.told(inferred)), (legal, goals))
            return Leaf(*leaf), jnp.exp(others)

        return at_once

    @property
    def _needs_both(self) -> bool:
        """Whether models are asked at every place, and the policy reads there what all do."""
        kind = type(self.actor)
        reads_the_same = kind.policy_and_value is Actor.policy_and_value
        reads_the_same &= kind.inputs is Actor.inputs
        return reads_the_same and not self.actor.context.casts

    def _leaf(self, player_params: PlayerParams, view: View, inferred: jax.Array) -> Leaf:
        return Leaf(*self.actor.policy_and_value(player_params.policy, view, inferred))

    @property
    def _own_kinds(self) -> tuple[tuple[int, ...], ...] | None:
        """What this seat calls the kinds of each seat, where things are somebody's."""
        owned = any(target.owner is not None for target in self.game.targets.values())
        return board_of(self.game).own_kinds if owned else None

    def _others(self, player_params: PlayerParams) -> Others:
        """What the others do by models of them, or as oneself would in their place."""
        if player_params.opponents is not None:
            actions = len(self.game.action_names)
            predict = predictor(player_params.opponents, self.game.shape, self.game.seats, actions)
            return lambda observation, _, goals: predict(observation.view, observation.legal, goals)

        def as_oneself(observation: Observation, inferred: jax.Array, _: jax.Array) -> jax.Array:
            theirs = others_views(observation.view, observation.legal, self._own_kinds)
            return jax.vmap(lambda view: self._leaf(player_params, view, inferred).prior)(theirs)

        return as_oneself


def unnamed(player: Player) -> Player:
    """The player without its name, if it has learned: equal to those that differ in what they have
    learned alone."""
    match player:
        case Actor():
            return replace(player, name="")
        case Planner():
            return replace(player, actor=replace(player.actor, name=""))
    return player


def with_search(
    actor: Actor, game: Game, config: SearchConfig, learned: TrainConfig
) -> Actor | Planner:
    """The player of a run of such settings with that search before each of its acts, or as it is
    where there is none."""
    if not config.simulations:
        return actor
    check_board(game, "a search")
    if config.world == "learned" and not actor.parts.world:
        raise ConfigError(
            f"--search.world is 'learned' but {actor.name} has learned no world: use --search.world"
            " true, or a player trained with --parts opponent world"
        )
    every = config.infer_every
    if actor.context.gives_chances:
        allowed = "0 with a belief, which is about real acts only"
        check(not every, "search.infer_every", every, allowed)
    if every and not actor.context.size:
        raise ConfigError(
            f"--search.infer-every is {every} but {actor.name} infers nothing: leave it out, or use"
            " a player trained with --parts opponent goal"
        )
    if game.hidden and config.world == "true":
        raise ConfigError(
            f"a search by the rules needs the whole game, but nobody sees {game.hidden}: take"
            " --search.world learned"
        )
    if config.others == "types" and not actor.context.casts:
        if make_game(learned.game) != game:
            raise ConfigError(
                f"--search.others types knows the game that {actor.name} has learned in, and this"
                " one has other settings"
            )
        # Only known players are cast, and nobody is told of strangers.
        watching = replace(learned, types=replace(learned.types, strange=0.0))
        context = CastingContext(actor.context, make_types(game, watching))
        actor = replace(actor, context=context)
    return Planner(actor, game, config)
