"""From a run's configuration and files to the things they stand for: its learner, its players."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from hopplus.config import MIXED, ConfigError, TrainConfig
from hopplus.games import make_game
from hopplus.learning.auxiliary.learners import make_auxiliary_learners
from hopplus.learning.checkpoints import (
    find_warm_start,
    load_players,
    read_warm_start,
    stages_of,
    write_warm_start,
)
from hopplus.learning.learner import Learner
from hopplus.play.lineup import make_lineup
from hopplus.play.names import (
    INSIDE,
    PLAYER_FILE,
    Kind,
    RunName,
    check_seed_of,
    full_name,
    is_background,
    is_inside,
    kind_of,
    read_run_name,
    seeds_said,
)
from hopplus.play.seating import options, split_names
from hopplus.play.trained import Trained, named, read_player, write_player
from hopplus.players.actor import make_actor
from hopplus.players.context.context import Context
from hopplus.players.planner import Planner, with_search
from hopplus.players.scripted import mixed_names
from hopplus.recorded.models import check_world
from hopplus.runs.folder import RunFolder, check_free, open_run
from hopplus.runs.making import make_run
from hopplus.types import Params


def new_run(path: Path, config: TrainConfig) -> RunFolder:
    """Make the folder of a run; players from elsewhere are copied into it."""
    found = _settle(config)
    with make_run(path, found.config, {"met": found.met} if found.met else None) as folder:
        write_warm_start(folder, found.warm_start)
        for name, trained in found.inside.items():
            write_player(folder / name, trained)
    return RunFolder(path)


def find_run(path: Path, config: TrainConfig, advice: str) -> RunFolder | None:
    """The run that is there, if there is one, which must have been made with these settings."""
    wanted = _settle(config).config
    if not path.exists():
        check_free(path)  # raises where nothing can be made
        return None
    run = open_run(path)
    if run.config() != wanted:
        raise ConfigError(f"{path} was made with other settings: take them, or {advice}")
    return run


class Settled(NamedTuple):
    """What a run's folder is made of."""

    config: TrainConfig  # where everyone has a seat
    inside: dict[str, Trained]  # players that are kept there, by the names they have inside
    warm_start: dict[str, Params]  # what its parts begin from
    met: dict[str, str]  # where the players inside are from


def _settle(config: TrainConfig) -> Settled:
    """Who sits where, found, and all settings checked."""
    names = [full_name(name, seat) for seat, name in enumerate(seat_names(config))]
    background = find_background_players(names)
    inside = {name: f"{INSIDE}{number}{PLAYER_FILE}" for number, name in enumerate(background)}
    seats = [MIXED.join(inside.get(one, one) for one in options(name)) for name in names]
    seated = settled(config, seats)
    config, warm_start = find_warm_start(seated)
    known = {inside[name]: background[name] for name in background}
    make_learner(config, known, warm_start)  # raises if it must
    return Settled(config, known, warm_start, {inside[name]: name for name in background})


def settled(config: TrainConfig, seats: Sequence[str]) -> TrainConfig:
    """The configuration with everyone who may sit there by name."""
    return replace(config, seats=",".join(seats), train_against=None, held_out=(), co_play=())


def seat_names(config: TrainConfig) -> list[str]:
    """One name per seat."""
    seats = config.game.seats
    if config.draws:
        everyone = [one for name in config.co_play for one in stage_names(name)]
        if config.train_against:
            game = make_game(config.game)
            everyone = [*mixed_names(game, config.train_against, config.held_out), *everyone]
        return ["learn", *[MIXED.join(dict.fromkeys(everyone))] * (seats - 1)]
    return split_names(config.seats, seats) if config.seats else ["learn"] * seats


