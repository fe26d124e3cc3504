"""`hopplus certify`: does it matter in this game whom one plays with?"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hopplus.cli.options import check_positive, check_seed
from hopplus.cli.paged import this_command, written
from hopplus.config import GameConfig, NetConfig, PPOConfig, TrainConfig
from hopplus.evaluation.adaptation import companies
from hopplus.evaluation.references import Reference, References
from hopplus.evaluation.statistics import ENOUGH, estimate
from hopplus.games import make_game
from hopplus.learning.restore import find_guests
from hopplus.report.adaptation import certificate_page
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Certify:
    """Measure what being told whom one faces brings, among every company.

    Where it brings nothing, no inference of goals can show a gain.
    """

    game: GameConfig = field(default_factory=GameConfig)
    net: NetConfig = field(default_factory=NetConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    steps: int = 1_000_000
    """Environment steps for which the players of each seed learn."""
    told_steps: int | None = None
    """The last of them, for which a player goes on told about one company or, blind, against all
    mixtures as before; a quarter of --steps when not given."""
    against: tuple[str, ...] = ("all",)
    """The companies to be told about, one name per other seat: stag,stag,hare runs/a@1,switch,hare
    ...; all for every mixture of the game's scripted players."""
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
        if self.told_steps is not None:
            check_positive(told_steps=self.told_steps)
        check_seed(self.seed)
        config = TrainConfig(
            game=self.game,
            net=self.net,
            ppo=self.ppo,
            steps=self.steps,
            seeds=self.seeds,
            seed=self.seed,
        )
        wanted = companies(self.against, make_game(self.game))
        guests = find_guests([name for company in wanted for name in company])
        told_steps = self.told_steps or max(1, self.steps // 4)
        asked = Reference(config, wanted, guests, told_steps, self.episodes)
        with Progress("certifying", asked.total_steps, "steps") as progress:
            found = asked.measure(self.out, progress.advance)
        path = asked.kept_at(self.out)
        title = f"{self.game.rows}x{self.game.columns}, {self.seeds} seeds"
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
    for name in ("others", "told", "blind", "told - blind", "random"):
        table.add_column(name, justify="left" if name == "others" else "right")
    gaps = found.gaps()
    for place, company in enumerate(found.companies):
        table.add_row(
            ", ".join(company),
            str(estimate(found.told[:, place])),
            str(estimate(found.blind[:, place])),
            str(gaps[place]),
            f"{found.random[:, place].mean():.2f}",
        )
    mean = estimate((found.told - found.blind).mean(axis=1))
    table.add_section()
    told, blind = (estimate(one.mean(axis=1)) for one in (found.told, found.blind))
    table.add_row("mean", str(told), str(blind), str(mean), f"{found.random.mean():.2f}")
    Console().print(table)
    most = max(range(len(gaps)), key=lambda place: gaps[place].mean)
    sure = [gap for gap in gaps if gap.mean - gap.half_width > 0]
    print(
        f"the largest gap, {gaps[most]}, is with {', '.join(found.companies[most])}; with"
        f" {len(sure)} of {len(gaps)} companies its interval is above 0"
    )
    if len(found.told) < ENOUGH:
        print(f"with {len(found.told)} of {ENOUGH} seeds the intervals are wide: too few to tell")
