"""Players of finished runs, and players in files of their own."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import jax

from hopplus.config import ConfigError, SearchConfig, TrainConfig, from_json, to_json
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.players.actor import Actor, make_actor
from hopplus.players.parameters import PlayerParams
from hopplus.players.planner import Planner, with_search
from hopplus.runs.checkpoint import filled, read_arrays, write_arrays
from hopplus.runs.folder import clear_errors

FORMAT, OLD = "hopplus-player-3", "hopplus-player-2"  # what hopplus 0.1 wrote


@dataclass(frozen=True)
class Trained:
    """A learned player: who it is and what it has learned. It can sit in any seat."""

    actor: Actor
    params: PlayerParams  # one set
    search: SearchConfig = field(default_factory=SearchConfig)  # how it looked ahead to learn
    config: TrainConfig = field(default_factory=TrainConfig)  # of its run

    @property
    def play(self) -> SearchConfig:
        """How it looks ahead now that it has learned: without noise, which was there to explore."""
        return replace(self.search, noise=0.0)

    def playing(self, game: Game, asked: SearchConfig | None) -> Actor | Planner:
        """The player with the search that is asked for, or that it has learned with."""
        if asked is None or asked == SearchConfig():
            return with_search(self.actor, game, self.play, self.config)
        asked.check_asked()
        if asked.simulations and self.config.ppo.social:
            raise ConfigError(
                f"{self.actor.name} has learned to value more than its own rewards, and a search"
                " looks for these"
            )
        if asked.simulations and self.config.ppo.trial_discount:
            raise ConfigError(
                f"{self.actor.name} has learned to value later episodes too, and a search ends with"
                " this one"
            )
        return with_search(self.actor, game, asked.valuing(self.search.worth), self.config)


def write_player(path: Path, trained: Trained) -> None:
    """Write one player as a safetensors file that says how to read it."""
    actor = trained.actor
    about = {
        "format": FORMAT,
        "name": actor.name,
        # Its making by name and number: a context of one's own is found again by its name.
        "config": json.dumps(to_json(trained.config)),
        "search": json.dumps(to_json(trained.search)),
    }
    with clear_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_arrays(path, trained.params, about)


def read_player(path: Path) -> Trained:
    """Read what `write_player` wrote; runs no code from the file."""
    arrays, about = read_arrays(path, "the player")
    if about.get("format") == OLD:
        raise ConfigError(f"{path} is a player of hopplus 0.1, which reads it: export it anew")
    if about.get("format") != FORMAT:
        raise ConfigError(f"{path} is not a player of this version of hopplus ({FORMAT})")
    try:
        config = from_json(TrainConfig, json.loads(about["config"]))
        actor = make_actor(about["name"], make_game(config.game), config)
        search = from_json(SearchConfig, json.loads(about.get("search", "{}")))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"the player {path} does not say what it is: {error}") from error
    like = jax.eval_shape(actor.init, jax.random.key(0))
    trained = Trained(actor, filled(like, arrays, str(path)), search, config)
    return named(trained, actor.name)


def named(trained: Trained, name: str, *, greedy: bool = False) -> Trained:
    """The same player under another name, drawing from its policy or taking its best action."""
    actor = replace(trained.actor, name=name, greedy=greedy, shares_params=False)
    return replace(trained, actor=actor)
