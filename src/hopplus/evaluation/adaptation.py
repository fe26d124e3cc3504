"""How fast does a player understand new co-players? Its returns by the number of the episode.

It plays as it is, or goes on learning: then every trial is a learner of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import FOR_EVER, MIXED, ConfigError, SearchConfig, TrainConfig
from hopplus.evaluation.references import References
from hopplus.evaluation.statistics import Estimate, estimate, share_of_way
from hopplus.evaluation.trials import (
    Names,
    Score,
    Streams,
    around,
    facing,
    make_trials,
    mixtures,
)
from hopplus.games.game import Game
from hopplus.learning.compilation import start_options
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.play.names import full_name, is_background
from hopplus.play.seating import split_names
from hopplus.play.trained import Trained
from hopplus.players.mixture import Mixture
from hopplus.players.scripted import Mixed, mixed_names, scripted
from hopplus.types import Params

Got = tuple[jax.Array, jax.Array]  # [T, L] rewards, and where episodes ended
Update = Callable[[Learning], tuple[Learning, Got]]
OnProgress = Callable[[int, str], None]  # trials that are done, and a note
MOST_TRIALS = 1024  # of those who learn, side by side
LEARN = "learn"  # one of the others who goes on learning, too


@dataclass(frozen=True)
class Adaptation:
    """Mean returns of the focal player, over all trials and its seats."""

    lineups: list[Names]  # [K]
    columns: list[str]  # [C] what was read: episodes, or the end
    returns: np.ndarray  # [S, K, C]

    def estimates(self, place: int) -> list[Estimate]:
        """By column, among one lineup."""
        return [estimate(column) for column in self.returns[:, place].T]

    def means(self) -> list[Estimate]:
        """By column, over all lineups."""
        return [estimate(column) for column in self.returns.mean(axis=1).T]

    def _shared(self, known: References) -> tuple[list[int], list[int]]:
        """The places of the lineups that have been measured, here and there."""
        places = {lineup: place for place, lineup in enumerate(known.lineups)}
        held = [number for number, lineup in enumerate(self.lineups) if lineup in places]
        return held, [places[self.lineups[number]] for number in held]

    def beside(self, known: References, name: str) -> np.ndarray | None:
        """[S', C] mean returns of a reference player by its seeds and column, over the lineups that
        have been measured; None where there are none, or no such player."""
        _, there = self._shared(known)
        if not there or name not in known.returns:
            return None
        counted = [column for column in self.columns if column.startswith("episode")]
        found: np.ndarray = known.in_columns(name, len(counted))[:, there].mean(axis=1)
        return found

    def closed(self, known: References) -> list[Estimate] | None:
        """By column, the share of the way from blind to best responses that is made, or to the
        oracle where these are not known, averaged over the lineups that have been measured, over
        the seeds of the player; None where there is no way to go."""
        held, _ = self._shared(known)
        blind, aim = self.beside(known, "blind"), self.beside(known, known.aim)
        if blind is None or aim is None:
            return None
        own = self.returns[:, held].mean(axis=1)  # [S, C]
        return share_of_way(own - blind.mean(axis=0), aim - blind)

    def regret(self, known: References, total: bool = False) -> list[Estimate] | None:
        """By column, what best responses would have had more, over the same; up to each column with
        `total`. None where they are not known."""
        held, _ = self._shared(known)
        best = self.beside(known, "best")
        if best is None:
            return None
        lost = best.mean(axis=0) - self.returns[:, held].mean(axis=1)  # [S, C]
        return [estimate(column) for column in (lost.cumsum(axis=1) if total else lost).T]

    def as_json(self) -> dict[str, Any]:
        return {
            "lineups": [list(lineup) for lineup in self.lineups],
            "columns": self.columns,
            "returns": self.returns.tolist(),
            "means": [mean.as_json() for mean in self.means()],
        }


def lineups(against: Sequence[str], game: Game, kinds: Sequence[str] = ()) -> list[Names]:
    """The names of everyone besides the focal player, from the next seat on; `all` are all mixtures
    of these kinds, or of the game's scripted players, `conditional` of more who remember the
    trial; `population` is each family in all seats, as their mixtures would be too many."""
    found: list[Names] = []
    for names in against:
        if names == "all" and kinds:
            found += mixtures(game, kinds)
        elif names in ("all", "conditional"):
            found += mixtures(game, mixed_names(game, cast(Mixed, names)))
        elif names == "population":
            found += [(name,) * (game.seats - 1) for name in mixed_names(game, "population")]
        else:
            called = split_names(names, game.seats - 1, others=True)
            found.append(tuple(own_name(one, 1 + place, game) for place, one in enumerate(called)))
    return list(dict.fromkeys(found))


def own_name(name: str, seat: int, game: Game) -> str:
    """The name by which a player is known: `noisy-hare:0.2` for `noisy-hare:.20`."""
    if MIXED in name:
        raise ConfigError(f"{name!r} is a mixture: among new co-players, one player sits in a seat")
    if name == LEARN or is_background(name):
        return full_name(name, seat)
    return scripted(name, game).name


@dataclass(frozen=True)
class FineTuning:
    """How it goes on: as in its run, but alone with its game, and nothing falls towards an end."""

    config: TrainConfig  # of its run
    unroll: int = 32  # steps between updates
    learning_rate: float | None = None  # of the policy; that of the run when None

    @property
    def learns(self) -> str:
        """What it learns from, for people."""
        search = self.config.search.simulations
        policy = "its search" if search else "its own steps, by PPO"
        return f"online, from {policy}" + "".join(f"; {part}" for part in self.config.fitted)

    def streams(
        self,
        players: Sequence[Mapping[int, Trained]],
        lineups: Sequence[Names],
        background: Mapping[str, Trained],
        seat: int,
        steps: int,
        trials: int,
        keys: Sequence[jax.Array],
        on_progress: OnProgress = lambda count, note: None,
    ) -> list[Streams]:
        """Play trials of so many steps, rounded up to whole updates, among each lineup, by learned
        players of a run by seat, for each of its seeds [S] with a key of its own. Where `learn` is
        among the others, the run's player of that seat goes on learning, too."""
        called = list(dict.fromkeys(name for names in lineups for name in names if name != LEARN))
        seated = [around(LEARN, names, seat) for names in lineups]
        patterns = [tuple(LEARN if name == LEARN else "" for name in names) for names in seated]
        shape = (len(players), len(lineups), trials, steps)
        reward, done = np.zeros(shape, np.float32), np.zeros(shape, bool)
        for pattern in dict.fromkeys(patterns):
            there = [number for number, one in enumerate(patterns) if one == pattern]
            pairs = [(seed, number) for seed in range(len(players)) for number in there]
            learner, update = self._learner(pattern, called, background, steps, seat)
            together = min(len(pairs), max(1, MOST_TRIALS // trials))  # pairs side by side
            for first in range(0, len(pairs), together):
                some = pairs[first : first + together]
                padded = [some[number % len(some)] for number in range(together)]  # one program
                now = self._begun(learner, players, seated, padded, trials, keys)
                parts = []
                for _ in range(-(-steps // self.unroll)):
                    now, part = update(now)
                    parts.append(jax.device_get(part))
                got = [np.concatenate(leaf)[:steps].T for leaf in zip(*parts, strict=True)]
                for place, (seed, number) in enumerate(some):
                    own = slice(place * trials, (place + 1) * trials)
                    reward[seed, number], done[seed, number] = (leaf[own] for leaf in got)
                on_progress(trials * len(some), f"seat {seat}")
        return [Streams(*one) for one in zip(reward, done, strict=True)]

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
        if told := {"episodes", "oracle"} & set(c.context_names):
            raise ConfigError(
                f"a player with the context {min(told)} is told what there is nobody to tell in a"
                " trial among others: it cannot go on learning there"
            )
        if c.ppo.lola.step:
            raise ConfigError("LOLA learns in pairs: such a player cannot go on learning alone")
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
            influence=replace(c.ppo.influence, warm_up=0),
        )
        seats = ",".join(MIXED.join(called) if name == "" else name for name in pattern)
        room = max(steps, self.unroll)  # a trial has no more to keep
        config = replace(
            c,
            ppo=ppo,
            goal=replace(c.goal, mixing=0.0, buffer=min(c.goal.buffer, room)),
            liam=replace(c.liam, buffer=min(c.liam.buffer, room)),
            opponent=replace(c.opponent, buffer=min(c.opponent.buffer, room)),
            world=replace(c.world, buffer=min(c.world.buffer, room)),
            imagine=replace(
                c.imagine,
                warm_up=0,
                buffer=min(c.imagine.buffer, room),
                real_ratio=c.imagine.real_ratio_end or c.imagine.real_ratio,
                real_ratio_end=None,
            ),
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
        players: Sequence[Mapping[int, Trained]],
        seated: Sequence[Names],
        pairs: Sequence[tuple[int, int]],
        trials: int,
        keys: Sequence[jax.Array],
    ) -> Learning:
        """[L] so many trials of each pair of a seed, with the players of its run at their
        beginning, and a lineup."""

        def sets_of(learned: Mapping[int, Trained]) -> Params:
            spare = learned[min(learned)]
            param_sets = [learned.get(int(seat), spare).params for seat in learner.seats]
            return jax.tree.map(lambda *leaves: jnp.stack(leaves), *param_sets)  # [sets, ...]

        seeds = np.repeat([seed for seed, _ in pairs], trials)
        boards = jnp.concatenate([jax.random.split(keys[seed], trials) for seed, _ in pairs])
        first: Learning = jax.jit(learner.init_all)(boards)
        own = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(sets_of, players))
        params = learner.with_param_sets(first.params, jax.tree.map(lambda leaf: leaf[seeds], own))
        chosen = [
            [
                player.numbers([name])[0] if isinstance(player, Mixture) else 0
                for player, name in zip(learner.seating.players, seated[number], strict=True)
            ]
            for _, number in pairs
        ]
        choices = jnp.asarray(np.repeat(chosen, trials, axis=0)[:, None], jnp.int32)  # [L, 1, N]
        return facing(learner, replace(first, params=params), choices)


def adapt(
    game: Game,
    players: Sequence[Mapping[int, Trained]],
    wanted: Sequence[Names],
    background: Mapping[str, Trained],
    seats: Sequence[int],
    score: Score,
    trials: int,
    search: SearchConfig,
    key: jax.Array,
    online: FineTuning | None = None,
    on_progress: OnProgress = lambda count, note: None,
    kinds: Sequence[str] = (),
) -> Adaptation:
    """Play trials among every lineup, for each of [S] seeds with its learned players by seat.

    Where nobody has learned in a seat, the player of the first that has sits there. The program
    seats anyone of `kinds` too, so that calls for other lineups of these share it.
    """
    returns = np.zeros((len(players), len(wanted), len(score.columns)))
    steps = score.steps_of(game.horizon)
    for seat in seats:
        own_keys = [
            jax.random.fold_in(jax.random.fold_in(key, seat), number)
            for number in range(len(players))
        ]
        focal = [learned.get(seat, learned[min(learned)]) for learned in players]
        if online:
            known = [{**one, seat: own} for one, own in zip(players, focal, strict=True)]
            given = (background, seat, steps, trials, own_keys, on_progress)
            streams = online.streams(known, wanted, *given)
        else:
            streams = []
            for number, own in enumerate(focal):
                table, params = make_trials(game, own, wanted, background, seat, search, kinds)
                streams.append(table.streams(params, wanted, steps, trials, own_keys[number]))
                on_progress(trials * len(wanted), f"seat {seat}, seed {number}")
        returns += np.stack([score(one) for one in streams]) / len(seats)
    return Adaptation(list(wanted), score.columns, returns)
