"""`hopplus diagnose adaptation`: where is it lost what kind of players one faces?"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.api.learned import find_learned_players, game_of
from hopplus.cli.diagnose.common import finish
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, GameConfig, check_range, default_game
from hopplus.diagnosis.adaptation import ENOUGH_TRIALS, diagnose_adaptation
from hopplus.diagnosis.foresight import measure_foresight
from hopplus.diagnosis.introspection import introspect
from hopplus.diagnosis.player_faults import PLAYER_FAULTS, build_in
from hopplus.evaluation.adaptation import lineups
from hopplus.games import make_game
from hopplus.learning.from_run import find_background_players
from hopplus.play.introspection import predicts
from hopplus.presets import PRESETS
from hopplus.report.pages.adaptation import introspection_sections
from hopplus.report.pages.foresight import foresight_sections
from hopplus.runs.progress import Progress

FAULT_HELP = f"Build a fault into the player, to see it found: {', '.join(PLAYER_FAULTS)}."
TIMES = (0, 1, 2, 4, 6, 8, 12, 16, 24)


@dataclass(frozen=True)
class DiagnoseAdaptation:
    """Find out where information about co-players is lost: in inference (a linear probe), in the
    opponent models, or in the policy."""

    subject: Annotated[tuple[str, ...], tyro.conf.Positional]
    """A run, whose player is watched in each of its seeds; or exported players, each as a seed."""
    game: GameConfig = field(default_factory=default_game)
    episodes: int = 2
    """Episodes of a trial."""
    trials: int = ENOUGH_TRIALS
    """Trials, about so many for each seed; as many among every lineup."""
    seat: int = 0
    """Where it sits."""
    seed: int = 0
    """Seed of everything random."""
    against: tuple[str, ...] = ()
    """Also measure how well its models predict these others, seen in training or not, one name per
    other seat
    (noisy-hare:0.2,stag,hare ...; population for each family in all seats), and their
    calibration."""
    fault: Annotated[str | None, tyro.conf.arg(help=FAULT_HELP)] = None
    out: Path | None = None
    """The page, next to which the JSON file lies; when not given, introspection.html in the run, or
    here."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check_options(episodes=self.episodes, trials=self.trials, seed=self.seed)
        if self.out and self.out.suffix == ".json":
            raise ConfigError("--out names the page, such as out.html; JSON is written next to it")
        if any(name in PRESETS for name in self.subject):
            raise ConfigError("a preset has learned nothing yet: give a run, or exported players")
        game = make_game(game_of(self.subject, self.game))
        subject = find_learned_players(self.subject, self.game, None, 1, 0, Path())
        check_range("--seat", self.seat, 0, game.seats - 1)
        times = [time for time in TIMES if time < game.horizon]
        wanted = lineups(self.against, game)
        background = find_background_players([name for lineup in wanted for name in lineup])
        first = [one[min(one)] for one in subject.players]
        if wanted and not all(predicts(one.actor, one.params) for one in first):
            raise ConfigError(f"--against asks for models of others, and {subject.name} has none")
        seeds, foreseen = [], []
        total, busy = len(subject.players), "busy with the first"
        with Progress("watching players", total, "seeds", first=busy) as progress:
            for seed, learned in enumerate(subject.players):
                player = learned.get(self.seat, learned[min(learned)])
                player = replace(player, actor=build_in(self.fault, player.actor))
                work = (self.episodes, self.trials, times, self.seed)
                seeds.append(introspect(game, player, self.seat, *work))
                if wanted:
                    among = (wanted, background, self.seat, self.episodes)
                    each = max(1, self.trials // len(wanted))
                    foreseen.append(measure_foresight(game, player, *among, each, self.seed))
                progress.advance(1, f"seed {seed}")
        found = diagnose_adaptation(subject.name, seeds, foreseen)
        page = self.out or subject.folder / "introspection.html"
        tables = introspection_sections(seeds) + foresight_sections(foreseen)
        return finish("adaptation", page, found, lambda: tables, self.json, tables)
