"""Record play: who sits where is drawn anew for each episode, then it is played and written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import GameConfig
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.play.lineup import Lineup
from hopplus.play.seating import Seating
from hopplus.players.mixture import Mixture
from hopplus.recorded.dataset import players_of, writing_data
from hopplus.recorded.record import Rows, record
from hopplus.types import Params


@eqx.filter_jit
def _play(
    game: Game, seating: Seating, params: tuple[Params, ...], options: np.ndarray, keys: jax.Array
) -> tuple[Rows, jax.Array, jax.Array]:
    """One episode for each key [B]: rows [B, T], their counts [B], and the choices [B, N]."""

    def one(key: jax.Array) -> tuple[Rows, jax.Array, jax.Array]:
        key_seats, key_play = jax.random.split(key)
        choices = jax.random.randint(key_seats, options.shape, 0, options)
        return *record(game, seating, params, choices, key_play), choices

    return jax.vmap(one)(keys)


class Tally:
    """Counts over what was recorded, by player [P]."""

    def __init__(self, players: list[str], game: Game) -> None:
        self.players, self.game = players, game
        count = len(players)
        self.actions = np.zeros((count, len(game.action_names)), np.int64)  # of present players
        self.catches = np.zeros((count, len(game.targets)), np.int64)
        self.returns = np.zeros(count)  # added up over episodes
        self.seated = np.zeros(count, np.int64)  # episodes times seats
        self.episodes = self.steps = 0

    def add(self, rows: Rows, counts: np.ndarray, who: np.ndarray) -> None:
        """Episodes [B, T, ...] with `counts` [B] rows each and `who` [B, N] in the seats."""
        stepped = np.arange(rows.time.shape[1]) < counts[:, None] - 1  # [B, T]
        acted = stepped[..., None] & rows.present
        numbers = np.broadcast_to(who[:, None, :], acted.shape)
        np.add.at(self.actions, (numbers[acted], rows.joint[acted]), 1)
        np.add.at(self.catches, who, rows.took.sum(axis=1, dtype=np.int64))
        np.add.at(self.returns, who, rows.reward.sum(axis=1, dtype=np.float64))
        np.add.at(self.seated, who, 1)
        self.episodes += len(counts)
        self.steps += int(stepped.sum())

    def as_json(self) -> dict[str, Any]:
        return {
            "episodes": self.episodes,
            "steps": self.steps,
            "summary": {name: self._about(number) for number, name in enumerate(self.players)},
        }

    def _about(self, player: int) -> dict[str, Any]:
        acted, seated = int(self.actions[player].sum()), int(self.seated[player])
        actions = self.actions[player] / max(1, acted)
        took = self.catches[player] / max(1, seated)
        return {
            "seated": seated,
            "mean_return": self.returns[player] / max(1, seated),
            "acted": acted,
            "actions": dict(zip(self.game.action_names, actions.tolist(), strict=True)),
            "took": dict(zip(self.game.targets, took.tolist(), strict=True)),
        }


def names_by_seat(seating: Seating) -> list[list[str]]:
    """[N] the players of whom one sits there."""
    return [
        [one.name for one in player.players] if isinstance(player, Mixture) else [player.name]
        for player in seating.players
    ]


def numbers_of(seats: list[list[str]], choices: np.ndarray) -> np.ndarray:
    """[B, N] the chosen ones [B, N] of each seat, by their numbers among all players."""
    players = players_of(seats)
    columns = [
        np.array([players.index(name) for name in names])[chosen]
        for names, chosen in zip(seats, choices.T, strict=True)
    ]
    return np.stack(columns, axis=1)


def collect(
    path: Path,
    config: GameConfig,
    lineup: Lineup,
    episodes: int,
    seed: int,
    games: int = 1024,
    on_progress: Callable[[int, str], None] = lambda count, note: None,
) -> dict[str, Any]:
    """Play `episodes` episodes, `games` side by side, and write them; what was recorded, in short.

    The same data whatever the number side by side.
    """
    game, seating = make_game(config), lineup.seating
    seats = names_by_seat(seating)
    options = np.array([len(names) for names in seats])
    key_params, key = jax.random.split(jax.random.key(seed))
    params = lineup.init(key_params)
    tally = Tally(players_of(seats), game)
    about: dict[str, Any] = {"seed": seed}
    batch = min(games, episodes)
    with writing_data(path, config, seats, about) as writer:
        for first in range(0, episodes, batch):
            numbers = jnp.arange(first, first + batch)  # the last batch plays a few too many
            keys = jax.vmap(lambda number: jax.random.fold_in(key, number))(numbers)
            played = jax.device_get(_play(game, seating, params, options, keys))
            real = slice(episodes - first)
            rows, counts, choices = jax.tree.map(lambda leaf: leaf[real], played)  # noqa: B023
            who = numbers_of(seats, choices)
            writer.add(rows, counts, who)
            tally.add(rows, counts, who)
            on_progress(len(counts), f"{tally.steps:,} steps")
        about.update(tally.as_json())
    return about
