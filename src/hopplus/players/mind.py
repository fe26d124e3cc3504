"""What a learning player has learned, and the parts it is made of."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp

from hopplus.config import FOR_EVER, ConfigError, TrainConfig
from hopplus.games.game import Game
from hopplus.models.belief import BeliefPart
from hopplus.models.goal import GoalPart, GoalPrior
from hopplus.models.inference import GoalInference, InferencePart
from hopplus.models.memory import MemoryPart
from hopplus.models.nets import ActorCritic
from hopplus.models.opponent import OpponentModel, OpponentPart
from hopplus.models.world import World, board_of
from hopplus.models.world_part import WorldPart
from hopplus.types import Memory, View


class Shown(eqx.Module):
    """What a policy is shown of the others, if it is told."""

    told: jax.Array  # [] bool
    who: jax.Array  # [(N - 1) * kinds] float32, of which kind each is; zeros for who is not told


class Mind(eqx.Module):
    """Everything one seat has learned; None for parts it does without."""

    policy: ActorCritic
    prior: GoalPrior | None = None
    inference: GoalInference | None = None
    opponents: OpponentModel | None = None  # [N - 1, ...] one for each other, in the seats' order
    world: World | None = None


@dataclass(frozen=True)
class Parts:
    """The models of a mind beside its policy; None for those it does without."""

    inference: InferencePart | None = None
    belief: BeliefPart | None = None
    opponent: OpponentPart | None = None
    world: WorldPart | None = None
    others: int = 0
    memory: MemoryPart | None = None
    trial: int = 1  # episodes for which the others stay the same
    shown: int = 0  # kinds of players: who is told sees which of them each other is

    @property
    def across(self) -> bool:
        """Whether anything of an episode is of use in the next one of a trial."""
        if self.memory:
            return self.memory.config.kind == "trial"
        if self.belief:
            return self.belief.config.across
        if self.shown:
            return True
        return self.inference is not None and self.inference.across

    def start(self) -> Memory:
        """What is remembered before anything was seen."""
        if self.shown:
            return Shown(jnp.array(False), jnp.zeros(self.others * self.shown))
        part = self.memory or self.belief or self.inference
        return part.start() if part else ()

    def again(self, memory: Memory, view: View) -> Memory:
        """What is remembered of an episode, with what was seen at its end."""
        return self.belief.again(memory, view) if self.belief else memory

    @property
    def prior(self) -> GoalPart | None:
        return self.inference.goal if self.inference else None

    @property
    def goal_size(self) -> int:
        """Numbers that the policy is told: all goals that are inferred, its memory, or who the
        others are."""
        if self.shown:
            return self.others * self.shown
        if self.memory:
            return self.memory.config.size
        if self.belief:
            return self.belief.others * self.belief.kinds
        return self.inference.size if self.inference else 0

    def goals_about(self, inferred: jax.Array) -> jax.Array:
        """[N - 1, G] what [J * G] inferred goals tell of each other; of size 0 for nothing."""
        if self.belief:
            return inferred.reshape(self.others, -1)
        if not self.inference:
            return jnp.zeros((self.others, 0))
        goals = inferred.reshape(self.inference.goals, -1)
        return jnp.broadcast_to(goals, (self.others, goals.shape[1]))

    def init(self, policy: ActorCritic, key: jax.Array) -> Mind:
        """A mind with that policy and fresh models."""
        keys = [jax.random.fold_in(key, number) for number in range(1, 5)]
        return Mind(
            policy=policy,
            prior=self.prior.init(keys[0]) if self.prior else None,
            inference=self.inference.init(keys[1]) if self.inference else None,
            opponents=(
                jax.vmap(self.opponent.init)(jax.random.split(keys[2], self.others))
                if self.opponent
                else None
            ),
            world=self.world.init(keys[3]) if self.world else None,
        )


def make_parts(game: Game, config: TrainConfig, shown: int = 0) -> Parts:
    """The models that a configuration asks for; the policy may be shown which of so many kinds of
    players each other is, and is told or not for ever."""
    actions, others = len(game.action_names), game.seats - 1
    inference = belief = opponent = world = None
    told = 0
    if "goal" in config.parts:
        c = config.goal
        prior = GoalPart(game.shape, actions, c.prior)
        goals = others if c.about == "each" else 1
        inference = InferencePart(prior, game.seats, goals, c.hidden, c.across, c.history == "each")
        told = c.prior.size
    if "belief" in config.parts:
        if game.hidden:
            raise ConfigError(f"a belief needs the whole game, but nobody sees {game.hidden}")
        belief = BeliefPart(config.game, config.belief)
        told = belief.kinds
    if "opponent" in config.parts:
        weights = (1.0,) * actions
        net = config.opponent.net
        opponent = OpponentPart(game.shape, game.seats, actions, told, net, weights)
    if "world" in config.parts:
        world = WorldPart(board_of(game), config.world.model)
    memory = None
    if config.memory.kind != "none":
        memory = MemoryPart(game.shape, game.seats, actions, config.memory)
    stays = FOR_EVER if shown else config.stays
    return Parts(inference, belief, opponent, world, others, memory, stays, shown)
