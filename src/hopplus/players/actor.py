"""A player that acts by a learned policy."""

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp

from hopplus.config import NetConfig, TrainConfig
from hopplus.games.game import Game
from hopplus.models.chance import draw
from hopplus.models.memory import Recall
from hopplus.models.nets import ActorCritic
from hopplus.players.choice import act_from
from hopplus.players.mind import Mind, Parts, Shown, make_parts
from hopplus.types import Act, Memory, View


@dataclass(frozen=True)
class Actor:
    """Draws from its policy, or with `greedy` takes what it finds best.

    With the goal or the belief part it infers what the others are after and its policy is told.
    """

    name: str
    shape: tuple[int, int, int]  # height, width, planes
    actions: int
    goal_size: int  # of the acts of others at the board; its own goals are zero
    net: NetConfig
    parts: Parts = field(default_factory=Parts)
    shares_params: bool = False  # one set of parameters for all its seats
    greedy: bool = False

    @property
    def remembers(self) -> bool:
        """Whether its policy learns what to remember, from each game's steps in their order."""
        return self.parts.memory is not None

    def init(self, key: jax.Array) -> Mind:
        memory, size = self.parts.memory, self.parts.goal_size
        history = memory.init(jax.random.fold_in(key, 5)) if memory else None
        told = 0 if self.looks else size
        policy = ActorCritic(self.shape, self.actions, self.net, key, told, history)
        if self.looks:  # who is not told learns as if there were nothing to be shown
            policy = policy.widened(size, jax.random.fold_in(key, 6))
        return self.parts.init(policy, key)

    def start(self) -> Memory:
        fresh = self.parts.start()
        return Recall(fresh, jnp.int32(0)) if self.keeps else fresh

    @property
    def keeps(self) -> bool:
        """Whether it remembers anything from one episode to the next."""
        return self.parts.across and self.parts.trial > 1

    def again(self, memory: Memory, view: View) -> Memory:
        """The memory before the next episode, from the last one's and what was seen at its end: a
        fresh one if that is the first of a trial."""
        if not self.keeps:
            return self.start()
        number = memory.episodes + 1
        kept = Recall(self.parts.again(memory.state, view), number)
        over = number >= self.parts.trial
        return jax.tree.map(lambda new, old: jnp.where(over, new, old), self.start(), kept)

    def judge(
        self, policy: ActorCritic, view: View, inferred: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """[A] log-probabilities and [] value of one view, with what is inferred."""
        return policy(view, inferred)

    @property
    def looks(self) -> bool:
        """Whether it is to be shown who the others are."""
        return self.parts.shown > 0

    def look(self, memory: Recall, others: jax.Array) -> Recall:
        """The memory with the numbers [N - 1] of the others' kinds, if it is told."""
        told = memory.state.told
        who = jnp.where(told, jax.nn.one_hot(others, self.parts.shown), 0.0)
        return replace(memory, state=Shown(told, who.reshape(-1)))

    def infer(self, params: Mind, memory: Memory, view: View) -> tuple[Memory, jax.Array]:
        """The memory after a view, and [J] what the others are taken to be after; or, for a policy
        with a memory of its own, what it remembers."""
        if isinstance(memory, Recall):
            state, inferred = self.infer(params, memory.state, view)
            return Recall(state, memory.episodes), inferred
        if self.parts.memory and params.policy.history is not None:
            memory = self.parts.memory.read(params.policy.history, memory, view)
            return memory, memory
        if isinstance(memory, Shown):
            return memory, memory.who
        if self.parts.belief and params.opponents is not None:
            with jax.named_scope("infer"):
                memory, belief = self.parts.belief.infer(params.opponents, memory, view)
                return memory, belief.reshape(-1)
        if self.parts.inference is None or params.inference is None:
            return memory, jnp.zeros(0)
        with jax.named_scope("infer"):
            memory, goals = self.parts.inference.infer(params.inference, memory, view)
        return memory, goals.reshape(-1)

    def act(self, params: Mind, memory: Memory, view: View, key: jax.Array) -> tuple[Memory, Act]:
        memory, inferred = self.infer(params, memory, view)
        logits, value = self.judge(params.policy, view, inferred)
        action = jnp.argmax(logits) if self.greedy else draw(key, jnp.exp(logits))
        return memory, act_from(logits, action, value, jnp.zeros(self.goal_size), inferred)


def make_actor(name: str, game: Game, config: TrainConfig, shown: int = 0) -> Actor:
    """A learning player for a game; it may be shown who of so many kinds the others are."""
    return Actor(
        name,
        game.shape,
        len(game.action_names),
        len(game.targets),
        config.net,
        make_parts(game, config, shown),
        shares_params=config.ppo.parameters == "shared",
    )
