"""What could be had, and what is had without understanding anyone: measured, and kept."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hopplus.config import ConfigError, GameConfig, TrainConfig, from_json
from hopplus.evaluation.statistics import Estimate, estimate
from hopplus.evaluation.trials import Names, beyond
from hopplus.games import make_game
from hopplus.play.trained import Trained
from hopplus.players.scripted import mixed_names
from hopplus.types import Params

SAID = {"best": "best responses"}  # players whose name says too little
SHOWN = "is shown who the others are; blind is plain PPO in trials"  # what oracle means in files


@dataclass(frozen=True)
class References:
    """Returns of the first seat by seed and co-players, each a mean over many episodes: of all that
    a trial has, where some co-players remember it."""

    game: GameConfig
    lineups: list[Names]  # [K]
    oracle: np.ndarray  # [S, K]
    blind: np.ndarray  # [S, K]
    random: np.ndarray  # [S, K]
    background: Mapping[str, str] = field(default_factory=dict)  # digests of learned ones, by name
    # [S, K, E] of every episode of a trial, by the players' name, where some co-players remember it
    by_episode: Mapping[str, np.ndarray] = field(default_factory=dict)
    best: np.ndarray | None = None  # [S, K] of best responses, where they were asked for
    kinds: tuple[str, ...] = ()  # who was drawn while both learned, if not the game's own players

    @property
    def returns(self) -> dict[str, np.ndarray]:
        """By the players' name."""
        found = {"oracle": self.oracle, "blind": self.blind, "random": self.random}
        return found if self.best is None else {"best": self.best, **found}

    @property
    def aim(self) -> str:
        """Whose returns there is a way to from those of blind: best responses, if they are known,
        and else the oracle."""
        return "oracle" if self.best is None else "best"

    @property
    def aim_called(self) -> str:
        return SAID.get(self.aim, self.aim)

    @property
    def aim_says(self) -> str:
        """What a share of that way is called."""
        if self.best is None:
            return "share of the gap closed"
        return f"share of the gap to {self.aim_called} closed"

    def in_columns(self, name: str, count: int) -> np.ndarray:
        """[S, K, count] the same of a player in so many episodes, or [S, K, 1] in the last one for
        none, where it was measured in so many."""
        found = self.by_episode.get(name)
        if found is None or count > found.shape[-1]:
            mean = self.returns[name]
            return np.broadcast_to(mean[..., None], (*mean.shape, max(count, 1)))
        return found[..., :count] if count else found[..., -1:]

    @property
    def practised(self) -> np.ndarray:
        """[K] bool, lineups that the oracle has learned among and blind has not."""
        return beyond(self.lineups, self.kinds or mixed_names(make_game(self.game)))

    def strangers(self, background: Mapping[str, Trained]) -> list[str]:
        """Those who go by the name of a background player that this was measured with, and are
        another."""
        both = background.keys() & self.background.keys()
        return sorted(
            name for name in both if digest(background[name].params) != self.background[name]
        )

    def gaps(self) -> list[Estimate]:
        """[K] what the oracle gains, over seeds."""
        return [estimate(gap) for gap in (self.oracle - self.blind).T]

    @property
    def _compared(self) -> np.ndarray:
        """The places of the lineups where oracle and blind differ in what they are shown alone; or
        of all, if there is no such."""
        return np.flatnonzero(~self.practised if not self.practised.all() else self.practised)

    @property
    def gap(self) -> Estimate:
        """What the oracle gains on average over the mixtures, over seeds."""
        return estimate((self.oracle - self.blind)[:, self._compared].mean(axis=1))

    @property
    def share(self) -> Estimate:
        """The same as a share of the oracle's return, over seeds."""
        oracle, blind = (one[:, self._compared].mean(axis=1) for one in (self.oracle, self.blind))
        return estimate((oracle - blind) / oracle.mean())

    def means_by_episode(self, name: str) -> list[Estimate]:
        """[E] returns of one of the players in each episode of a trial, as in `gap`."""
        return self._over_seeds(self.by_episode[name])

    def lost_by_episode(self) -> list[Estimate]:
        """[E] what not knowing costs in each episode of a trial, as in `gap`: in the first one that
        is the cost of finding out. Empty where all episodes are alike."""
        if not self.by_episode:
            return []
        return self._over_seeds(self.by_episode["oracle"] - self.by_episode["blind"])

    def _over_seeds(self, returns: np.ndarray) -> list[Estimate]:
        return [estimate(one) for one in returns[:, self._compared].mean(axis=1).T]

    @property
    def widest(self) -> int:
        """The place of the mixture among which it brings most."""
        gaps = (self.oracle - self.blind).mean(axis=0)
        return int(self._compared[gaps[self._compared].argmax()])

    def as_json(self) -> dict[str, Any]:
        returns = {name: returns.tolist() for name, returns in self.returns.items()}
        more = {name: returns.tolist() for name, returns in self.by_episode.items()}
        lineups = [list(lineup) for lineup in self.lineups]
        return {"lineups": lineups, "returns": returns} | ({"by_episode": more} if more else {})


def read_references(path: Path) -> References:
    """What an earlier call has kept."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["oracle"] != SHOWN or ("trial_episodes" in kept and "means" not in kept):
            raise ConfigError(f"{path} is of an earlier version: hopplus certify measures it anew")
        game = from_json(TrainConfig, kept["config"]).game
        lineups = [tuple(lineup) for lineup in kept["lineups"]]
        returns, by_episode = (
            {kind: np.array(one, np.float64) for kind, one in found.items()}
            for found in (kept["returns"], kept.get("by_episode", {}))
        )
        known: dict[str, Any] = {**returns, "background": dict(kept["background"])}
        kinds = tuple(kept.get("kinds", ()))
        return References(game, lineups, by_episode=by_episode, kinds=kinds, **known)
    except ConfigError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"cannot read the references {path}: {error}") from error


def digest(params: Params) -> str:
    """A short name for what a background player has learned."""
    whole = hashlib.sha256()
    for leaf in jax.tree.leaves(params):
        whole.update(np.asarray(leaf).tobytes())
    return whole.hexdigest()[:16]
