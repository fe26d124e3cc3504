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
from hopplus.evaluation.trials import Names
from hopplus.learning.trained import Trained
from hopplus.types import Params


@dataclass(frozen=True)
class References:
    """Returns of the first seat by seed and company, each a mean over many episodes."""

    game: GameConfig
    companies: list[Names]  # [K]
    told: np.ndarray  # [S, K]
    blind: np.ndarray  # [S, K]
    random: np.ndarray  # [S, K]
    alone: np.ndarray | None = None  # [S, K] of those who went on against that company alone
    guests: Mapping[str, str] = field(default_factory=dict)  # digests of learned ones, by name

    @property
    def kinds(self) -> dict[str, np.ndarray]:
        """The returns by the players' name, those that were measured."""
        alone = {} if self.alone is None else {"alone": self.alone}
        return {"told": self.told, "blind": self.blind, "random": self.random, **alone}

    def strangers(self, guests: Mapping[str, Trained]) -> list[str]:
        """Those who go by the name of a guest that this was measured with, and are another."""
        both = guests.keys() & self.guests.keys()
        return sorted(name for name in both if digest(guests[name].params) != self.guests[name])

    def gaps(self) -> list[Estimate]:
        """[K] what being told brings, over seeds."""
        return [estimate(gap) for gap in (self.told - self.blind).T]

    @property
    def gap(self) -> Estimate:
        """What being told brings on average over the companies, over seeds."""
        return estimate((self.told - self.blind).mean(axis=1))

    @property
    def widest(self) -> int:
        """The place of the company among which it brings most."""
        return int((self.told - self.blind).mean(axis=0).argmax())

    def as_json(self) -> dict[str, Any]:
        kinds = {name: returns.tolist() for name, returns in self.kinds.items()}
        companies = [list(company) for company in self.companies]
        return {"companies": companies, "alone": None, **kinds}


def read_references(path: Path) -> References:
    """What an earlier call has kept."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        game = from_json(TrainConfig, kept["config"]).game
        companies = [tuple(company) for company in kept["companies"]]
        told, blind, random = (
            np.array(kept[kind], np.float64) for kind in ("told", "blind", "random")
        )
        alone = None if kept["alone"] is None else np.array(kept["alone"], np.float64)
        guests = dict(kept["guests"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"cannot read the references {path}: {error}") from error
    return References(game, companies, told, blind, random, alone, guests)


def digest(params: Params) -> str:
    """A short name for what a guest has learned."""
    whole = hashlib.sha256()
    for leaf in jax.tree.leaves(params):
        whole.update(np.asarray(leaf).tobytes())
    return whole.hexdigest()[:16]
