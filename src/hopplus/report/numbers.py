"""How numbers are written, in tables and sentences, for people and for programs."""

import math
from typing import Any

import numpy as np

from hopplus.evaluation.statistics import ENOUGH


def said(value: Any, digits: str = ".3f", absent: str = "") -> str:
    """A value as people read it; `digits` is for plain numbers, as Python formats them."""
    match value:
        case None:
            return absent
        case np.generic():
            return said(value.item(), digits, absent)
        case bool() | str():
            return str(value)
        case int():
            return f"{value:,}"
        case float() if math.isnan(value):
            return absent
        case float():
            return f"{value:{digits}}"
        case tuple() | list():
            return ", ".join(said(one, digits, absent) for one in value) or absent
    return str(value)  # estimates and intervals write themselves


def plain(tree: Any, digits: int | None = None) -> Any:
    """The same as JSON has it: lists for arrays, null for what is no number, and only so many
    digits if a number is given."""
    match tree:
        case dict():
            return {str(name): plain(value, digits) for name, value in tree.items()}
        case np.ndarray() | np.generic():
            return plain(tree.tolist(), digits)
        case list() | tuple():
            return [plain(value, digits) for value in tree]
        case float() if not math.isfinite(tree):
            return None
        case float() if digits is not None:
            return _shortened(tree, digits)
    # Estimates, intervals and other records know their own names for things.
    return plain(tree.as_json(), digits) if hasattr(tree, "as_json") else tree


def _shortened(number: float, digits: int) -> float:
    short = float(f"{number:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def counted(number: int, what: str) -> str:
    """`1 seed`, `5 seeds`."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def doubt_seeds(seeds: int) -> str | None:
    """What to say of intervals over so few seeds, if anything."""
    if seeds == 1:
        return "one seed: no interval can be told"
    if seeds < ENOUGH:
        return f"⚠ below {ENOUGH} seeds, intervals say little: {seeds} are too few to tell"
    return None
