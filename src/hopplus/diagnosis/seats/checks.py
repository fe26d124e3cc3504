"""Why do returns depend on the seat number? What is looked at: from the game to the log, one
suspect after another."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hopplus.diagnosis.faults import Fault
from hopplus.diagnosis.finding import (
    Check,
    Diagnosis,
    Found,
    conclude,
    join,
    read_illnesses,
    run_checks,
)
from hopplus.diagnosis.pipeline import pipeline_checks
from hopplus.diagnosis.seats.ablation import (
    AGAIN,
    SIGNIFICANT,
    check_ablation,
    run_ablation,
)
from hopplus.diagnosis.seats.fairness import Symmetry, compare_placement, compare_turns
from hopplus.diagnosis.seats.ordering import (
    Ordering,
    compare_direction,
    compare_runs,
    estimate_episodes,
    estimate_runs,
    find_fewest_runs,
)
from hopplus.diagnosis.seats.permutation import compare_permuted
from hopplus.diagnosis.subject import OnStep, Subject, last_fifth, late_returns, return_curves
from hopplus.games.game import Game
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS

# Many figures are compared, so that a p-value of one in a hundred would often be chance.
SURE = 0.001  # p-value below which seats of a game or of models are said to differ
REAL = 0.01  # p-value below which an ordering of returns is taken to be real
WORTH = 0.1  # a gap between seats that one would want to know of
UNLIKE = 0.05  # least spread of a model's figures, as a share of their mean, that could matter
SHARE = 0.2  # the same of any game's returns, as a share of their spread: a small effect (Cohen)
SEEDS = 5  # that are advised, if they are enough

ILLNESSES = read_illnesses("seats")


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
class SeatsEvidence:
    """What the checks look at; worked out when the first of them asks."""

    subject: Subject
    fault: Fault
    settings: SeatsSettings
    on_step: OnStep

    @property
    def game(self) -> Game:
        return self.subject.learner.game

    @cached_property
    def returns(self) -> Ordering:
        """Of the runs, over the last fifth of training."""
        return compare_runs(late_returns(self.subject.records))

    @cached_property
    def symmetry(self) -> Symmetry:
        return compare_turns(self.game, self.settings.seed, self.settings.symmetric)

    @cached_property
    def ladder(self) -> dict[str, Ordering]:
        """By what was taken away; empty where there is no ordering to explain."""
        if not self.settings.ablate or self.returns.p_value >= REAL:
            return {}
        steps, fewer = self.settings.ablation_steps, self.settings.fewer_rungs
        return run_ablation(self.subject, self.fault, steps, fewer, self.on_step)

    @property
    def passing(self) -> bool:
        """Whether fresh runs as long as these do not repeat their ordering, and it is not real in
        all of them together: one healthy subject in a hundred has one by chance. Shorter runs might
        end before it comes."""
        again = self.ladder[AGAIN].samples if self.ladder else np.zeros((0, 0))
        if not len(again) or self.settings.ablation_steps < self.subject.config.steps:
            return False
        together = compare_runs(np.concatenate([self.returns.samples, again]))
        repeated = compare_direction(self.returns.samples, again) < SIGNIFICANT
        return not repeated and together.p_value >= REAL


def check_returns(evidence: SeatsEvidence) -> Check:
    """Is there an ordering at all?"""
    found = check_order(evidence.returns)
    evidence.on_step("looked at returns")
    if found.fault and evidence.passing:
        says = (
            f"{found.says} But fresh runs as long as these do not repeat it, and all together do"
            " not differ: it was chance."
        )
        return replace(found, says=says, fault=None)
    return found


def check_order(returns: Ordering) -> Check:
    """Do seats differ over runs, and could so few runs tell?"""
    title, figures = "Is it real?", returns.as_json()
    seeds, seats = returns.samples.shape
    if not seeds:
        return Check(
            title,
            "No episode ended in the last fifth of training: there are no returns to compare.",
            figures=figures,
            unknown="Train for more --steps.",
        )
    means = ", ".join(f"seat {seat}: {found}" for seat, found in enumerate(returns.seats))
    needed = estimate_runs(returns.samples, WORTH, REAL)
    figures |= {"runs_for_worth": needed}
    enough = f"about {needed} runs" if needed else "more runs than can be predicted"
    power = f"To see one seat off by {WORTH} takes {enough}."
    if returns.least >= REAL:
        return Check(
            title,
            f"{seeds} run{'s' * (seeds > 1)} cannot tell, whatever comes out ({means}): take more"
            f" --seeds. {power}",
            figures=figures,
            unknown="To know whether returns are ordered, train with"
            f" --seeds {max(SEEDS, find_fewest_runs(seats, REAL))} or more.",
        )
    real = returns.p_value < REAL
    meaning = "so these do differ" if real else "no sign of an ordering"
    return Check(
        title,
        f"Over {seeds} runs: {means}. Seat effect: permutation test, p ="
        f" {returns.p_value:.3g}: {meaning}. {power}",
        "unexplained" if real else None,
        figures,
    )


def check_rules(evidence: SeatsEvidence) -> Check:
    """Do the rules treat seats alike, exactly?"""
    found = evidence.symmetry
    evidence.on_step("turned the board")
    title, figures = "The game: rules", dict(vars(found))
    if not found.known:
        return Check(
            title,
            f"Boards cannot be turned, because a seat does not see {evidence.game.hidden}.",
            figures=figures,
            unknown="Try the game with settings under which a seat sees all that counts.",
            decides=False,  # what comes of playing it does
        )
    if found.different:
        says = (
            f"{found.different:,} of {found.steps:,} steps do something else when the same board"
            f" has its seats renamed. For example:\n{found.example}"
        )
        return Check(title, says, "unequal-game", figures)
    says = (
        f"{found.steps:,} steps of random play, each on every turn of its board: every seat is"
        " treated as every other."
    )
    return Check(title, says, figures=figures)


def check_play(evidence: SeatsEvidence) -> Iterator[Check]:
    """What comes of playing the game, by name and by place: one check for each kind of player."""
    settings, turning = evidence.settings, evidence.symmetry.known
    for player in ("random", *evidence.game.targets):
        played = compare_placement(evidence.game, player, settings.seed, settings.episodes, turning)
        evidence.on_step(f"played {player}")
        name, place = played.by_name, played.by_place
        off = name.p_value < SURE or (place is not None and place.p_value < SURE)
        dealt = ", every board dealt to every turn of the seats" if place else ""
        by_place = f"; by place: p-value {place.p_value:.3g}" if place else ""
        yield Check(
            f"The game: {player} players in all seats",
            f"{played.episodes:,} episodes{dealt}. By name: {', '.join(map(str, name.seats))}"
            f" (p-value {name.p_value:.3g}){by_place}.",
            "unequal-game" if off else None,
            dict(vars(played)),
            "" if off else advise_episodes(name, played.episodes // len(name.samples)),
            decides=not turning,  # rules that are known to be equal need no playing
        )


def check_permuted(evidence: SeatsEvidence) -> Iterator[Check]:
    """Do returns follow the learned player or its place? By their policies, without any search."""
    learner, settings = evidence.subject.learner, evidence.settings
    if len(learner.seats) < evidence.game.seats or learner.actor.shares_params:
        return  # nobody to change places with, or nobody else
    players = evidence.subject.learning.params[learner.learning]
    given = (learner.actor, players, settings.seed, settings.episodes)
    found = compare_permuted(evidence.game, *given)
    evidence.on_step("let learned players change places")
    player, place, runs = found.by_player, found.by_place, len(found.by_player.samples)
    follows = "so returns follow it" if player.p_value < REAL else "no sign that returns follow it"
    told = f"Over {runs} runs, p-value {player.p_value:.3g}: {follows}."
    if player.least >= REAL:
        told = f"The first run's players differ with p-value {found.apart.p_value:.3g}; so few runs"
        told += " cannot tell whether those of other runs do in the same order."
    title = "Learned players in any order"
    yield Check(
        f"{title}: by player",
        f"{found.episodes:,} episodes. By the seat that the player learned in:"
        f" {', '.join(map(str, player.seats))}. {told}",
        figures=player.as_json() | {"first_run_p_value": found.apart.p_value},
        decides=False,  # why it is so, others tell
    )
    off = place.p_value < SURE
    yield Check(
        f"{title}: by place",
        f"By the place that it sits in: {', '.join(map(str, place.seats))} (p-value"
        f" {place.p_value:.3g}).",
        "unequal-game" if off else None,
        place.as_json(),
        decides=False,
    )


def advise_episodes(played: Ordering, each: int = 1) -> str:
    """What to do to know whether seats differ, if so many samples, of `each` so many episodes,
    cannot tell."""
    if len(played.samples) < 2:
        return "Too few episodes ended in time: say with --episodes how many to play."
    if np.ptp(played.samples) == 0:
        return "Nobody gains anything in such play: try the game with players that do."
    needed = estimate_episodes(played.samples, SHARE, SURE)
    if needed and len(played.samples) >= needed:
        return ""
    enough = f"about {needed * each:,}" if needed else "more than a million"
    return (
        f"To see one seat off by {SHARE:g} of the spread of returns takes {enough} episodes: take"
        " more --episodes."
    )


def check_pipeline(evidence: SeatsEvidence) -> list[Check]:
    """One more update, looked into."""
    found = pipeline_checks(evidence.subject)
    evidence.on_step("looked at what each seat learns from")
    return found


def check_models(evidence: SeatsEvidence) -> Iterator[Check]:
    """Errors, buffers and counts of the models, by seat, over the last fifth."""
    late = last_fifth(evidence.subject.records)
    figured = {"explained": "share of the returns' variance that values explain"}
    for row in AUXILIARY_MODELS.known():
        figured |= row.figures
    for name, about in figured.items():
        shown = [record[name] for record in late if name in record]
        if not shown or np.ndim(shown[0]) != 2 or np.shape(shown[0])[1] < 2:
            continue
        figures = np.mean(shown, axis=0)
        found = compare_runs(figures)
        # Effects of how a seat plays: who stays longer on the board has more to learn from.
        cause = name != "explained" and not name.endswith("/fill")
        spread = np.ptp([seat.mean for seat in found.seats])
        worth = spread > UNLIKE * abs(figures.mean())  # models of their own are never quite alike
        few = f"Train with --seeds {find_fewest_runs(figures.shape[1], SURE)} or more."
        yield Check(
            f"Models: {name}",
            f"By seat, {about}: {join((seat.mean for seat in found.seats), '.3g')}"
            f" (p-value {found.p_value:.3g}).",
            "models-differ" if cause and worth and found.p_value < SURE else None,
            found.as_json(),
            few if cause and found.least >= SURE else "",
            decides=False,  # it would only explain an ordering
        )


def check_parts(evidence: SeatsEvidence) -> Check | None:
    """Is an ordering that is real gone without some part?"""
    if not evidence.ladder:
        return None
    found = check_ablation(evidence.returns, evidence.ladder)
    if evidence.passing:
        return replace(found, says="Fresh runs do not repeat the ordering.", unknown="")
    return found


CHECKS: tuple[Callable[[SeatsEvidence], Found], ...] = (
    check_returns,
    check_rules,
    check_play,
    check_permuted,
    check_pipeline,
    check_models,
    check_parts,
)


@dataclass(frozen=True)
class SeatsDiagnosis(Diagnosis):
    """Everything that was seen, and what it means."""

    returns: Ordering  # of the runs, over the last fifth of training
    curves: np.ndarray  # [U, S, N] returns of the episodes that ended in each update
    ladder: dict[str, Ordering]  # by what was taken away

    @property
    def figures(self) -> dict[str, Any]:
        return {"returns": self.returns, "ladder": self.ladder}


def diagnose_seats(
    subject: Subject, fault: Fault, settings: SeatsSettings, on_step: OnStep
) -> SeatsDiagnosis:
    """Run all checks on a subject; `fault` is what was built into it, if anything."""
    seen = SeatsEvidence(subject, fault, settings, on_step)
    checks = run_checks(CHECKS, seen)
    verdict = conclude(checks, ILLNESSES)
    curves = return_curves(subject.records)
    return SeatsDiagnosis(subject.name, checks, verdict, seen.returns, curves, seen.ladder)
