"""What a diagnosis ends in: checks, a verdict in plain words, and figures for machines."""

import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

State = Literal["fine", "fault", "unknown"]
HEALTHY, NOT_KNOWN = "healthy", "not-known"
Evidence = TypeVar("Evidence")


class Illness(NamedTuple):
    """Something that can be wrong, and what to do about it."""

    area: str
    headline: str
    advice: str


Illnesses = Mapping[str, Illness]  # causes before effects; the last are healthy and not-known


def read_illnesses(diagnosis: str) -> dict[str, Illness]:
    """All that a diagnosis knows by name, from illnesses.toml, in the order of that file."""
    text = Path(__file__).with_name("illnesses.toml").read_text(encoding="utf-8")
    return {
        row["name"]: Illness(row["area"], row["headline"], row.get("advice", ""))
        for row in tomllib.loads(text)["illness"]
        if diagnosis in row["of"]
    }


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

    @property
    def text(self) -> str:
        """What it says and, where it could not tell, what to do to find out."""
        return f"{self.says} {self.unknown}" if self.state == "unknown" else self.says

    def as_json(self) -> dict[str, Any]:
        shown = {"title": self.title, "says": self.says, "state": self.state, "fault": self.fault}
        return shown | ({"unknown": self.unknown} if self.unknown else {}) | self.figures


Found = Check | Iterable[Check] | None


def run_checks(table: Sequence[Callable[[Evidence], Found]], evidence: Evidence) -> list[Check]:
    """Every check of a table, in its order. One that does not apply gives None; one that looks at
    several things of a kind, such as models, gives one for each."""
    checks: list[Check] = []
    for check in table:
        found = check(evidence)
        checks += [found] if isinstance(found, Check) else found or []
    return checks


@dataclass(frozen=True)
class Verdict:
    """The diagnosis: the name of what is wrong, `healthy`, or `not-known`; and what led to it."""

    name: str
    area: str
    headline: str
    evidence: str
    advice: str
    also: tuple[str, ...] = ()  # other faults that were found, likely consequences of the first

    @property
    def healthy(self) -> bool:
        return self.name == HEALTHY

    @property
    def state(self) -> State:
        if self.healthy:
            return "fine"
        return "unknown" if self.name == NOT_KNOWN else "fault"

    def as_json(self) -> dict[str, Any]:
        rest = dict(vars(self))
        return {"verdict": rest.pop("name"), **rest}


def conclude(checks: Sequence[Check], illnesses: Illnesses) -> Verdict:
    """The first illness, in their own order, that any check shows: causes stand before effects.

    Without any it is healthy, unless a check that decides could not tell.
    """
    shown = {check.fault: check for check in reversed(checks) if check.fault}
    if found := [name for name in illnesses if name in shown]:
        first, *also = found
        area, headline, advice = illnesses[first]
        return Verdict(first, area, headline, shown[first].says, advice, tuple(also))
    if open_ := [one for one in checks if one.state == "unknown" and one.decides]:
        area, headline, _ = illnesses[NOT_KNOWN]
        advice = " ".join(dict.fromkeys(check.unknown for check in open_))  # each once
        return Verdict(NOT_KNOWN, area, headline, open_[0].says, advice)
    area, headline, advice = illnesses[HEALTHY]
    return Verdict(HEALTHY, area, headline, "", advice)


@dataclass(frozen=True)
class Diagnosis:
    """What was looked at of a subject, and what it means."""

    subject: str
    checks: list[Check]
    verdict: Verdict

    @property
    def figures(self) -> dict[str, Any]:
        """All that is saved besides verdict and checks, by its name in JSON."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """Everything as JSON has it."""
        parts = {"subject": self.subject, **self.verdict.as_json(), **self.figures}
        return to_json(parts | {"checks": self.checks})


def to_json(tree: Any, digits: int | None = None) -> Any:
    """The same as JSON has it: records by their fields, or as they say themselves (`as_json`);
    arrays as lists; null for every number that is none, for which JSON has no other word. Only so
    many digits of a number are kept, if `digits` are given."""
    match tree:
        case dict():
            return {str(name): to_json(value, digits) for name, value in tree.items()}
        case list() | tuple():
            return [to_json(value, digits) for value in tree]
        case np.ndarray() | np.generic():
            return to_json(tree.tolist(), digits)
        case float() if not math.isfinite(tree):
            return None
        case float() if digits is not None:
            short = float(f"{tree:.{digits}g}")
            return int(short) if short.is_integer() and abs(short) < 2**53 else short
    if hasattr(tree, "as_json"):  # estimates and other records know their own names for things
        return to_json(tree.as_json(), digits)
    if is_dataclass(tree):
        return {part.name: to_json(getattr(tree, part.name), digits) for part in fields(tree)}
    return tree


def all_finite(*values: Any) -> bool:
    """Whether every number in these lists is one."""
    return all(bool(np.isfinite(each).all()) for each in values)


def join(values: Iterable[float], form: str) -> str:
    """Numbers in a sentence, in one format."""
    return ", ".join(format(value, form) for value in values)
