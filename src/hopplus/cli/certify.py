"""`hopplus certify`: does it matter in this game whom one plays with?"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hopplus.cli.options import check_positive, check_seed
from hopplus.cli.paged import this_command, written
from hopplus.config import GameConfig, NetConfig, PPOConfig, TrainConfig, default_game
from hopplus.evaluation.adaptation import companies
from hopplus.evaluation.certificate import Certificate
from hopplus.evaluation.references import References
from hopplus.evaluation.statistics import ENOUGH
from hopplus.games import make_game
from hopplus.games.game import board_size
from hopplus.learning.restore import find_guests
from hopplus.report.adaptation import PRACTISED, certificate_page, certificate_rows
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Certify:
    """Measure what being told whom one faces brings, among every company.

    Where it brings nothing, no inference of goals can show a gain.
    """

    game: GameConfig = field(default_factory=default_game)
    net: NetConfig = field(default_factory=NetConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    steps: int = 1_000_000
    """Environment steps for which the players of each seed learn."""
    trial: int = 5
    """Episodes that they learn against the same company, before another is drawn."""
    against: tuple[str, ...] = ("all",)
    """The companies to be measured among, one name per other seat: stag,stag,hare
    runs/a@1,switch,hare ...; all for every mixture of the game's scripted players."""
    seeds: int = 3
    """Independent runs."""
    seed: int = 0
    """The first seed; the others follow it."""
    episodes: int = 4096
    """Episodes that each player is measured by, for each company."""
    out: Path = Path("references")
    """Folder that keeps what was measured: the same command reads it again."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_positive(steps=self.steps, seeds=self.seeds, episodes=self.episodes)
        check_seed(self.seed)
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
        wanted = companies(self.against, game)
        guests = find_guests([name for company in wanted for name in company])
        asked = Certificate(config, wanted, guests, self.episodes)
        path = asked.kept_at(self.out)
        with Progress("certifying", asked.total_steps, "steps", where=path) as progress:
            found = asked.measure(self.out, progress.advance)
        title = f"{board_size(game)}, {self.seeds} seeds"
        page = written(
            path.with_suffix(".html"), lambda: certificate_page(found, title, this_command())
        )
        if self.json:
            print(json.dumps({"kept": str(path), "page": page, **found.as_json()}, indent=2))
            return 0
        print_references(found, title)
        print(f"kept in {path}: hopplus adapt RUN --references {path}")
        if page:
            print(f"the page is {page}")
        return 0


def print_references(found: References, title: str) -> None:
    """The certificate for people, on stdout."""
    table = Table(title=f"return of seat 0, {title}", title_justify="left")
    header, rows = certificate_rows(found)
    for name in header:
        table.add_column(name, justify="left" if name == "others" else "right")
    for place, row in enumerate(rows):
        if place == len(found.companies):
            table.add_section()
        table.add_row(*row)
    Console().print(table)
    gaps, most = found.gaps(), found.widest
    sure = [gap for gap in gaps if gap.mean - gap.half_width > 0]
    print(
        f"the largest gap, {gaps[most]}, is with {', '.join(found.companies[most])}; with"
        f" {len(sure)} of {len(gaps)} companies its interval is above 0"
    )
    if found.practised.any():
        print(PRACTISED)
    if len(found.told) == 1:
        print("one seed: no interval can be told")
    elif len(found.told) < ENOUGH:
        print(f"with {len(found.told)} of {ENOUGH} seeds the intervals are wide: too few to tell")
