"""`hopplus diagnose seats`: why do returns depend on the seat number?"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hopplus.cli.diagnosed import Diagnosing, finish
from hopplus.cli.options import check_positive
from hopplus.config import ConfigError, default_game
from hopplus.diagnosis.faults import Fault
from hopplus.diagnosis.foreign import diagnose_foreign
from hopplus.diagnosis.seats import SeatsDiagnosis, SeatsSettings, diagnose_seats, rungs_of
from hopplus.diagnosis.subject import laboratory_of, of_preset, of_run
from hopplus.presets import PRESETS
from hopplus.report.page import Section
from hopplus.runs.progress import Progress

STEPS, QUICK_STEPS = 150_000, 40_000
EPISODES = 10_000
QUICK_SECONDS = 60.0  # that somebody else's game is played for
CHECKS = 7  # pieces of work besides training


@dataclass(frozen=True)
class DiagnoseSeats(Diagnosing):
    """Find out why returns depend on the seat number: from the game to the log.

    Also takes the name of a PettingZoo game, as in `hopplus.games.pettingzoo:parallel_env`, whose
    agents it holds against each other in random play.
    """

    seeds: int = 5
    """Runs of a preset, side by side."""
    episodes: int | None = None
    """Episodes for each kind of player that the game is tried with, 10,000 when not given; with
    --quick a PettingZoo game is played for a minute at most, unless they are given."""

    def run(self) -> int:
        self._check()
        episodes = EPISODES if self.episodes is None else self.episodes
        check_positive(seeds=self.seeds, episodes=episodes)
        if self.subject not in PRESETS and ":" in self.subject and not Path(self.subject).exists():
            return self._foreign(episodes)
        settings = SeatsSettings(
            episodes=episodes,
            seed=self.seed,
            ablation_steps=QUICK_STEPS if self.quick else STEPS // 2,
            fewer_rungs=self.quick,
        )
        if self.subject in PRESETS:
            config, fault = self._preset(QUICK_STEPS if self.quick else STEPS)
            updates = config.updates
        else:
            run = self._run()
            config, fault, updates = run.config(), Fault("none"), 0
        needed = 3 * config.game.seats**2  # three boards for each seat, each dealt to all turns
        if episodes < needed:  # said before anything is trained
            raise ConfigError(
                f"--episodes is {episodes} but must be {needed} or more to compare"
                f" {config.game.seats} seats"
            )
        rungs = rungs_of(config, settings.fewer_rungs)
        most = sum(replace(rung, steps=settings.ablation_steps).updates for rung in rungs.values())
        with Progress("diagnosing seats", updates + CHECKS, "pieces", even=False) as progress:

            def on_step(note: str) -> None:
                if progress.done == updates + CHECKS:  # the ablation, which few need
                    progress.total += most
                progress.advance(1, note)

            if self.subject in PRESETS:
                laboratory = laboratory_of(config, fault, self.seeds)
                subject = of_preset(self.subject, laboratory, self.seed, on_step)
            else:
                subject = of_run(run, 1)
            found = diagnose_seats(subject, fault, settings, on_step)
        return self._end(found, lambda: _sections(found, config.ppo.steps))

    def _foreign(self, episodes: int) -> int:
        given = {
            "--game": self.game != default_game(),
            "--steps": self.steps,
            "--fault": self.fault,
        }
        if wrong := [name for name, held in given.items() if held]:
            raise ConfigError(f"{wrong[0]} is given, but a PettingZoo game is only played")
        seconds = QUICK_SECONDS if self.quick and self.episodes is None else None
        with Progress("playing", episodes, "episodes", first="busy with the first") as progress:
            found = diagnose_foreign(
                self.subject, episodes, self.seed, progress.advance, seconds=seconds
            )
        return self._end(found, lambda: [_seats_section(found)])

    def _end(self, found: SeatsDiagnosis, draw: Callable[[], list[Section]]) -> int:
        page, figures = self._folder() / "seats.html", found.as_json()
        finish("seats", page, found.verdict, found.checks, figures, draw, self.json)
        return 0


def _sections(found: SeatsDiagnosis, steps: int) -> list[Section]:
    from hopplus.diagnosis.seats_picture import ladder_picture, returns_picture

    pictures = [("returns by seat", returns_picture(found, steps))]
    sections = [Section("Returns by seat", pictures=pictures)]
    if found.ladder:
        picture = ladder_picture(found)
        sections.append(Section("With more and more taken away", pictures=[("ablation", picture)]))
    return sections


def _seats_section(found: SeatsDiagnosis) -> Section:
    from hopplus.diagnosis.pictures import panels
    from hopplus.diagnosis.seats_picture import draw_seats

    figure, axes = panels(7, 4, 1, 1)
    draw_seats(axes[0, 0], found.returns)
    return Section("Returns by agent", pictures=[("returns by agent", figure)])
