"""How numbers are written, in tables and sentences."""

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


def counted(number: int, what: str) -> str:
    """`1 seed`, `5 seeds`."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def doubt_seeds(seeds: int) -> str | None:
    """What to say of intervals over so few seeds, if anything."""
    if seeds == 1:
        return "one seed: no interval"
    if seeds < ENOUGH:
        return f"⚠ below {ENOUGH} seeds, intervals say little: {seeds} are too few to tell"
    return None
