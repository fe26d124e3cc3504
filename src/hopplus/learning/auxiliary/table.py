"""The table of auxiliary models: what learns besides the policy, and what is shown of it.

Training, logs, TensorBoard, reports, warm starts and diagnoses read these rows, and none of them
names a model itself. One from outside the package is an `AuxiliaryRow` in a file of its own, named
as module:attribute or added by `register_auxiliary_model`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hopplus.config import PARTS, AuxiliaryConfig, ConfigError, PartRule
from hopplus.learning.auxiliary.goal import GoalLearner
from hopplus.learning.auxiliary.learner import AuxiliaryLearner
from hopplus.learning.auxiliary.liam import LiamLearner
from hopplus.learning.auxiliary.opponent import (
    OpponentLearner,
    fitted_settings,
    prior_told,
    with_room_for_goals,
)
from hopplus.learning.auxiliary.world import WorldLearner
from hopplus.models.part import Part
from hopplus.players.actor import PlayerModels
from hopplus.recorded.models import Setting
from hopplus.registry import Registry
from hopplus.types import Params


@dataclass(frozen=True)
class Chart:
    """Metrics that are drawn together: names, or beginnings of them that end in /, and what to call
    them."""

    title: str
    about: str
    names: Mapping[str, str]
    # Two counts [..., N - 1, A], whose ratio is drawn by action, or by seat and other.
    by_action: tuple[str, str] | None = None
    by_other: tuple[str, str] | None = None
    # Of the run, which is drawn across: a field of `hopplus.report.pages.curves.Curved`.
    level: str = ""


@dataclass(frozen=True)
class WarmStartRule:
    """What of a player a run of `hopplus pretrain` can give."""

    field: str  # of its parameters
    model: Callable[[PlayerModels], Part | None]  # whose parameters these are
    settings: Callable[[Any], dict[str, Any]]  # of training, from the `PretrainConfig` of that run
    adapt: Callable[[Params, PlayerModels], Params] = lambda params, parts: params
    # Models of other names that it was fitted with and needs: settings of training, and parameters.
    brings: Callable[[Setting], dict[str, tuple[dict[str, Any], Params]]] = lambda setting: {}


@dataclass(frozen=True)
class AuxiliaryModel:
    """A row. Metrics are named `prefix/...`."""

    prefix: str
    learner: type[AuxiliaryLearner] | None = None  # what fits it; None for what has nothing to fit
    warm_start: WarmStartRule | None = None
    figures: Mapping[str, str] = field(default_factory=dict)  # told by seat, and what each is
    charts: tuple[Chart, ...] = ()
    gate: str | None = None  # the metric that is 0 where all others mean nothing


@dataclass(frozen=True, kw_only=True)
class AuxiliaryRow(PartRule, AuxiliaryModel):
    """A model of one's own: what the table and `hopplus.config.PARTS` say of one, in a row."""

    prefix: str
    settings: AuxiliaryConfig
    model: Callable[[Any, Any], Part]  # makes it, of a `Game` and the settings
    learner: type[AuxiliaryLearner] = AuxiliaryLearner

    def __post_init__(self) -> None:
        if self.warm_start or self.settings.from_run:
            raise ConfigError(f"{self.prefix}: a model of your own begins from scratch, not a run")


