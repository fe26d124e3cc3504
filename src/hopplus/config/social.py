"""Settings by which a seat minds the others: rewards besides the game's own, and how they learn."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from hopplus.config.check import Between, Settings, Share, Weight, check


@dataclass(frozen=True)
class InequityConfig(Settings):
    """Aversion to inequity of what everyone has gained of late (Hughes et al. 2018)."""

    prefix: ClassVar[str] = "ppo.inequity."
    alpha: Weight = 0.0
    """What it costs that the others have more, on average."""
    beta: Weight = 0.0
    """What it costs a seat to have more than the others."""
    decay: Share = 0.975
    """How slowly gains are forgotten: what counts is e = discount * decay * e + reward, anew with
    every episode."""


@dataclass(frozen=True)
class InfluenceConfig(Settings):
    """A reward for having influence on what the others do next (Jaques et al. 2019)."""

    prefix: ClassVar[str] = "ppo.influence."
    weight: Weight = 0.0
    """What a nat of influence is worth, as told by the models of the others."""
    warm_up: Annotated[int, Between(0, 2**31 - 1)] = 100_000
    """Environment steps over which the weight rises from zero, while these models learn."""


@dataclass(frozen=True)
class LolaConfig(Settings):
    """Awareness of how the other learns (LOLA, Foerster et al. 2018), of two learning seats."""

    prefix: ClassVar[str] = "ppo.lola."
    step: Weight = 0.0
    """How far a seat expects the other to go up its own policy gradient: it learns for the other as
    that will be then, also how to change where it goes."""

    def check_with(self, ppo: Any, planned: bool) -> None:
        """Raise `ConfigError` beside settings of PPO, or a search or imagination, that leave it
        nothing to differentiate."""
        needs = {
            "without --ppo.epochs 1 and --ppo.minibatches 1": ppo.epochs == ppo.minibatches == 1,
            "with --ppo.games 1, as games are halved": ppo.games > 1,
            "with --ppo.parameters shared: it takes two who learn": ppo.parameters != "shared",
            "with --ppo.trial-discount": not ppo.trial_discount,
            "with a search or imagination, where the other does not learn": not planned,
        }
        for where, held in needs.items():
            check(held or not self.step, "ppo.lola.step", self.step, f"0 {where}")
