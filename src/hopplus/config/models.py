"""Settings of the learned models and of fitting them to recorded play."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeAlias

from hopplus.config.check import ConfigError, check, check_whole
from hopplus.config.net import NetConfig


@dataclass(frozen=True)
class GoalConfig:
    """What a goal is: the code that a variational autoencoder gives a view."""

    kind: Literal["gaussian", "discrete"] = "gaussian"
    """A vector of numbers, or one of several categories (straight-through Gumbel-softmax)."""
    size: int = 16
    """Numbers of a goal, or categories, 2 to 64."""
    loss: Literal["reconstruction", "action"] = "action"
    """Goals tell the view they come from, or the actions that led there."""
    kl: float = 0.001
    """Weight of the divergence from the prior."""
    ahead: int = 5
    """The action loss: a goal is of a view at most so many steps after the action. With 0 it is of
    the view at the action, which it then has to tell alone."""
    temperature: float = 1.0
    """Of the Gumbel-softmax."""
    net: NetConfig = field(default_factory=lambda: NetConfig(kind="centred", hidden=128))

    def __post_init__(self) -> None:
        check_whole(self, "goal.")
        check(self.kind in ("gaussian", "discrete"), "goal.kind", self.kind, "gaussian or discrete")
        losses = ("reconstruction", "action")
        check(self.loss in losses, "goal.loss", self.loss, " or ".join(losses))
        check(2 <= self.size <= 64, "goal.size", self.size, "from 2 to 64")
        check(math.isfinite(self.kl) and self.kl >= 0, "goal.kl", self.kl, "0 or more")
        check(0 <= self.ahead <= 1000, "goal.ahead", self.ahead, "from 0 to 1000")
        held = math.isfinite(self.temperature) and self.temperature > 0
        check(held, "goal.temperature", self.temperature, "above 0")


@dataclass(frozen=True)
class OpponentConfig:
    """A model of what another player does."""

    goal: Literal["none", "caught", "hindsight"] = "none"
    """What it is told: nothing, the kind of thing the player takes in the end, or the goal of a
    view that the player has later on (needs --goal-run). The last two look into the future."""
    weighted: bool = False
    """Weigh classes by how rare they are."""
    net: NetConfig = field(default_factory=lambda: NetConfig(kind="centred", hidden=256))

    def __post_init__(self) -> None:
        kinds = ("none", "caught", "hindsight")
        check(self.goal in kinds, "opponent.goal", self.goal, ", ".join(kinds))


@dataclass(frozen=True)
class WorldConfig:
    """A model of what a joint action brings."""

    head: Literal["structured", "cells"] = "structured"
    """A player is in one cell or gone and prey live or not, or every cell of every plane for
    itself."""
    hidden: int = 64
    """Width of its layers."""
    channel_weights: tuple[float, ...] = ()
    """Weight of each plane in the loss, one number per plane; all 1 when not given. The structured
    head has nothing to learn about obstacles."""

    def __post_init__(self) -> None:
        check_whole(self, "world.")
        check(self.head in ("structured", "cells"), "world.head", self.head, "structured or cells")
        check(1 <= self.hidden <= 8192, "world.hidden", self.hidden, "from 1 to 8192")
        held = all(math.isfinite(weight) and weight >= 0 for weight in self.channel_weights)
        check(held, "world.channel_weights", self.channel_weights, "0 or more for each plane")


@dataclass(frozen=True)
class FitConfig:
    """How a model is fitted."""

    epochs: int = 20
    """Passes over the data at most."""
    batch: int = 512
    """Samples of a gradient step."""
    learning_rate: float = 2e-3
    """Step size of Adam at the beginning; it falls to zero over the epochs."""
    weight_decay: float = 0.0
    """Of AdamW."""
    gradient_norm: float = 10.0
    """Largest norm of a gradient."""
    held_out: float = 0.1
    """Share of the episodes that is kept for measuring."""
    patience: int = 5
    """Epochs without a better held-out loss after which a seed stops."""

    def __post_init__(self) -> None:
        check_whole(self, "fit.")
        for name in ("epochs", "batch", "patience"):
            given = getattr(self, name)
            check(1 <= given <= 2**24, f"fit.{name}", given, "1 or more")
        for name in ("learning_rate", "gradient_norm"):
            given = getattr(self, name)
            check(math.isfinite(given) and given > 0, f"fit.{name}", given, "above 0")
        held = math.isfinite(self.weight_decay) and self.weight_decay >= 0
        check(held, "fit.weight_decay", self.weight_decay, "0 or more")
        check(0 < self.held_out < 1, "fit.held_out", self.held_out, "above 0 and below 1")


@dataclass(frozen=True)
class _Pretrain:
    data: str
    """The folder of recorded play, from `hopplus collect`."""
    seeds: int = 1
    """Independent fits, side by side in one program."""
    seed: int = 0
    """The first seed; the others follow it."""
    keep: int = 2
    """Checkpoints to keep, besides the best."""
    measure_every: int = 1
    """Epochs from one set of measures and pictures to the next; there is one at the end anyway."""

    def __post_init__(self) -> None:
        check_whole(self, "--")
        check(self.measure_every >= 1, "--measure-every", self.measure_every, "1 or more")
        check(isinstance(self.data, str), "--data", self.data, "a folder")
        check(1 <= self.seeds <= 4096, "--seeds", self.seeds, "from 1 to 4096")
        check(1 <= self.keep <= 4096, "--keep", self.keep, "from 1 to 4096")
        check(0 <= self.seed < 2**31, "--seed", self.seed, "from 0 to 2147483647")


@dataclass(frozen=True)
class PretrainGoal(_Pretrain):
    """Fit a goal prior to recorded play."""

    kind: ClassVar[str] = "goal"
    goal: GoalConfig = field(default_factory=GoalConfig)
    fit: FitConfig = field(default_factory=FitConfig)


@dataclass(frozen=True)
class PretrainOpponent(_Pretrain):
    """Fit a model of the players' actions to recorded play."""

    kind: ClassVar[str] = "opponent"
    goal_run: str | None = None
    """The run whose goals the model is given, with --opponent.goal hindsight: its first seed's."""
    opponent: OpponentConfig = field(default_factory=OpponentConfig)
    fit: FitConfig = field(default_factory=lambda: FitConfig(weight_decay=1.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.opponent.goal == "hindsight") != (self.goal_run is not None):
            raise ConfigError("--opponent.goal hindsight and --goal-run RUN belong together")


@dataclass(frozen=True)
class PretrainWorld(_Pretrain):
    """Fit a world model to recorded play."""

    kind: ClassVar[str] = "world"
    world: WorldConfig = field(default_factory=WorldConfig)
    fit: FitConfig = field(default_factory=FitConfig)


PretrainConfig: TypeAlias = PretrainGoal | PretrainOpponent | PretrainWorld
