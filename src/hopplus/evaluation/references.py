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
from hopplus.evaluation.trials import Names, beyond_mixtures
from hopplus.games import make_game
from hopplus.learning.trained import Trained
from hopplus.types import Params

SHOWN = "is shown who the others are; blind is plain PPO in trials"  # what told means in files


@dataclass(frozen=True)
class References:
    """Returns of the first seat by seed and company, each a mean over many episodes."""

    game: GameConfig
    companies: list[Names]  # [K]
    told: np.ndarray  # [S, K]
    blind: np.ndarray  # [S, K]
    random: np.ndarray  # [S, K]
    guests: Mapping[str, str] = field(default_factory=dict)  # digests of learned ones, by name

    @property
    def returns(self) -> dict[str, np.ndarray]:
        """By the players' name."""
        return {"told": self.told, "blind": self.blind, "random": self.random}

    @property
    def practised(self) -> np.ndarray:
        """[K] bool, companies that told has learned among and blind has not."""
        return beyond_mixtures(self.companies, make_game(self.game))

    def strangers(self, guests: Mapping[str, Trained]) -> list[str]:
        """Those who go by the name of a guest that this was measured with, and are another."""
        both = guests.keys() & self.guests.keys()
        return sorted(name for name in both if digest(guests[name].params) != self.guests[name])

    def gaps(self) -> list[Estimate]:
        """[K] what being told brings, over seeds."""
        return [estimate(gap) for gap in (self.told - self.blind).T]

    @property
    def _compared(self) -> np.ndarray:
        """The places of the companies where told and blind differ in what they are shown alone; or
        of all, if there is no such."""
        return np.flatnonzero(~self.practised if not self.practised.all() else self.practised)

    @property
    def gap(self) -> Estimate:
        """What being told brings on average over the mixtures, over seeds."""
        return estimate((self.told - self.blind)[:, self._compared].mean(axis=1))

    @property
    def widest(self) -> int:
        """The place of the mixture among which it brings most."""
        gaps = (self.told - self.blind).mean(axis=0)
        return int(self._compared[gaps[self._compared].argmax()])

    def as_json(self) -> dict[str, Any]:
        returns = {name: returns.tolist() for name, returns in self.returns.items()}
        return {"companies": [list(company) for company in self.companies], "returns": returns}


def read_references(path: Path) -> References:
    """What an earlier call has kept."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["told"] != SHOWN:
            raise ConfigError(f"{path} is of an earlier version: hopplus certify measures it anew")
        game = from_json(TrainConfig, kept["config"]).game
        companies = [tuple(company) for company in kept["companies"]]
        returns = {kind: np.array(one, np.float64) for kind, one in kept["returns"].items()}
        return References(game, companies, guests=dict(kept["guests"]), **returns)
    except ConfigError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"cannot read the references {path}: {error}") from error


def digest(params: Params) -> str:
    """A short name for what a guest has learned."""
    whole = hashlib.sha256()
    for leaf in jax.tree.leaves(params):
        whole.update(np.asarray(leaf).tobytes())
    return whole.hexdigest()[:16]
