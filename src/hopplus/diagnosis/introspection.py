"""What is in a learned player about the others it faces, and where is that lost?

Three places: in what is inferred about them, in the models of what they do, and in a policy that
does not listen. Each is measured in the same trials.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import SearchConfig
from hopplus.diagnosis.foresight import foresee
from hopplus.diagnosis.probe import fit_probe
from hopplus.evaluation.trials import Trials, make_trials, mixtures
from hopplus.games.game import Game
from hopplus.play.introspection import actor_of, predicts
from hopplus.play.rollout import rollout, start
from hopplus.play.trained import Trained
from hopplus.players.parameters import PlayerParams
from hopplus.types import Params, Trajectory

LEAST = 20  # players of each kind that a probe needs, to be fitted and to be judged


class TrialSteps(eqx.Module):
    """What is asked of each step [T, B] of trials; M = N - 1 others."""

    episode: Any  # [T, B] int32, how many of the trial are over
    time: Any  # [T, B] int32, steps of the episode
    present: Any  # [T, B] bool, the focal player is there
    inferred: Any  # [T, B, J]
    hit: Any  # [T, B, M] bool, the model of the other finds what it does likeliest
    best: Any  # [T, B, M] how often that could be so at best
    misled: Any  # [T, B, M] bool, it is so with what was inferred among other co-players
    counts: Any  # [T, B, M] bool, the other is there and has a choice
    alike: Any  # [T, B] how far the policy moves with what was inferred at that step of another
    # game among the same co-players; not a number if it had none
    other: Any  # [T, B] the same, among other co-players


@dataclass(frozen=True)
class Introspection:
    """The three measures of one player."""

    times: list[int]
    probe: np.ndarray  # [episodes, times] share of the others whose kind can be read
    chance: float
    lineups: list[tuple[str, ...]]
    accuracy: np.ndarray  # [lineups] of the models of the others; nan without any
    best: np.ndarray  # [lineups] what any model could have
    misled: np.ndarray  # [lineups] of the same models, with what was inferred among others
    moved_alike: np.ndarray  # [episodes] total variation of the policy
    moved_other: np.ndarray  # [episodes]
    infers: bool  # anything at all about the others
    models: bool  # of what they do


def introspect(
    game: Game,
    focal: Trained,
    seat: int,
    episodes: int,
    trials: int,
    times: Sequence[int],
    seed: int,
) -> Introspection:
    """Watch a player in about so many trials among the game's scripted players."""
    table, params = make_trials(game, focal, mixtures(game), {}, seat, SearchConfig())
    kinds, others = len(table.others), game.seats - 1
    lineups = np.array(list(product(range(kinds), repeat=others)))  # [K ** M, M]
    pairs = max(1, trials // (2 * len(lineups)))
    drawn = np.tile(np.repeat(lineups, 2, axis=0), (pairs, 1))  # [B, M] two of each, in a row
    seen = _watch_trials(table, params, jnp.asarray(drawn), episodes, jax.random.key(seed))
    seen = jax.device_get(seen)
    probe = np.array(
        [[read_kinds(seen, drawn, kinds, e, t) for t in times] for e in range(episodes)]
    )
    bags = list(combinations_with_replacement(range(kinds), others))
    held = [np.all(np.sort(drawn, axis=1) == bag, axis=1) for bag in bags]
    counts = seen.counts & (seen.episode < episodes)[..., None]
    models = predicts(focal.actor, focal.params)

    def by_lineup(figure: np.ndarray) -> np.ndarray:
        return np.array([figure[:, games][counts[:, games]].mean() for games in held])

    def by_episode(moved: np.ndarray) -> np.ndarray:
        within = [(seen.episode == e) & seen.present for e in range(episodes)]
        return np.array([_mean(moved[steps]) for steps in within])

    return Introspection(
        times=list(times),
        probe=probe,
        chance=1 / kinds,
        lineups=[tuple(table.others[kind].name for kind in bag) for bag in bags],
        accuracy=by_lineup(seen.hit) if models else np.full(len(held), np.nan),
        best=by_lineup(seen.best),
        misled=by_lineup(seen.misled) if models else np.full(len(held), np.nan),
        moved_alike=by_episode(seen.alike),
        moved_other=by_episode(seen.other),
        infers=focal.actor.context.infers,
        models=models,
    )


def pair_strangers(games: int, kinds: int, others: int) -> np.ndarray:
    """[B] for each game another in which all others are of other kinds, of three or more; games
    run through all lineups in order, two of each in a row."""
    return np.roll(np.arange(games), 2 * sum(kinds**place for place in range(others)))


def _mean(values: np.ndarray) -> float:
    """Of those that are known."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


@eqx.filter_jit
def _watch_trials(
    table: Trials, params: tuple[Params, ...], drawn: jax.Array, episodes: int, key: jax.Array
) -> TrialSteps:
    game, seat = table.game, table.seat
    places = (np.arange(game.seats) - seat - 1) % game.seats  # of each seat among the others
    choices = drawn[:, np.minimum(places, game.seats - 2)]  # [B, N]
    keys = jax.random.split(key, len(drawn))
    plays = jax.vmap(lambda key, chosen: start(game, table.seating, key, chosen))(keys, choices)
    steps = episodes * game.horizon
    trajectory = rollout(game, table.seating, params, plays, steps)[1]
    player_params: PlayerParams = jax.tree.map(lambda leaf: leaf[0], params[table.group])
    actor = actor_of(table.focal)
    assert actor is not None
    size = actor.context.size
    inferred = trajectory.act.inferred[:, :, seat, :size]

    def at(step: tuple[Trajectory, jax.Array, jax.Array, jax.Array]) -> Any:
        now, inferred, partner, stranger = step
        view = game.view(now.state, seat)

        def policy(inferred: jax.Array) -> jax.Array:
            return jnp.exp(actor.policy_and_value(player_params.policy, view, inferred)[0])

        own = policy(inferred)
        moved = [0.5 * jnp.abs(own - policy(taken)).sum() for taken in (partner, stranger)]
        told, misled = (
            foresee(game, actor, player_params, now, seat, taken) for taken in (inferred, stranger)
        )
        return now.present[seat], told.hit, told.best, misled.hit, told.counts, *moved

    games = np.arange(len(drawn))
    partners = games ^ 1  # two of each lineup in a row
    strangers = pair_strangers(len(games), len(table.others), game.seats - 1)
    partner, stranger = inferred[:, partners], inferred[:, strangers]
    rows = (trajectory, inferred, partner, stranger)
    present, hit, best, misled, counts, alike, other = jax.lax.map(jax.vmap(at), rows)
    number = trajectory.episode

    def clock(time: jax.Array, done: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.where(done, 0, time + 1), time

    first = jnp.zeros(len(drawn), jnp.int32)
    time = jax.lax.scan(clock, first, trajectory.outcome.done)[1]
    moment = number * game.horizon + time  # what is taken over must be of the same moment
    alike = jnp.where(moment == moment[:, partners], alike, jnp.nan)
    other = jnp.where(moment == moment[:, strangers], other, jnp.nan)
    return TrialSteps(number, time, present, inferred, hit, best, misled, counts, alike, other)


def read_kinds(seen: TrialSteps, drawn: np.ndarray, kinds: int, episode: int, time: int) -> float:
    """The share of the others whose kind a linear probe reads from what is inferred at a step of an
    episode; fitted to one half of the trials, judged by the other. Not a number where there are too
    few."""
    step, game = np.nonzero((seen.episode == episode) & (seen.time == time))
    codes, judged = seen.inferred[step, game], game % 4 >= 2  # partners stay together
    if codes.shape[1] == 0:
        return float("nan")
    found = []
    for other in range(drawn.shape[1]):
        labels = drawn[game, other]
        least = [np.bincount(labels[half], minlength=kinds).min() for half in (judged, ~judged)]
        if min(least) < LEAST:
            return float("nan")
        probe = fit_probe(codes[~judged], labels[~judged], kinds)
        right = probe.read(codes[judged]) == labels[judged]
        found.append(np.mean([right[labels[judged] == kind].mean() for kind in range(kinds)]))
    return float(np.mean(found))
