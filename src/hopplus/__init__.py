"""hopplus: opponent-modelling players for mixed-motive Markov games."""

from typing import TYPE_CHECKING, Any

from hopplus.runtime import set_up

if TYPE_CHECKING:
    from hopplus.api import ConfigError as ConfigError
    from hopplus.api import Decision as Decision
    from hopplus.api import Found as Found
    from hopplus.api import LoadedPlayer as LoadedPlayer
    from hopplus.api import Run as Run
    from hopplus.api import adapt as adapt
    from hopplus.api import certify as certify
    from hopplus.api import crossplay as crossplay
    from hopplus.api import evaluate as evaluate
    from hopplus.api import load_player as load_player
    from hopplus.api import load_players as load_players
    from hopplus.api import register_context as register_context
    from hopplus.api import register_game as register_game
    from hopplus.api import register_player as register_player
    from hopplus.api import register_preset as register_preset
    from hopplus.api import train as train

set_up()

__version__ = "0.2.0"
__all__ = [
    "ConfigError",
    "Decision",
    "Found",
    "LoadedPlayer",
    "Run",
    "adapt",
    "certify",
    "crossplay",
    "evaluate",
    "load_player",
    "load_players",
    "register_context",
    "register_game",
    "register_player",
    "register_preset",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import what programs ask for only when they do, so that `import hopplus` stays quick."""
    if name in __all__:
        from hopplus import api

        return getattr(api, name)
    raise AttributeError(f"module 'hopplus' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
