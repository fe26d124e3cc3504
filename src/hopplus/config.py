"""Settings: frozen dataclasses that hold every default and check themselves when made."""

import dataclasses
import math
import types
import typing
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal, TypeAlias, TypeVar

Config = TypeVar("Config")


class ConfigError(Exception):
    """A setting, a name or a layout that cannot be used; the message is one sentence for people."""


def check(held: bool, name: str, given: object, allowed: str) -> None:
    """Raise `ConfigError` naming the field, what was given and what is allowed, unless it held."""
    if not held:
        raise ConfigError(f"{name} is {given!r} but must be {allowed}")


def check_whole(config: Any, prefix: str) -> None:
    """Raise `ConfigError` for a field of whole numbers that holds something else."""
    for name, hint in typing.get_type_hints(type(config)).items():
        kinds = typing.get_args(hint) or (hint,)
        given = getattr(config, name)
        if int in kinds and not (given is None and type(None) in kinds):
            held = isinstance(given, int) and not isinstance(given, bool)
            check(held, f"{prefix}{name}", given, "a whole number")


@dataclass(frozen=True)
class StagHuntConfig:
    """Markov Stag-Hunt; the numbers in brackets are those of the rules in docs/rules.md."""

    name: Literal["stag-hunt-v1"] = "stag-hunt-v1"
    """The game and the version of its rules."""
    size: int = 4
    """Cells along a side of the board, where height or width is not given."""
    height: int | None = None
    """Rows of the board."""
    width: int | None = None
    """Columns of the board."""
    seats: int = 4
    """Players at the board, 2 to 8."""
    stags: int = 1
    """Stags on the board."""
    hares: int = 4
    """Hares on the board."""
    obstacles: int = 0
    """Obstacle pieces of three or four cells, straight or bent [2]."""
    boards: int = 256
    """Boards with obstacles in the bank that episodes draw from [2]."""
    board_seed: int = 0
    """Seed of that bank."""
    stag_hunters: int = 2
    """Players it takes to catch a stag [6]."""
    stag_reward: float = 10.0
    """What a stag is worth [7]."""
    hare_reward: float = 1.0
    """What a hare is worth [7]."""
    time_reward: float = 0.0
    """What every present player gets each step [7]."""
    strength: tuple[float, ...] = field(default_factory=tuple)
    """Share of each seat in a catch, one number per seat; equal when not given [7]."""
    horizon: int = 35
    """Steps of an episode at most [9]."""
    grace: int | None = None
    """Steps after the first catch at which the episode ends; never when not given [9]."""
    sight: int | None = None
    """Cells a player sees in each direction; everything when not given [10]."""

    def __post_init__(self) -> None:
        check(self.name == "stag-hunt-v1", "game.name", self.name, "stag-hunt-v1")
        check_whole(self, "game.")
        for name in ("size", "height", "width"):
            side = getattr(self, name)
            check(side is None or 1 <= side <= 32, f"game.{name}", side, "from 1 to 32")
        check(2 <= self.seats <= 8, "game.seats", self.seats, "from 2 to 8")
        for name in ("stags", "hares", "obstacles"):
            count = getattr(self, name)
            check(0 <= count <= 4096, f"game.{name}", count, "from 0 to 4096")
        check(self.stags + self.hares >= 1, "game.stags + game.hares", 0, "at least 1")
        check(1 <= self.boards <= 65536, "game.boards", self.boards, "from 1 to 65536")
        check(self.board_seed >= 0, "game.board_seed", self.board_seed, "0 or more")
        check(
            1 <= self.stag_hunters <= self.seats,
            "game.stag_hunters",
            self.stag_hunters,
            f"from 1 to game.seats, which is {self.seats}",
        )
        for name in ("stag_reward", "hare_reward"):
            reward = getattr(self, name)
            check(0 <= reward <= 1e6, f"game.{name}", reward, "from 0 to 1e6")
        check(abs(self.time_reward) <= 1e6, "game.time_reward", self.time_reward, "within 1e6")
        check(1 <= self.horizon <= 10_000, "game.horizon", self.horizon, "from 1 to 10000")
        for name in ("grace", "sight"):
            steps = getattr(self, name)
            held = steps is None or 0 <= steps <= 10_000
            check(held, f"game.{name}", steps, "from 0 to 10000")
        self._check_strength()
        self._check_room()

    def _check_strength(self) -> None:
        check(
            len(self.strength) in (0, self.seats),
            "game.strength",
            self.strength,
            f"empty or one number for each of the {self.seats} seats",
        )
        check(
            all(math.isfinite(s) and s > 0 for s in self.strength),
            "game.strength",
            self.strength,
            "above 0 for every seat",
        )
        check(
            sum(self.weights) <= 4096,
            "game.strength",
            self.strength,
            "in proportions of small whole numbers, such as 1 1 1 2.5",
        )

    def _check_room(self) -> None:
        pieces = self.seats + self.stags + self.hares
        cells = self.rows * self.columns
        need = pieces + 3 * self.obstacles
        if need > cells:
            raise ConfigError(
                f"a board of {self.rows}x{self.columns} has {cells} cells but"
                f" {self.seats} seats, {self.stags} stags, {self.hares} hares and"
                f" {self.obstacles} obstacle pieces need at least {need}"
            )

    @property
    def rows(self) -> int:
        return self.size if self.height is None else self.height

    @property
    def columns(self) -> int:
        return self.size if self.width is None else self.width

    @property
    def weights(self) -> tuple[int, ...]:
        """Strengths as whole numbers in the same proportions, so that sums of them are exact."""
        ratios = [Fraction(str(s)) for s in self.strength] or [Fraction(1)] * self.seats
        scale = math.lcm(*(r.denominator for r in ratios))
        whole = [int(r * scale) for r in ratios]
        return tuple(w // math.gcd(*whole) for w in whole)


GameConfig: TypeAlias = StagHuntConfig  # a union, when there are more games


@dataclass(frozen=True)
class NetConfig:
    """The network of a learning player."""

    kind: Literal["mlp", "conv"] = "mlp"
    """Dense layers, or a 3x3 convolution below them."""
    hidden: int = 64
    """Width of the dense layers."""
    layers: int = 2
    """How many dense layers."""
    channels: int = 16
    """Channels of the convolution."""

    def __post_init__(self) -> None:
        check(self.kind in ("mlp", "conv"), "net.kind", self.kind, "mlp or conv")
        check_whole(self, "net.")
        for name, most in (("hidden", 8192), ("layers", 16), ("channels", 1024)):
            given = getattr(self, name)
            check(1 <= given <= most, f"net.{name}", given, f"from 1 to {most}")


@dataclass(frozen=True)
class PPOConfig:
    """How a policy improves."""

    games: int = 256
    """Games side by side."""
    unroll: int = 16
    """Steps of each game between updates."""
    epochs: int = 4
    """Passes over the steps of an update."""
    minibatches: int = 4
    """Parts of a pass, one gradient step each."""
    learning_rate: float = 1e-3
    """Step size of Adam."""
    anneal: bool = True
    """Let the step size fall to zero over the run."""
    clip: float = 0.2
    """How far the policy may move in an update."""
    value_clip: float = 1.0
    """How far a value may move in an update."""
    value_weight: float = 0.5
    """Weight of the value loss."""
    entropy: float = 0.05
    """Weight of the entropy bonus at the beginning."""
    entropy_end: float | None = 0.003
    """Weight of the entropy bonus at the end, reached linearly; as at the beginning when None."""
    gradient_norm: float = 0.5
    """Largest norm of a gradient."""
    discount: float = 1.0
    """What a reward is worth a step later; below 1, near hares beat far stags on large boards."""
    mix: float = 0.95
    """GAE's lambda; 1 is the Monte-Carlo return."""
    prosociality: float = 0.0
    """Share of everyone's mean reward in a seat's own, from 0 to 1."""
    parameters: Literal["independent", "shared"] = "independent"
    """One set of parameters per seat, or one for all."""

    def __post_init__(self) -> None:
        check_whole(self, "ppo.")
        for name in ("games", "unroll", "epochs", "minibatches"):
            given = getattr(self, name)
            check(1 <= given <= 2**24, f"ppo.{name}", given, "1 or more")
        for name in ("learning_rate", "clip", "value_clip", "gradient_norm"):
            given = getattr(self, name)
            check(math.isfinite(given) and given > 0, f"ppo.{name}", given, "above 0")
        for name in ("value_weight", "entropy", "entropy_end"):
            given = getattr(self, name)
            held = given is None or (math.isfinite(given) and given >= 0)
            check(held, f"ppo.{name}", given, "0 or more")
        for name in ("discount", "mix", "prosociality"):
            given = getattr(self, name)
            check(0 <= given <= 1, f"ppo.{name}", given, "from 0 to 1")
        kinds = ("independent", "shared")
        check(self.parameters in kinds, "ppo.parameters", self.parameters, " or ".join(kinds))
        check(
            (self.games * self.unroll) % self.minibatches == 0,
            "ppo.minibatches",
            self.minibatches,
            f"a divisor of ppo.games * ppo.unroll, which is {self.games * self.unroll}",
        )

    @property
    def steps(self) -> int:
        """Environment steps of an update."""
        return self.games * self.unroll


@dataclass(frozen=True)
class TrainConfig:
    """A whole training run."""

    game: GameConfig = field(default_factory=GameConfig)
    net: NetConfig = field(default_factory=NetConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    seats: str | None = None
    """Who sits where: learn, a scripted player, a run (runs/a, runs/a@2) or an exported player; all
    learn when not given."""
    steps: int = 1_000_000
    """Environment steps of each seed at most; whole updates are played, one at least."""
    seeds: int = 1
    """Independent runs, side by side in one program."""
    seed: int = 0
    """The first seed; the others follow it."""
    checkpoint_every: int = 50
    """Updates between checkpoints."""
    keep: int = 3
    """Checkpoints to keep, besides the best."""

    def __post_init__(self) -> None:
        check_whole(self, "--")
        held = self.seats is None or isinstance(self.seats, str)
        check(held, "--seats", self.seats, "names separated by commas")
        for name in ("steps", "seeds", "checkpoint_every", "keep"):
            given = getattr(self, name)
            check(given >= 1, f"--{name}".replace("_", "-"), given, "1 or more")
        check(0 <= self.seed < 2**31, "--seed", self.seed, "from 0 to 2147483647")

    @property
    def updates(self) -> int:
        return max(1, self.steps // self.ppo.steps)


def to_json(config: Any) -> dict[str, Any]:
    """A configuration as plain data."""
    return dataclasses.asdict(config)


def from_json(kind: type[Config], data: dict[str, Any]) -> Config:
    """The configuration that `to_json` wrote; an unknown field is an error."""
    hints = typing.get_type_hints(kind)
    unknown = set(data) - set(hints)
    if unknown:
        raise ConfigError(f"{kind.__name__} has no field {sorted(unknown)[0]}")
    return kind(**{name: _restored(hints[name], value) for name, value in data.items()})


def _restored(hint: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast(type, hint), value)
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    is_tuple = any(typing.get_origin(option) is tuple for option in options)
    return tuple(value) if is_tuple and value is not None else value
