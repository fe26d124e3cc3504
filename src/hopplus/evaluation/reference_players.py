"""Players that others are held against: how they learn among lineups, and what they get there.

Everyone learns by plain PPO, without memory, in the first seat, among others who stay as they are.
Some are oracles, who are shown who the others are and, where these remember the trial, what they
are after.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import FOR_EVER, MIXED, ConfigError, TrainConfig, to_json
from hopplus.evaluation.evaluate import first_episodes
from hopplus.evaluation.references import SHOWN, digest
from hopplus.evaluation.trials import Names, facing
from hopplus.games import make_game
from hopplus.learning.compilation import first_and_next
from hopplus.learning.from_run import make_learner
from hopplus.learning.learner import Learner
from hopplus.play.rollout import rollout, start
from hopplus.play.seeds import seed_keys
from hopplus.play.trained import Trained
from hopplus.players.context.context import Context
from hopplus.players.context.episodes import EpisodesContext
from hopplus.players.context.joined import join
from hopplus.players.context.registry import tell_all
from hopplus.players.mixture import Mixture
from hopplus.players.parameters import PlayerParams
from hopplus.players.scripted import mixed_names, scripted
from hopplus.types import Params

OnUpdate = Callable[[int, str], None]  # environment steps that were played, and a note
BOARDS = 1  # what the key of the boards that all are measured on is folded with


def is_plain(config: TrainConfig) -> bool:
    """Whether a player of these settings makes nothing of the others."""
    own = set(config.context_names) - {"none", "episodes"}
    return not (config.parts or own or config.search.simulations)


@dataclass(frozen=True)
class ReferencePlayers:
    """Who they are to be, and among whom."""

    config: TrainConfig  # of everyone who learns
    lineups: Sequence[Names]
    background: Mapping[str, Trained] = field(default_factory=dict)  # of those lineups, by name
    episodes: int = 4096  # that each is measured by, among each lineup
    kinds: tuple[str, ...] = ()  # who may be seated besides; the game's own when empty

    def __post_init__(self) -> None:
        if not is_plain(self.config):
            raise ConfigError(
                "reference players are plain PPO: leave parts, context, memory and search out"
            )
        if not self.lineups:
            raise ConfigError("--against names no lineup")

    @property
    def about(self) -> dict[str, Any]:
        """All that the figures depend on."""
        return {
            "oracle": SHOWN,
            "config": to_json(self.config),
            "lineups": [list(lineup) for lineup in self.lineups],
            "background": {name: digest(one.params) for name, one in self.background.items()},
            "episodes": self.episodes,
            **({"trial_episodes": self.numbers, "means": "of trials"} if self.conditional else {}),
            **({"kinds": list(self.kinds)} if self.kinds else {}),
        }

    @cached_property
    def conditional(self) -> bool:
        """Whether anyone of the lineups remembers the trial, so that its episodes differ."""
        game = make_game(self.config.game)
        names = set(self._called) - self.background.keys()
        learned = any(one.actor.carries for one in self.background.values())
        return learned or any(scripted(name, game).carries for name in names)

    @property
    def numbers(self) -> int:
        """Episodes of a trial that are measured: all of them where they differ, and else one."""
        return self.config.trial if self.conditional else 1

    @property
    def steps_of_each(self) -> int:
        """Environment steps of all seeds of a player."""
        return self.config.seeds * self.config.updates * self.config.ppo.steps

    def best_responses(self, on_update: OnUpdate) -> np.ndarray:
        """[S, K, E] returns of best responses: as many players as there are lineups, each of whom
        has learned among one of them alone."""
        count = len(self.lineups)
        alone = np.stack([self._facing(one[None]) for one in self._chosen])
        _, each = self._learned(self.table, alone, [True] * count, "best responses", on_update)
        on_update(0, "measuring")
        first = count * np.arange(self.config.seeds)[:, None]
        return self._returns(each, first + np.arange(count), oracle=True)

    def _learned(
        self,
        learner: Learner,
        others: np.ndarray | None,
        oracle: Sequence[bool],
        note: str,
        on_update: OnUpdate,
    ) -> tuple[PlayerParams, PlayerParams]:
        """A whole run of replicas for every seed, of which some are oracles; alike but for that,
        and for the others [R, B, M] who stay in each game of each; None to draw them. The
        parameters [L, ...] at its beginning and at its end, seed by seed."""
        replicas = self.config.seeds * len(oracle)
        keys = jnp.repeat(seed_keys(self.config), len(oracle))
        now, update = first_and_next(learner, self.config, keys)
        # Updates take over what they are given.
        fresh = jax.tree.map(jnp.copy, now.params[learner.learning])
        if others is not None:
            everyone = np.pad(others, ((0, 0), (0, 0), (1, 0)))  # the learner has no choice
            seated = np.tile(everyone, (self.config.seeds, 1, 1))
            now = facing(learner, now, jnp.asarray(seated, jnp.int32))
        flags = jnp.tile(jnp.array(oracle), self.config.seeds)[:, None]
        now = replace(now, params=_is_oracle(learner, now.params, flags))
        for _ in range(self.config.updates):
            now = jax.block_until_ready(update(now)[0])  # or progress would run ahead
            on_update(self.config.ppo.steps * replicas, note)
        return fresh, now.params[learner.learning]

    @cached_property
    def table(self) -> Learner:
        """Learns in the first seat; any scripted player, and anyone of the lineups, may sit in
        the others, for ever. Where that matters there are trials all the same, after which the
        same ones come again and have forgotten."""
        trials = self.conditional or self.config.ppo.trial_discount
        return self._learner(self._called, self.config.trial if trials else FOR_EVER, True)

    def _learner(self, called: Sequence[str], trial: int, regulars: bool = False) -> Learner:
        seats = ["learn", *[MIXED.join(called)] * (self.config.game.seats - 1)]
        config = replace(self.config, train_against=None, seats=",".join(seats), trial=trial)
        background = {name: one for name, one in self.background.items() if name in called}
        told: Context = tell_all(make_game(config.game), len(self._called), self._called)
        if self.config.ppo.trial_discount:
            told = join(told, EpisodesContext(config.game.seats - 1, self.config.trial))
        return make_learner(config, background, context=told, regulars=regulars)

    @cached_property
    def _kinds(self) -> tuple[str, ...]:
        return self.kinds or mixed_names(make_game(self.config.game))

    @cached_property
    def _called(self) -> list[str]:
        """Everyone; the scripted players of the mixtures have the same numbers at both tables."""
        named = (name for lineup in self.lineups for name in lineup)
        return list(dict.fromkeys([*self._kinds, *named]))

    @cached_property
    def _chosen(self) -> np.ndarray:
        """[K, M] who of the others' mixtures the lineups are, by number."""
        player = next(p for p in self.table.seating.players if isinstance(p, Mixture))
        return np.array([player.numbers(lineup) for lineup in self.lineups])

    def _facing(self, chosen: np.ndarray) -> np.ndarray:
        """[B, M] those lineups, by the numbers of who they are, spread over the games."""
        return np.resize(chosen, (self.config.ppo.games, chosen.shape[1]))

    def _returns(self, param_sets: PlayerParams, rows: np.ndarray, *, oracle: bool) -> np.ndarray:
        """[S, K, E] mean returns of parameters [L, ...] in the first seat, by episode of a trial:
        of which of them [S, 1] for each seed, or [S, K] also for each lineup."""
        seeds, count = self.config.seeds, len(self.lineups)
        rows = np.broadcast_to(rows, (seeds, count)).reshape(-1)
        choices = jnp.asarray(np.tile(self._chosen, (seeds, 1)), jnp.int32)
        boards = jax.random.fold_in(jax.random.key(self.config.seed), BOARDS)
        keys = jax.random.split(boards, seeds * count)
        returns = self._played(_rows(param_sets, rows), choices, keys, jnp.full(len(rows), oracle))
        by_seed: np.ndarray = np.asarray(returns, np.float64).reshape(seeds, count, -1)
        return by_seed

    @cached_property
    def _played(self) -> Callable[[PlayerParams, jax.Array, jax.Array, jax.Array], jax.Array]:
        """Gives the mean returns [L, E] of parameters [L, ...] in the first seat, one after the
        other, with the others [L, M] chosen, on boards of the keys [L]; oracles [L] are shown the
        others."""
        learner = self.table
        game, seating = learner.game, learner.seating
        others = learner.lineup.init(jax.random.key(0))  # who do not learn

        def replica(
            param_sets: PlayerParams, choices: jax.Array, key: jax.Array, oracle: jax.Array
        ) -> jax.Array:
            seated = jnp.append(0, choices)  # the learner has no choice
            keys = jax.random.split(key, self.episodes)
            plays = jax.vmap(lambda key: start(game, seating, key, seated))(keys)
            params = _is_oracle(learner, learner.with_param_sets(others, param_sets), oracle)
            trajectory = rollout(game, seating, params, plays, self.numbers * game.horizon)[1]
            episodes = (first_episodes(trajectory, number) for number in range(self.numbers))
            return jnp.stack([one.returns[:, 0].mean() for one in episodes])

        return jax.jit(lambda *replicas: jax.lax.map(lambda one: replica(*one), replicas))


def _is_oracle(
    learner: Learner, params: tuple[Params, ...], oracle: jax.Array
) -> tuple[Params, ...]:
    """The parameters of everyone with the learner an oracle or not; the flags broadcast over its
    own."""
    param_sets: PlayerParams = params[learner.learning]
    flags = jax.tree.map(lambda leaf: jnp.broadcast_to(oracle, leaf.shape), param_sets.context)
    return learner.with_param_sets(params, replace(param_sets, context=flags))


def _rows(params: Params, rows: np.ndarray | slice) -> Params:
    return jax.tree.map(lambda leaf: leaf[rows], params)
