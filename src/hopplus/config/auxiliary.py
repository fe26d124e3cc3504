"""Settings of auxiliary models: goals, opponents, the world, imagination."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import tyro

from hopplus.config.check import (
    MANY,
    Above,
    Between,
    ConfigError,
    Count,
    Positive,
    Settings,
    Share,
    Weight,
    check,
)
from hopplus.config.models import GoalConfig, NetConfig, WorldConfig
from hopplus.registry import Registry

PartName: TypeAlias = str  # in `PARTS`, or module:attribute of one's own


@dataclass(frozen=True)
class AuxiliaryConfig(Settings):
    """What every part has that learns while the policy does."""

    prefix: ClassVar[str] = ""
    from_run: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """A run of `hopplus pretrain` to begin with; from scratch when not given."""
    buffer: Count = 16_384
    """Environment steps it keeps to learn from; rounded up to whole updates."""
    every: Annotated[int, Between(0, MANY)] = 1
    """Updates from one round of fitting to the next; 0 for never."""
    after_fit: Literal["keep", "empty"] = "keep"
    """Keep the buffer after a round of fitting, or empty it."""
    fits: Count = 4
    """Gradient steps of a round."""
    batch: Count = 256
    """Samples of a gradient step, for each seat."""
    learning_rate: Positive = 2e-3
    """Learning rate of Adam."""
    gradient_norm: Positive = 10.0
    """Largest norm of a gradient."""
    anneal: bool = False
    """Let the learning rate fall to zero over the run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        held = self.from_run is None or isinstance(self.from_run, str)
        check(held, f"{self.prefix}from", self.from_run, "a run's folder")


@dataclass(frozen=True)
class OpponentLearnerConfig(AuxiliaryConfig):
    """Models of the others' actions, one for each other seat."""

    fits: Count = 8
    """Gradient steps of a round."""
    batch: Count = 128
    """Samples of a gradient step, for each seat."""
    learning_rate: Positive = 3e-3
    """Learning rate of Adam."""
    data: Literal["all", "rewarded"] = "all"
    """Learn from all steps of the others, or from those alone after which the other is known to
    have earned a reward in the same episode."""
    net: NetConfig = field(default_factory=lambda: NetConfig(hidden=32))

    prefix: ClassVar[str] = "opponent."


@dataclass(frozen=True)
class WorldLearnerConfig(AuxiliaryConfig):
    """A world model for each seat."""

    fits: Count = 12
    """Gradient steps of a round."""
    batch: Count = 64
    """Samples of a gradient step, for each seat."""
    learning_rate: Positive = 1e-2
    """Learning rate of Adam."""
    model: Annotated[WorldConfig, tyro.conf.arg(name="")] = field(  # --world.head, as in pretrain
        default_factory=lambda: WorldConfig(hidden=32)
    )

    prefix: ClassVar[str] = "world."


@dataclass(frozen=True)
class GoalLearnerConfig(AuxiliaryConfig):
    """What the others are after, inferred from what a seat has seen."""

    every: Annotated[int, Between(0, MANY)] = 4
    """Updates from one round of fitting to the next; 0 for never."""
    batch: Count = 16
    """Games of a gradient step, for each seat, with all steps of an update."""
    learning_rate: Positive = 5e-3
    """Learning rate of Adam."""
    about: Literal["joint", "each"] = "joint"
    """One goal for all others together, or one for each of them."""
    selector: Literal["optimistic", "conservative", "last", "random"] = "optimistic"
    """Which of the views that the others come to tells their goal: the one that is best for this
    seat, the worst, the last, or any."""
    horizon: Annotated[int, Between(1, 1000)] = 5
    """How many steps ahead such a view may be."""
    mixing: Share = 0.2
    """Share of the steps, of `batch` games of an update, at which the policy learns with the goal
    that hindsight selects instead of the inferred one, at the beginning."""
    mixing_until: Share = 0.2
    """Share of the run after which that has fallen to zero."""
    kl: Weight = 0.1
    """Weight of the divergence from the selected goal."""
    foresight: Weight = 0.0
    """Weight of how well the inferred goals tell what the others do, by the models of them."""
    history: Literal["own", "each"] = "own"
    """The history is what this seat saw; or, with --goal.about each, what each of the others did,
    seen from its place and read by a network like the prior's before it is remembered."""
    hidden: Annotated[int, Between(1, 8192)] = 16
    """Hidden size of the recurrent network that reads a history."""
    across: bool = False
    """Begin an episode of a trial with the history of those before."""
    prior: GoalConfig = field(default_factory=lambda: GoalConfig(net=NetConfig()))
    prefix: ClassVar[str] = "goal."

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.history == "each" and self.about == "joint":
            raise ConfigError("--goal.history each needs --goal.about each")


