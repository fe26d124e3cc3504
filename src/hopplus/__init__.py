"""hopplus: opponent-modelling players for mixed-motive Markov games."""

from typing import Any

from hopplus.runtime import set_up

set_up()

__version__ = "0.2.0"
__all__ = ["load_player", "load_players"]


def __getattr__(name: str) -> Any:
    """Import what programs ask for only when they do, so that `import hopplus` stays quick."""
    if name in __all__:
        from hopplus import api

        return getattr(api, name)
    raise AttributeError(f"module 'hopplus' has no attribute {name!r}")
