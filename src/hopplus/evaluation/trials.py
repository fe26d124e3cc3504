"""Trials: one player among others who stay the same for several episodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import FOR_EVER, SearchConfig
from hopplus.evaluation.streams import Streams
from hopplus.games.game import Game
from hopplus.learning.learner import Learner, Learning
from hopplus.play.lineup import Lineup, fitting
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import Seating
from hopplus.play.trained import Trained
from hopplus.players.mixture import Mixture
from hopplus.players.player import Player
from hopplus.players.scripted import mixed_names, scripted
from hopplus.types import Params

Names = tuple[str, ...]  # of the others, from the seat after one's own on
FOCAL = "focal"
MOST_GAMES = 8192  # played side by side


def mixtures(game: Game) -> list[Names]:
    """All combinations of the game's scripted players for the seats beside one's own."""
    return list(combinations_with_replacement(mixed_names(game), game.seats - 1))


def beyond_mixtures(lineups: Sequence[Names], game: Game) -> np.ndarray:
    """[K] bool, those with anyone who is not in the mixtures."""
    kinds = set(mixed_names(game))
    return np.array([not set(lineup) <= kinds for lineup in lineups], bool)


@eqx.filter_jit
def play_trials(
    game: Game,
    seating: Seating,
    params: tuple[Params, ...],
    keys: jax.Array,
    choices: jax.Array,
    steps: int,
) -> tuple[jax.Array, jax.Array]:
    """[T, B, N] rewards of so many steps of each of [B] trials, with the ones of the mixtures
    [B, N] seated throughout; and [T, B] where episodes ended."""
    plays = jax.vmap(lambda key, chosen: start(game, seating, key, chosen))(keys, choices)
    outcome = rollout(game, seating, params, plays, steps)[1].outcome
    return outcome.reward, outcome.done


def facing(learner: Learner, learning: Learning, choices: jax.Array) -> Learning:
    """The learning at its beginning, with those [L, B, N] of the mixtures seated in each game of
    each replica; anything for other seats."""
    memory = jax.vmap(jax.vmap(learner.seating.start))(choices)
    return replace(learning, plays=replace(learning.plays, choice=choices, memory=memory))


@dataclass(frozen=True)
class Trials:
    """One program that seats a player among any of some others, who stay."""

    game: Game
    focal: Player
    others: tuple[Player, ...]
    seat: int

    @property
    def mixture(self) -> Mixture:
        """Any of the others."""
        return Mixture(self.others)

    @cached_property
    def seating(self) -> Seating:
        places = range(self.game.seats)
        one, rest = self.focal, self.mixture
        return Seating(tuple(one if p == self.seat else rest for p in places), trial=FOR_EVER)

    @property
    def group(self) -> int:
        """Which of the seating's groups the focal player is."""
        return [player for player, _ in self.seating.groups].index(self.focal)

    def choices(self, lineup: Names) -> list[int]:
        """[N] who sits where, by number; anything for the focal seat."""
        around = [self.others[0].name, *lineup]
        count = self.game.seats
        places = [(place - self.seat) % count for place in range(count)]
        return self.mixture.numbers([around[place] for place in places])

    def streams(
        self,
        params: tuple[Params, ...],
        lineups: Sequence[Names],
        steps: int,
        trials: int,
        key: jax.Array,
    ) -> Streams:
        """What the focal player gets in so many steps among each of these lineups, on the same
        boards."""
        chosen = np.array([self.choices(lineup) for lineup in lineups])  # [K, N]
        together = min(len(chosen), max(1, MOST_GAMES // trials))  # lineups side by side
        keys = jnp.tile(jax.random.split(key, trials), together)
        parts = []
        for first in range(0, len(chosen), together):
            some = np.resize(chosen[first : first + together], (together, self.game.seats))
            choices = jnp.asarray(np.repeat(some, trials, axis=0))
            reward, done = play_trials(self.game, self.seating, params, keys, choices, steps)
            found = (np.asarray(reward[..., self.seat], np.float64), np.asarray(done))
            parts.append([one.T.reshape(together, trials, steps) for one in found])
        return Streams(*(np.concatenate(one)[: len(chosen)] for one in zip(*parts, strict=True)))


def make_trials(
    game: Game,
    focal: Trained,
    lineups: Sequence[Names],
    background: Mapping[str, Trained],
    seat: int,
    search: SearchConfig,
) -> tuple[Trials, tuple[Params, ...]]:
    """Seat a learned player for trials among these lineups, of scripted players and background
    players; and
    the parameters of everyone."""
    own = fitting(focal, FOCAL, game).playing(game, search)
    called = dict.fromkeys(name for lineup in lineups for name in lineup)
    known = {name: fitting(background[name], name, game) for name in called if name in background}
    others = tuple(
        known[name].playing(game, None) if name in known else scripted(name, game)
        for name in called
    )
    trials = Trials(game, own, others, seat)
    learned = {FOCAL: focal.params, **{name: one.params for name, one in known.items()}}
    return trials, Lineup(trials.seating, learned).init(jax.random.key(0))
