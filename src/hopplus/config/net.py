"""Settings of networks."""

from dataclasses import dataclass
from typing import Literal

from hopplus.config.check import check, check_range, check_whole


@dataclass(frozen=True)
class NetConfig:
    """A network over views."""

    kind: Literal["mlp", "conv", "centred"] = "mlp"
    """Dense layers, a 3x3 convolution below them, or dense layers over the board as seen from the
    seat's own cell."""
    hidden: int = 64
    """Width of the dense layers."""
    layers: int = 2
    """How many dense layers."""
    channels: int = 16
    """Channels of the convolution."""

    def __post_init__(self) -> None:
        kinds = ("mlp", "conv", "centred")
        check(self.kind in kinds, "net.kind", self.kind, ", ".join(kinds))
        check_whole(self, "net.")
        for name, most in (("hidden", 8192), ("layers", 16), ("channels", 1024)):
            check_range(f"net.{name}", getattr(self, name), 1, most)
