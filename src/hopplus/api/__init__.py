"""The Python front door: what `import hopplus` offers, and the command line calls."""

# `X as X` tells type checkers that a name is handed on, without a second list of them all.
from hopplus.api.found import Found as Found
from hopplus.api.players import Decision as Decision
from hopplus.api.players import LoadedPlayer as LoadedPlayer
from hopplus.api.players import load_player as load_player
from hopplus.api.players import load_players as load_players
from hopplus.api.run import Run as Run
from hopplus.api.run import train as train
from hopplus.api.studies import adapt as adapt
from hopplus.api.studies import certify as certify
from hopplus.api.studies import crossplay as crossplay
from hopplus.api.studies import evaluate as evaluate
from hopplus.config import ConfigError as ConfigError
from hopplus.games import register_game as register_game
from hopplus.players.context.registry import register_context as register_context
from hopplus.players.scripted import register_player as register_player
from hopplus.presets import register_preset as register_preset
