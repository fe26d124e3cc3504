"""Does it matter whom one plays with? Players who are shown, and players who are not.

Everyone learns by plain PPO, without memory, for as many steps. `told` is shown who the others are
and `blind` is not; both learn as others do in trials, among mixtures of the game's scripted players
that are drawn for each. Among company of anyone else, another `told` has learned among all such
company that is asked for. `random` is a policy before its first update.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import FOR_EVER, MIXED, ConfigError, TrainConfig, to_json
from hopplus.evaluation.evaluate import first_episodes
from hopplus.evaluation.references import SHOWN, References, digest, read_references
from hopplus.evaluation.trials import Names, beyond_mixtures, facing
from hopplus.games import make_game
from hopplus.learning.learner import Learner
from hopplus.learning.programs import first_and_next
from hopplus.learning.restore import make_learner
from hopplus.learning.rollout import rollout, start
from hopplus.learning.seeds import seed_keys
from hopplus.learning.trained import Trained
from hopplus.players.context.oracle import OracleContext
from hopplus.players.mind import Mind
from hopplus.players.mixture import Mixture
from hopplus.players.scripted import mixed_names
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors
from hopplus.types import Params

OnUpdate = Callable[[int, str], None]  # environment steps that were played, and a note
BOARDS = 1  # what the key of the boards that all are measured on is folded with


class Learned(NamedTuple):
    """Minds of lanes [L, ...] at the beginning of a run and at its end."""

    fresh: Mind
    minds: Mind


@dataclass(frozen=True)
class Certificate:
    """What is to be measured."""

    config: TrainConfig  # of everyone who learns
    companies: Sequence[Names]
    guests: Mapping[str, Trained] = field(default_factory=dict)  # of those companies, by name
    episodes: int = 4096  # that each is measured by, among each company

    def __post_init__(self) -> None:
        config = self.config
        if config.parts or config.context_name != "none" or config.search.simulations:
            raise ConfigError(
                "reference players are plain PPO: leave parts, context, memory and search out"
            )
        if not self.companies:
            raise ConfigError("--against names no company")
        if self.others.sum() > config.ppo.games:
            raise ConfigError(
                f"--against names {self.others.sum()} companies to learn among, but --ppo.games"
                f" are {config.ppo.games}: give more games or fewer companies"
            )

    @property
    def about(self) -> dict[str, Any]:
        """All that the figures depend on."""
        return {
            "told": SHOWN,
            "config": to_json(self.config),
            "companies": [list(company) for company in self.companies],
            "guests": {name: digest(guest.params) for name, guest in self.guests.items()},
            "episodes": self.episodes,
        }

    def kept_at(self, folder: Path) -> Path:
        """The file that keeps what is measured with these settings."""
        about = json.dumps(self.about, sort_keys=True)
        return folder / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.json"

    @cached_property
    def others(self) -> np.ndarray:
        """[K] bool, companies with anyone who is not in the mixtures."""
        return beyond_mixtures(self.companies, make_game(self.config.game))

    @property
    def total_steps(self) -> int:
        """Environment steps of everyone who learns: told, blind, and told among others."""
        lanes = self.config.seeds * (3 if self.others.any() else 2)
        return lanes * self.config.updates * self.config.ppo.steps

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
        seeds = self.config.seeds
        # Each seed has a lane that is told and one that is not, which begin alike.
        table = self.table  # complains if it must, before anyone learns
        both = self._learned(self.drawing, None, [True, False], "told and blind", on_update)
        of_told, of_blind = np.arange(seeds) * 2, np.arange(seeds) * 2 + 1
        on_update(0, "measuring")
        returns = {
            "told": self._returns(_rows(both.minds, of_told), told=True),
            "blind": self._returns(_rows(both.minds, of_blind), told=False),
            "random": self._returns(_rows(both.fresh, of_blind), told=False),
        }
        if self.others.any():
            among = self._learned(table, self._apart, [True], "told among others", on_update)
            on_update(0, "measuring")
            of_others = self._returns(among.minds, told=True)
            returns["told"] = np.where(self.others, of_others, returns["told"])
        companies = [tuple(one) for one in self.companies]
        return References(self.config.game, companies, guests=self.about["guests"], **returns)

    def _learned(
        self,
        learner: Learner,
        others: np.ndarray | None,
        told: Sequence[bool],
        note: str,
        on_update: OnUpdate,
    ) -> Learned:
        """A whole run of lanes for every seed, of which some are told; alike but for that. In each
        game the others [B, M] stay for ever; None to draw them."""
        lanes = self.config.seeds * len(told)
        keys = jnp.repeat(seed_keys(self.config), len(told))
        now, update = first_and_next(learner, self.config, keys)
        # Updates take over what they are given.
        fresh = jax.tree.map(jnp.copy, now.params[learner.learning])
        if others is not None:
            everyone = np.pad(others, ((0, 0), (1, 0)))  # the learner has no choice
            now = facing(learner, now, jnp.asarray(np.tile(everyone, (lanes, 1, 1)), jnp.int32))
        flags = jnp.tile(jnp.array(told), self.config.seeds)[:, None]
        now = replace(now, params=_told(learner, now.params, flags))
        for _ in range(self.config.updates):
            now = jax.block_until_ready(update(now)[0])  # or progress would run ahead
            on_update(self.config.ppo.steps * lanes, note)
        return Learned(fresh, now.params[learner.learning])

    @cached_property
    def drawing(self) -> Learner:
        """Learns in the first seat; who sits in the others is drawn for each trial, of the game's
        scripted players."""
        return self._learner(self._kinds, self.config.trial)

    @cached_property
    def table(self) -> Learner:
        """Learns in the first seat; any scripted player, and anyone of the companies, may sit in
        the others, for ever."""
        return self._learner(self._called, FOR_EVER)

    def _learner(self, called: Sequence[str], trial: int) -> Learner:
        seats = ["learn", *[MIXED.join(called)] * (self.config.game.seats - 1)]
        config = replace(self.config, train_against=None, seats=",".join(seats), trial=trial)
        guests = {name: guest for name, guest in self.guests.items() if name in called}
        oracle = OracleContext(config.game.seats - 1, len(self._called))
        return make_learner(config, guests, context=oracle)

    @cached_property
    def _kinds(self) -> tuple[str, ...]:
        return mixed_names(make_game(self.config.game))

    @cached_property
    def _called(self) -> list[str]:
        """Everyone; the scripted players of the mixtures have the same numbers at both tables."""
        named = (name for company in self.companies for name in company)
        return list(dict.fromkeys([*self._kinds, *named]))

    @cached_property
    def _chosen(self) -> np.ndarray:
        """[K, M] who of the others' mixtures the companies are, by number."""
        player = next(p for p in self.table.seating.players if isinstance(p, Mixture))
        return np.array([player.numbers(company) for company in self.companies])

    @property
    def _apart(self) -> np.ndarray:
        """[B, M] the companies of others than the mixtures', spread over the games."""
        chosen = self._chosen[self.others]
        return np.resize(chosen, (self.config.ppo.games, chosen.shape[1]))

    def _returns(self, minds: Mind, *, told: bool) -> np.ndarray:
        """[S, K] mean returns of minds [S, ...] in the first seat, among each company."""
        seeds, count = self.config.seeds, len(self.companies)
        seat, company = np.divmod(np.arange(seeds * count), count)
        choices = jnp.asarray(self._chosen[company], jnp.int32)
        boards = jax.random.fold_in(jax.random.key(self.config.seed), BOARDS)
        keys = jax.random.split(boards, seeds * count)
        returns = self._played(_rows(minds, seat), choices, keys, jnp.full(len(seat), told))
        by_seed: np.ndarray = np.asarray(returns, np.float64).reshape(seeds, count)
        return by_seed

    @cached_property
    def _played(self) -> Callable[[Mind, jax.Array, jax.Array, jax.Array], jax.Array]:
        """Gives the mean returns [L] of minds [L, ...] in the first seat, one after the other, with
        the others [L, M] chosen, on boards of the keys [L]; those told [L] are shown the others."""
        learner = self.table
        game, seating = learner.game, learner.seating
        others = learner.company.init(jax.random.key(0))  # who do not learn

        def lane(minds: Mind, choices: jax.Array, key: jax.Array, told: jax.Array) -> jax.Array:
            seated = jnp.append(0, choices)  # the learner has no choice
            keys = jax.random.split(key, self.episodes)
            plays = jax.vmap(lambda key: start(game, seating, key, seated))(keys)
            params = _told(learner, learner.with_minds(others, minds), told)
            trajectory = rollout(game, seating, params, plays, game.horizon)[1]
            returns: jax.Array = first_episodes(trajectory).returns[:, 0].mean()
            return returns

        return jax.jit(lambda *lanes: jax.lax.map(lambda one: lane(*one), lanes))


def _told(learner: Learner, params: tuple[Params, ...], told: jax.Array) -> tuple[Params, ...]:
    """The parameters of everyone with the learner told or not; the flags broadcast over its own."""
    minds: Mind = params[learner.learning]
    flags = jnp.broadcast_to(told, minds.context.shape)
    return learner.with_minds(params, replace(minds, context=flags))


def _rows(params: Params, rows: np.ndarray) -> Params:
    return jax.tree.map(lambda leaf: leaf[rows], params)