AUXILIARY_MODELS: Registry[AuxiliaryModel] = Registry(
    "auxiliary model",
    {
        "opponent": AuxiliaryModel(
            "opponent",
            OpponentLearner,
            WarmStartRule(
                "opponents",
                lambda parts: parts.opponent,
                fitted_settings,
                with_room_for_goals,
                prior_told,
            ),
            {
                "opponent/accuracy": "share of the others' actions predicted",
                "opponent/loss/cross_entropy": "surprise at the others' actions, in nats",
                "opponent/fill": "steps that opponent models can learn from",
                "opponent/fits": "gradient steps of opponent models",
            },
            (
                Chart(
                    "Opponent accuracy",
                    "Share of the others' actions predicted (top-1): of all, and of those of"
                    " each kind.",
                    {"opponent/accuracy": "all actions"},
                    by_action=("opponent/hit", "opponent/count"),
                ),
                Chart(
                    "Opponent accuracy by seat",
                    "Top-1 accuracy, by the seat that predicts and the seat that is predicted.",
                    {"opponent/accuracy": "all seats"},
                    by_other=("opponent/hit", "opponent/count"),
                ),
                Chart(
                    "Opponent top-3 by seat",
                    "Top-3 accuracy, by the seat that predicts and the seat that is predicted.",
                    {"opponent/top3": "all seats"},
                    by_other=("opponent/hit_top3", "opponent/count"),
                ),
                Chart("Loss of the opponent models", "By its parts.", {"opponent/loss/": ""}),
            ),
        ),
        "goal": AuxiliaryModel(
            "goal",
            GoalLearner,
            WarmStartRule("prior", lambda parts: parts.prior, lambda run: {"prior": run.goal}),
            {
                "goal/loss/kl": "divergence of inferred from selected goals",
                "goal/fill": "steps that goals can be learned from",
                "goal/fits": "gradient steps of goals",
            },
            (
                Chart("Loss of the goal model", "By its parts.", {"goal/loss/": ""}),
                Chart(
                    "Goal hit ratio",
                    "How often an inferred goal is nearer to the one that hindsight selects than to"
                    " another; 0.5 is chance.",
                    {"goal/hit": "hit ratio"},
                ),
            ),
        ),
        "belief": AuxiliaryModel("belief"),  # counted by Bayes' rule, so there is nothing to fit
        "traits": AuxiliaryModel("traits"),  # likewise
        "liam": AuxiliaryModel(
            "liam",
            LiamLearner,
            figures={
                "liam/held_out_action": "nats of what the others do, decoded from the embedding",
                "liam/fill": "steps that the embedding can be learned from",
                "liam/fits": "gradient steps of the embedding",
            },
            charts=(
                Chart(
                    "Actions decoded by LIAM",
                    "Cross-entropy of what the others do, on steps learned from and just played.",
                    {"liam/loss/action": "fitted", "liam/held_out_action": "held out"},
                ),
                Chart(
                    "Observations decoded by LIAM",
                    "The same of what the others see.",
                    {"liam/loss/observation": "fitted", "liam/held_out_observation": "held out"},
                ),
            ),
        ),
        "world": AuxiliaryModel(
            "world",
            WorldLearner,
            WarmStartRule("world", lambda parts: parts.world, lambda run: {"model": run.world}),
            {
                "world/error": "share of steps predicted wrongly",
                "world/fill": "steps that the world model can learn from",
                "world/fits": "gradient steps of the world model",
            },
            (
                Chart("Loss of the world model", "By its parts.", {"world/loss/": ""}),
                Chart(
                    "World error",
                    "Share of fresh real steps that the world model predicts wrongly.",
                    {
                        "world/error": "anything",
                        "world/planes_wrong": "board",
                        "world/reward_wrong": "reward",
                        "world/gone_wrong": "who is gone",
                        "world/legal_wrong": "legality",
                        "world/done_wrong": "end",
                    },
                    level="gate",
                ),
            ),
        ),
        "imagination": AuxiliaryModel(
            "imagined",
            charts=(
                Chart(
                    "Imagination",
                    "Share of seats whose gate is open, of imagined episodes that end, and of real"
                    " steps among those that the policy learns from.",
                    {
                        "imagined/open": "gate open",
                        "imagined/ended": "ended",
                        "real/share": "real steps",
                    },
                ),
                Chart(
                    "Values, real and imagined",
                    "Mean return that is learned from, and what the critic says of the same steps.",
                    {
                        "real/return": "return, real",
                        "real/value": "value, real",
                        "imagined/return": "return, imagined",
                        "imagined/value": "value, imagined",
                    },
                ),
            ),
            gate="imagined/open",
        ),
    },
    group="hopplus.parts",
)


def register_auxiliary_model(name: str, row: AuxiliaryRow) -> None:
    """Have `--parts` know a model of one's own by a name without a colon."""
    PARTS.add(name, row)
    AUXILIARY_MODELS.add(name, row)


def warm_starts() -> dict[str, WarmStartRule]:
    """What can be learned before, by the model's name."""
    return {name: row.warm_start for name, row in AUXILIARY_MODELS.items() if row.warm_start}


def charts() -> list[Chart]:
    """Of all models, in their order; of those from outside, of the ones that were imported."""
    return [chart for row in AUXILIARY_MODELS.known() for chart in row.charts]


def added_up() -> set[str]:
    """Hits and counts, which mean something only added up: never averaged or drawn."""
    return {name for chart in charts() for name in (chart.by_action or ()) + (chart.by_other or ())}


def others_of(counts: Any, learning: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Of counts [..., sets, N - 1, A] every set and place, with the seats that they are; none where
    seats share their parameters, so that a set is no seat's own."""
    *_, sets, others, _ = counts.shape
    if sets == len(learning):
        for number, seat in enumerate(learning):
            for place in range(others):
                yield number, place, seat, (seat + 1 + place) % (others + 1)


def gate_of(metric: str) -> str | None:
    """The metric that is 0 where this one means nothing, if there is one."""
    for row in AUXILIARY_MODELS.known():
        if row.gate and metric != row.gate and metric.startswith(f"{row.prefix}/"):
            return row.gate
    return None
