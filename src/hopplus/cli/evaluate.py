"""`hopplus evaluate`: how well do these players do together?"""

from dataclasses import dataclass

import jax

from hopplus.cli.paged import show
from hopplus.cli.reading.options import check_options
from hopplus.cli.reading.players import Playing
from hopplus.evaluation.evaluate import evaluate, summarise
from hopplus.report.pages.evaluation import evaluation_page
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
        check_options(episodes=self.episodes, games=self.games)
        seeds, setups = self.setups()
        key_params, key_play = jax.random.split(jax.random.key(self.seed))
        played = []
        with Progress("evaluating", self.episodes * len(setups), "episodes") as progress:
            for _, game, lineup, focal in setups:
                found = evaluate(
                    game,
                    lineup.seating,
                    lineup.init(key_params),
                    key_play,
                    self.episodes,
                    self.games,
                    progress.advance,
                    focal=focal,
                )
                played.append(found)
        _, game, lineup, focal = setups[0]
        evaluation = summarise(game, lineup.seating, played, focal, seeds)
        return show(evaluation_page(evaluation), as_json=self.json)
