"""Scripted players by name."""

import difflib
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from hopplus.config import ConfigError
from hopplus.games.game import Game, has_board
from hopplus.players.player import Own, Player
from hopplus.players.scripted.coin import Cooperator, Defector, Grudger, TitForTat
from hopplus.players.scripted.families import FAMILIES
from hopplus.players.scripted.script import Grudge, Noisy, Random, Scripted, Seek, Switch
from hopplus.players.scripted.snowdrift import Clear, Idle, Late, Reciprocal
from hopplus.players.scripted.stag_hunt import Trusting, Wary
from hopplus.registry import Registry, import_named


def _seekers(game: Game) -> tuple[Seek, ...]:
    """One for each kind of thing on the board."""
    obstacles, kinds = game.seats, len(game.targets)
    return tuple(
        Seek(called, target, kind, kinds, obstacles)
        for kind, (called, target) in enumerate(game.targets.items())
    )


Mixed = Literal["all", "conditional", "population"]


class Row(NamedTuple):
    """A player that is found by name in the games that it is for."""

    make: Callable[[Game], Player]
    about: Callable[[Game], str]  # what it does, in words
    plays: Callable[[Game], bool] = lambda game: True
    mixed: Mixed | None = None  # the mixtures that it is in, in games of its own


def _has_kinds(game: Game) -> bool:
    """Whether there are several kinds of things, and what is done tells which is taken."""
    return len(game.targets) > 1 and all(t.action is not None for t in game.targets.values())


def _has_things(game: Game) -> bool:
    return bool(game.targets) and has_board(game)


def _rows(only: str, mixed: Mixed, *kinds: Any) -> dict[str, Row]:
    """Players of one game: classes that are made for it, and say in a line what they do."""
    return {kind.name: Row(kind.made_for, _says(kind.about), _plays(only), mixed) for kind in kinds}


def _says(about: str) -> Callable[[Game], str]:
    return lambda game: about


def _plays(only: str) -> Callable[[Game], bool]:
    return lambda game: game.name == only


# Besides those that are called after the things on the board.
SCRIPTED: Registry[Row] = Registry(
    "player",
    {
        "random": Row(
            lambda game: Random(len(game.targets)),
            lambda game: "any legal action, all alike",
        ),
        "switch": Row(
            lambda game: Switch(_seekers(game)),
            lambda game: f"draws {' or '.join(game.targets)} anew each episode",
            lambda game: bool(game.targets),
        ),
        "grudge": Row(
            lambda game: Grudge(_seekers(game)),
            lambda game: (
                f"goes for {next(iter(game.targets))} until another does not, and for"
                f" {list(game.targets)[-1]} in the trial's episodes after that"
            ),
            _has_kinds,
        ),
        **_rows("stag-hunt-v1", "conditional", Trusting, Wary),
        **_rows("snowdrift-v1", "all", Clear, Idle, Reciprocal, Late),
        "drift": Row(Clear.made_for, _says("another name of clear"), _plays("snowdrift-v1")),
        **_rows("coin-v1", "all", Cooperator, Defector, TitForTat, Grudger),
        **{
            kind.name: Row(kind.made_for, _says(kind.about), _has_things, "population")
            for kind in FAMILIES
        },
    },
    group="hopplus.players",
)
OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:function, and never noisy-stag:0.1


def register_player(name: str, make: Callable[[Game], Player], about: str) -> None:
    """Add a player of one's own to the table, for this process; `module:function` names one
    anywhere without. `about` says what it does, for `hopplus list players`."""
    SCRIPTED.add(name, Row(lambda game: Own(name, make(game)), _says(about)))


def _scripted_row(name: str) -> Row:
    """The row of that name; what an installed package brings may also be a function alone."""
    row: Any = SCRIPTED[name]
    if isinstance(row, Row):
        return row
    return Row(lambda game: Own(name, row(game)), lambda game: "brought by an installed package")


def player_names(game: Game) -> dict[str, str]:
    """The scripted players of a game: how each is called, and what it does."""
    seekers = {k: f"goes to the nearest {k} it sees and takes it" for k in game.targets}
    listed = {name: _scripted_row(name) for name in SCRIPTED.listed()}
    rows = {name: row.about(game) for name, row in listed.items() if row.plays(game)}
    found = {"random": rows.pop("random"), **seekers, **rows}
    families = {name for name, row in listed.items() if row.mixed == "population"}
    noisy = {
        f"noisy-{name}:P": f"as {name}, but any legal action with probability P"
        for name in found
        if name not in {"random", *families}  # which may be noisy too, but fill the list
    }
    return found | noisy


def mixed_names(game: Game, which: Mixed = "all", held_out: Sequence[str] = ()) -> tuple[str, ...]:
    """The scripted players that mixtures are made of: those of the game itself, or else one for
    each kind of thing and `random`; with `conditional`, also those whose acts depend on what has
    happened in the trial; or, as the `population`, the families but those held out."""
    own: dict[str | None, list[str]] = {"all": [], "conditional": [], "population": []}
    for name, row in SCRIPTED.items():
        if row.mixed and row.plays(game):
            own[row.mixed].append(name)
    if which == "population":
        return _left(own["population"], held_out, game)
    more = own["conditional"] if which == "conditional" else []
    return (*(own["all"] or (*game.targets, "random")), *more)


def _left(families: list[str], held_out: Sequence[str], game: Game) -> tuple[str, ...]:
    if not families:
        raise ConfigError(f"there is no population in {game.name}: it has no things to go for")
    if unknown := [name for name in held_out if name not in families]:
        raise ConfigError(
            f"--held-out is {unknown[0]!r}, and the families are {', '.join(families)}"
        )
    left = tuple(name for name in families if name not in held_out)
    if not left:
        raise ConfigError("--held-out names every family: nobody is left to learn among")
    return left


def scripted(name: str, game: Game) -> Player:
    """The player of that name that has not learned, such as `stag`, `random`, `noisy-hare:0.1`, or
    somebody's own: `module:function`, a function from the game to the player."""
    seekers = {seeker.name: seeker for seeker in _seekers(game)}
    if name in SCRIPTED and _scripted_row(name).plays(game):
        return _scripted_row(name).make(game)
    if name in seekers:
        return seekers[name]
    if OWN.fullmatch(name):
        return Own(name, import_named(name, "player")(game))
    base, _, rate = name.removeprefix("noisy-").partition(":")
    if name.startswith("noisy-") and base in (*seekers, *SCRIPTED) and base != "random":
        player = scripted(base, game)
        if isinstance(player, Scripted):
            return Noisy(player, _rate(name, rate))
    known = list(player_names(game))
    near = difflib.get_close_matches(name, known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise ConfigError(f"no player is called {name!r}{hint}; there are {', '.join(known)}")


def drawn_from(name: str, game: Game) -> list[str]:
    """The players without memory of whom a player is one, drawn anew each episode in the order of
    the game's targets: two for a switch, and only itself for any other."""
    if not re.fullmatch(r"switch|noisy-switch:.*", name):
        return [name]
    return [name.replace("switch", kind) for kind in game.targets]


def _rate(name: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1:
        raise ConfigError(
            f"player {name!r} needs a rate from 0 to 1 behind a colon, as in noisy-stag:0.1"
        )
    return rate
