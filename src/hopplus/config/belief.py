"""Settings of beliefs about what the others are after."""

from dataclasses import dataclass

from hopplus.config.check import check, check_above, check_range, check_whole


@dataclass(frozen=True)
class BeliefConfig:
    """A belief over the kinds of things on the board, about each other seat."""

    discount: float = 0.98
    """What a catch seen earlier counts beside the next one."""
    floor: float = 0.05
    """Chance that the others do anything at all, so that no one act decides."""
    across: bool = True
    """Begin an episode with what was seen in those before, of the same trial if the others are
    drawn for each."""

    none: bool = False
    """A further goal beside the kinds of things: none of them, of those who take nothing."""

    def __post_init__(self) -> None:
        check_whole(self, "belief.")
        check_range("belief.discount", self.discount, 0, 1)
        check_above("belief.floor", self.floor, 0, 1)
        check(isinstance(self.across, bool), "belief.across", self.across, "yes or no")
        check(isinstance(self.none, bool), "belief.none", self.none, "yes or no")
