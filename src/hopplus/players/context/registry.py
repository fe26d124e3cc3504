"""Contexts by name: how each is made for a game, from the settings of a run."""

from collections.abc import Callable, Collection
from typing import TypeAlias

from hopplus.config import MIXED, ConfigError, TrainConfig
from hopplus.games.game import Game, check_board, has_board
from hopplus.models.goal import GoalPart
from hopplus.players.context.belief import BeliefContext
from hopplus.players.context.context import Context, NoContext
from hopplus.players.context.episodes import EpisodesContext
from hopplus.players.context.goals import GoalsContext
from hopplus.players.context.joined import join
from hopplus.players.context.liam import LiamContext
from hopplus.players.context.oracle import OracleContext
from hopplus.players.context.record import RecordContext
from hopplus.players.context.recurrent import RecurrentContext
from hopplus.players.context.traits import TraitsContext
from hopplus.players.context.types import TypesContext, foretells
from hopplus.players.scripted import mixed_names, scripted
from hopplus.registry import Registry

MakeContext: TypeAlias = Callable[[Game, TrainConfig], Context]


def _make_recurrent(game: Game, config: TrainConfig) -> Context:
    return RecurrentContext(game.shape, game.seats, len(game.action_names), config.memory)


def _make_goals(game: Game, config: TrainConfig) -> Context:
    c = config.goal
    prior = GoalPart(game.shape, len(game.action_names), c.prior, has_board(game))
    goals = game.seats - 1 if c.about == "each" else 1
    return GoalsContext(prior, game.seats, goals, c.hidden, c.across, c.history == "each")


def _make_belief(game: Game, config: TrainConfig) -> Context:
    if game.hidden:
        raise ConfigError(f"a belief needs the whole game, but nobody sees {game.hidden}")
    return BeliefContext(config.game, config.belief)


def _make_traits(game: Game, config: TrainConfig) -> Context:
    check_board(game, "a model that is told traits")  # to know what others may do
    return TraitsContext(config.game, config.traits)


def _make_types(game: Game, config: TrainConfig) -> Context:
    if "imagination" in config.parts:
        raise ConfigError("--context types remembers too much of each step for imagination to keep")
    if _met(game, config) and not _known(game, config):
        raise ConfigError("--context types knows nobody of those who are drawn")
    return make_types(game, config)


def make_types(game: Game, config: TrainConfig) -> TypesContext:
    """Who holds others against the known players that a run of these settings meets, or against all
    families where it meets none."""
    if game.hidden:
        raise ConfigError(f"types are told apart on the whole board, but nobody sees {game.hidden}")
    check_board(game, "a context that holds others against known players")
    names = _known(game, config) or mixed_names(game, "population", config.held_out)
    return TypesContext(config.game, config.types, names)


def _met(game: Game, config: TrainConfig) -> list[str]:
    """The names of all whom one may sit with, each once."""
    return list(dict.fromkeys(name for names in _drawn(game, config) for name in names))


def _known(game: Game, config: TrainConfig) -> tuple[str, ...]:
    """Those of them whom somebody can be held against."""
    met = _met(game, config)
    return tuple(n for n in met if _is_script(game, n) and foretells(scripted(n, game)))


def _make_liam(game: Game, config: TrainConfig) -> Context:
    actions = len(game.action_names)
    return LiamContext(game.shape, game.seats, actions, config.liam, has_board(game))


def _make_oracle(game: Game, config: TrainConfig) -> Context:
    drawn = _drawn(game, config)
    everyone = {name for names in drawn for name in names}
    return tell_all(game, max(1, *map(len, drawn)), everyone)


def _drawn(game: Game, config: TrainConfig) -> list[tuple[str, ...]]:
    """The names of whom one may sit with, by their seats or those of all of them."""
    if config.train_against:
        return [mixed_names(game, config.train_against, config.held_out)]
    seats = [seat.split(MIXED) for seat in (config.seats or "").split(",")]
    return [tuple(n.strip() for n in names if n.strip() not in ("", "learn")) for names in seats]


def tell_all(game: Game, kinds: int, names: Collection[str]) -> OracleContext:
    """Which of so many kinds the others are, of these names; and what they are after, if any of
    them remembers the trial."""

    # Of one that has learned nobody knows what it is after: it does not say.
    remembers = (_is_script(game, name) and scripted(name, game).carries for name in names)
    goals = len(game.targets) if any(remembers) else 0
    return OracleContext(game.seats - 1, kinds, goals)


def _is_script(game: Game, name: str) -> bool:
    """Whether that is a player that has not learned."""
    try:
        scripted(name, game)
    except ConfigError:
        return False
    return True


def _make_episodes(game: Game, config: TrainConfig) -> Context:
    return EpisodesContext(game.seats - 1, config.trial)


def _make_record(game: Game, config: TrainConfig) -> Context:
    check_board(game, "a record of what was taken")
    if not game.targets:
        raise ConfigError(f"a record needs things to take, and {game.name} has none")
    return RecordContext(config.game)


CONTEXTS: Registry[MakeContext] = Registry(
    "context",
    {
        "none": lambda game, config: NoContext(game.seats - 1),
        "recurrent": _make_recurrent,
        "goals": _make_goals,
        "belief": _make_belief,
        "traits": _make_traits,
        "types": _make_types,
        "liam": _make_liam,
        "oracle": _make_oracle,
        "episodes": _make_episodes,
        "record": _make_record,
    },
    group="hopplus.contexts",
)


def register_context(name: str, make: MakeContext) -> None:
    """Add a context of one's own to the table, for this process; `--context module:function` finds
    one anywhere without."""
    CONTEXTS.add(name, make)


def make_context(game: Game, config: TrainConfig) -> Context:
    """What the players of a run make of the others, by the names that its settings give."""
    return join(*(CONTEXTS[name](game, config) for name in config.context_names))
