"""Settings of networks."""

from dataclasses import dataclass
from typing import Literal

from hopplus.config.check import check_fields


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
        check_fields(self, "net.", hidden=(1, 8192), layers=(1, 16), channels=(1, 1024))
