"""Settings of a policy's memory."""

from dataclasses import dataclass
from typing import Literal

from hopplus.config.check import check, check_range, check_whole

KINDS = ("none", "episode", "trial")


@dataclass(frozen=True)
class MemoryConfig:
    """A recurrent memory of what a seat has seen, which its policy is told."""

    kind: Literal["none", "episode", "trial"] = "none"
    """None, kept within an episode, or kept across the episodes of a trial against the same
    co-players."""
    size: int = 64
    """Numbers of the memory."""

    def __post_init__(self) -> None:
        check_whole(self, "memory.")
        check(self.kind in KINDS, "memory.kind", self.kind, ", ".join(KINDS))
        check_range("memory.size", self.size, 1, 8192)
