"""What could be had, and what is had without understanding anyone: measured, never guessed.

Everyone first learns against all mixtures of the game's scripted players, without memory. For the
rest of the run `told` goes on against one company alone, so that it knows whom it faces, and
`blind` against all of them: they differ in nothing else, and blind is what plain PPO comes to in a
run of that length. `random` is a policy before its first update.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import (
    FOR_EVER,
    MIXED,
    ConfigError,
    GameConfig,
    TrainConfig,
    from_json,
    to_json,
)
from hopplus.evaluation.evaluate import first_episodes
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.evaluation.trials import Names, begun
from hopplus.games import make_game
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.programs import first_and_next
from hopplus.learning.restore import make_learner
from hopplus.learning.rollout import rollout
from hopplus.learning.trained import Trained
from hopplus.players.mind import Mind
from hopplus.players.mixture import Mixture, MixtureMemory
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors
from hopplus.types import Params

OnUpdate = Callable[[int, str], None]  # environment steps that were played, and a note


@dataclass(frozen=True)
class References:
    """Returns of the first seat by seed and company, each a mean over many episodes."""

    game: GameConfig
    companies: list[Names]  # [K]
    told: np.ndarray  # [S, K]
    blind: np.ndarray  # [S, K]
    random: np.ndarray  # [S, K]
    guests: Mapping[str, str] = field(default_factory=dict)  # digests of learned ones, by name

    def strangers(self, guests: Mapping[str, Trained]) -> list[str]:
        """Those who go by the name of a guest that this was measured with, and are another."""
        both = guests.keys() & self.guests.keys()
        return sorted(name for name in both if _digest(guests[name].params) != self.guests[name])

    def gaps(self) -> list[Estimate]:
        """[K] what being told brings, over seeds."""
        return [estimate(gap) for gap in (self.told - self.blind).T]

    def as_json(self) -> dict[str, Any]:
        return {
            "companies": [list(company) for company in self.companies],
            "told": self.told.tolist(),
            "blind": self.blind.tolist(),
            "random": self.random.tolist(),
        }


@dataclass(frozen=True)
class Reference:
    """What is to be measured."""

    config: TrainConfig  # of those who learn against all
    companies: Sequence[Names]
    guests: Mapping[str, Trained] = field(default_factory=dict)  # of those companies, by name
    told_steps: int = 250_000  # environment steps at the end of the run that they go apart for
    episodes: int = 4096  # that each is measured by, among each company

    def __post_init__(self) -> None:
        config = self.config
        if config.parts or config.memory.kind != "none" or config.search.simulations:
            raise ConfigError("reference players are plain PPO: leave parts, memory and search out")
        if self.apart >= config.updates:
            raise ConfigError(
                f"--told-steps {self.told_steps:,} are the last of --steps {config.steps:,}, in"
                f" updates of {config.ppo.steps:,}: give fewer of the former or more of the latter"
            )

    @property
    def about(self) -> dict[str, Any]:
        """All that the figures depend on."""
        return {
            "config": to_json(self.config),
            "companies": [list(company) for company in self.companies],
            "guests": {name: _digest(guest.params) for name, guest in self.guests.items()},
            "told_for_the_last": self.told_steps,
            "episodes": self.episodes,
        }

    def kept_at(self, folder: Path) -> Path:
        """The file that keeps what is measured with these settings."""
        about = json.dumps(self.about, sort_keys=True)
        return folder / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.json"

    @property
    def apart(self) -> int:
        """Updates at the end that told and blind go apart for."""
        return max(1, self.told_steps // self.config.ppo.steps)

    @property
    def together(self) -> int:
        """Updates before that."""
        return self.config.updates - self.apart

    @property
    def going_on(self) -> TrainConfig:
        """Told and blind of all seeds, side by side: for each seed the companies, then all."""
        return replace(self.config, seeds=self.config.seeds * (len(self.companies) + 1))

    @property
    def total_steps(self) -> int:
        """Environment steps of everyone who learns."""
        updates = self.together * self.config.seeds + self.apart * self.going_on.seeds
        return updates * self.config.ppo.steps

    def measure(self, folder: Path, on_update: OnUpdate) -> References:
        """Train and measure everyone, or read what an earlier call with these settings has kept."""
        path = self.kept_at(folder)
        if path.exists():
            on_update(self.total_steps, "read from an earlier call")
            return read_references(path)
        found = self._measured(on_update)
        with clear_errors(f"write {path}"):
            folder.mkdir(parents=True, exist_ok=True)
            text = json.dumps({**self.about, **found.as_json()}, indent=2)
            write_durably(path, text.encode())
        return found

    def _measured(self, on_update: OnUpdate) -> References:
        seeds, count = self.config.seeds, len(self.companies)
        learner = self._learner(self.config, ())
        first, update = first_and_next(learner, self.config)
        fresh = jax.tree.map(jnp.copy, first.params[learner.learning])  # updates take theirs over
        all_ways = self._all_ways(learner)  # [B, M]
        now = facing(first, jnp.broadcast_to(all_ways, (seeds, *all_ways.shape)))
        for number in range(self.together):
            now, _ = update(now)
            steps = self.config.ppo.steps * seeds
            on_update(steps, f"everyone against all, update {number + 1}")
        minds, so_far = now.params[learner.learning], now

        learner = self._learner(self.going_on, self.companies)
        first, update = first_and_next(learner, self.going_on)
        guests = jax.tree.map(lambda leaf: jnp.copy(leaf[:1]), first.params)  # alike in all lanes
        chosen = np.array([_choices(learner, company) for company in self.companies])  # [K, M]
        alone = np.repeat(chosen[:, None], self.config.ppo.games, axis=1)  # [K, B, M]
        lanes = np.tile(np.concatenate([alone, self._all_ways(learner)[None]]), (seeds, 1, 1))
        params = _seated(learner, guests, _repeated(minds, count + 1))
        now = facing(resumed(first, params, so_far), jnp.asarray(lanes))
        for number in range(self.apart):
            now, _ = update(now)
            steps = self.config.ppo.steps * self.going_on.seeds
            on_update(steps, f"told and blind, update {number + 1}")
        is_told = np.arange(len(lanes)) % (count + 1) < count
        minds = now.params[learner.learning]
        of_told, of_blind = (_rows(minds, np.flatnonzero(held)) for held in (is_told, ~is_told))
        of_lanes = (of_told, _repeated(of_blind, count), _repeated(fresh, count))
        told, blind, random = (
            self._returns(learner, _seated(learner, guests, one), np.tile(chosen, (seeds, 1)))
            for one in of_lanes
        )
        companies = [tuple(one) for one in self.companies]
        return References(self.config.game, companies, told, blind, random, self.about["guests"])

    def _learner(self, config: TrainConfig, companies: Sequence[Names]) -> Learner:
        """Learns in the first seat; any scripted player, and anyone of the companies, may sit in
        the others, for ever."""
        called = dict.fromkeys([*self._kinds(), *(name for names in companies for name in names)])
        seats = ["learn", *[MIXED.join(called)] * (config.game.seats - 1)]
        config = replace(config, train_against=None, seats=",".join(seats), trial=FOR_EVER)
        return make_learner(config, dict(self.guests))

    def _kinds(self) -> list[str]:
        return [*make_game(self.config.game).targets, "random"]

    def _all_ways(self, learner: Learner) -> np.ndarray:
        """[B, M] all ways to seat the game's scripted players, spread over the games."""
        ways = list(product(self._kinds(), repeat=self.config.game.seats - 1))
        chosen = np.array([_choices(learner, way) for way in ways])
        mixed = np.random.default_rng(0).permutation(chosen)  # there may be fewer games than ways
        return np.resize(mixed, (self.config.ppo.games, chosen.shape[1]))

    def _returns(
        self, learner: Learner, params: tuple[Params, ...], choices: np.ndarray
    ) -> np.ndarray:
        """[S, K] mean returns of the first seat in lanes [S * K, ...], the others [S * K, M]."""
        keys = jax.random.split(jax.random.key(self.config.seed), len(choices))
        one = _lane_returns(learner, self.episodes)
        found = jax.jit(lambda *lanes: jax.lax.map(lambda lane: one(*lane), lanes))
        returns = np.asarray(found(params, jnp.asarray(choices, jnp.int32), keys), np.float64)
        return returns.reshape(self.config.seeds, -1)


