"""One more update, looked into: whose play is learned from, how far steps go, what is logged."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from hopplus.config import flat
from hopplus.diagnosis.audit import DataAudit, TargetAudit, data_audit, replay_audit, target_audit
from hopplus.diagnosis.finding import Check, all_finite, join
from hopplus.diagnosis.step_audit import (
    BufferAudit,
    FitAudit,
    StepAudit,
    buffer_audits,
    fit_audits,
    log_audit,
    step_audit,
)
from hopplus.diagnosis.subject import Record, Subject, replica_of
from hopplus.learning.auxiliary.table import AUXILIARY_MODELS
from hopplus.learning.learner import Learner, Learning, Lesson

DIVERGED = (
    "Some figures are not numbers: look in the log where that begins, and take a smaller learning"
    " rate (--ppo.learning-rate)."
)

NO_ROWS = (
    "Where a seat has -, its rows are not of its own play, or have rewards that it did not get."
)
UNMATCHED = "Rows that are learned from cannot be matched with play: look whose play it is first."


def pipeline_checks(subject: Subject) -> list[Check]:
    """Of the first replica; what is wrong there is wrong in the code, and so in all."""
    learner, lab, after = subject.learner, subject.laboratory, subject.learning
    most = -(-learner.game.horizon // learner.config.unroll)
    for _ in range(1 + most):  # until an episode ends, or the log says nothing
        now = after
        after, record, lesson = lab.update(now, lab.as_it_is())
        if record["episodes"][0] > 0:
            break
    first = replica_of(lesson, 0)
    checks = [players_check(subject), *lesson_checks(learner, now, first)]
    checks.append(target_check(target_audit(learner, now, first, 0), mixing(subject)))
    log = log_audit(now, first.trajectory, record, 0)
    whose = f"; seats show those of {log.moved}" if log.moved else ""
    checks.append(
        Check(
            "The log",
            f"Returns of the episodes that ended, by seat, logged {_rounded(log.logged)}, added up"
            f" anew {_rounded(log.true)}{'' if log.right else whose}.",
            None if log.right else "wrong-log",
            log.as_json(),
            "" if record["episodes"][0] else "No episode ended: give it more games (--ppo.games).",
        )
    )
    checks += [buffer_check(buffer) for buffer in buffer_audits(learner, now, 0)]
    checks += counter_checks(subject.records)
    checks += [fit_check(fits) for fits in fit_audits(learner, now, 0)]
    return [*checks, *step_checks(step_audit(lab, now, lesson, 0))]


def players_check(subject: Subject) -> Check:
    """Who sits there, field by field."""
    players = subject.learner.seating.players
    settings = [_fields(player) for player in players]
    names = sorted({name for own in settings for name in own})
    differing = {
        name: [own.get(name) for own in settings]
        for name in names
        if len({own.get(name) for own in settings}) > 1
    }
    says = f"{len(names)} settings of each seat's player are the same for all seats."
    kinds = [player.name for player in players]
    if len(set(kinds)) > 1:
        seats = ", ".join(f"seat {seat}: {kind}" for seat, kind in enumerate(kinds))
        says = f"Seats have different players ({seats})."
    elif differing:
        shown = "; ".join(f"{name}: {', '.join(map(str, own))}" for name, own in differing.items())
        says = f"Seats have different players. {shown}"
    return Check(
        "Configuration, field by field",
        says,
        "different-players" if differing else None,
        {"compared": names, "differing": differing},
    )


def _fields(player: Any) -> dict[str, str]:
    """A player's settings by their names, as text."""
    named = {name: str(value) for name, value in flat(asdict(player)).items()}
    return {"kind": type(player).__name__, "name": player.name, **named}


def lesson_checks(learner: Learner, before: Learning, lesson: Lesson) -> list[Check]:
    """Whose play a lesson of the first replica is, and whose it is that was drawn to learn from."""
    checks = data_checks(data_audit(learner, lesson.trajectory, lesson))
    drawn = replay_audit(before, lesson, 0)
    return checks if drawn is None else [*checks, replay_check(learner.auxiliary.seats, drawn)]


