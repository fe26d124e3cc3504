"""`hopplus evaluate`: how well do these players do together?"""

import json
from dataclasses import dataclass

import jax
from rich.console import Console
from rich.table import Table

from hopplus.cli.options import check_games, check_positive
from hopplus.cli.players import Playing
from hopplus.evaluation.evaluate import Evaluation, evaluate, summarise
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Evaluate(Playing):
    """Play whole episodes and print what every seat got."""

    episodes: int = 10_000
    """Episodes to play."""
    games: int = 1024
    """Games side by side; changes the speed, never the result."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_positive(episodes=self.episodes, games=self.games)
        check_games(self.games)
        _, game, company = self.setup()
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
        f" taken per episode: {taken}; length {e.length} steps"
        + "; one episode: no interval can be told"
        * (e.episodes == 1),
        highlight=False,
        soft_wrap=True,
    )
