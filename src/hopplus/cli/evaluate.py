"""`hopplus evaluate`: how well do these players do together?"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import jax
import tyro
from rich.console import Console
from rich.table import Table

from hopplus.cli.options import check_games, check_positive, check_seed
from hopplus.cli.players import company_of
from hopplus.config import GameConfig
from hopplus.evaluation.evaluate import Evaluation, evaluate, summarise
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Evaluate:
    """Play whole episodes and print what every seat got."""

    run_folder: Annotated[Path | None, tyro.conf.Positional] = None
    """A run whose players play."""
    players: Annotated[str | None, tyro.conf.arg(aliases=("--seats",))] = None
    """Who sits where, one name per seat: stag,stag,hare,random (see `hopplus list players`), a run
    (runs/a, runs/a@2), an exported player, or run for the run given first."""
    greedy: bool = False
    """Learned players take their best action instead of drawing from their policy."""
    run_seed: int = 0
    """Which of the run's seeds, counted from 0."""
    game: GameConfig = field(default_factory=GameConfig)
    episodes: int = 10_000
    """Episodes to play."""
    games: int = 1024
    """Games side by side; changes the speed, never the result."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_positive(episodes=self.episodes, games=self.games)
        check_games(self.games)
        check_seed(self.seed)
        _, game, company = company_of(
            self.run_folder, self.players, self.game, self.run_seed, self.greedy
        )
        seating = company.seating
        key_params, key_play = jax.random.split(jax.random.key(self.seed))
        with Progress("evaluating", self.episodes, "episodes") as progress:
            episodes = evaluate(
                game,
                seating,
                company.init(key_params),
                key_play,
                self.episodes,
                self.games,
                progress.advance,
            )
        evaluation = summarise(game, seating, episodes)
        if self.json:
            print(json.dumps(evaluation.as_json(), indent=2))
        else:
            print_table(evaluation)
        return 0


def print_table(evaluation: Evaluation) -> None:
    """The evaluation for people, on stdout."""
    e = evaluation
    table = Table(title=f"{e.game}, {e.episodes:,} episodes", title_justify="left")
    table.add_column("seat", justify="right")
    table.add_column("player")
    table.add_column("return ± 95%", justify="right")
    for kind in e.kinds:
        table.add_column(f"{kind}s", justify="right")
    for seat, player in enumerate(e.players):
        shares = (f"{share:.3f}" for share in e.took[seat])
        table.add_row(str(seat), player, str(e.returns[seat]), *shares)
    table.add_section()
    table.add_row("", "mean", str(e.mean_return), *(f"{t:.3f}" for t in e.took.mean(axis=0)))
    console = Console()
    console.print(table)
    taken = ", ".join(f"{count:.3f} {kind}s" for kind, count in zip(e.kinds, e.taken, strict=True))
    share = ""
    if e.best_joint_return > 0:
        share = f" ({e.joint_return.mean / e.best_joint_return:.1%})"
    console.print(
        f"joint return {e.joint_return} of {e.best_joint_return:g} at best{share};"
        f" taken per episode: {taken}; length {e.length} steps",
        highlight=False,
        soft_wrap=True,
    )
