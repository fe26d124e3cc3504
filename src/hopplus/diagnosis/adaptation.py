"""Why does a player not adapt? Where it is lost who the others are, from what was watched of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hopplus.diagnosis.finding import Check, Diagnosis, Found, conclude, read_illnesses, run_checks
from hopplus.diagnosis.foresight import Foresight
from hopplus.diagnosis.introspection import Introspection
from hopplus.evaluation.statistics import estimate

# What players that adapt infer tells 0.6 of three kinds or more, that of one that does not at most
# half, because where somebody goes says a little about who it is: a quarter of the way from
# chance to certainty lies between them (docs/diagnosis.md).
READ = 0.25
# How much is predicted without knowing anyone depends on the game: more than half of what can be,
# beyond guessing. So models are held against themselves, with what was inferred among other
# co-players: from there to the best possible those of players that adapt come 0.4 of the way or
# more, those that take each for the next 0.2 at most, those that do not listen nowhere.
PREDICTED = 0.25
STILL = 0.01  # total variation: one action of a hundred is another
MORE = 1.1  # times as far as among the same co-players, whose difference is noise
ENOUGH_TRIALS = 2160  # that the command takes by default

ILLNESSES = read_illnesses("adaptation")
MORE_SEEDS = "Seeds differ too much to tell: train the run with more --seeds."
MORE_TRIALS = f"Take more --trials ({ENOUGH_TRIALS:,} by default)."


@dataclass(frozen=True)
class AdaptationDiagnosis(Diagnosis):
    """Everything that was seen, and what it means."""

    seeds: Sequence[Introspection]  # [S] one of each seed
    foreseen: Sequence[Foresight] = ()  # [S] the same, where other co-players were asked for

    @property
    def figures(self) -> dict[str, Any]:
        first = self.seeds[0]
        names = ("probe", "accuracy", "best", "misled", "moved_alike", "moved_other")
        return {
            "times": first.times,
            "lineups": first.lineups,
            "chance": first.chance,
            **{name: [getattr(one, name) for one in self.seeds] for name in names},
            **({"foreseen": [one.as_json() for one in self.foreseen]} if self.foreseen else {}),
        }


def diagnose_adaptation(
    subject: str, seeds: Sequence[Introspection], foreseen: Sequence[Foresight] = ()
) -> AdaptationDiagnosis:
    """What the three measures of a player [S], one of each seed, mean. What it foresees of others
    is told and not judged: how much can be known of a stranger, nobody knows."""
    checks = run_checks(CHECKS, seeds)
    # Causes stand before effects: while one is not known, what comes after it says little.
    doubts = [place for place, check in enumerate(checks) if check.state == "unknown"]
    decided = checks[: doubts[0] + 1] if doubts else checks
    verdict = conclude(decided, ILLNESSES)
    later = [check.fault for check in checks[len(decided) :] if check.fault]
    verdict = replace(verdict, also=(*verdict.also, *later))
    return AdaptationDiagnosis(subject, checks, verdict, seeds, foreseen)


def check_inference(found: Sequence[Introspection]) -> Check:
    """Can it be read from what it infers who the others are? At the best moment of the last
    episode."""
    title, first = "Inference", found[0]
    if not any(one.infers for one in found):
        says = "Nothing about the others is inferred that the policy or a model could use."
        return Check(title, says, "no-inference")
    read = np.array([one.probe[-1] for one in found])  # [S, times]
    known = np.isfinite(read).all(axis=0)
    if not known[np.array(first.times) > 0].any():  # at first nothing may have been seen yet
        says = "There are too few trials to fit a probe, of every kind of co-player."
        return Check(title, says, unknown=MORE_TRIALS)
    place = int(np.argmax(np.where(known, np.nan_to_num(read).mean(axis=0), -1.0)))
    wanted = first.chance + READ * (1 - first.chance)
    side = compare(read[:, place], wanted)
    says = (
        f"In episode {len(first.probe)} a linear probe reads {estimate(read[:, place])} of the"
        f" others' kinds from what it infers, {first.times[place]} steps in; chance is"
        f" {first.chance:.3f}, and above {wanted:.3f} it counts as known."
    )
    figures = {"read": read[:, place], "wanted": wanted}
    return _judge(title, says, "lost-in-inference", figures, side)


def check_models(found: Sequence[Introspection]) -> Check | None:
    """How much do its models predict of what the others do because of who they are?"""
    title = "Opponent model"
    if not any(one.infers and one.models for one in found):
        return None
    right, best, misled = (
        np.array([np.nanmean(getattr(one, name)) if one.models else np.nan for one in found])
        for name in ("accuracy", "best", "misled")
    )
    room = best - misled
    if not np.isfinite(right).all() or (room < 0.02).any():
        says = "What the others do is predicted as well whoever they are taken for."
        return Check(title, says, unknown="Watch it in a game whose players act differently.")
    share = (right - misled) / room
    side = compare(share, PREDICTED)
    says = (
        f"The models predict {estimate(right)} of the others' actions, with what is inferred among"
        f" other co-players {misled.mean():.3f}; the best possible is {best.mean():.3f}:"
        f" {share.mean():.0%} of the way."
    )
    figures = {"right": right, "best": best, "misled": misled}
    return _judge(title, says, "lost-in-models", figures, side)


def check_policy(found: Sequence[Introspection]) -> Check | None:
    """Does the policy move with what is inferred, and more so among other co-players?"""
    if not any(one.infers for one in found):
        return None
    alike = np.array([one.moved_alike[-1] for one in found])
    other = np.array([one.moved_other[-1] for one in found])
    title = "Policy"
    if not np.isfinite([alike, other]).all():
        says = "No two games were at the same step, so that their policies cannot be compared."
        return Check(title, says, unknown=MORE_TRIALS)
    moves, listens = compare(other, STILL), compare(other - MORE * alike, 0.0)
    says = (
        f"With what is inferred among other co-players the policy moves by {estimate(other)} (total"
        f" variation), with what is inferred in another game among the same ones by"
        f" {estimate(alike)}."
    )
    figures = {"moved_other": other, "moved_alike": alike}
    return _judge(title, says, "lost-in-policy", figures, moves, listens)


def _judge(title: str, says: str, fault: str, figures: dict[str, Any], *sides: str) -> Check:
    """Wrong if anything is below what is wanted; open if any side cannot be told."""
    wrong = fault if "below" in sides else None
    return Check(title, says, wrong, figures, "" if all(sides) else MORE_SEEDS)


def compare(values: np.ndarray, wanted: float) -> Literal["above", "below", ""]:
    """On which side of a figure the mean of values [S] of seeds is, by its 95% interval; nothing if
    that cannot be told. A single player is taken at its word: its trials are many."""
    known = estimate(values)
    margin = known.half_width if len(values) > 1 else 0.0
    if known.mean - margin > wanted:
        return "above"
    return "below" if known.mean + margin <= wanted else ""


CHECKS: tuple[Callable[[Sequence[Introspection]], Found], ...] = (
    check_inference,
    check_models,
    check_policy,
)
