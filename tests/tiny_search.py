"""Tiny players that look ahead, made once: what tests of them share."""

from dataclasses import replace
from typing import Any

import jax

from hopplus.config import PartName, SearchConfig, TrainConfig
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.learning.learner import Learner, Learning
from hopplus.players.actor import Actor, make_actor
from hopplus.players.planner import Planner
from hopplus.presets import PRESETS
from hopplus.types import View
from tiny_hop_plus import CONFIG, GAME, begun, jit, random_like

GAME_MADE = make_game(GAME)
_views = jit(lambda state: views(GAME_MADE, state))


def seen(layout: str) -> View:
    """[N, ...] what every seat sees of a board."""
    found: View = _views(GAME_MADE.parse(layout))
    return found


def config_of(*parts: PartName, **settings: Any) -> TrainConfig:
    """All sizes tiny; the settings of the search are all at their defaults unless given."""
    return replace(CONFIG, parts=parts, **settings)


def actor_of(*parts: PartName, **settings: Any) -> Actor:
    return make_actor("tiny", GAME_MADE, config_of(*parts, **settings))


def planner_of(*parts: PartName, **search: Any) -> Planner:
    return Planner(actor_of(*parts), GAME_MADE, SearchConfig(**search))


def mind_of(actor: Actor | Planner, seed: int = 0) -> Any:
    """Everything that it could have learned, at random."""
    return random_like(jax.eval_shape(actor.init, jax.random.key(0)), seed)


def begun_beside(learner: Learner) -> Learning:
    """As `begun`, where others who have learned sit at the board too."""
    now = begun(learner)
    params = tuple(
        own if group == learner.learning else random_like(own, 50 + group)
        for group, own in enumerate(now.params)
    )
    return replace(now, params=params)


DISCOUNT = 0.5


def preset(name: str, **settings: Any) -> TrainConfig:
    """The parts and the search of a preset, all as small as can be."""
    made = PRESETS[name]
    search = replace(made.search, simulations=6, trees=2, discount=DISCOUNT)
    return replace(CONFIG, parts=made.parts, search=search, **settings)
