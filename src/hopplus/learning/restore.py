"""From a run's configuration and files to the things they stand for: its learner, its players."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from hopplus.config import MIXED, ConfigError, TrainConfig
from hopplus.games import make_game
from hopplus.learning.beside import make_beside
from hopplus.learning.company import make_company
from hopplus.learning.initial import Initial, find_initial, read_initial, write_initial
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.parts import check_world
from hopplus.learning.seeds import seed_keys
from hopplus.learning.trained import Trained, named, read_player, write_player
from hopplus.players.actor import make_actor
from hopplus.players.planner import with_search
from hopplus.players.scripted import mixed_names
from hopplus.players.seating import options, split_names
from hopplus.runs.folder import RunFolder, make_run, open_run

PLAYER_FILE = ".safetensors"
INSIDE = "players/"  # where a run keeps players from elsewhere


def new_run(path: Path, config: TrainConfig) -> RunFolder:
    """Make the folder of a run; players from elsewhere are copied into it."""
    names = [full_name(name, seat) for seat, name in enumerate(seat_names(config))]
    guests = find_guests(names)
    inside = {name: f"{INSIDE}{number}{PLAYER_FILE}" for number, name in enumerate(guests)}
    seats = [MIXED.join(inside.get(one, one) for one in options(name)) for name in names]
    seated = replace(config, seats=",".join(seats), train_against=None)
    settled, initial = find_initial(seated)
    known = {inside[name]: guests[name] for name in guests}
    make_learner(settled, known, initial)  # complains if it must
    with make_run(path, settled) as folder:
        write_initial(folder, initial)
        for name, trained in guests.items():
            write_player(folder / inside[name], trained)
    return RunFolder(path)


def seat_names(config: TrainConfig) -> list[str]:
    """One name per seat."""
    seats = config.game.seats
    if config.train_against:
        everyone = MIXED.join(mixed_names(make_game(config.game)))
        return ["learn", *[everyone] * (seats - 1)]
    return split_names(config.seats, seats) if config.seats else ["learn"] * seats


def learning_seats(config: TrainConfig) -> list[int]:
    """The seats that learn."""
    return [seat for seat, name in enumerate(seat_names(config)) if name == "learn"]


def learns_everywhere(config: TrainConfig) -> bool:
    """Whether every seat learns, so that no seat should do better than another."""
    return set(seat_names(config)) == {"learn"} and len(set(config.game.weights)) == 1


def is_guest(name: str) -> bool:
    """Whether a name means a run (runs/a, runs/a@2) or a player's file, and no script."""
    return "/" in name or "@" in name or name.endswith(PLAYER_FILE)


def is_inside(name: str) -> bool:
    """Whether a name means a player that the run keeps in its own folder."""
    return re.fullmatch(rf"{INSIDE}\d+{re.escape(PLAYER_FILE)}", name) is not None


def full_name(name: str, seat: int) -> str:
    """The name, with the seat it will sit in where it names a run and no seat of it."""

    def full(one: str) -> str:
        whole = not is_guest(one) or "@" in one or one.endswith(PLAYER_FILE)
        return one if whole else f"{one}@{seat}"

    return MIXED.join(full(one) for one in options(name))


def find_guests(names: list[str]) -> dict[str, Trained]:
    """The players from elsewhere among the names, and among their mixtures."""
    called = dict.fromkeys(one for name in names for one in options(name))
    return {one: find_trained(one) for one in called if is_guest(one)}


def find_trained(name: str, seed: int = 0) -> Trained:
    """The player that `runs/a@2` or `player.safetensors` means."""
    if name.endswith(PLAYER_FILE):
        return read_player(Path(name))
    path, _, number = name.rpartition("@")
    if not number.isdigit():
        raise ConfigError(f"{name!r} needs a seat number behind the @")
    players = run_players(open_run(Path(path)), seed)
    if int(number) not in players:
        raise ConfigError(f"seat {number} of {path} is no learned player; {sorted(players)} are")
    return players[int(number)]


def run_players(run: RunFolder, seed: int = 0) -> dict[int, Trained]:
    """The learned players of a run by their seats; `seed` counts the run's seeds from 0."""
    config = run.config()
    if not 0 <= seed < config.seeds:
        raise ConfigError(f"the run has {config.seeds} seeds, numbered from 0, and no {seed}")
    learner = restored_learner(run)
    saved = run.load(empty_learning(learner, config))
    if saved is None:
        raise ConfigError(f"{run.path} has no usable checkpoint yet")
    # By NumPy: JAX would compile a program for every shape.
    sets = jax.tree.map(lambda leaf: np.asarray(leaf)[seed], saved.tree.params[learner.learning])
    shared = learner.actor.shares_params
    return {
        int(seat): named(
            Trained(
                learner.actor,
                jax.tree.map(
                    lambda leaf: jax.device_put(leaf[0 if shared else place]),  # noqa: B023
                    sets,
                ),
                config.search.valuing(config.ppo.discount),
                config.ppo.prosociality,
            ),
            f"seat {seat}",
        )
        for place, seat in enumerate(learner.seats)
    }


def run_seats(run: RunFolder, seed: int = 0) -> tuple[list[str], dict[str, Trained]]:
    """Who sits in each seat of a run, by name, and those of them that have learned."""
    names = seat_names(run.config())
    known = {f"{run.path.name}@{seat}": player for seat, player in run_players(run, seed).items()}
    called = [
        f"{run.path.name}@{seat}" if name == "learn" else name for seat, name in enumerate(names)
    ]
    return called, known | _inside(run)


def _inside(run: RunFolder) -> dict[str, Trained]:
    """The players from elsewhere that a run keeps."""
    called = {one for name in seat_names(run.config()) for one in options(name) if is_inside(one)}
    return {one: read_player(run.path / one) for one in called}


def make_learner(
    config: TrainConfig,
    guests: dict[str, Trained],
    initial: Initial | None = None,
    shown: int = 0,
) -> Learner:
    """The learner a configuration describes, with the trained players it names and the parts that
    were learned before; it may be shown who of so many kinds the others are."""
    names = seat_names(config)
    if any("learn" in options(name) and name != "learn" for name in names):
        raise ConfigError("learn cannot be one of a mixture: a seat learns or it does not")
    if "learn" not in names:
        raise ConfigError("nobody learns: at least one of --seats must be learn")
    game = make_game(config.game)
    if "world" in config.parts:
        check_world(config.world.model, config.game, game)
    actor = make_actor("learn", game, config, shown)
    player = with_search(actor, game, config.search.valuing(config.ppo.discount))
    company = make_company(names, game, guests, player, trial=config.trial)
    group = [player.name for player, _ in company.seating.groups].index("learn")
    seats = company.seating.groups[group][1]
    beside = make_beside(config, game, actor, seats, initial.fields if initial else {})
    return Learner(game, company, config.ppo, config.updates, group, beside)


def restored_learner(run: RunFolder) -> Learner:
    """The learner of an existing run."""
    return maker(run)(run.config())


def maker(run: RunFolder) -> Callable[[TrainConfig], Learner]:
    """Makes learners for settings like a run's, with the company and the parts that it keeps."""
    return lambda config: make_learner(config, _inside(run), read_initial(run.path, config))


def empty_learning(learner: Learner, config: TrainConfig) -> Learning:
    """The shapes of what is learned, over seeds."""
    shapes: Learning = jax.eval_shape(learner.init_all, seed_keys(config))
    return shapes