@dataclass(frozen=True)
class LiamConfig(AuxiliaryConfig):
    """An embedding of what a seat has seen and done that tells what the others see and do."""

    batch: Count = 32
    """Games of a gradient step, for each seat, with all steps of an update."""
    size: Annotated[int, Between(1, 8192)] = 16
    """Size of the embedding."""
    hidden: Annotated[int, Between(1, 8192)] = 64
    """Hidden size of the recurrent network that it comes from."""
    observation: Weight = 0.1
    """Weight of telling what the others see, where telling what they do weighs 1."""
    across: bool = False
    """Begin an episode of a trial with the memory of those before."""
    prefix: ClassVar[str] = "liam."

    def __post_init__(self) -> None:
        super().__post_init__()
        check(
            self.from_run is None, "liam.from", self.from_run, "left out: nothing fits one before"
        )


@dataclass(frozen=True)
class ImagineConfig(Settings):
    """Play that a seat only imagines, and learns from as well."""

    prefix: ClassVar[str] = "imagine."
    real_ratio: Annotated[float, Above(0, 1)] = 0.45
    """Share of real steps among those the policy is given, those after its seat has left among
    them; imagined ones are all of a seat that is there. With 1 nothing is imagined."""
    real_ratio_end: Annotated[float | None, Above(0, 1)] = None
    """The same at the end of the run, reached linearly; as at the beginning when None."""
    horizon: Annotated[int, Between(1, 1000)] = 16
    """Steps imagined from a real one at most."""
    buffer: Count = 16_384
    """Environment steps kept to begin from; rounded up to whole updates."""
    critic_on: Literal["real", "both"] = "real"
    """Whether values are learned from real steps alone or from imagined ones too."""
    critic_weight: Weight = 1.0
    """What an imagined step weighs in the value loss, where a real one weighs 1; with
    --imagine.critic-on both."""
    reward: Literal["predicted", "clipped", "normalised", "zero"] = "clipped"
    """Imagined rewards as predicted, kept to the range of those seen, brought to the mean and
    variance of the real ones of the update, or none."""
    goals: Literal["inferred", "zero"] = "inferred"
    """What the others are taken to be after in imagination: inferred as in play, or nothing."""
    warm_up: Annotated[int, Between(0, 2**31 - 1)] = 12_000
    """Environment steps before anything is imagined."""
    gate: Share = 0.2
    """The world model's error, the share of fresh real steps that it predicts wrongly, above which
    a seat learns from nothing imagined."""

    @property
    def least_real_ratio(self) -> float:
        """Over the run; 1 where nothing is ever imagined."""
        return min(self.real_ratio, self.real_ratio_end or 1.0)


@dataclass(frozen=True, kw_only=True)
class PartRule:
    """Where the settings of a part are, and what it stands on."""

    settings: str | AuxiliaryConfig  # the field of `TrainConfig`; or themselves, of one's own
    needs: tuple[PartName, ...] = ()
    # Of one's own: by which its parameters are kept, and what makes its `Part` for a game.
    prefix: str = ""
    model: Callable[[Any, Any], Any] | None = None


# What else is said of each is in `hopplus.learning.auxiliary.table`, which has the same rows.
PARTS: Registry[PartRule] = Registry(
    "auxiliary model",
    {
        "opponent": PartRule(settings="opponent"),
        "goal": PartRule(settings="goal"),
        "belief": PartRule(settings="belief", needs=("opponent",)),
        "traits": PartRule(settings="traits", needs=("opponent",)),
        "liam": PartRule(settings="liam"),
        "world": PartRule(settings="world"),
        "imagination": PartRule(settings="imagine", needs=("opponent", "world")),
    },
    group="hopplus.parts",
)


def find_part(name: PartName) -> PartRule:
    """The rule of a part by its name, or by `module:attribute` of one's own."""
    check(isinstance(name, str), "--parts", name, "a name, or module:attribute")
    rule = PARTS[name]
    if not isinstance(rule, PartRule):
        raise ConfigError(f"{name} is no AuxiliaryRow: see docs/extending.md")
    return rule


def check_parts(parts: tuple[PartName, ...]) -> None:
    """Raise `ConfigError` for parts that do not exist or lack what they stand on."""
    for name in parts:
        if lacking := [need for need in find_part(name).needs if need not in parts]:
            raise ConfigError(f"--parts has {name}, which needs {' and '.join(lacking)}")
    telling = [name for name in ("goal", "belief", "traits") if name in parts]
    if len(telling) > 1:
        raise ConfigError(
            f"--parts has {' and '.join(telling)}, of which opponent models are told only one"
        )
