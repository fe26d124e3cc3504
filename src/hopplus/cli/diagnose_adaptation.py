"""`hopplus diagnose adaptation`: where is it lost what kind of players one faces?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from hopplus.cli.diagnosed import finish
from hopplus.cli.options import check_positive, check_seat, check_seed
from hopplus.cli.subject import find_subject, game_of
from hopplus.config import ConfigError, GameConfig, default_game
from hopplus.diagnosis.adaptation import adaptation_verdict
from hopplus.diagnosis.understanding import Understanding, understanding
from hopplus.games import make_game
from hopplus.presets import PRESETS
from hopplus.report.understanding import said, understanding_sections
from hopplus.runs.progress import Progress

TIMES = (0, 1, 2, 4, 6, 8, 12, 16, 24)


@dataclass(frozen=True)
class DiagnoseAdaptation:
    """Watch a run's player among scripted company: can it be read from what it infers who they are,
    do its models tell what they do, and does its policy listen?"""

    subject: Annotated[tuple[str, ...], tyro.conf.Positional]
    """A run, whose player is watched in each of its seeds; or exported players, each as a seed."""
    game: GameConfig = field(default_factory=default_game)
    episodes: int = 2
    """Episodes of a trial."""
    trials: int = 2160
    """Trials, about so many for each seed; as many among every company."""
    seat: int = 0
    """Where it sits."""
    seed: int = 0
    """Seed of everything random."""
    out: Path | None = None
    """The page, beside which the JSON file lies; when not given, understanding.html in the run, or
    here."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check_positive(episodes=self.episodes, trials=self.trials)
        check_seed(self.seed)
        if self.out and self.out.suffix == ".json":
            raise ConfigError("--out names the page, such as out.html; JSON is written beside it")
        if any(name in PRESETS for name in self.subject):
            raise ConfigError("a preset has learned nothing yet: give a run, or exported players")
        game = make_game(game_of(self.subject, self.game))
        subject = find_subject(self.subject, self.game, None, 1, 0, Path())
        check_seat(self.seat, game.seats)
        times = [time for time in TIMES if time < game.horizon]
        found = []
        with Progress(
            "watching players", len(subject.players), "seeds", first="busy with the first"
        ) as progress:
            for seed, learned in enumerate(subject.players):
                player = learned.get(self.seat, learned[min(learned)])
                found.append(
                    understanding(
                        game, player, self.seat, self.episodes, self.trials, times, self.seed
                    )
                )
                progress.advance(1, f"seed {seed}")
        if not self.json:
            print_understanding(found, subject.name)
        checks, verdict = adaptation_verdict(found)
        figures = {
            "subject": subject.name,
            **verdict.as_json(),
            **as_json(found),
            "checks": [check.as_json() for check in checks],
        }
        finish(
            "adaptation",
            self.out or subject.folder / "understanding.html",
            verdict,
            checks,
            figures,
            lambda: understanding_sections(found),
            self.json,
        )
        return 0


def as_json(found: list[Understanding]) -> dict[str, Any]:
    """Everything, by seed."""
    first = found[0]
    names = ("probe", "accuracy", "best", "even", "moved_alike", "moved_other")
    return {
        "times": first.times,
        "companies": [list(company) for company in first.companies],
        "chance": first.chance,
        **{name: [getattr(one, name).tolist() for one in found] for name in names},
    }


def print_understanding(found: list[Understanding], name: str) -> None:
    """The three measures for people, on stdout."""
    first, console = found[0], Console()

    if not any(one.infers for one in found):
        print(f"{name} infers nothing about the others")
    else:
        title = f"{name}: kinds of the others that can be read from what it infers"
        table = Table(title=title, title_justify="left")
        table.add_column("after steps")
        for number in range(len(first.probe)):
            table.add_column(f"episode {number + 1}", justify="right")
        for place, time in enumerate(first.times):
            columns = range(len(first.probe))
            table.add_row(str(time), *(said([u.probe[e, place] for u in found]) for e in columns))
        console.print(table)
        print(f"by a linear probe; {first.chance:.3f} is chance")
    table = Table(title="how often the models of the others are right", title_justify="left")
    for head in ("others", "right", "at best"):
        table.add_column(head, justify="left" if head == "others" else "right")
    for place, company in enumerate(first.companies):
        right = [one.accuracy[place] for one in found]
        best = [one.best[place] for one in found]
        table.add_row(", ".join(company), said(right) or "no models", said(best))
    console.print(table)
    table = Table(title="how far the policy moves with what another infers", title_justify="left")
    for head in ("episode", "among the same company", "among another"):
        table.add_column(head, justify="right")
    for number in range(len(first.probe)):
        moved = ([u.moved_alike[number] for u in found], [u.moved_other[number] for u in found])
        table.add_row(str(number + 1), *map(said, moved))
    console.print(table)
    print("total variation, from 0 to 1; a policy that listens moves more among another company")
