"""Does it matter whom one plays with? Players who are shown, and players who are not.

Everyone learns by plain PPO, without memory, for as many steps. `told` is shown who the others are
and `blind` is not; both learn among all mixtures of the game's scripted players, and among company
of anyone else a second `told` learns among that company. `random` is a policy before its first
update. Where it is asked for, copies of `told` go on for the end of the run against one company
`alone`: what practice brings beyond knowing.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import FOR_EVER, MIXED, ConfigError, TrainConfig, to_json
from hopplus.evaluation.evaluate import first_episodes
from hopplus.evaluation.references import References, digest, read_references
from hopplus.evaluation.trials import Names, begun, facing, shown
from hopplus.games import make_game
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.programs import Update, first_and_next
from hopplus.learning.restore import make_learner
from hopplus.learning.rollout import rollout
from hopplus.learning.trained import Trained
from hopplus.players.mind import Mind
from hopplus.players.mixture import Mixture
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors
from hopplus.types import Params

OnUpdate = Callable[[int, str], None]  # environment steps that were played, and a note
TOLD, BLIND, AMONG_OTHERS = range(3)  # who learns, for each seed


@dataclass(frozen=True)
class Certificate:
    """What is to be measured."""

    config: TrainConfig  # of everyone who learns
    companies: Sequence[Names]
    guests: Mapping[str, Trained] = field(default_factory=dict)  # of those companies, by name
    alone_steps: int = 0  # environment steps at the end of the run against one company alone
    episodes: int = 4096  # that each is measured by, among each company

    def __post_init__(self) -> None:
        config = self.config
        if config.parts or config.memory.kind != "none" or config.search.simulations:
            raise ConfigError("reference players are plain PPO: leave parts, memory and search out")
        if self.last >= config.updates:
            raise ConfigError(
                f"--alone-steps {self.alone_steps:,} are the last of --steps {config.steps:,}, in"
                f" updates of {config.ppo.steps:,}: give fewer of the former or more of the latter"
            )

    @property
    def about(self) -> dict[str, Any]:
        """All that the figures depend on."""
        return {
            "config": to_json(self.config),
            "companies": [list(company) for company in self.companies],
            "guests": {name: digest(guest.params) for name, guest in self.guests.items()},
            "alone_for_the_last": self.alone_steps,
            "episodes": self.episodes,
        }

    def kept_at(self, folder: Path) -> Path:
        """The file that keeps what is measured with these settings."""
        about = json.dumps(self.about, sort_keys=True)
        return folder / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.json"

    @property
    def last(self) -> int:
        """Updates at the end in which some go on alone with one company."""
        return max(1, self.alone_steps // self.config.ppo.steps) if self.alone_steps else 0

    @cached_property
    def others(self) -> list[bool]:
        """[K] whether anyone of a company is no scripted player of the mixtures."""
        return [not set(company) <= set(self._kinds) for company in self.companies]

    @property
    def pupils(self) -> int:
        """How many learn for each seed."""
        return 3 if any(self.others) else 2

    @property
    def total_steps(self) -> int:
        """Environment steps of everyone who learns."""
        lanes = self.config.updates * self.pupils + self.last * len(self.companies)
        return self.config.seeds * lanes * self.config.ppo.steps

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
        learner, count = self.learner, len(self.companies)
        first, update = self._begun(self.pupils)
        now = _going_on(learner, first, first, self._lanes(self.pupils, [0] * self.pupils))
        # Updates take over what they are given.
        fresh = jax.tree.map(jnp.copy, now.params[learner.learning])
        guests = jax.tree.map(lambda leaf: jnp.copy(leaf[:1]), now.params)  # alike in all lanes
        ways = [self._ways, self._ways, self._apart][: self.pupils]
        knows = [lane != BLIND for lane in range(self.pupils)]
        told = [AMONG_OTHERS if other else TOLD for other in self.others]
        now = self._facing(now, ways, knows)
        for _ in range(self.config.updates - self.last):
            now, _ = update(now)
            on_update(self.config.ppo.steps * len(now.key), "told and blind")

        width = self.pupils
        if self.last:
            width += count
            first, update = self._begun(width)
            lanes = self._lanes(self.pupils, [*range(self.pupils), *told])
            ways += [self._spread(chosen[None]) for chosen in self._chosen]
            now = _going_on(learner, first, now, lanes)
            now = self._facing(now, ways, knows + [True] * count)
            for _ in range(self.last):
                now, _ = update(now)
                on_update(self.config.ppo.steps * len(now.key), "some alone with one company")

        minds = now.params[learner.learning]
        blind = [BLIND] * count
        found = {
            "told": self._returns(guests, _rows(minds, self._lanes(width, told)), told=True),
            "blind": self._returns(guests, _rows(minds, self._lanes(width, blind)), told=False),
            "random": self._returns(
                guests, _rows(fresh, self._lanes(self.pupils, blind)), told=False
            ),
        }
        if self.last:
            rows = self._lanes(width, range(self.pupils, width))
            found["alone"] = self._returns(guests, _rows(minds, rows), told=True)
        companies = [tuple(one) for one in self.companies]
        return References(self.config.game, companies, guests=self.about["guests"], **found)

    def _begun(self, width: int) -> tuple[Learning, Update]:
        """So many lanes for each seed, and their update."""
        return first_and_next(self.learner, replace(self.config, seeds=self.config.seeds * width))

    def _lanes(self, width: int, who: Sequence[int]) -> np.ndarray:
        """[S * K] the lanes of those [K], for every seed, which has so many."""
        lanes: np.ndarray = np.arange(self.config.seeds)[:, None] * width + np.array(who)
        return lanes.reshape(-1)

    @cached_property
    def learner(self) -> Learner:
        """Learns in the first seat; any scripted player, and anyone of the companies, may sit in
        the others, for ever, and it may be shown who does."""
        named = (name for company in self.companies for name in company)
        called = dict.fromkeys([*self._kinds, *named])
        seats = ["learn", *[MIXED.join(called)] * (self.config.game.seats - 1)]
        config = replace(self.config, train_against=None, seats=",".join(seats), trial=FOR_EVER)
        return make_learner(config, dict(self.guests), shown=len(called))

    @cached_property
    def _kinds(self) -> list[str]:
        return [*make_game(self.config.game).targets, "random"]

    def _numbers(self, companies: Sequence[Sequence[str]]) -> np.ndarray:
        """[K, M] who of the others' mixtures they are, by number."""
        player = next(p for p in self.learner.seating.players if isinstance(p, Mixture))
        return np.array([player.numbers(company) for company in companies])

    @property
    def _chosen(self) -> np.ndarray:
        return self._numbers(self.companies)

    def _spread(self, ways: np.ndarray) -> np.ndarray:
        """[B, M] those [W, M], spread over the games."""
        mixed = np.random.default_rng(0).permutation(ways)  # there may be fewer games than ways
        return np.resize(mixed, (self.config.ppo.games, ways.shape[1]))

    @property
    def _ways(self) -> np.ndarray:
        """[B, M] all ways to seat the game's scripted players."""
        ways = product(self._kinds, repeat=self.config.game.seats - 1)
        return self._spread(self._numbers(list(ways)))

    @property
    def _apart(self) -> np.ndarray:
        """[B, M] the companies of others than those."""
        return self._spread(self._chosen[np.array(self.others)]) if any(self.others) else self._ways

    def _facing(self, now: Learning, ways: Sequence[np.ndarray], told: Sequence[bool]) -> Learning:
        """All lanes of all seeds among the others [L, B, M], those who are told [L] shown them."""
        seeds = self.config.seeds
        choices = jnp.asarray(np.tile(np.stack(ways), (seeds, 1, 1)), jnp.int32)
        knows = jnp.asarray(np.tile(told, seeds))[:, None]
        now = facing(now, choices)
        memory = shown(self.learner, now.plays.memory, choices, knows)
        return replace(now, plays=replace(now.plays, memory=memory))

    def _returns(self, guests: tuple[Params, ...], minds: Mind, *, told: bool) -> np.ndarray:
        """[S, K] mean returns of minds [S * K, ...] in the first seat, each among its company."""
        choices = jnp.asarray(np.tile(self._chosen, (self.config.seeds, 1)), jnp.int32)
        keys = jax.random.split(jax.random.key(self.config.seed), len(choices))
        params = _seated(self.learner, guests, minds)
        one = _lane_returns(self.learner, self.episodes, told)
        found = jax.jit(lambda *lanes: jax.lax.map(lambda lane: one(*lane), lanes))
        returns = np.asarray(found(params, choices, keys), np.float64)
        by_seed: np.ndarray = returns.reshape(self.config.seeds, -1)
        return by_seed


