"""`hopplus certify`: does it matter in this game whom one plays with?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.api.studies import certify
from hopplus.cli.paged import asked, show
from hopplus.cli.reading.devices import Devices
from hopplus.config import GameConfig, NetConfig, PPOConfig, default_game


@dataclass(frozen=True)
class Certify:
    """Measure the value of knowing your co-players: oracle against blind PPO, for every lineup.

    Where it is zero, no goal inference can show a gain.
    """

    game: GameConfig = field(default_factory=default_game)
    net: NetConfig = field(default_factory=NetConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    steps: int = 1_000_000
    """Environment steps for which the players of each seed learn."""
    trial: int = 5
    """Episodes that they learn against the same co-players, before another is drawn."""
    kinds: str | None = None
    """Who is drawn for each seat of the others while they learn, as cooperator|grudger; the game's
    scripted players when not given, with conditional in --against those too that it adds, and with
    population alone the families."""
    against: tuple[str, ...] = ("all",)
    """The lineups to be measured among, one name per other seat: stag,stag,hare
    runs/a@1,switch,hare ...; all for every mixture of --kinds, conditional with those too whose
    acts depend on what happened in the trial (trusting and wary in Stag-Hunt), population for each
    family in all seats."""
    best_response: bool = False
    """Also learn a best response to each lineup, by a player of its own; all in one program."""
    seeds: int = 3
    """Independent runs."""
    seed: int = 0
    """The first seed; the others follow it."""
    episodes: int = 4096
    """Episodes that each player is measured by, for each lineup."""
    out: Path = Path("references")
    """Folder that keeps what was measured: the same command reads it again."""
    on: Annotated[Devices, tyro.conf.arg(name="")] = field(default_factory=Devices)
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        with self.on.used():
            found = certify(**asked(self, "on"))
        return show(found.page, as_json=self.json, html=found.place)