def replay_check(sets: np.ndarray, drawn: Sequence[Sequence[int]]) -> Check:
    """Whether what was learned from, of what is kept, is every set's own."""
    wrong = [
        f"seat {_names(seats)} learned from what"
        f" {f'seat {_names(sets[whose].reshape(-1).tolist())} has' if whose else 'nobody has'} kept"
        for own, (seats, whose) in enumerate(zip(sets, drawn, strict=True))
        if own not in whose
    ]
    return Check(
        "The data: what is kept",
        f"{'; '.join(wrong)}." if wrong else "Of what is kept, every seat learned from its own.",
        "wrong-seat-data" if wrong else None,
        {"drawn": drawn},
    )


def data_checks(data: DataAudit) -> list[Check]:
    """Content hashes, rewards, and presence."""
    wrong = []
    for seats, taken in zip(data.seats, data.taken_from, strict=True):
        if taken != seats:
            whose = f"seat {', '.join(map(str, taken))}'s" if taken else "nobody's"
            wrong.append(f"seat {_names(seats)} learned from {whose} play")
    hashes = ", ".join(
        f"{_names(seats)}: {one}" + ("" if one == own else f" (own {own})")
        for seats, one, own in zip(data.seats, data.hashes, data.own_hashes, strict=True)
    )
    says = f"Hashes of what each seat learned from are those of its own play ({hashes})."
    credited = [
        f"seat {_names(seats)} was credited with seat {other}'s reward"
        for seats, other in zip(data.seats, data.credited, strict=True)
        if other is not None
    ]
    after_leaving = sum(data.after_leaving)
    gone = f"of which {after_leaving:,} are of seats that had left"
    return [
        Check(
            "The data: whose play",
            f"{'; '.join(wrong)}. Hashes {hashes}." if wrong else says,
            "wrong-seat-data" if wrong else None,
            dict(vars(data)),
            "" if all(data.rows) else "A seat did not play at all: give it more --ppo.games.",
        ),
        Check(
            "The data: whose reward",
            f"{'; '.join(credited)}." if credited else "No seat has another's rewards.",
            "wrong-reward" if credited else None,
        ),
        Check(
            "The data: presence",
            f"Seats were on the board at {join(data.presence, '.0%')} of all steps and learned from"
            f" {join(data.rows, ',')} rows, {gone if after_leaving else 'none after leaving'}.",
            "steps-after-leaving" if after_leaving else None,
        ),
    ]


def _names(seats: Sequence[int]) -> str:
    return "+".join(map(str, seats))


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 2) for value in values]


def buffer_check(buffer: BufferAudit) -> Check:
    """How much a part keeps of each seat, and how old it is; nothing in it is wrong by itself."""
    age = ", ".join("-" if math.isnan(age) else f"{age:.1f}" for age in buffer.age)
    return Check(
        f"Buffer: {buffer.part}",
        f"By seat, {join(buffer.fill, ',')} steps are kept, {age} updates old on average.",
        figures=dict(vars(buffer)),
        unknown="" if all(buffer.fill) else "Train until there is play of every seat to keep.",
        decides=False,
    )


def counter_checks(records: Sequence[Record]) -> list[Check]:
    """What is counted where it happens, over all that was logged."""
    return [*_sample_checks(records), *_goal_checks(records)]


def _sample_checks(records: Sequence[Record]) -> Iterator[Check]:
    """Samples of players that had left, of each part that counts them as it learns."""
    for row in AUXILIARY_MODELS.known():
        name = f"{row.prefix}/absent"
        counted = [record[name] for record in records if name in record]
        if not counted:
            continue
        absent = np.sum(counted, axis=(0, 1))  # over updates and replicas
        says = (
            f"So many samples of players that had left were learned from by the {row.prefix} models"
            f" of each seat: {join(absent, ',')}."
        )
        figures = {"absent": absent.tolist()}
        for hits, counts in (chart.by_action for chart in row.charts if chart.by_action):
            logged = [[one[hits], one[counts]] for one in records if hits in one]
            if not logged:
                continue
            hit, count = np.moveaxis(np.array(logged), 1, 0)  # [updates, ..., A] each
            rest = tuple(range(hit.ndim - 1))
            recall = hit.sum(axis=rest) / np.maximum(count.sum(axis=rest), 1)
            says += f" Recall by action, of players that were there: {join(recall, '.2f')}."
            figures["recall"] = recall.tolist()
        fault = "steps-after-leaving" if absent.any() else None
        yield Check(f"Samples: {row.prefix}", says, fault, figures)