def read_references(path: Path) -> References:
    """What an earlier call has kept."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        game = from_json(TrainConfig, kept["config"]).game
        companies = [tuple(company) for company in kept["companies"]]
        told, blind, random = (
            np.array(kept[kind], np.float64) for kind in ("told", "blind", "random")
        )
        guests = dict(kept["guests"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"cannot read the references {path}: {error}") from error
    return References(game, companies, told, blind, random, guests)


def resumed(first: Learning, params: tuple[Params, ...], so_far: Learning) -> Learning:
    """Fresh games [L, ...] of players with these parameters, who learn as if the run of the seeds
    [S, ...] so far went on, each in as many lanes in a row."""
    lanes, seeds = len(first.key), len(so_far.key)
    optimiser = _repeated(so_far.optimiser, lanes // seeds)
    return replace(first, params=params, optimiser=optimiser, updates=so_far.updates)


def facing(learning: Learning, choices: jax.Array) -> Learning:
    """The learning with the others [L, B, M] of each game of each lane chosen."""
    memory = tuple(
        kept._replace(choice=choices.astype(kept.choice.dtype))
        if isinstance(kept, MixtureMemory)
        else kept
        for kept in learning.plays.memory
    )
    return replace(learning, plays=replace(learning.plays, memory=memory))


def _choices(learner: Learner, company: Sequence[str]) -> list[int]:
    """[M] who of the others' mixtures that is, by number."""
    player = next(p for p in learner.seating.players if isinstance(p, Mixture))
    return player.numbers(company)


