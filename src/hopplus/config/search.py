"""Settings of looking ahead."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

from hopplus.config.check import (
    MANY,
    Between,
    ConfigError,
    Positive,
    Settings,
    Share,
    Weight,
    check,
)

MOST = 2**10  # steps ahead


@dataclass(frozen=True)
class SearchConfig(Settings):
    """Search before each action."""

    prefix: ClassVar[str] = "search."
    simulations: Annotated[int | None, Between(0, 2**15)] = None
    """Simulations of each tree or, with one step, of each action; 0 for no search; when not given,
    as the player was trained."""
    kind: Literal["tree", "one-step"] = "tree"
    """Tree search, or one step of lookahead."""
    world: Literal["true", "learned"] = "true"
    """The rules of the game, applied to what the seat sees, or the player's own model of them."""
    others: Literal["models", "types"] = "models"
    """How the others act: as the player has learned to model them, or would itself in their place;
    or in play as known players do whom they have acted like in the trial, told by their acts."""
    infer_every: Annotated[int, Between(0, MOST)] = 0
    """Steps ahead after which goals are inferred again; 0 for at the first step only."""
    trees: Annotated[int, Between(1, 2**10)] = 3
    """Trees per decision, each with random draws of its own; their values are averaged."""
    depth: Annotated[int, Between(0, MOST)] = 0
    """Maximal depth of a tree; 0 for no limit."""
    discount: Annotated[float | None, Between(0, 1)] = None
    """Discount per step; when not given, that of the player's values."""
    exploration: Weight = 1.0
    """Exploration constant of PUCT."""
    values: Literal["scaled", "raw"] = "scaled"
    """Compare values from 0 to 1, between the worst and the best of a state, or as they are."""
    outcomes: Annotated[int, Between(1, 2**10)] = 1
    """Sampled actions of the others that each action has separate children for."""
    noise: Share = 0.0
    """Share of Dirichlet noise in the prior at the root."""
    noise_alpha: Positive = 0.3
    """Concentration of that noise."""
    choice: Literal["values", "visits"] = "visits"
    """Act by the values of the actions or by their visit counts."""
    temperature: Weight = 0.25
    """Temperature of that choice; 0 takes the best."""

    def __post_init__(self) -> None:
        super().__post_init__()
        held = not (self.kind == "one-step" and self.choice == "visits")
        check(held, "search.choice", self.choice, "values with one step, which looks at all alike")

        held = self.others == "models" or not self.infer_every
        allowed = "0 with --search.others types, which are told by real acts only"
        check(held, "search.infer_every", self.infer_every, allowed)

    def check_asked(self) -> None:
        """Raise `ConfigError` if options of a search are given and none is asked for."""
        if self.simulations is None and self != SearchConfig():
            raise ConfigError("--search options are given without --search.simulations")

    @property
    def worth(self) -> float:
        """What a reward is worth a step later, to whoever searches."""
        return 1.0 if self.discount is None else self.discount

    def valuing(self, discount: float) -> "SearchConfig":
        """The same for a player whose values discount so, unless it is told otherwise."""
        return replace(self, discount=discount if self.discount is None else self.discount)

    def within(self, horizon: int) -> "SearchConfig":
        """The same in a game of so many steps: trees as deep as they can get, and no deeper."""
        return replace(self, depth=min(self.depth or horizon, horizon, MOST))


@dataclass(frozen=True)
class DistilConfig(Settings):
    """How a policy learns from the search it plays with."""

    prefix: ClassVar[str] = "distil."
    replay: Annotated[int, Between(0, MANY)] = 0
    """Environment steps kept to learn from, those just played among them; rounded up to whole
    updates. 0 for those just played alone."""
    value_target: Literal["returns", "search"] = "returns"
    """What values learn: what came of a step, or what the search hoped for in it."""
    normalise: bool = False
    """Divide errors of values by the deviation of the targets that are kept to learn from."""
    gate: Share = 1.0
    """The world model's error, the share of fresh real steps that it predicts wrongly, above which
    a seat plays without its search and its policy stays as it is; with --search.world learned."""

    def check_with(self, search: SearchConfig) -> None:
        """Raise `ConfigError` for what cannot be learned from such a search."""
        held = self.gate == 1 or search.world == "learned"
        allowed = "1 where --search.world is true: there is nothing to mistrust"
        check(held, "distil.gate", self.gate, allowed)
        allowed = "models in training, where there is --context types"
        check(search.others == "models", "search.others", search.others, allowed)
