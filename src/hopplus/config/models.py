"""Settings of the learned models and of fitting them to recorded play."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

import tyro

from hopplus.config.check import LARGE, MANY, Above, ConfigError, check, check_fields
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
        check_fields(
            self,
            "goal.prior.",
            size=(2, 64),
            kl=(0, LARGE),
            ahead=(0, 1000),
            temperature=Above(0, LARGE),
        )


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
        check_fields(self, "opponent.")


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
        check_fields(self, "world.", hidden=(1, 8192))
        held = all(0 <= weight <= LARGE for weight in self.channel_weights)
        allowed = f"from 0 to {LARGE} for each plane"
        check(held, "world.channel_weights", self.channel_weights, allowed)


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
        ranges = dict.fromkeys(("epochs", "batch", "patience"), (1, MANY))
        positive = dict.fromkeys(("learning_rate", "gradient_norm"), Above(0, LARGE))
        check_fields(self, "fit.", **ranges, **positive, weight_decay=(0, LARGE))
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
        check(isinstance(self.data, str), "--data", self.data, "a folder")
        check_fields(
            self,
            "--",
            seeds=(1, 4096),
            seed=(0, 2**31 - 1),
            keep=(1, 4096),
            measure_every=(1, MANY),
        )


@dataclass(frozen=True)
class PretrainGoal(_Pretrain):
    """Fit a goal prior to recorded play."""

    kind: ClassVar[str] = "goal"
    goal: Annotated[GoalConfig, tyro.conf.arg(name="goal.prior")] = field(  # as in training
        default_factory=GoalConfig
    )
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
