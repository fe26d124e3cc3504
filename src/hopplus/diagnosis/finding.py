"""What a diagnosis ends in: checks, and a verdict in plain words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Illness(NamedTuple):
    """Something that can be wrong, and what to do about it."""

    area: str
    headline: str
    advice: str


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `fault` names the illness it shows, if it shows one."""

    title: str
    says: str
    fault: str | None = None
    figures: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {"title": self.title, "says": self.says, "fault": self.fault, **self.figures}


@dataclass(frozen=True)
class Verdict:
    """The diagnosis: the name of what is wrong, or `healthy`; and everything that led to it."""

    name: str
    area: str
    headline: str
    evidence: str
    advice: str
    also: tuple[str, ...]  # other faults that were found, likely consequences of the first

    @property
    def healthy(self) -> bool:
        return self.name == "healthy"

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
    """The first illness, in their own order, that any check shows: causes stand before effects."""
    shown = {check.fault: check for check in reversed(checks) if check.fault}
    found = [name for name in illnesses if name in shown]
    if not found:
        return Verdict("healthy", healthy.area, healthy.headline, "", healthy.advice, ())
    first, *also = found
    known = illnesses[first]
    return Verdict(first, known.area, known.headline, shown[first].says, known.advice, tuple(also))
