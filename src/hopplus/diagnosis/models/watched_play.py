"""Episodes just watched, as play to measure models by that they have not learned from."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np

from hopplus.diagnosis.models.heldout import HeldOut
from hopplus.evaluation.replay.watch import Watched, anyone
from hopplus.games.game import Game, views
from hopplus.play.introspection import actor_of
from hopplus.play.lineup import Lineup
from hopplus.recorded.dataset import Shard, players_of
from hopplus.recorded.record import Rows, aims, packed
from hopplus.types import State


def record_watched(game: Game, lineup: Lineup, seen: Watched) -> HeldOut:
    """All of the watched episodes as recorded play; those who have learned are of one kind."""
    seats = [
        ["learned" if actor_of(one) else one.name for one in anyone(player)]
        for player in lineup.seating.players
    ]
    players = players_of(seats)
    number = np.zeros((game.seats, max(map(len, seats))), np.int16)
    for seat, names in enumerate(seats):
        number[seat, : len(names)] = [players.index(name) for name in names]
    who = number[np.arange(game.seats), np.asarray(seen.choice[0])]
    length = np.asarray(seen.of_episode.sum(axis=0)) + 1  # [B] rows, with the one at the end
    rows = _rows(game, jax.device_get(seen))
    real = np.arange(rows.time.shape[1]) < length[:, None]  # [B, T + 1]
    kept = packed(jax.tree.map(lambda leaf: leaf[real], rows))
    shard = Shard(kept, np.cumsum(length) - length, np.arange(len(length)), who)
    return HeldOut(game, players, seats, shard)


def choose_seat(held: HeldOut, seat: int, most: int) -> HeldOut:
    """The same, measured by the first steps of one seat alone."""
    return replace(held, chosen=held.steps[held.seat == seat][:most])


def _rows(game: Game, seen: Watched) -> Rows:
    """[B, T + 1, ...] moments of each game, on the host; anything behind the end of its episode."""
    play, ended = seen.trajectory, ~np.asarray(seen.of_episode)

    @jax.jit
    def shown(states: State) -> Any:
        found = jax.vmap(jax.vmap(lambda state: views(game, state)))(states)
        return found, jax.vmap(jax.vmap(game.present))(states)

    # A step later than the last of its episode, a game shows how that ended.
    states = jax.tree.map(
        lambda before, after: np.concatenate(
            [before[:1], np.where(_like(ended, before)[1:], after[:-1], before[1:]), after[-1:]]
        ),
        play.state,
        seen.after,
    )
    view, present = jax.device_get(shown(states))

    def acted(leaf: Any, otherwise: int | bool) -> Any:
        """[T + 1, B, ...] of the episode's own steps, and something else from its end on."""
        own = np.where(_like(ended, leaf), otherwise, leaf)
        return np.concatenate([own, np.full_like(own[:1], otherwise)])

    kinds = len(game.targets)
    rows = Rows(
        planes=view.planes > 0,
        legal=view.legal,
        time=view.time[:, :, 0],
        last_actions=view.last_actions[:, :, 0].astype(np.int8),
        present=present,
        joint=acted(play.act.action, -1).astype(np.int8),
        reward=acted(play.outcome.reward, 0).astype(np.float32),
        took=acted(play.outcome.took, 0).astype(np.uint8),
        done=acted(play.outcome.done, False),
        aim=acted(np.asarray(aims(play.act, kinds)), -1).astype(np.int8),
    )
    return jax.tree.map(lambda leaf: np.swapaxes(leaf, 0, 1), rows)


def _like(mask: np.ndarray, leaf: Any) -> np.ndarray:
    """[T, B, 1, ...] as many axes as the leaf has."""
    return mask.reshape(mask.shape + (1,) * (leaf.ndim - 2))
