"""Learning in each trial anew: what it goes on with, and how it is kept from doing harm."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import FOR_EVER, MIXED, AuxiliaryConfig, ConfigError, TrainConfig
from hopplus.devices import scatter
from hopplus.evaluation.trials import Names, Streams, around
from hopplus.learning.compilation import start_options
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.safeguard import Evidence, Safeguard, with_room
from hopplus.play.rollout import start
from hopplus.play.trained import Trained
from hopplus.players.mixture import Mixture
from hopplus.types import Params

Part = TypeVar("Part", bound=AuxiliaryConfig)
Got = tuple[jax.Array, jax.Array]  # [T, L] rewards, and where episodes ended
Now = tuple[Learning, Evidence | None]  # [L, ...] the trials, and what speaks for what they learned
Update = Callable[[Now], tuple[Now, Got]]
OnProgress = Callable[[int, str], None]  # trials that are done, and a note
MOST_TRIALS = 1024  # of those who learn, side by side
MOST_KEPT = 1024  # steps of a trial to learn from
LEARN = "learn"  # one of the others who goes on learning, too


@dataclass(frozen=True)
class FineTuning:
    """How it goes on: as in its run, but alone with its game, and nothing falls towards an end."""

    config: TrainConfig  # of its run
    unroll: int = 32  # steps between updates
    learning_rate: float | None = None  # of the policy; that of the run when None
    caution: float = 1.0  # standard errors of `Safeguard`; 0 plays at once what was learned

    @property
    def guarded(self) -> bool:
        """Whether what was learned has to show that it is better. There are no odds of actions to
        tell by where a search chooses them."""
        return self.caution > 0 and not self.config.search.simulations

    @property
    def fitted(self) -> list[str]:
        """The auxiliary models that go on learning. With a safeguard a player makes of the others
        what it was trained to, and the models that imagination needs go on alone."""
        c = self.config
        needed = c.imagines or c.ppo.influence.weight > 0
        kept = ("goal", "liam") if needed else ("goal", "liam", "opponent", "world")
        return [part for part in c.fitted if not (self.guarded and part in kept)]

    @property
    def learns(self) -> str:
        """What it learns from, for people."""
        policy = "its search" if self.config.search.simulations else "its own steps, by PPO"
        shown = f", playing what is better by {self.caution:g} standard errors"
        said = f"online, from {policy}{shown if self.guarded else ''}"
        return said + "".join(f"; {part}" for part in self.fitted)

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
                now = scatter(self._begun(learner, players, seated, padded, trials, keys))
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
        if "types" in c.context_names:
            raise ConfigError(
                "a player with the context types is told of those whom its run has met: it cannot"
                " go on learning among others"
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

        def going_on(part: Part) -> Part:
            every = part.every if part.prefix.removesuffix(".") in self.fitted else 0
            return replace(part, buffer=min(part.buffer, room), every=every)

        config = replace(
            c,
            ppo=ppo,
            goal=replace(going_on(c.goal), mixing=0.0),
            liam=going_on(c.liam),
            opponent=going_on(c.opponent),
            world=going_on(c.world),
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
        if self.guarded:
            learner = with_room(learner, min(room, MOST_KEPT))
        safeguard = Safeguard(learner, self.caution)

        def shown(now: Now) -> tuple[Now, Got]:
            learning, evidence = now
            if evidence is None:
                learning, _, lesson = learner.update_shown(learning)
            else:
                learning, evidence, lesson = safeguard.update(learning, evidence)
            outcome = lesson.trajectory.outcome
            return (learning, evidence), (outcome.reward[:, 0, seat], outcome.done[:, 0])

        axes = (learner.axes, 0)
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
    ) -> Now:
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
        choices = jnp.asarray(np.repeat(chosen, trials, axis=0), jnp.int32)  # [L, N]
        # As without learning, so that the two can be held against each other board by board.
        plays = jax.vmap(partial(start, learner.game, learner.seating))(boards, choices)
        plays = jax.tree.map(lambda leaf: leaf[:, None], plays)  # [L, 1, ...]
        begun = replace(first, params=params, plays=plays)
        if not self.guarded:
            return begun, None
        begin_all = jax.vmap(
            Safeguard(learner, self.caution).begin,
            in_axes=(learner.axes,),
            out_axes=(learner.axes, 0),
        )
        found: Now = begin_all(begun)
        return found
