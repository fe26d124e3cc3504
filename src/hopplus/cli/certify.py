"""`hopplus certify`: does it matter in this game whom one plays with?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.cli.paged import show
from hopplus.cli.reading.devices import Devices
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, GameConfig, NetConfig, PPOConfig, TrainConfig, default_game
from hopplus.evaluation.adaptation import lineups, own_name
from hopplus.evaluation.certificate import Certificate
from hopplus.games import make_game
from hopplus.games.game import board_size
from hopplus.learning.from_run import find_background_players
from hopplus.play.seating import options
from hopplus.players.scripted import mixed_names
from hopplus.report.pages.adaptation import certificate_page
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Certify:
    """Measure what being told whom one faces brings, among every lineup.

    Where it brings nothing, no inference of goals can show a gain.
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
        check_options(steps=self.steps, seeds=self.seeds, episodes=self.episodes)
        check_options(seed=self.seed)
        config = TrainConfig(
            game=self.game,
            net=self.net,
            ppo=self.ppo,
            steps=self.steps,
            seeds=self.seeds,
            seed=self.seed,
            trial=self.trial,
        )
        game = make_game(self.game)
        named = options(self.kinds) if self.kinds is not None else []
        kinds = tuple(dict.fromkeys(own_name(name, 1, game) for name in named))
        if not kinds and "conditional" in self.against:
            kinds = mixed_names(game, "conditional")
        wanted = lineups(self.against, game, kinds)
        if not kinds and set(self.against) == {"population"}:
            kinds = mixed_names(game, "population")
        everyone = [*(kinds or mixed_names(game)), *(name for one in wanted for name in one)]
        if len(set(everyone)) < 2:
            whose = "--kinds has" if kinds else f"{game.name} has"
            raise ConfigError(
                f"whom one faces can only matter among several, and {whose} {everyone[0]} players"
                " alone: name others in --against"
            )
        background = find_background_players(everyone)
        asked = Certificate(config, wanted, background, self.episodes, kinds, self.best_response)
        path = asked.kept_at(self.out)
        with (
            self.on.used(config),
            Progress("certifying", asked.total_steps, "steps", where=path) as progress,
        ):
            found = asked.measure(self.out, progress.advance)
        title = f"{board_size(game)}, {self.seeds} seeds"
        return show(
            certificate_page(found, title),
            as_json=self.json,
            html=path.with_suffix(".html"),
            hints=[f"kept in {path}: hopplus adapt RUN --references {path}"],
            kept=str(path),
        )
