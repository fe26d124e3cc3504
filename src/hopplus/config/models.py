"""Settings of networks and models, and of fitting these to recorded play."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

import tyro

from hopplus.config.check import (
    LARGE,
    Above,
    Between,
    ConfigError,
    Count,
    Inside,
    Positive,
    Settings,
    Share,
    Weight,
    check,
)


@dataclass(frozen=True)
class NetConfig(Settings):
    """A network over views."""

    prefix: ClassVar[str] = "net."
    kind: Literal["mlp", "conv", "centred", "walking"] = "mlp"
    """Dense layers, a 3x3 convolution below them, dense layers over the board as seen from the
    seat's own cell, or walking: told besides how many steps away things are behind each move."""
    hidden: Annotated[int, Between(1, 8192)] = 64
    """Width of the dense layers."""
    layers: Annotated[int, Between(1, 16)] = 2
    """How many dense layers."""
    channels: Annotated[int, Between(1, 1024)] = 16
    """Channels of the convolution."""


@dataclass(frozen=True)
class MemoryConfig(Settings):
    """A recurrent memory of what a seat has seen, which its policy is given."""

    prefix: ClassVar[str] = "memory."
    kind: Literal["none", "episode", "trial"] = "none"
    """None, kept within an episode, or kept across the episodes of a trial against the same
    co-players."""
    size: Annotated[int, Between(1, 8192)] = 64
    """Hidden size."""


@dataclass(frozen=True)
class GoalConfig(Settings):
    """What a goal is: the code that a variational autoencoder gives a view."""

    prefix: ClassVar[str] = "goal.prior."
    kind: Literal["gaussian", "discrete"] = "gaussian"
    """A vector of numbers, or one of several categories (straight-through Gumbel-softmax)."""
    size: Annotated[int, Between(2, 64)] = 16
    """Dimensions of a goal, or categories, 2 to 64."""
    loss: Literal["reconstruction", "action", "joint"] = "action"
    """What goals are trained to predict: the view they come from; the actions that led there; or,
    as in the research notes, the action at that view, given view and time too."""
    kl: Weight = 0.001
    """Weight of the divergence from the prior."""
    ahead: Annotated[int, Between(0, 1000)] = 5
    """The action loss: a goal is of a view at most so many steps after the action. With 0 it is of
    the view at the action, which it then has to tell alone."""
    temperature: Positive = 1.0
    """Of the Gumbel-softmax."""
    net: NetConfig = field(default_factory=lambda: NetConfig(kind="centred", hidden=128))


@dataclass(frozen=True)
class BeliefConfig(Settings):
    """A belief over the kinds of things on the board, about each other seat."""

    prefix: ClassVar[str] = "belief."
    discount: Share = 0.98
    """What a catch seen earlier counts, relative to the next one."""
    floor: Annotated[float, Above(0, 1)] = 0.05
    """Probability that the others act at random, so that no single action decides."""
    across: bool = True
    """Begin an episode with what was seen in those before, of the same trial if the others are
    drawn for each."""

    none: bool = False
    """A further goal besides the kinds of things: none of them, of those who take nothing."""


@dataclass(frozen=True)
class TraitsConfig(Settings):
    """What each other is like, fitted to what it was seen to do."""

    prefix: ClassVar[str] = "traits."
    size: Annotated[int, Between(1, 256)] = 8
    """Dimensions of each other player's traits."""
    spread: Positive = 1.0
    """Standard deviation of these, over all co-players that there may be: how far a single act may
    move them."""
    drift: Annotated[float, Between(0, 1)] = 0.005
    """How much of what is known is forgotten with each act: co-players change."""
    across: bool = True
    """Go on from episode to episode of a trial."""


@dataclass(frozen=True)
class TypesConfig(Settings):
    """Which of the players that one has learned among each other is like."""

    prefix: ClassVar[str] = "types."
    members: Annotated[int, Between(1, 65536)] = 256
    """Members of families that each other is held against, as many of each as it is often drawn."""
    slip: Annotated[float, Above(0, 1)] = 0.05
    """Share of their acts that may be any, so that no single act decides."""
    change: Annotated[float, Above(0, 1)] = 0.002
    """Chance with each act that an other is someone else from now on."""
    strange: Annotated[float, Between(0, 0.99)] = 0.2
    """Chance beforehand that an other is none of them, of whom nothing is known but what it goes
    for in the trial, and when."""
    rhythm: bool = True
    """Allow for rest: whoever wants to move may stay, by a rhythm that is found out."""


@dataclass(frozen=True)
class OpponentConfig(Settings):
    """A model of what another player does."""

    prefix: ClassVar[str] = "opponent."
    goal: Literal["none", "caught", "hindsight"] = "none"
    """What it is given: nothing, the kind of thing the player takes in the end, or the goal of a
    view that the player has later on (needs --goal-run). The last two look into the future."""
    weighted: bool = False
    """Weigh classes by how rare they are."""
    net: NetConfig = field(default_factory=lambda: NetConfig(kind="centred", hidden=256))


@dataclass(frozen=True)
class WorldConfig(Settings):
    """A model of what a joint action brings."""

    prefix: ClassVar[str] = "world."
    head: Literal["structured", "cells"] = "structured"
    """A player is in one cell or gone and prey live or not, or every cell of every plane for
    itself."""
    hidden: Annotated[int, Between(1, 8192)] = 64
    """Width of its layers."""
    channel_weights: tuple[float, ...] = ()
    """Weight of each plane in the loss, one number per plane; all 1 when not given. The structured
    head has nothing to learn about obstacles."""

    def __post_init__(self) -> None:
        super().__post_init__()
        held = all(0 <= weight <= LARGE for weight in self.channel_weights)
        allowed = f"from 0 to {LARGE} for each plane"
        check(held, "world.channel_weights", self.channel_weights, allowed)


@dataclass(frozen=True)
class FitConfig(Settings):
    """How a model is fitted."""

    prefix: ClassVar[str] = "fit."
    epochs: Count = 20
    """Passes over the data at most."""
    batch: Count = 512
    """Samples of a gradient step."""
    learning_rate: Positive = 2e-3
    """Learning rate of Adam at the beginning; it falls to zero over the epochs."""
    weight_decay: Weight = 0.0
    """Of AdamW."""
    gradient_norm: Positive = 10.0
    """Largest norm of a gradient."""
    held_out: Annotated[float, Inside(0, 1)] = 0.1
    """Share of the episodes that is kept for measuring."""
    patience: Count = 5
    """Epochs without a better held-out loss after which a seed stops."""


@dataclass(frozen=True)
class _Pretrain(Settings):
    prefix: ClassVar[str] = "--"
    data: str
    """The folder of recorded play, from `hopplus collect`."""
    seeds: Annotated[int, Between(1, 4096)] = 1
    """Independent fits, side by side in one program."""
    seed: Annotated[int, Between(0, 2**31 - 1)] = 0
    """The first seed; the others follow it."""
    keep: Annotated[int, Between(1, 4096)] = 2
    """Checkpoints to keep, besides the best."""
    measure_every: Count = 1
    """Epochs from one set of measures and pictures to the next; there is one at the end anyway."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check(isinstance(self.data, str), "--data", self.data, "a folder")


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