def stage_names(name: str) -> list[str]:
    """Everyone of a run: of each seed, stage and seat that learned, unless one is said; seats that
    share their parameters are one. An exported player is itself."""
    if kind_of(name) is Kind.FILE:
        return [name]
    if kind_of(name) is not Kind.RUN:
        raise ConfigError(f"--co-play has {name!r}, and takes runs and exported players")
    said = read_run_name(name)
    run = said.open()
    config = run.config()
    seats = learning_seats(config)[: 1 if config.ppo.parameters == "shared" else None]
    seats = seats if said.seat is None else [said.seat]
    stages = stages_of(run).values() if said.stage is None else [said.stage]
    if not stages:
        raise ConfigError(f"{run.path} has no usable checkpoint yet")
    return [
        str(RunName(said.path, seed, seat, stage))
        for seed in seeds_said(said, config)
        for stage in stages
        for seat in seats
    ]


def names_met(config: TrainConfig, facts: Mapping[str, Any]) -> list[str]:
    """One name per seat of a run, where those from elsewhere go by the names that they have there,
    as the run's facts say."""
    met = facts.get("met", {})
    return [MIXED.join(met.get(one, one) for one in options(name)) for name in seat_names(config)]


def learning_seats(config: TrainConfig) -> list[int]:
    """The seats whose players learn; returns of the others say nothing about the learning."""
    return [seat for seat, name in enumerate(seat_names(config)) if name == "learn"]


def sets_apart(config: TrainConfig) -> int:
    """How many sets of parameters of a run can learn apart, as `learning_layout` has it of its
    learner."""
    together = config.ppo.parameters == "shared" or config.ppo.lola.step
    return 1 if together else max(1, len(learning_seats(config)))


def learns_everywhere(config: TrainConfig) -> bool:
    """Whether every seat learns, so that no seat should do better than another."""
    alike = make_game(config.game).symmetric
    return len(learning_seats(config)) == config.game.seats and alike


def find_background_players(names: list[str]) -> dict[str, Trained]:
    """The players from elsewhere among the names, and among their mixtures."""
    called = dict.fromkeys(one for name in names for one in options(name))
    return {one: find_trained(one) for one in called if is_background(one)}


def find_trained(name: str) -> Trained:
    """The player that `runs/a#1@2` or `player.safetensors` means."""
    if kind_of(name) is Kind.FILE:
        return read_player(Path(name))
    said = read_run_name(name)
    if said.seat is None:
        raise ConfigError(f"{name!r} is a whole run: name one of its seats, as in {name}@0")
    return player_in(said, run_players(said.open(), said.seed, said.stage))


def player_in(said: RunName, players: dict[int, Trained]) -> Trained:
    """The learned player of the seat that is named."""
    assert said.seat is not None
    if said.seat not in players:
        some = ", ".join(str(replace(said, seat=seat)) for seat in players)
        raise ConfigError(f"nobody has learned in seat {said.seat} of {said.path}: take {some}")
    return players[said.seat]


def run_players(
    run: RunFolder, seed: int | None = None, stage: float | None = None
) -> dict[int, Trained]:
    """The learned players of one of a run's seeds, the first when not given, by their seats."""
    seed = run.config().seed if seed is None else seed
    return players_by_seed(run, [seed], stage)[seed]


def players_by_seed(
    run: RunFolder, seeds: Sequence[int], stage: float | None = None
) -> dict[int, dict[int, Trained]]:
    """The learned players of a run by seed and seat, as they are now or were at that stage."""
    config = run.config()
    places = {seed: check_seed_of(run, seed) for seed in seeds}
    actor = make_actor("learn", make_game(config.game), config)
    seats = learning_seats(config)
    learned = load_players(run, actor, len(seats), stage)
    search = config.search.valuing(config.ppo.discount)

    def trained(place: int, number: int) -> Trained:
        """The player at these places on the axes of seeds and of learning seats."""
        which = 0 if actor.shares_params else number
        params = jax.tree.map(lambda leaf: jax.device_put(leaf[place][which]), learned)
        player = Trained(actor, params, search, config)
        return named(player, f"seat {seats[number]}")

    return {
        seed: {seat: trained(place, number) for number, seat in enumerate(seats)}
        for seed, place in places.items()
    }


@dataclass(frozen=True)
class Seated:
    """Who sits in each seat of a run, by name, and those of them that have learned."""

    names: list[str]  # [N]
    known: dict[str, Trained]
    learners: list[str]  # the run's own, who are known too


