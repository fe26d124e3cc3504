"""How well are the others foreseen? What models of them say, held against what each really might
have done; also where they were never met. And do the models know how well they know?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import SearchConfig
from hopplus.diagnosis.models.classes import calibration_error, describe_bins
from hopplus.evaluation.trials import Names, Trials, make_trials
from hopplus.games.game import Game, views
from hopplus.play.introspection import actor_of, predict_others, predicts
from hopplus.play.rollout import rollout, start
from hopplus.play.trained import Trained
from hopplus.players.actor import Actor
from hopplus.players.parameters import PlayerParams
from hopplus.types import Params, Trajectory, View

BINS = 10  # of how sure models are, from 0 to 1
MOST_GAMES = 512  # whose every step is looked at side by side


class Foreseen(eqx.Module):
    """What a player's models say of the next act of each of M others, and what is true of it."""

    hit: Any  # [M] bool, it does what is found likeliest
    right: Any  # [M] how often that is so, by what it really might do
    best: Any  # [M] how often that could be so at best
    sure: Any  # [M] how often by what the models say themselves
    nats: Any  # [M] what the models lack: the divergence from how it really acts
    counts: Any  # [M] bool, it is there and has a choice


def foresee(
    game: Game,
    actor: Actor,
    player_params: PlayerParams,
    now: Trajectory,
    seat: int,
    inferred: jax.Array,
) -> Foreseen:
    """At one step of play, with what is inferred by the player in that seat. One without models
    foresees nothing."""
    order = (seat + np.arange(game.seats)) % game.seats
    seen = views(game, now.state)
    legal = seen.legal[order]
    true, acts = jnp.exp(now.act.logits[order[1:]]), now.act.action[order[1:]]  # [M, A], [M]
    choices = legal[1:].sum(axis=1)
    counts = now.present[order[1:]] & (choices > 1)
    if not predicts(actor, player_params):
        nothing = jnp.zeros(len(acts))
        return Foreseen(counts & False, nothing, true.max(axis=1), nothing, nothing, counts)
    view: View = jax.tree.map(lambda leaf: leaf[seat], seen)
    said = predict_others(actor, player_params, view, legal, inferred)
    likeliest = said.argmax(axis=1)
    right = jnp.take_along_axis(true, likeliest[:, None], axis=1)[:, 0]
    apart = jnp.where(true > 0, true * (jnp.log(true) - jnp.log(jnp.maximum(said, 1e-9))), 0.0)
    return Foreseen(
        hit=likeliest == acts,
        right=right,
        best=true.max(axis=1),
        sure=said.max(axis=1),
        nats=apart.sum(axis=1),
        counts=counts,
    )


@dataclass(frozen=True)
class Foresight:
    """Of one player among K lineups in E episodes, while it is there itself."""

    lineups: list[Names]
    right: np.ndarray  # [K, E] share of the others' acts that are foreseen
    best: np.ndarray  # [K, E] what any model could have
    nats: np.ndarray  # [K, E] what the models lack, an act
    calibration: list[list[dict[str, Any]]]  # [E] of what they find likeliest, by how sure they are

    @property
    def calibration_error(self) -> list[float]:
        """[E] how far off the models' own chances are on average."""
        return [calibration_error(rows) for rows in self.calibration]

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "calibration_error": self.calibration_error}


def measure_foresight(
    game: Game,
    focal: Trained,
    lineups: Sequence[Names],
    background: Mapping[str, Trained],
    seat: int,
    episodes: int,
    trials: int,
    seed: int,
) -> Foresight:
    """Watch a player's models in so many trials among each lineup."""
    table, params = make_trials(game, focal, lineups, background, seat, SearchConfig())
    keys = jax.random.split(jax.random.key(seed), trials)
    chosen = np.array([table.choices(lineup) for lineup in lineups])  # [K, N]
    together = max(1, MOST_GAMES // trials)  # lineups side by side
    sums = {name: np.zeros((len(chosen), episodes)) for name in ("right", "best", "nats", "counts")}
    bins = np.zeros((episodes, 3, BINS))  # acts, those that were as foreseen, and how sure
    for first in range(0, len(chosen), together):
        some = chosen[first : first + together]
        choices = jnp.asarray(np.repeat(some, trials, axis=0))
        watched = _watch(table, params, jnp.tile(keys, len(some)), choices, episodes)
        number, there, seen = jax.device_get(watched)
        lineup = np.broadcast_to(first + np.repeat(np.arange(len(some)), trials), number.shape)
        counts = seen.counts & (there & (number < episodes))[..., None]  # [T, B, M]
        at = (lineup, np.minimum(number, episodes - 1))
        for name, total in sums.items():
            np.add.at(total, at, np.where(counts, getattr(seen, name), 0).sum(axis=-1))
        place = np.minimum((seen.sure * BINS).astype(int), BINS - 1)
        for episode, total in enumerate(bins):
            held = counts & (number == episode)[..., None]
            for row, value in enumerate((counts, seen.right, seen.sure)):
                total[row] += np.bincount(place[held], value[held], BINS)
    acts = np.maximum(sums.pop("counts"), 1)
    means = {name: total / acts for name, total in sums.items()}
    return Foresight(list(lineups), **means, calibration=[describe_bins(*one) for one in bins])


@eqx.filter_jit
def _watch(
    table: Trials, params: tuple[Params, ...], keys: jax.Array, choices: jax.Array, episodes: int
) -> tuple[jax.Array, jax.Array, Foreseen]:
    """[T, B] the episode's number and whether the player is there, and what it foresees."""
    game, seat = table.game, table.seat
    plays = jax.vmap(lambda key, one: start(game, table.seating, key, one))(keys, choices)
    steps = rollout(game, table.seating, params, plays, episodes * game.horizon)[1]
    own: PlayerParams = jax.tree.map(lambda leaf: leaf[0], params[table.group])
    actor = actor_of(table.focal)
    assert actor is not None
    inferred = steps.act.inferred[:, :, seat, : actor.context.size]

    def at(row: tuple[Trajectory, jax.Array]) -> Foreseen:
        now, inferred = row
        return foresee(game, actor, own, now, seat, inferred)

    found = jax.lax.map(jax.vmap(at), (steps, inferred))
    return steps.episode, steps.present[..., seat], found
