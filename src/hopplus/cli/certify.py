"""`hopplus certify`: does it matter in this game whom one plays with?"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hopplus.cli.options import check_positive, check_seed
from hopplus.config import GameConfig, NetConfig, PPOConfig, TrainConfig
from hopplus.evaluation.references import References, kept_at, references, total_steps
from hopplus.evaluation.statistics import ENOUGH, estimate
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Certify:
    """Measure what being told whom one faces brings, for every mixture of scripted players.

    Where it brings nothing, no inference of goals can show a gain.
    """

    game: GameConfig = field(default_factory=GameConfig)
    net: NetConfig = field(default_factory=NetConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    steps: int = 1_000_000
    """Environment steps of each seed: of the blind player, and of each told about one mixture."""
    seeds: int = 3
    """Independent runs."""
    seed: int = 0
    """The first seed; the others follow it."""
    episodes: int = 4096
    """Episodes that each player is measured by, for each mixture."""
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
        )
        with Progress("certifying", 2 * total_steps(config), "steps") as progress:
            found = references(config, self.out, self.episodes, progress.advance)
        path = kept_at(config, self.out, self.episodes)
        if self.json:
            print(json.dumps({"kept": str(path), **found.as_json()}, indent=2))
            return 0
        print_references(found, f"{self.game.rows}x{self.game.columns}, {self.seeds} seeds")
        print(f"kept in {path}: hopplus adapt RUN --references {path}")
        return 0


def print_references(found: References, title: str) -> None:
    """The certificate for people, on stdout."""
    table = Table(title=f"return of seat 0, {title}", title_justify="left")
    for name in ("others", "told", "blind", "told - blind ± 95%", "random"):
        table.add_column(name, justify="left" if name == "others" else "right")
    gaps = found.gaps()
    for place, mixture in enumerate(found.mixtures):
        table.add_row(
            ", ".join(mixture),
            f"{found.told[:, place].mean():.2f}",
            f"{found.blind[:, place].mean():.2f}",
            str(gaps[place]),
            f"{found.random[place]:.2f}",
        )
    mean = estimate((found.told - found.blind).mean(axis=1))
    table.add_section()
    table.add_row("mean", f"{found.told.mean():.2f}", f"{found.blind.mean():.2f}", str(mean), "")
    Console().print(table)
    most = max(range(len(gaps)), key=lambda place: gaps[place].mean)
    sure = [gap for gap in gaps if gap.mean - gap.half_width > 0]
    print(
        f"the largest gap, {gaps[most]}, is with {', '.join(found.mixtures[most])}; with"
        f" {len(sure)} of {len(gaps)} mixtures it is surely above 0"
    )
    if len(found.told) < ENOUGH:
        print(f"with {len(found.told)} of {ENOUGH} seeds the intervals are wide: too few to tell")