def _seated(learner: Learner, guests: tuple[Params, ...], minds: Mind) -> tuple[Params, ...]:
    """The parameters [L, ...] of everyone, from minds [L, ...] and those [1, ...] of the others."""
    lanes = len(jax.tree.leaves(minds)[0])
    return tuple(
        minds if group == learner.learning else _repeated(params, lanes)
        for group, params in enumerate(guests)
    )


def _repeated(params: Params, each: int) -> Params:
    """[S * each, ...] parameters [S, ...], so many times in a row."""
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, each, axis=0), params)


def _rows(params: Params, rows: np.ndarray) -> Params:
    return jax.tree.map(lambda leaf: leaf[rows], params)


def _lane_returns(
    learner: Learner, episodes: int
) -> Callable[[tuple[Params, ...], jax.Array, jax.Array], jax.Array]:
    """Gives the mean return of the first seat, with the others [M] chosen."""
    game, seating = learner.game, learner.seating

    def lane(params: tuple[Params, ...], choices: jax.Array, key: jax.Array) -> jax.Array:
        seated = jnp.append(0, choices)  # the learner has no choice
        keys = jax.random.split(key, episodes)
        plays = jax.vmap(lambda key: begun(game, seating, key, seated))(keys)
        trajectory = rollout(game, seating, params, plays, game.horizon)[1]
        returns: jax.Array = first_episodes(trajectory).returns[:, 0].mean()
        return returns

    return lane


def _digest(params: Params) -> str:
    """A short name for what a guest has learned."""
    whole = hashlib.sha256()
    for leaf in jax.tree.leaves(params):
        whole.update(np.asarray(leaf).tobytes())
    return whole.hexdigest()[:16]