def _going_on(learner: Learner, first: Learning, so_far: Learning, lanes: np.ndarray) -> Learning:
    """Fresh games [L, ...] of players who learn as if those lanes [L] of another learning went
    on."""
    minds = _rows(so_far.params[learner.learning], lanes)
    params = tuple(
        minds if group == learner.learning else kept for group, kept in enumerate(first.params)
    )
    optimiser = _rows(so_far.optimiser, lanes)
    return replace(first, params=params, optimiser=optimiser, updates=so_far.updates)


def _seated(learner: Learner, guests: tuple[Params, ...], minds: Mind) -> tuple[Params, ...]:
    """The parameters [L, ...] of everyone, from minds [L, ...] and those [1, ...] of the others."""
    lanes = np.zeros(len(jax.tree.leaves(minds)[0]), int)
    return tuple(
        minds if group == learner.learning else _rows(params, lanes)
        for group, params in enumerate(guests)
    )


def _rows(params: Params, rows: np.ndarray) -> Params:
    return jax.tree.map(lambda leaf: leaf[rows], params)


def _lane_returns(
    learner: Learner, episodes: int, told: bool
) -> Callable[[tuple[Params, ...], jax.Array, jax.Array], jax.Array]:
    """Gives the mean return of the first seat, with the others [M] chosen, and shown if told."""
    game, seating = learner.game, learner.seating

    def begin(key: jax.Array, choices: jax.Array) -> Any:
        play = begun(game, seating, key, jnp.append(0, choices))  # the learner has no choice
        memory = shown(learner, play.memory, choices, jnp.array(told))
        return replace(play, memory=memory)

    def lane(params: tuple[Params, ...], choices: jax.Array, key: jax.Array) -> jax.Array:
        keys = jax.random.split(key, episodes)
        plays = jax.vmap(lambda key: begin(key, choices))(keys)
        trajectory = rollout(game, seating, params, plays, game.horizon)[1]
        returns: jax.Array = first_episodes(trajectory).returns[:, 0].mean()
        return returns

    return lane
