"""Runs that are alike but for one co-player whom each never meets, as one learner: who is left out
is data, so that one program serves them all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import MIXED, TrainConfig
from hopplus.games import make_game
from hopplus.learning.from_run import maker, seat_names
from hopplus.learning.learner import Learner, Learning
from hopplus.play.seating import options
from hopplus.play.seeds import seed_keys
from hopplus.players.actor import make_actor
from hopplus.players.mixture import Mixture
from hopplus.runs.folder import RunFolder


@dataclass(frozen=True)
class LeftOut:
    """The learner at whose table everyone may sit, and the number of who never does in each run.
    Its seeds are those of one run after the other."""

    learner: Learner
    absent: tuple[int, ...]  # [R]
    config: TrainConfig  # of one of the runs

    @classmethod
    def of(cls, runs: Sequence[RunFolder], everyone: Sequence[str]) -> Self | None:
        """For runs that each leave one of everyone out. None if they are not such, or if a player
        is made otherwise where another may sit."""
        configs = [run.config() for run in runs]
        one, game = configs[0], make_game(configs[0].game)
        absent = []
        for config in configs:
            name = next((n for n in everyone if n not in options(seat_names(config)[-1])), None)
            met = _table([other for other in everyone if other != name], one)
            if name is None or config != replace(one, seats=met):
                return None
            absent.append(list(everyone).index(name))
        joint = replace(one, seats=_table(everyone, one))
        if make_actor("learn", game, joint) != make_actor("learn", game, one):
            return None
        learner = maker(runs[0])(joint)
        mixture = next(one for one in learner.seating.players if isinstance(one, Mixture))
        if len(mixture.groups) < len(everyone):  # memories are by group
            return None
        return cls(learner, tuple(absent), one)

    def given(self) -> tuple[jax.Array, jax.Array]:
        """[R S] the keys of all seeds, and who is absent in each."""
        absent = np.repeat(np.array(self.absent, np.int32), self.config.seeds)
        return jnp.tile(seed_keys(self.config), len(self.absent)), jnp.asarray(absent)

    def apart(self, learning: Learning) -> list[Learning]:
        """What each run has learned, as it would have by itself."""
        # By NumPy, but for keys: every slice of an array of JAX's is a program of its own.
        host = jax.tree.map(lambda leaf: leaf if _is_key(leaf) else np.asarray(leaf), learning)

        def of_run(place: int, absent: int) -> Learning:
            rows = slice(place * self.config.seeds, (place + 1) * self.config.seeds)
            own = _over_seeds(lambda leaf: leaf[rows], host)
            plays = replace(
                own.plays,
                memory=self._at_mixture(own.plays.memory, lambda kept: _dropped(kept, absent)),
                choice=own.plays.choice - (own.plays.choice > absent),
                absent=None,
            )
            params = self._at_mixture(own.params, lambda kept: _dropped(kept, absent))
            return replace(own, plays=plays, params=params)

        return [of_run(place, absent) for place, absent in enumerate(self.absent)]

    def joined(self, learnings: Sequence[Learning]) -> Learning:
        """What `apart` has taken apart; who is absent remembers nothing."""
        mixture, seats = self.learner.seating.groups[self._mixture]
        assert isinstance(mixture, Mixture)
        drawn = np.isin(np.arange(self.learner.game.seats), seats)

        def whole(own: Learning, absent: int) -> Learning:
            choice = own.plays.choice
            lead = (*choice.shape[:2], len(seats))
            start = mixture.players[absent].start()
            fresh = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, lead + leaf.shape), start)
            plays = replace(
                own.plays,
                memory=self._at_mixture(own.plays.memory, lambda kept: _put(kept, absent, fresh)),
                choice=choice + (drawn & (choice >= absent)),
                absent=jnp.full(choice.shape[:2], absent, jnp.int32),
            )
            params = self._at_mixture(own.params, lambda kept: _put(kept, absent, ()))
            return replace(own, plays=plays, params=params)

        each = [whole(own, absent) for own, absent in zip(learnings, self.absent, strict=True)]
        return _over_seeds(lambda *leaves: jnp.concatenate(leaves), *each)

    @property
    def _mixture(self) -> int:
        """Which of the seating's groups is drawn."""
        return 1 - self.learner.learning

    def _at_mixture(
        self, held: tuple[Any, ...], change: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    ) -> tuple[Any, ...]:
        """What is held for every group of the seating, changed for that one."""
        return tuple(change(one) if n == self._mixture else one for n, one in enumerate(held))


def _table(names: Sequence[str], config: TrainConfig) -> str:
    """The seats with one who learns, and anyone of these in each other."""
    return ",".join(["learn", *[MIXED.join(names)] * (config.game.seats - 1)])


def _dropped(kept: tuple[Any, ...], place: int) -> tuple[Any, ...]:
    return (*kept[:place], *kept[place + 1 :])


def _put(kept: tuple[Any, ...], place: int, one: Any) -> tuple[Any, ...]:
    return (*kept[:place], one, *kept[place:])


def _is_key(leaf: jax.Array) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _over_seeds(change: Callable[..., Any], *learnings: Learning) -> Learning:
    """All that has an axis of seeds, changed; the number of updates has none."""
    bare = [replace(one, updates=None) for one in learnings]  # type: ignore[arg-type]
    changed: Learning = jax.tree.map(change, *bare)
    return replace(changed, updates=learnings[0].updates)
