"""Best responses to lineups: as many players as there are lineups, each of whom has learned among
one of them alone. Those of each lineup are kept by themselves, so that some may be learned now and
others at another time."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.evaluation.kept import find_kept, keep
from hopplus.evaluation.reference_players import OnUpdate, ReferencePlayers
from hopplus.evaluation.trials import Names


@dataclass(frozen=True)
class BestResponses(ReferencePlayers):
    """To which lineups; whoever else of `kinds` may be seated changes nothing."""

    @property
    def about(self) -> dict[str, Any]:
        return {**super().about, "players": "best responses"}

    @property
    def total_steps(self) -> int:
        """Environment steps of everyone who learns."""
        return len(self.lineups) * self.steps_of_each

    def kept(self, folder: Path) -> dict[Names, np.ndarray]:
        """[S, E] returns by episode among each lineup whose best responses were learned before."""
        found = {one: find_kept(folder, self._alone(one).about) for one in self.lineups}
        return {one: np.array(each["returns"]) for one, each in found.items() if each}

    def learn(self, folder: Path, on_update: OnUpdate) -> None:
        """Learn them, all in one program, and keep what they get."""
        returns = self.best_responses(on_update)
        for place, lineup in enumerate(self.lineups):
            keep(folder, self._alone(lineup).about, {"returns": returns[:, place].tolist()})

    def _alone(self, lineup: Names) -> "BestResponses":
        return replace(self, lineups=[lineup])
