"""`hopplus adapt`: how fast does a player understand new co-players?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from hopplus.api.studies import adapt
from hopplus.cli.paged import asked, show
from hopplus.cli.reading.devices import Devices
from hopplus.config import GameConfig, SearchConfig, default_game
from hopplus.devices import check_rows


@dataclass(frozen=True)
class Adapt:
    """Play trials among fixed co-players and show the focal player's return by episode."""

    subject: Annotated[tuple[str, ...], tyro.conf.Positional]
    """A run, whose player is tried in each of its seeds (runs/a#1 for one of them, runs/a@2 for the
    player of seat 2 wherever it sits); exported players, each as a seed; or a preset, which first
    learns against all mixtures."""
    against: tuple[str, ...] = ("all",)
    """The others, from the next seat on, one name per seat: stag,stag,hare noisy-hare:0.2,stag,hare
    runs/a@1,runs/a#1~0.5@2,switch ...; learn for one who goes on learning too (online only); all
    for every mixture of the game's scripted players, conditional with those too whose acts depend
    on what happened in the trial, population for each family in all seats."""
    episodes: int | None = None
    """Episodes of a trial; five when not given."""
    protocol: Literal["episodes", "hop"] = "episodes"
    """Returns by episode; or HOP's protocol, 2,400 steps of which the last 600 count."""
    learning: Literal["none", "online"] = "none"
    """Nothing is learned on the way, so that a player has its inference, belief and memory alone;
    or it goes on learning as it did in its run, in each trial anew."""
    caution: float | None = None
    """Standard errors by which a policy that was learned online must have shown to be better than
    the trained one before it plays; 1 when not given, and 0 plays at once what was learned."""
    learning_rate: Annotated[float | None, tyro.conf.arg(name="ppo.learning-rate")] = None
    """Learning rate of the policy while it learns online; that of the run when not given."""
    trials: int = 1024
    """Trials against each lineup, for each seat and seed."""
    seat: int | None = None
    """Where it sits; each seat in turn when not given."""
    search: SearchConfig = field(default_factory=SearchConfig)
    game: GameConfig = field(default_factory=default_game)
    steps: int | None = None
    """Environment steps for which a preset learns first; its own when not given."""
    seeds: int = 5
    """Seeds of a preset."""
    runs: Path = Path("runs")
    """The folder for the run of a preset."""
    references: Path | None = None
    """A file that `hopplus certify` has kept, to tell the share of the gap that is closed."""
    out: Path | None = None
    """The page; when not given, adaptation.html in the run, or here."""
    seed: int = 0
    """Seed of everything random."""
    on: Annotated[Devices, tyro.conf.arg(name="")] = field(default_factory=Devices)
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        with self.on.used():
            check_rows("--trials", self.trials)
            found = adapt(self.subject, **asked(self, "subject", "out", "on"))
        return show(found.page, as_json=self.json, html=self.out or found.place)
