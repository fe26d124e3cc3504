"""The best anybody could do at predicting scripted players, computed from what they really do.

Three observers, none of whom can be beaten by a model that knows as little:

- `oracle` is told who sits there.
- `watching` does not, but knows who might, and weighs them by how well they explain every action
  the player has taken so far in the episode (Bayes' rule, exact: given who sits there, actions
  depend on the view alone). Where every seat is drawn from the same players, no model that is not
  told who sits there does better on average.
- `guessing` does not, and learns nothing from what it sees.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError
from hopplus.diagnosis.models.heldout import HeldOut
from hopplus.games.game import Game
from hopplus.players.player import Player
from hopplus.players.scripted import Scripted, drawn_from, scripted
from hopplus.program_cache import kept_jit
from hopplus.recorded.record import view_at
from hopplus.recorded.samples import Source

IMPOSSIBLE = -1e3  # a log-likelihood that rules a player out and still can be added up


@dataclass(frozen=True)
class Observer:
    """What one observer predicts, [M, A] probabilities, and how well that does on average."""

    probabilities: np.ndarray  # [M, A]
    truth: np.ndarray  # [M, A] what the players really draw from

    def figures(self) -> dict[str, float]:
        """Expected over what the players might have drawn, not over what they drew."""
        order = np.argsort(-self.probabilities, axis=1, kind="stable")
        hits = np.take_along_axis(self.truth, order, axis=1)
        log = np.log(np.maximum(self.probabilities, 1e-30))
        return {
            "top1": float(hits[:, 0].mean()),
            "top3": float(hits[:, :3].sum(axis=1).mean()),
            "cross_entropy": float(-(self.truth * log).sum(axis=1).mean()),
        }

    def recall(self) -> np.ndarray:
        """[A] the expected share of each action that is predicted as the likeliest."""
        first = self.probabilities.argmax(axis=1)
        chosen = np.zeros_like(self.truth)
        np.put_along_axis(chosen, first[:, None], 1.0, axis=1)
        total = self.truth.sum(axis=0)
        hits: np.ndarray = (self.truth * chosen).sum(axis=0)
        return np.where(total > 0, hits / np.maximum(total, 1e-30), 0.0)


def observe(held: HeldOut) -> dict[str, Observer]:
    """The observers of recorded play; none when somebody's distribution is not known."""
    try:
        scripts = [drawn_from(name, held.game) for name in held.players]
        players = tuple(scripted(name, held.game) for names in scripts for name in names)
    except ConfigError:  # a learned player
        return {}
    if any(isinstance(player, Scripted) and player.uses_chance for player in players):
        return {}  # one of a family: what it has drawn is not recorded
    chances = np.asarray(_distributions(held.game, players, held.source, held.steps))  # [M, X, A]
    first = np.cumsum([0] + [len(names) for names in scripts])  # of each player's scripts
    prior = _prior(held, scripts, first)  # [X]
    # A player that draws a script says by its aim which it was.
    several = np.array([len(names) > 1 for names in scripts])
    script = first[held.who] + np.where(several[held.who], held.aim, 0)
    truth = chances[np.arange(len(chances)), script]
    watching = _watched(held, chances, prior)
    weighed = {"oracle": truth, "watching": watching, "guessing": _mixed(prior, chances)}
    return {name: Observer(p, truth) for name, p in weighed.items()}


@kept_jit
def _distributions(
    game: Game, players: tuple[Player, ...], source: Source, steps: np.ndarray
) -> jax.Array:
    """[M, X, A] what each of the players would draw from."""

    def one(step: jax.Array) -> jax.Array:
        view = view_at(game, source.rows, step[0], step[1])
        key = jax.random.key(0)  # draws the action, which is not looked at
        acts = [player.act((), player.start(), view, key)[1] for player in players]
        return jnp.stack([jnp.exp(act.logits) for act in acts])

    return jax.lax.map(one, steps, batch_size=4096)


def _prior(held: HeldOut, scripts: list[list[str]], first: np.ndarray) -> np.ndarray:
    """[X] how likely each script is in a seat before anything is seen. A model is not told which
    seat it looks at, so neither are they."""
    prior = np.zeros(first[-1])
    for options in held.seats:
        for name in options:
            number = held.players.index(name)
            count = len(scripts[number])
            share = 1 / (len(held.seats) * len(options) * count)
            prior[first[number] : first[number] + count] += share
    return prior


def _watched(held: HeldOut, chances: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """[M, A] the scripts' distributions weighed by what the seat did before in the episode."""
    taken = np.take_along_axis(chances, held.action[:, None, None], axis=2)[..., 0]  # [M, X]
    with np.errstate(divide="ignore"):
        log = np.maximum(np.log(taken), IMPOSSIBLE)
    by_row = np.zeros((held.shard.size, held.game.seats, chances.shape[1]))
    by_row[held.row, held.seat] = log
    before = np.cumsum(by_row, axis=0) - by_row
    before -= before[held.shard.start][held.shard.episode]
    with np.errstate(divide="ignore"):
        weight = before[held.row, held.seat] + np.log(prior)
    weight = np.exp(weight - weight.max(axis=1, keepdims=True))
    return _mixed(weight / weight.sum(axis=1, keepdims=True), chances)


def _mixed(weight: np.ndarray, chances: np.ndarray) -> np.ndarray:
    return np.einsum("mx,mxa->ma", np.broadcast_to(weight, chances.shape[:2]), chances)
