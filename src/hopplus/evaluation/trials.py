"""Trials: one player among others who stay the same for several episodes, and what it got there,
read by episode, or at the end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations_with_replacement

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import FOR_EVER, MIXED, SearchConfig
from hopplus.devices import scatter
from hopplus.games.game import Game
from hopplus.learning.learner import Learner, Learning
from hopplus.play.lineup import Lineup, fitting
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import Seating, options
from hopplus.play.trained import Trained
from hopplus.players.mixture import Mixture
from hopplus.players.player import Player
from hopplus.players.scripted import mixed_names, scripted
from hopplus.types import Params

Names = tuple[str, ...]  # of the others, from the seat after one's own on
FOCAL = "focal"
MOST_GAMES = 8192  # played side by side


@dataclass(frozen=True)
class Streams:
    """Rewards of one player in L trials among each of K lineups."""

    reward: np.ndarray  # [K, L, T]
    done: np.ndarray  # [K, L, T] bool, an episode ended with the step

    def by_episode(self, episodes: int) -> np.ndarray:
        """[K, L, episodes] returns of the first ones; there must be as many."""
        number = np.cumsum(self.done, axis=-1) - self.done
        if (self.done.sum(axis=-1) < episodes).any():
            raise ValueError(f"not all trials have {episodes} episodes that ended")
        return np.stack(
            [np.where(number == e, self.reward, 0.0).sum(axis=-1) for e in range(episodes)], axis=-1
        )

    def late(self, steps: int) -> np.ndarray:
        """[K] mean returns of the episodes that ended within the last so many steps."""
        total = np.cumsum(self.reward, axis=-1)
        found = np.zeros(len(total))
        for lineup, (sums, done) in enumerate(zip(total, self.done, strict=True)):
            returns = []
            for one, ended in zip(sums, done, strict=True):
                at = np.flatnonzero(ended)
                gained = np.diff(one[at], prepend=0.0)
                returns.append(gained[at >= len(one) - steps])
            found[lineup] = np.concatenate(returns).mean()
        return found


@dataclass(frozen=True)
class ByEpisode:
    """The return of each of the first episodes."""

    episodes: int

    def steps_of(self, horizon: int) -> int:
        """Steps of a trial of the game with that horizon."""
        return self.episodes * horizon

    @property
    def columns(self) -> list[str]:
        return [f"episode {number + 1}" for number in range(self.episodes)]

    def __call__(self, streams: Streams) -> np.ndarray:
        """[K, columns] mean returns."""
        means: np.ndarray = streams.by_episode(self.episodes).mean(axis=1)
        return means


@dataclass(frozen=True)
class AtTheEnd:
    """The return after some time: HOP's protocol is 2,400 steps, of which the last 600 count (Huang
    et al. 2024)."""

    steps: int = 2400
    last: int = 600

    def steps_of(self, horizon: int) -> int:
        """Steps of a trial, whatever the game."""
        return self.steps

    @property
    def columns(self) -> list[str]:
        return [f"last {self.last} of {self.steps:,} steps"]

    def __call__(self, streams: Streams) -> np.ndarray:
        """[K, 1] mean returns."""
        return streams.late(self.last)[:, None]


Score = ByEpisode | AtTheEnd  # what is read from streams


def mixtures(game: Game, kinds: Sequence[str] = ()) -> list[Names]:
    """All combinations of these players for the seats of the others, or of the game's scripted
    ones."""
    return list(combinations_with_replacement(kinds or mixed_names(game), game.seats - 1))


def beyond(lineups: Sequence[Names], kinds: Sequence[str]) -> np.ndarray:
    """[K] bool, those with anyone who is of none of the kinds."""
    return np.array([not set(lineup) <= set(kinds) for lineup in lineups], bool)


def around(focal: str, lineup: Names, seat: int) -> Names:
    """Names for all seats: the focal one in its own, the co-players in those after it."""
    names = [focal, *lineup]
    return tuple(names[(place - seat) % len(names)] for place in range(len(names)))


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
        return Mixture(self.others, shares_params=True)

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
        return self.mixture.numbers(around(self.others[0].name, lineup, self.seat))

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
            given = scatter((keys, jnp.asarray(np.repeat(some, trials, axis=0))))
            reward, done = play_trials(self.game, self.seating, params, *given, steps)
            found = (np.asarray(reward[..., self.seat], np.float64), np.asarray(done))
            parts.append([one.T.reshape(together, trials, steps) for one in found])
        return Streams(*(np.concatenate(one)[: len(chosen)] for one in zip(*parts, strict=True)))


def told_kinds(trained: Trained) -> list[str]:
    """The players that an oracle has learned to know, in the order in which it is told of them."""
    config = trained.config
    if config is None or "oracle" not in config.context_names:
        return []
    mixed = [name for name in (config.seats or "").split(",") if MIXED in name]
    return max(map(options, mixed), key=len)


def make_trials(
    game: Game,
    focal: Trained,
    lineups: Sequence[Names],
    background: Mapping[str, Trained],
    seat: int,
    search: SearchConfig,
    kinds: Sequence[str] = (),
) -> tuple[Trials, tuple[Params, ...]]:
    """Seat a learned player for trials among these lineups, of scripted players and background
    players, or of anyone of more `kinds`; and the parameters of everyone."""
    own = fitting(focal, FOCAL, game).playing(game, search)
    # An oracle knows players by their number in the mixture that it has learned among.
    asked = [name for lineup in lineups for name in lineup]
    called = dict.fromkeys([*told_kinds(focal), *kinds, *asked])
    known = {name: fitting(background[name], name, game) for name in called if name in background}
    others = tuple(
        known[name].playing(game, None) if name in known else scripted(name, game)
        for name in called
    )
    trials = Trials(game, own, others, seat)
    learned = {FOCAL: focal.params, **{name: one.params for name, one in known.items()}}
    return trials, Lineup(trials.seating, learned).init(jax.random.key(0))
