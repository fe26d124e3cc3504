"""What a diagnosis ends in: checks, and a verdict in plain words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

State = Literal["fine", "fault", "unknown"]
NOT_KNOWN = "not-known"


class Illness(NamedTuple):
    """Something that can be wrong, and what to do about it."""

    area: str
    headline: str
    advice: str


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `fault` names the illness it shows, if it shows one; where it
    could not be told, `unknown` says what to do to find out."""

    title: str
    says: str
    fault: str | None = None
    figures: dict[str, Any] = field(default_factory=dict)
    unknown: str = ""
    decides: bool = True  # whether nothing can be called healthy while this is unknown

    @property
    def state(self) -> State:
        if self.fault:
            return "fault"
        return "unknown" if self.unknown else "fine"

    def as_json(self) -> dict[str, Any]:
        told = {"title": self.title, "says": self.says, "state": self.state, "fault": self.fault}
        return told | ({"unknown": self.unknown} if self.unknown else {}) | self.figures


@dataclass(frozen=True)
class Verdict:
    """The diagnosis: the name of what is wrong, `healthy`, or `not-known`; and what led to it."""

    name: str
    area: str
    headline: str
    evidence: str
    advice: str
    also: tuple[str, ...]  # other faults that were found, likely consequences of the first

    @property
    def healthy(self) -> bool:
        return self.name == "healthy"

    @property
    def state(self) -> State:
        if self.healthy:
            return "fine"
        return "unknown" if self.name == NOT_KNOWN else "fault"

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.name,
            "area": self.area,
            "headline": self.headline,
            "evidence": self.evidence,
            "advice": self.advice,
            "also": list(self.also),
        }


def verdict_of(checks: Sequence[Check], illnesses: dict[str, Illness], healthy: Illness) -> Verdict:
    """The first illness, in their own order, that any check shows: causes stand before effects.

    Without any it is healthy, unless a check that decides could not tell.
    """
    shown = {check.fault: check for check in reversed(checks) if check.fault}
    found = [name for name in illnesses if name in shown]
    if not found and (open_ := [one for one in checks if one.state == "unknown" and one.decides]):
        return Verdict(
            NOT_KNOWN,
            "not known",
            "no fault was found, but not all that counts could be told",
            open_[0].says,
            " ".join(dict.fromkeys(check.unknown for check in open_)),
            (),
        )
    if not found:
        return Verdict("healthy", healthy.area, healthy.headline, "", healthy.advice, ())
    first, *also = found
    known = illnesses[first]
    return Verdict(first, known.area, known.headline, shown[first].says, known.advice, tuple(also))
