"""Episodes that people have played, in the format of all recorded play."""

import secrets
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hopplus.config import GameConfig
from hopplus.games import make_game
from hopplus.games.game import Game, views
from hopplus.play.seating import Seating
from hopplus.recorded.collect import Tally, names_by_seat, numbers_of
from hopplus.recorded.dataset import players_of, writing_data
from hopplus.recorded.record import Rows, row_of
from hopplus.types import Act, Outcome, State, Trajectory


@partial(jax.jit, static_argnums=0)
def _row(game: Game, state: State, act: Act, outcome: Outcome, over: bool) -> Rows:
    return row_of(game, state, views(game, state), act, outcome, jax.numpy.asarray(over))


class Recording:
    """Episodes of people who have agreed to it, kept until they are written."""

    def __init__(self, path: Path, config: GameConfig, seating: Seating) -> None:
        self.path, self.config, self.game = path, config, make_game(config)
        self.seats = names_by_seat(seating)
        self.episodes: list[tuple[Rows, np.ndarray]] = []  # rows, and who sat where [N]

    def add(self, steps: Sequence[tuple[Trajectory, State]]) -> None:
        """A whole episode: its steps [1, ...], and the state after each."""
        plays = [jax.tree.map(lambda leaf: leaf[0], pair) for pair in steps]
        rows = [_row(self.game, play.state, play.act, play.outcome, False) for play, _ in plays]
        last, end = plays[-1]
        rows.append(_row(self.game, end, last.act, last.outcome, True))
        together: Rows = jax.tree.map(lambda *leaves: np.stack(leaves), *jax.device_get(rows))
        self.episodes.append((together, numbers_of(self.seats, last.choice[None])[0]))

    def write(self) -> dict[str, Any] | None:
        """Write all there is, if there is any; what was recorded, in short."""
        if not self.episodes:
            return None
        tally = Tally(players_of(self.seats), self.game)
        # Nobody plays the same again: the number tells recordings apart, as a seed does.
        about: dict[str, Any] = {"seed": secrets.randbits(32)}
        with writing_data(self.path, self.config, self.seats, about) as writer:
            for rows, who in self.episodes:
                one = jax.tree.map(lambda leaf: leaf[None], rows)
                counts = np.array([len(rows.time)])
                writer.add(one, counts, who[None])
                tally.add(one, counts, who[None])
            about.update(tally.as_json())
        return about