def _goal_checks(records: Sequence[Record]) -> Iterator[Check]:
    """Goals by seat, counted in what the policy was given: does one seat lack what others have?"""
    for source in ("real", "imagined"):
        names = [f"{source}/goals", f"{source}/steps"]
        counted = [[record[name] for name in names] for record in records if names[0] in record]
        goals, steps = np.sum(counted, axis=(0, 2)) if counted else ([], [])  # [sets] each
        if not np.any(steps):
            continue
        shares = np.divide(goals, np.maximum(steps, 1))
        lacking = (shares < shares.max() / 2) & (steps > 0)
        yield Check(
            f"Goals: {source} steps",
            f"So many {source} steps of each seat came with a goal: {join(goals, ',')}, of"
            f" {join(steps, ',')}.",
            "goal-mismatch" if lacking.any() else None,
            {"goals": goals.tolist(), "steps": steps.tolist()},
        )


def fit_check(fits: FitAudit) -> Check:
    """Gradient steps of one part's models."""
    return Check(
        f"Updates: {fits.part}",
        f"Gradient steps of the {fits.part} models by seat: {join(fits.counts, ',')}; there should"
        f" be {fits.expected:,}.",
        "fewer-updates" if any(count != fits.expected for count in fits.counts) else None,
        dict(vars(fits)),
    )


def mixing(subject: Subject) -> bool:
    """Whether hindsight's goals are mixed into what the policy learns from."""
    until = max((part.relabels_until for part in subject.learner.auxiliary.parts), default=0.0)
    return until > 0 and int(subject.learning.updates) < until + 2


def target_check(targets: TargetAudit, mixing: bool) -> Check:
    """Values, log-probabilities and returns: those that the seats had and got?"""
    compared = {"returns": targets.returns}
    if not mixing:
        compared |= {"values": targets.value, "log-probabilities": targets.log_prob}
    off = [
        name
        for name, found in compared.items()
        if any(apart > targets.tolerance for apart in found)
    ]  # NaN is none: rows of others are another check's business
    shown = "; ".join(
        f"{name} {', '.join('-' if math.isnan(apart) else f'{apart:.2g}' for apart in found)}"
        for name, found in compared.items()
    )
    unmatched = any(map(math.isnan, targets.returns))
    return Check(
        "The data: what is learned",
        f"Largest difference from what was thought in play and added up anew, by seat: {shown}."
        + (f" {NO_ROWS}" if unmatched else ""),
        "wrong-targets" if off else None,
        dict(vars(targets)),
        "" if all_finite(*compared.values()) else UNMATCHED,
    )


def step_checks(steps: StepAudit) -> list[Check]:
    """Counts of gradient steps, and their size."""
    late = [count != steps.expected for count in steps.counts]
    still = [size < 1e-3 for size in steps.sizes]
    off = [abs(size - 1) > 0.02 for size in steps.sizes]
    few = any(late) or any(still)
    unequal = max(steps.unlike) > 0.01
    unknown = "" if all_finite(steps.sizes, steps.unlike) else DIVERGED
    return [
        Check(
            "Updates",
            f"Gradient steps by seat: {join(steps.counts, ',')}; there"
            f" should be {steps.expected:,}.",
            "fewer-updates" if few else None,
            {"counts": steps.counts, "expected": steps.expected},
        ),
        Check(
            "Learning rate",
            f"A step goes {join(steps.sizes, '.3f')} of the way that the configured learning"
            " rate says.",
            "step-size" if any(off) and not any(still) else None,
            {"sizes": steps.sizes},
            unknown,
        ),
        Check(
            "Equal treatment",
            "The same play, learned from in another seat's place, changes parameters by at most"
            f" {max(steps.unlike):.2g} of a step differently.",
            "unequal-learning" if unequal and not few and not any(off) else None,
            {"unlike": steps.unlike},
            unknown,
        ),
    ]
