"""A player that goes on learning among new co-players: every trial is a learner of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import FOR_EVER, MIXED, TrainConfig
from hopplus.evaluation.streams import Streams
from hopplus.evaluation.trials import Names, facing
from hopplus.learning.compilation import start_options
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.play.trained import Trained
from hopplus.players.mixture import Mixture
from hopplus.types import Params

Got = tuple[jax.Array, jax.Array]  # [T, L] rewards, and where episodes ended
Update = Callable[[Learning], tuple[Learning, Got]]
LEARN = "learn"  # one of the others who goes on learning, too


@dataclass(frozen=True)
class FineTuning:
    """How it goes on: as in its run, but alone with its game, and nothing falls towards an end."""

    config: TrainConfig  # of its run
    unroll: int = 32  # steps between updates
    learning_rate: float | None = None  # of the policy; that of the run when None

    @cached_property
    def _made(self) -> dict[Any, tuple[Learner, Update]]:
        """Learners that were made before: seeds share their programs."""
        return {}

    @property
    def learns(self) -> str:
        """What it learns from, for people."""
        search = self.config.search.simulations
        policy = "its search" if search else "its own steps, by PPO"
        return f"online, from {policy}" + "".join(f"; {part}" for part in self.config.fitted)

    def streams(
        self,
        players: Mapping[int, Trained],
        lineups: Sequence[Names],
        background: Mapping[str, Trained],
        seat: int,
        steps: int,
        trials: int,
        key: jax.Array,
    ) -> Streams:
        """Play trials of so many steps, rounded up to whole updates, among each lineup, by learned
        players of a run by seat. Where `learn` is among the others, the run's player of that seat
        goes on learning, too."""
        found = []
        called = dict.fromkeys(name for names in lineups for name in names if name != LEARN)
        for names in lineups:
            around = _around(names, seat)
            pattern = tuple(LEARN if name == LEARN else "" for name in around)
            key_of = (pattern, *called, seat, steps)
            if key_of not in self._made:
                self._made[key_of] = self._learner(pattern, list(called), background, steps, seat)
            learner, update = self._made[key_of]
            now = self._begun(learner, players, around, trials, key)
            parts = []
            for _ in range(-(-steps // self.unroll)):
                now, part = update(now)
                parts.append(jax.device_get(part))
            found.append([np.concatenate(leaf)[:steps] for leaf in zip(*parts, strict=True)])
        reward, done = (np.moveaxis(np.stack(one), 1, 2) for one in zip(*found, strict=True))
        return Streams(reward, done)

    def _learner(
        self,
        pattern: Names,
        called: list[str],
        background: Mapping[str, Trained],
        steps: int,
        seat: int,
    ) -> tuple[Learner, Update]:
        """The learner of the seats that learn, with anyone of those called in the others; and its
        update, which gives the rewards [T, L] of the focal seat and where episodes ended, too."""
        c = self.config.steady
        rate = c.ppo.learning_rate if self.learning_rate is None else self.learning_rate
        end = c.ppo.entropy if c.ppo.entropy_end is None else c.ppo.entropy_end
        ppo = replace(
            c.ppo,
            games=1,
            unroll=self.unroll,
            minibatches=1,
            learning_rate=rate,
            entropy=end,
            entropy_end=None,
            parameters="independent",
        )
        seats = ",".join(MIXED.join(called) if name == "" else name for name in pattern)
        room = max(steps, self.unroll)  # a trial has no more to keep
        config = replace(
            c,
            ppo=ppo,
            goal=replace(c.goal, mixing=0.0, buffer=min(c.goal.buffer, room)),
            opponent=replace(c.opponent, buffer=min(c.opponent.buffer, room)),
            world=replace(c.world, buffer=min(c.world.buffer, room)),
            imagine=replace(c.imagine, warm_up=0, buffer=min(c.imagine.buffer, room)),
            search=replace(c.search, noise=0.0),
            seats=seats,
            train_against=None,
            trial=FOR_EVER,
            steps=steps,
        )
        learner = make_learner(config, dict(background))

        def shown(now: Learning) -> tuple[Learning, Got]:
            after, _, lesson = learner.update_shown(now)
            outcome = lesson.trajectory.outcome
            return after, (outcome.reward[:, 0, seat], outcome.done[:, 0])

        axes = learner.axes
        replicas = jax.vmap(shown, in_axes=(axes,), out_axes=(axes, (1, 1)))
        update = jax.jit(replicas, donate_argnums=0, compiler_options=start_options(config))
        return learner, update

    def _begun(
        self,
        learner: Learner,
        players: Mapping[int, Trained],
        around: Names,
        trials: int,
        key: jax.Array,
    ) -> Learning:
        """[L] trials with the players of the run at their beginning."""
        first: Learning = jax.jit(learner.init_all)(jax.random.split(key, trials))
        spare = players[min(players)]
        param_sets = [players.get(int(seat), spare).params for seat in learner.seats]
        own = jax.tree.map(lambda *leaves: jnp.stack(leaves), *param_sets)  # [sets, ...]

        def replicas(leaf: jax.Array) -> jax.Array:
            return jnp.broadcast_to(leaf, (trials, *leaf.shape))

        params: tuple[Params, ...] = tuple(
            jax.tree.map(replicas, own) if group == learner.learning else kept
            for group, kept in enumerate(first.params)
        )
        now = replace(first, params=params)
        chosen = [
            player.numbers([name])[0] if isinstance(player, Mixture) else 0
            for player, name in zip(learner.seating.players, around, strict=True)
        ]
        seated = jnp.broadcast_to(jnp.array(chosen, jnp.int32), (trials, 1, len(chosen)))
        return facing(learner, now, seated)


def _around(lineup: Names, seat: int) -> Names:
    """Names for all seats: `learn` in one's own, the co-players in those after it."""
    names = [LEARN, *lineup]
    return tuple(names[(place - seat) % len(names)] for place in range(len(names)))
