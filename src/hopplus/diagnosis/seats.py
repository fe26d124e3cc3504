"""Why do returns depend on the seat number? From the game to the log, one suspect after another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopplus.config import MemoryConfig, TrainConfig
from hopplus.diagnosis.fairness import placement, step_symmetry
from hopplus.diagnosis.faults import Fault
from hopplus.diagnosis.finding import Check, Illness, Verdict, verdict_of
from hopplus.diagnosis.ordering import (
    Ordering,
    episodes_for,
    falls,
    fewest_runs,
    late_returns,
    of_runs,
    repeats,
    runs_for,
)
from hopplus.diagnosis.pipeline import DATA_ILLNESSES, pipeline_checks
from hopplus.diagnosis.subject import OnStep, Subject, made, of_preset
from hopplus.games.game import Game
from hopplus.learning.auxiliary_models import AUXILIARY_MODELS

SURE = 0.001  # chance below which seats of a game or of models are said to differ
REAL = 0.01  # chance below which an ordering of returns is taken to be real
WORTH = 0.1  # a gap between seats that one would want to know of
SHARE = 0.2  # the same of any game's returns, as a share of their spread: a small effect (Cohen)
SEEDS = 5  # that are advised, if they are enough

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
        "Make the rules equal, or compare each seat with itself only.",
    ),
    **DATA_ILLNESSES,
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
    "unequal-learning": Illness(
        "configuration",
        "seats do not learn the same from the same play",
        "Something in the loss or the optimiser depends on the seat: compare entropy, clipping and"
        " weights, seat by seat.",
    ),
    "different-players": Illness(
        "configuration",
        "different players sit in the seats",
        "Compare seats with the same player in them, or let everyone change places.",
    ),
    "models-differ": Illness(
        "models",
        "a model is worse for some seats than for others",
        "Look at what that model learns from, seat by seat, and train it longer.",
    ),
    "part-orders": Illness(
        "models",
        "the ordering is gone once a part is taken away",
        "Look at that part's data and at its error by seat.",
    ),
    "unexplained": Illness(
        "unknown",
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
    seeds, seats = returns.samples.shape
    if not seeds:
        return Check(
            title,
            "No episode ended in the last fifth of training: there are no returns to compare.",
            figures=returns.as_json(),
            unknown="Train for more --steps.",
        )
    means = ", ".join(f"seat {seat}: {found}" for seat, found in enumerate(returns.seats))
    needed = runs_for(returns.samples, WORTH, REAL)
    enough = f"about {needed} runs" if needed else "more runs than can be foreseen"
    if returns.least >= REAL:
        return Check(
            title,
            f"{seeds} run{'s' * (seeds > 1)} cannot tell, whatever comes out ({means}): take more"
            f" --seeds. To see one seat off by {WORTH} takes {enough}.",
            figures=returns.as_json() | {"runs_for_worth": needed},
            unknown="To know whether returns are ordered, train with"
            f" --seeds {max(SEEDS, fewest_runs(seats, REAL))} or more.",
        )
    real = returns.chance < REAL
    says = (
        f"Over {seeds} runs: {means}. Seats that are alike differ as much with chance"
        f" {returns.chance:.3g}: {'so these do differ' if real else 'no sign of an ordering'}. To"
        f" see one seat off by {WORTH} takes {enough}."
    )
    return Check(
        title,
        says,
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
                unknown="Try the game with settings under which a seat sees all that counts.",
                decides=False,  # what comes of playing it does
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
        played = placement(game, player, settings.seed, settings.episodes, found.known)
        on_step(f"played {player}")
        name, place = played.by_name, played.by_place
        off = name.chance < SURE or (place is not None and place.chance < SURE)
        by_name = ", ".join(str(seat) for seat in name.seats)
        dealt = ", every board dealt to every turn of the seats" if place else ""
        says = f"{played.episodes:,} episodes{dealt}. By name: {by_name} (chance {name.chance:.3g})"
        says += f"; by place: chance {place.chance:.3g}." if place else "."
        checks.append(
            Check(
                f"The game: {player} players in all seats",
                says,
                "unequal-game" if off else None,
                played.as_json(),
                "" if off else more_episodes(name, played.episodes // len(name.samples)),
                decides=not found.known,  # rules that are known to be equal need no playing
            )
        )
    return checks


def more_episodes(played: Ordering, each: int = 1) -> str:
    """What to do to know whether seats differ, if so many samples, of `each` so many episodes,
    cannot tell."""
    if len(played.samples) < 2:
        return "Too few episodes ended in time: say with --episodes how many to play."
    if np.ptp(played.samples) == 0:
        return "Nobody gains anything in such play: try the game with players that do."
    needed = episodes_for(played.samples, SHARE, SURE)
    if needed and len(played.samples) >= needed:
        return ""
    enough = f"about {needed * each:,}" if needed else "more than a million"
    return (
        f"To see one seat off by {SHARE:g} of the spread of returns takes {enough} episodes: take"
        " more --episodes."
    )


# What is told of each seat's models, by the name in the log.
MODEL_FIGURES = {"explained": "share of the returns' variance that values explain"}
for row in AUXILIARY_MODELS.values():
    MODEL_FIGURES |= row.figures


def model_checks(subject: Subject) -> list[Check]:
    """Errors, buffers and counts of the models, by seat, over the last fifth."""
    late = subject.records[-max(1, round(0.2 * len(subject.records))) :]
    checks = []
    for name, about in MODEL_FIGURES.items():
        shown = [record[name] for record in late if name in record]
        if not shown or np.ndim(shown[0]) != 2 or np.shape(shown[0])[1] < 2:
            continue
        figures = np.mean(shown, axis=0)
        found = of_runs(figures)
        differs = found.chance < SURE and name != "explained"
        few = found.least >= SURE and name != "explained"
        means = ", ".join(f"{seat.mean:.3g}" for seat in found.seats)
        checks.append(
            Check(
                f"Models: {name}",
                f"By seat, {about}: {means} (chance {found.chance:.3g}).",
                "models-differ" if differs else None,
                found.as_json(),
                f"Train with --seeds {fewest_runs(figures.shape[1], SURE)} or more." if few else "",
                decides=False,  # it would only explain an ordering
            )
        )
    return checks


def rungs_of(config: TrainConfig, fewer: bool) -> dict[str, TrainConfig]:
    """The configuration as it is, and with more and more taken away."""
    rungs = {"as it is, again": config}
    bare = replace(config, search=replace(config.search, simulations=0))
    if config.search.simulations:
        rungs["without search"] = bare
    if "imagination" in config.parts:
        rungs["without imagination"] = _without(bare, "imagination", "world")
    plain = replace(_without(bare, *config.parts), memory=MemoryConfig())
    if config.parts or config.search.simulations or plain.memory != config.memory:
        rungs["plain PPO"] = plain
    shared = config.ppo.parameters == "shared"
    other = replace(plain.ppo, parameters="independent" if shared else "shared")
    rungs[f"plain PPO, {other.parameters} parameters"] = replace(plain, ppo=other)
    if fewer:
        kept = ("as it is, again", "plain PPO")
        rungs = {name: rung for name, rung in rungs.items() if name in kept}
    return rungs


def _without(config: TrainConfig, *parts: str) -> TrainConfig:
    """The configuration without some parts, and without what they were to begin from."""
    kept = tuple(part for part in config.parts if part not in parts)
    for name, settings in config.fitted.items():
        if name in parts:
            fresh: dict[str, Any] = {name: replace(settings, from_run=None)}
            config = replace(config, **fresh)
    return replace(config, parts=kept)


def climb(
    subject: Subject, fault: Fault, settings: SeatsSettings, on_step: OnStep
) -> dict[str, Ordering]:
    """Short runs with more and more taken away, all with fresh seeds: in which do seats differ?"""
    ladder = {}
    lanes = max(subject.laboratory.lanes, len(late_returns(subject.records)), 5)
    for number, (name, config) in enumerate(
        rungs_of(subject.config, settings.fewer_rungs).items(), start=1
    ):
        if fault.own and config.ppo.parameters == "shared":
            continue
        short = replace(config, steps=settings.ablation_steps, seeds=lanes)
        laboratory = made(short, subject.laboratory.make, lanes)
        fresh = (subject.config.seed + 1000 * number) % 2**31
        trained = of_preset(name, laboratory, fresh, on_step)
        ladder[name] = of_runs(late_returns(trained.records))
    return ladder


def ladder_check(returns: Ordering, ladder: dict[str, Ordering]) -> Check:
    """Where does the ordering begin? It must come again in fresh runs, and be gone in others."""
    ladder = {name: found for name, found in ladder.items() if len(found.samples)}
    if "as it is, again" not in ladder:
        return Check(
            "Ablation",
            "No episode ended in the last fifth of fresh short runs.",
            unknown="Look at a game with shorter episodes (--game.horizon).",
        )
    rows = "; ".join(
        f"{name}: gap {found.gap:.3f}, chance {found.chance:.3g}" for name, found in ladder.items()
    )
    again = ladder["as it is, again"].samples
    repeated = repeats(returns.samples, again)
    says = f"{rows}. "
    if repeated >= 0.05:
        says += (
            f"Fresh short runs do not repeat the ordering (chance {repeated:.3g}): it may have been"
            " chance, or come late in training."
        )
        figures = {"repeated": repeated}
        return Check("Ablation", says, figures=figures, unknown="Train with more --seeds.")
    for name, found in ladder.items():
        less = falls(returns.samples, again, found.samples)
        if found.samples is not again and less < 0.05:
            says += f"Fresh runs repeat it, and it is less {name} (chance {less:.3g})."
            return Check("Ablation", says, "part-orders", {"repeated": repeated, "gone": name})
    says += "Fresh runs repeat it, and it is there whatever is taken away, as far as one can tell."
    return Check("Ablation", says, figures={"repeated": repeated})
