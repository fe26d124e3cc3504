"""`hopplus evaluate`: how well do these players do together?"""

import json
from dataclasses import dataclass

import jax
from rich.console import Console
from rich.table import Table

from hopplus.cli.options import check_games, check_positive
from hopplus.cli.players import Playing
from hopplus.evaluation.evaluate import Evaluation, Measured, evaluate, summarise
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Evaluate(Playing):
    """Play whole episodes and print what every seat got; of a run, with each of its seeds."""

    episodes: int = 10_000
    """Episodes to play, with each seed."""
    games: int = 1024
    """Games side by side; changes the speed, never the result."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_positive(episodes=self.episodes, games=self.games)
        check_games(self.games)
        seeds, setups = self.setups()
        key_params, key_play = jax.random.split(jax.random.key(self.seed))
        played = []
        with Progress("evaluating", self.episodes * len(setups), "episodes") as progress:
            for _, game, company, focal in setups:
                found = evaluate(
                    game,
                    company.seating,
                    company.init(key_params),
                    key_play,
                    self.episodes,
                    self.games,
                    progress.advance,
                    focal=focal,
                )
                played.append(found)
        _, game, company, focal = setups[0]
        evaluation = summarise(game, company.seating, played, focal, seeds)
        if self.json:
            print(json.dumps(evaluation.as_json(), indent=2))
        else:
            print_table(evaluation)
        return 0


def print_table(evaluation: Evaluation) -> None:
    """The evaluation for people, on stdout."""
    e = evaluation
    several = len(e.seeds) > 1
    table = Table(title=_title(e), title_justify="left")
    table.add_column("seat", justify="right")
    table.add_column("player")
    table.add_column("return ± 95%", justify="right")
    if several:
        table.add_column("± over seeds", justify="right")
    for kind in e.kinds:
        table.add_column(f"{kind}s", justify="right")
    partly = len(e.focal) < len(e.players)
    for seat, player in enumerate(e.players):
        shares = (f"{share:.3f}" for share in e.took[seat])
        mark = " *" if partly and seat in e.focal else ""
        table.add_row(str(seat), f"{player}{mark}", *_cells(e.returns[seat]), *shares)
    table.add_section()
    means = (f"{share:.3f}" for share in e.took[list(e.focal)].mean(axis=0))
    table.add_row("", f"mean{' *' * partly}", *_cells(e.mean_return), *means)
    console = Console()
    console.print(table)
    if partly:
        console.print("* the mean is over these seats alone", highlight=False)
    if several:
        each = zip(e.seeds, e.mean_return.by_seed, strict=True)
        console.print(
            f"mean by seed: {', '.join(f'{seed}: {mean:.3f}' for seed, mean in each)}; the first"
            " interval is over episodes, for these very players, the second over seeds",
            highlight=False,
            soft_wrap=True,
        )
    taken = ", ".join(f"{count:.3f} {kind}s" for kind, count in zip(e.kinds, e.taken, strict=True))
    share = ""
    if e.best_joint_return > 0:
        share = f" ({e.joint_return.episodes.mean / e.best_joint_return:.1%})"
    console.print(
        f"joint return {e.joint_return.episodes} of {e.best_joint_return:g} at best{share};"
        f" taken per episode: {taken}; length {e.length} steps"
        f"{'; one episode: no interval can be told' if e.episodes == 1 else ''}",
        highlight=False,
        soft_wrap=True,
    )


def _title(e: Evaluation) -> str:
    episodes = f"{e.game}, {e.episodes:,} episode{'s' * (e.episodes != 1)}"
    match e.seeds:
        case ():
            return episodes
        case (seed,):
            return f"{episodes} of seed {seed}"
        case seeds:
            return f"{episodes} of each of {len(seeds)} seeds"


def _cells(found: Measured) -> list[str]:
    """The mean with its interval over episodes, and the interval over seeds if there is one."""
    over_seeds = [f"± {found.seeds.half_width:.3f}"] if found.seeds else []
    return [str(found.episodes), *over_seeds]
