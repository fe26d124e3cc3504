"""Who plays: shared by the commands that let players play."""

from pathlib import Path

from hopplus.config import ConfigError, GameConfig
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.learning.company import Company, make_company
from hopplus.learning.restore import find_trained, full_name, is_guest, run_seats
from hopplus.learning.trained import Trained, named
from hopplus.players.seating import split_names
from hopplus.runs.folder import open_run


def company_of(
    run: Path | None, players: str | None, game: GameConfig, seed: int, greedy: bool
) -> tuple[Game, Company]:
    """The game and who plays it, from a run, from names, or both.

    With a run, its own game is played, `run` means whoever sits there in the run, and that is
    everyone when no names are given.
    """
    if run is None and players is None:
        raise ConfigError("who plays? Give a run folder, or --players stag,stag,hare,random")
    own: list[str | Trained] = []
    if run is not None:
        if game != GameConfig():
            raise ConfigError(f"{run} has a game of its own: leave --game options out")
        folder = open_run(run)
        game, own = folder.config().game, run_seats(folder, seed)
    names = split_names(players, game.seats) if players else ["run"] * game.seats
    seated, known = [], {}
    for seat, name in enumerate(names):
        who: str | Trained = name
        if name == "run" and run is not None:
            who, name = own[seat], f"{run.name}@{seat}"
        elif is_guest(name):
            name = full_name(name, seat)
            who = find_trained(name)
        if isinstance(who, str):
            name = who
        else:
            known[name] = named(who, name, greedy=greedy)
        seated.append(name)
    made = make_game(game)
    return made, make_company(seated, made, known)
