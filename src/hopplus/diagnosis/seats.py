"""Why do returns depend on the seat number? From the game to the log, one suspect after another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopplus.config import TrainConfig
from hopplus.diagnosis.fairness import placement, step_symmetry
from hopplus.diagnosis.faults import Fault
from hopplus.diagnosis.finding import Check, Illness, Verdict, verdict_of
from hopplus.diagnosis.ordering import Ordering, late_returns, of_runs, runs_for
from hopplus.diagnosis.pipeline import pipeline_checks
from hopplus.diagnosis.subject import OnStep, Subject, laboratory_of, of_preset
from hopplus.games.game import Game

SURE = 0.001  # chance below which seats of a game or of models are said to differ
REAL = 0.01  # chance below which an ordering of returns is taken to be real
WORTH = 0.1  # a gap between seats that one would want to know of

ILLNESSES = {
    "wrong-log": Illness(
        "logging",
        "returns are logged under the wrong seat's number",
        "Look where episode returns are added up and written: index them by seat, in one order,"
        " from the game to the log.",
    ),
    "unequal-game": Illness(
        "game",
        "the game itself does not treat its seats alike",
        "Make the rules equal (game.strength), or compare each seat with itself only.",
    ),
    "different-players": Illness(
        "configuration",
        "different players sit in the seats",
        "Compare seats with the same player in them, or let everyone change places.",
    ),
    "wrong-seat-data": Illness(
        "data",
        "seats learn from another seat's play",
        "Look where trajectories are taken apart by seat: a name that is not found must be an"
        " error, never the first seat.",
    ),
    "steps-after-leaving": Illness(
        "data",
        "steps after a player has left are learned from",
        "Mask every loss with the presence of the seat before the step.",
    ),
    "fewer-updates": Illness(
        "configuration",
        "seats are not updated equally often",
        "Look at the schedule of updates: every set of parameters must get every gradient step.",
    ),
    "step-size": Illness(
        "configuration",
        "a seat does not take the steps that its configuration says",
        "Compare the optimisers of the seats, field by field; they must be made from one setting.",
    ),
    "models-differ": Illness(
        "models",
        "a model is worse for some seats than for others",
        "Look at what that model learns from, seat by seat, and train it longer.",
    ),
    "part-orders": Illness(
        "models",
        "the ordering begins with one of the parts beside the policy",
        "Train without that part, then look at its data and at its error by seat.",
    ),
    "unexplained": Illness(
        "chance",
        "seats differ more than chance allows, and none of the suspects did it",
        "Take more seeds, to be sure that it is there; then look at initialisation.",
    ),
}
HEALTHY = Illness(
    "chance", "nothing is wrong: seats differ by chance if at all", "Nothing needs to be done."
)


@dataclass(frozen=True)
class SeatsSettings:
    """How much work goes into it."""

    episodes: int = 10_000  # of each kind of player, to try the game
    symmetric: int = 256  # random games whose steps are turned
    seed: int = 0
    ablation_steps: int = 100_000
    ablate: bool = True  # take parts away if there is an ordering to explain
    fewer_rungs: bool = False


@dataclass(frozen=True)
class SeatsDiagnosis:
    """Everything that was seen, and what it means."""

    subject: str
    checks: list[Check]
    verdict: Verdict
    returns: Ordering  # of the runs, over the last fifth of training
    curves: np.ndarray  # [U, S, N] returns of the episodes that ended in each update
    ladder: dict[str, Ordering]  # by what was taken away

    def as_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            **self.verdict.as_json(),
            "returns": self.returns.as_json(),
            "ladder": {name: found.as_json() for name, found in self.ladder.items()},
            "checks": [check.as_json() for check in self.checks],
        }


def diagnose_seats(
    subject: Subject, fault: Fault, settings: SeatsSettings, on_step: OnStep
) -> SeatsDiagnosis:
    """Run all checks on a subject."""
    checks: list[Check] = []
    returns = of_runs(late_returns(subject.records))
    checks.append(real_check(returns))
    on_step("looked at returns")
    checks += game_checks(subject.learner.game, settings, on_step)
    checks += pipeline_checks(subject)
    on_step("looked at what each seat learns from")
    checks += model_checks(subject)
    ladder = {}
    if settings.ablate and returns.chance < REAL:
        ladder = climb(subject, fault, settings, on_step)
        checks.append(ladder_check(returns, ladder))
    verdict = verdict_of(checks, ILLNESSES, HEALTHY)
    return SeatsDiagnosis(
        subject.name, checks, verdict, returns, curves_of(subject.records), ladder
    )


def curves_of(records: Sequence[dict[str, Any]]) -> np.ndarray:
    """[U, S, N] mean returns of the episodes that ended in each update; NaN without any."""
    episodes = np.array([record["episodes"] for record in records])[..., None]
    totals = np.array([record["return_sum"] for record in records])
    return np.where(episodes > 0, totals / np.maximum(episodes, 1), np.nan)


def real_check(returns: Ordering) -> Check:
    """Is there an ordering at all?"""
    title = "Is it real?"
    seeds = len(returns.samples)
    means = ", ".join(f"seat {seat}: {found}" for seat, found in enumerate(returns.seats))
    if seeds < 2:
        return Check(
            title,
            f"There is one run only, which cannot tell ({means}). Take --seeds 5 or more.",
            figures=returns.as_json(),
        )
    needed = runs_for(returns.samples, WORTH)
    says = (
        f"Over {seeds} runs: {means}. Seats that are alike differ as much with chance"
        f" {returns.chance:.3g}. To see a gap of {WORTH} between two seats takes about {needed}"
        " runs"
    )
    if returns.enough:
        says += f", one of {returns.gap:.3f} as here about {returns.enough}"
    real = returns.chance < REAL
    return Check(
        title,
        says + ("." if real else ": no sign of an ordering."),
        "unexplained" if real else None,
        returns.as_json() | {"runs_for_worth": needed},
    )


def game_checks(game: Game, settings: SeatsSettings, on_step: OnStep) -> list[Check]:
    """The rules exactly, then play by name and by place."""
    found = step_symmetry(game, settings.seed, settings.symmetric)
    on_step("turned the board")
    if not found.known:
        checks = [
            Check(
                "The game: rules",
                f"Boards cannot be turned, because a seat does not see {game.hidden}.",
                figures=found.as_json(),
            )
        ]
    else:
        equal = (
            f"{found.steps:,} steps of random play, each on every turn of its board: every seat is"
            " treated as every other."
        )
        unequal = (
            f"{found.different:,} of {found.steps:,} steps do something else when the same board"
            f" has its seats renamed. For example:\n{found.example}"
        )
        checks = [
            Check(
                "The game: rules",
                unequal if found.different else equal,
                "unequal-game" if found.different else None,
                found.as_json(),
            )
        ]
    for player in ("random", *game.targets):
        played = placement(game, player, settings.seed, settings.episodes)
        on_step(f"played {player}")
        name, place = played.by_name, played.by_place
        off = name.chance < SURE or place.chance < SURE
        by_name = ", ".join(str(seat) for seat in name.seats)
        says = (
            f"{played.episodes:,} episodes, every board dealt to every turn of the seats. By name:"
            f" {by_name} (chance {name.chance:.3g}); by place: chance {place.chance:.3g}."
        )
        checks.append(
            Check(
                f"The game: {player} players in all seats",
                says,
                "unequal-game" if off else None,
                played.as_json(),
            )
        )
    return checks


# What is told of each seat's models, by the name in the log, and whether more is worse.
MODEL_FIGURES = {
    "opponent/accuracy": "share of the others' actions foreseen",
    "world/error": "share of steps foreseen wrongly",
    "goal/loss/kl": "divergence of inferred from selected goals",
    "explained": "share of the returns' variance that values explain",
    "opponent/fill": "steps that opponent models can learn from",
    "world/fill": "steps that the world model can learn from",
    "goal/fill": "steps that goals can be learned from",
    "opponent/fits": "gradient steps of opponent models",
    "world/fits": "gradient steps of the world model",
    "goal/fits": "gradient steps of goals",
}


def model_checks(subject: Subject) -> list[Check]:
    """Errors, buffers and counts of the models, by seat, over the last fifth."""
    late = subject.records[-max(1, round(0.2 * len(subject.records))) :]
    checks = []
    for name, about in MODEL_FIGURES.items():
        shown = [record[name] for record in late if name in record]
        if not shown or np.ndim(shown[0]) != 2 or np.shape(shown[0])[1] < 2:
            continue
        found = of_runs(np.mean(shown, axis=0))
        differs = found.chance < SURE and name != "explained"
        means = ", ".join(f"{mean:.3g}" for mean in found.samples.mean(axis=0))
        checks.append(
            Check(
                f"Models: {name}",
                f"By seat, {about}: {means} (chance {found.chance:.3g}).",
                "models-differ" if differs else None,
                found.as_json(),
            )
        )
    return checks


def rungs_of(config: TrainConfig, fewer: bool) -> dict[str, TrainConfig]:
    """The configuration with more and more taken away."""
    rungs: dict[str, TrainConfig] = {}
    if config.search.simulations:
        rungs["without search"] = replace(config, search=replace(config.search, simulations=0))
    bare = replace(config, search=replace(config.search, simulations=0))
    if "imagination" in config.parts:
        without = tuple(part for part in config.parts if part not in ("imagination", "world"))
        rungs["without imagination"] = replace(bare, parts=without)
    plain = replace(bare, parts=())
    rungs["plain PPO"] = plain
    shared = config.ppo.parameters == "shared"
    other = replace(plain.ppo, parameters="independent" if shared else "shared")
    rungs[f"plain PPO, {other.parameters} parameters"] = replace(plain, ppo=other)
    if fewer:
        rungs = {"plain PPO": plain}
    return {name: rung for name, rung in rungs.items() if rung != config}


def climb(
    subject: Subject, fault: Fault, settings: SeatsSettings, on_step: OnStep
) -> dict[str, Ordering]:
    """Short runs with more and more taken away: in which of them do seats differ?"""
    ladder = {}
    lanes = subject.laboratory.lanes
    for name, config in rungs_of(subject.config, settings.fewer_rungs).items():
        if fault.own and config.ppo.parameters == "shared":
            continue
        short = replace(config, steps=settings.ablation_steps, seed=subject.config.seed)
        laboratory = laboratory_of(short, fault, max(lanes, 5))
        made = of_preset(name, laboratory, short.seed, on_step)
        ladder[name] = of_runs(late_returns(made.records))
    return ladder


def ladder_check(returns: Ordering, ladder: dict[str, Ordering]) -> Check:
    """Where does the ordering begin?"""
    rows = "; ".join(
        f"{name}: gap {found.gap:.3f}, chance {found.chance:.3g}" for name, found in ladder.items()
    )
    still = [name for name, found in ladder.items() if found.chance < REAL]
    plain = ladder.get("plain PPO")
    begins = plain is not None and plain.chance >= REAL
    says = f"As it is: gap {returns.gap:.3f}, chance {returns.chance:.3g}; {rows}."
    if begins:
        says += (
            " Plain PPO does not order its seats, so the ordering begins with what was taken away."
        )
    elif still:
        says += f" Seats still differ in: {', '.join(still)}."
    return Check("Ablation", says, "part-orders" if begins else None)