def run_seats(run: RunFolder, seed: int | None = None) -> Seated:
    """Those of one of a run's seeds, the first when not given, which their names say."""
    seed = run.config().seed if seed is None else seed
    return seats_by_seed(run, [seed])[0]


def seats_by_seed(run: RunFolder, seeds: Sequence[int], stage: float | None = None) -> list[Seated]:
    """The same for several seeds; the names are those of all of them then, without a seed, so that
    one program serves them all."""
    names, inside = seat_names(run.config()), _inside(run)

    def seated(seed: int, players: dict[int, Trained]) -> Seated:
        said = seed if len(seeds) == 1 else None
        own = {seat: str(RunName(Path(run.path.name), said, seat, stage)) for seat in players}
        called = [own[seat] if name == "learn" else name for seat, name in enumerate(names)]
        known = {own[seat]: player for seat, player in players.items()} | inside
        return Seated(called, known, list(own.values()))

    return [seated(seed, found) for seed, found in players_by_seed(run, seeds, stage).items()]


def _inside(run: RunFolder) -> dict[str, Trained]:
    """The players from elsewhere that a run keeps."""
    called = {one for name in seat_names(run.config()) for one in options(name) if is_inside(one)}
    return {one: read_player(run.path / one) for one in called}


def players_met(run: RunFolder) -> dict[str, Trained]:
    """The same by the names that they have there."""
    met = run.facts().get("met", {})
    return {met.get(name, name): player for name, player in _inside(run).items()}


def make_learner(
    config: TrainConfig,
    background: dict[str, Trained],
    warm_start: Mapping[str, Params] | None = None,
    context: Context | None = None,
    regulars: bool = False,
) -> Learner:
    """The learner a configuration describes, with the trained players it names and the parts that
    were learned before; with the context that it names, or that one. Whoever is drawn comes again
    for every trial if these are `regulars`."""
    names = seat_names(config)
    if any("learn" in options(name) and name != "learn" for name in names):
        raise ConfigError("learn cannot be one of a mixture: a seat learns or it does not")
    if "learn" not in names:
        raise ConfigError("nobody learns: at least one of --seats must be learn")
    if config.ppo.lola.step and names != ["learn"] * 2:
        raise ConfigError(
            "--ppo.lola.step needs a game of two seats that both learn: --game.seats 2, and nobody"
            " else by --seats or --train-against"
        )
    game = make_game(config.game)
    if config.ppo.episodes == "whole" and config.ppo.unroll < game.horizon:
        raise ConfigError(
            f"--ppo.unroll is {config.ppo.unroll} but must be {game.horizon} or more with"
            " --ppo.episodes whole: as long as an episode can be"
        )
    if "world" in config.parts:
        check_world(config.world.model, game)
    actor = make_actor("learn", game, config, context)
    player = with_search(actor, game, config.search.valuing(config.ppo.discount), config)
    if isinstance(player, Planner):
        player = replace(player, shows_own=config.distil.value_target == "search")
    lineup = make_lineup(names, game, background, player, trial=config.stays, regulars=regulars)
    group = [player.name for player, _ in lineup.seating.groups].index("learn")
    seats = lineup.seating.groups[group][1]
    auxiliary = make_auxiliary_learners(config, game, actor, seats, warm_start or {})
    learner = Learner(game, lineup, config.ppo, config.updates, group, auxiliary, config.distil)
    if config.ppo.gradient == "fused" and (lacking := learner.policy_loss.lacking):
        raise ConfigError(f"--ppo.gradient fused needs {lacking}")
    return learner


def learner_from_run(run: RunFolder) -> Learner:
    """The learner of an existing run."""
    return maker(run)(run.config())


def maker(run: RunFolder) -> Callable[[TrainConfig], Learner]:
    """Makes learners for settings like a run's, with the co-players and the parts that it keeps."""
    return lambda config: make_learner(config, _inside(run), read_warm_start(run.path, config))
