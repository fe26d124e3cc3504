"""`hopplus diagnose seats`: why do returns depend on the seat number?"""

from dataclasses import dataclass, replace
from pathlib import Path

from hopplus.cli.diagnose.common import Diagnosing, finish
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError
from hopplus.diagnosis.seats.ablation import list_rungs
from hopplus.diagnosis.seats.checks import SeatsDiagnosis, SeatsSettings, diagnose_seats
from hopplus.diagnosis.seats.foreign import diagnose_foreign
from hopplus.report.figures.diagnosis import draw_ablation, draw_agents, draw_returns
from hopplus.report.page import Section
from hopplus.runs.progress import Progress
from hopplus.runs.zoo import is_of_zoo

STEPS, QUICK_STEPS = 150_000, 40_000
EPISODES = 10_000
QUICK_SECONDS = 60.0  # that somebody else's game is played for
PIECES = 8  # of work besides training


@dataclass(frozen=True)
class DiagnoseSeats(Diagnosing):
    """Find out whether and why returns depend on the seat, from the rules to the log.

    Also takes the name of a PettingZoo game, as in `hopplus.games.pettingzoo:parallel_env`, whose
    agents it holds against each other in random play.
    """

    seeds: int = 5
    """Runs of a preset, side by side."""
    episodes: int | None = None
    """Episodes for each kind of player that the game is tried with, 10,000 when not given; with
    --quick a PettingZoo game is played for a minute at most, unless they are given."""

    def run(self) -> int:
        episodes = EPISODES if self.episodes is None else self.episodes
        check_options(seeds=self.seeds, episodes=episodes)
        outside = ":" in self.subject and not is_of_zoo(self.subject)
        if not self._is_preset and outside and not Path(self.subject).exists():
            return self._diagnose_foreign(episodes)
        settings = SeatsSettings(
            episodes=episodes,
            seed=self.seed,
            ablation_steps=QUICK_STEPS if self.quick else STEPS // 2,
            fewer_rungs=self.quick,
        )
        opened = self._open(QUICK_STEPS if self.quick else STEPS)
        config, pieces = opened.config, opened.updates + PIECES
        needed = 3 * config.game.seats**2  # three boards for each seat, each dealt to all turns
        if episodes < needed:  # said before anything is trained
            raise ConfigError(
                f"--episodes is {episodes} but must be {needed} or more to compare"
                f" {config.game.seats} seats"
            )
        rungs = list_rungs(config, settings.fewer_rungs)
        most = sum(replace(rung, steps=settings.ablation_steps).updates for rung in rungs.values())
        with Progress("diagnosing seats", pieces, "pieces", even=False) as progress:

            def on_step(note: str) -> None:
                if progress.done == pieces:  # the ablation, which few need
                    progress.total += most
                progress.advance(1, note)

            replicas = 1 if opened.run else self.seeds
            subject = self._make_subject(opened, replicas, on_step)
            found = diagnose_seats(subject, opened.fault, settings, on_step)
        return self._finish(found, config.ppo.steps)

    def _diagnose_foreign(self, episodes: int) -> int:
        check_options(seed=self.seed)
        self._refuse_training("a PettingZoo game is only played")
        seconds = QUICK_SECONDS if self.quick and self.episodes is None else None
        with Progress("playing", episodes, "episodes", first="busy with the first") as progress:
            found = diagnose_foreign(
                self.subject, episodes, self.seed, progress.advance, seconds=seconds
            )
        return self._finish(found, None)

    def _finish(self, found: SeatsDiagnosis, steps: int | None) -> int:
        page = self._page("seats.html")
        return finish("seats", page, found, lambda: draw_sections(found, steps), self.json)


def draw_sections(found: SeatsDiagnosis, steps: int | None) -> list[Section]:
    """Pictures of a run with so many steps an update, or of a game that was only played."""
    if steps is None:
        pictures = [("returns by agent", draw_agents(found))]
        return [Section("Returns by agent", pictures=pictures)]
    pictures = [("returns by seat", draw_returns(found, steps))]
    sections = [Section("Returns by seat", pictures=pictures)]
    if found.ladder:
        pictures = [("ablation", draw_ablation(found))]
        sections.append(Section("With more and more taken away", pictures=pictures))
    return sections
