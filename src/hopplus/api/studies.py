"""Studies of players: what `hopplus evaluate`, `adapt`, `certify` and `crossplay` measure."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jax

from hopplus.api.found import Found
from hopplus.api.learned import find_learned_players, game_of
from hopplus.api.seating import Playing
from hopplus.api.training import GameLike, SearchLike, as_game, as_search, quietly
from hopplus.config import (
    LARGE,
    ConfigError,
    NetConfig,
    PPOConfig,
    SearchConfig,
    TrainConfig,
    change,
    check_above,
    check_options,
    check_range,
    default_game,
)
from hopplus.evaluation import adaptation
from hopplus.evaluation import crossplay as tables
from hopplus.evaluation import evaluate as episodes_of
from hopplus.evaluation.adaptation import Adaptation, lineups, own_name
from hopplus.evaluation.certificate import Certificate
from hopplus.evaluation.crossplay import Crossplay, Member, make_member
from hopplus.evaluation.evaluate import Evaluation
from hopplus.evaluation.fine_tuning import LEARN, FineTuning
from hopplus.evaluation.references import References, read_references
from hopplus.evaluation.trials import AtTheEnd, ByEpisode, Score
from hopplus.games import make_game
from hopplus.games.game import Game, board_size
from hopplus.learning.from_run import find_background_players, find_trained, run_players
from hopplus.play.names import Kind, RunName, is_background, kind_of, read_run_name
from hopplus.play.seating import options
from hopplus.players.scripted import mixed_names
from hopplus.report.pages.adaptation import adaptation_page, certificate_page
from hopplus.report.pages.evaluation import crossplay_page, evaluation_page
from hopplus.runs.progress import Progress

Named: TypeAlias = str | os.PathLike[str]  # a run, also as `Run`, or a player in a file; a name


def evaluate(
    run: Named | None = None,
    *,
    players: str | None = None,
    episodes: int = 10_000,
    greedy: bool = False,
    game: GameLike | None = None,
    search: SearchLike | None = None,
    games: int = 1024,
    seed: int = 0,
    quiet: bool = False,
) -> Found[Evaluation]:
    """Play whole episodes: what every seat gets, with each of a run's seeds. `players` says who
    sits where, as `stag,stag,hare,random` or `run,stag,hare,random`. See `hopplus evaluate`."""
    check_options(episodes=episodes, games=games)
    name = None if run is None else os.fspath(run)
    playing = Playing(name, players, greedy, as_game(game), as_search(search), seed)
    seeds, setups = playing.setups()
    key_params, key_play = jax.random.split(jax.random.key(seed))
    played = []
    total = episodes * len(setups)
    with Progress("evaluating", total, "episodes", quietly(quiet)) as progress:
        for _, made, lineup, focal in setups:
            found = episodes_of.evaluate(
                made,
                lineup.seating,
                lineup.init(key_params),
                key_play,
                episodes,
                games,
                progress.advance,
                focal=focal,
            )
            played.append(found)
    _, made, lineup, focal = setups[0]
    evaluation = episodes_of.summarise(made, lineup.seating, played, focal, seeds)
    return Found(evaluation, evaluation_page(evaluation))


def adapt(
    subject: Named | Sequence[Named],
    *,
    against: Sequence[str] = ("all",),
    episodes: int | None = None,
    protocol: Literal["episodes", "hop"] = "episodes",
    learning: Literal["none", "online"] = "none",
    caution: float | None = None,
    learning_rate: float | None = None,
    trials: int = 1024,
    seat: int | None = None,
    search: SearchLike | None = None,
    game: GameLike | None = None,
    steps: int | None = None,
    seeds: int = 5,
    runs: str | Path = "runs",
    references: str | Path | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> Found[Adaptation]:
    """Play trials among fixed co-players: the focal player's return by episode. `subject` is a run,
    exported players, or a preset that learns first. See `hopplus adapt`, whose options these
    are."""
    check_options(trials=trials, seeds=seeds, seed=seed)
    names = _names(subject)
    score = _score(protocol, episodes)
    asked, given = as_search(search), as_game(game)
    played = game_of(names, given)
    made = make_game(played)
    check_range("--seat", seat, 0, made.seats - 1)
    seats = range(made.seats) if seat is None else [seat]
    wanted = lineups(against, made)
    background = find_background_players([name for lineup in wanted for name in lineup])
    known = read_references(Path(references)) if references else None
    if known and known.game != played:
        raise ConfigError(f"{references} is of another game than {names[0]}")
    if known and (other := known.strangers(background)):
        raise ConfigError(f"{references} was measured with another {' and '.join(other)}")
    if learning == "none":
        _check_unlearning(learning_rate, caution, any(LEARN in lineup for lineup in wanted))
    else:
        _check_online(names, asked, learning_rate, caution)
    found = find_learned_players(names, given, steps, seeds, seed, Path(runs), quiet)
    online = None
    if learning == "online" and found.config is not None:
        online = FineTuning(found.config, learning_rate=learning_rate)
        if caution is not None:
            online = replace(online, caution=caution)
            if caution and not online.guarded:
                raise ConfigError("--caution weighs policies, and this player acts by a search")
    total = len(wanted) * len(seats) * trials * len(found.players)
    with Progress("playing with others", total, "trials", quietly(quiet)) as progress:
        measured = adaptation.adapt(
            made,
            found.players,
            wanted,
            {**found.met, **background},
            list(seats),
            score,
            trials,
            asked,
            jax.random.key(seed),
            online,
            progress.advance,
        )
    page = adaptation_page(found.name, measured, known, online.learns if online else "none")
    if known and seat != 0:
        hint = "oracle and blind were measured in seat 0: to sit there too, give --seat 0"
        page = replace(page, hints=[hint])
    return Found(measured, page, found.folder / "adaptation.html")


def certify(
    game: GameLike | None = None,
    *,
    net: NetConfig | Mapping[str, Any] | None = None,
    ppo: PPOConfig | Mapping[str, Any] | None = None,
    steps: int = 1_000_000,
    trial: int = 5,
    kinds: str | None = None,
    against: Sequence[str] = ("all",),
    best_response: bool = False,
    seeds: int = 3,
    seed: int = 0,
    episodes: int = 4096,
    out: str | Path = "references",
    quiet: bool = False,
) -> Found[References]:
    """Measure what being told whom one faces brings, among every lineup, and keep it in `out`,
    where the next call with these settings reads it. See `hopplus certify`."""
    check_options(steps=steps, seeds=seeds, episodes=episodes, seed=seed)
    config = TrainConfig(game=as_game(game), steps=steps, seeds=seeds, seed=seed, trial=trial)
    changes = {"net": net, "ppo": ppo}
    config = change(config, {name: value for name, value in changes.items() if value is not None})
    made = make_game(config.game)
    named = options(kinds) if kinds is not None else []
    drawn = tuple(dict.fromkeys(own_name(name, 1, made) for name in named))
    if not drawn and "conditional" in against:
        drawn = mixed_names(made, "conditional")
    wanted = lineups(against, made, drawn)
    if not drawn and set(against) == {"population"}:
        drawn = mixed_names(made, "population")
    everyone = [*(drawn or mixed_names(made)), *(name for one in wanted for name in one)]
    if len(set(everyone)) < 2:
        whose = "--kinds has" if drawn else f"{made.name} has"
        raise ConfigError(
            f"whom one faces can only matter among several, and {whose} {everyone[0]} players"
            " alone: name others in --against"
        )
    background = find_background_players(everyone)
    asked = Certificate(config, wanted, background, episodes, drawn, best_response)
    path = asked.kept_at(Path(out))
    total = asked.total_steps
    with Progress("certifying", total, "steps", quietly(quiet), where=path) as progress:
        found = asked.measure(Path(out), progress.advance)
    page = certificate_page(found, f"{board_size(made)}, {seeds} seeds")
    hint = f"kept in {path}: hopplus adapt RUN --references {path}"
    page = replace(page, payload={"kept": str(path), **page.payload}, hints=[hint])
    return Found(found, page, path.with_suffix(".html"))


def crossplay(
    *members: Named,
    episodes: int = 1000,
    game: GameLike | None = None,
    search: SearchLike | None = None,
    seed: int = 0,
    quiet: bool = False,
) -> Found[Crossplay]:
    """Seat one player of each run among the players of every other, in every seat in turn. Members
    are
    runs, exported players, or scripted ones by name. See `hopplus crossplay`."""
    check_options(episodes=episodes, seed=seed)
    if len(members) < 2:
        raise ConfigError("crossplay needs two or more: runs, or scripted players")
    who = [(name, _run_meant(name)) for name in _names(members)]
    if len({run or name for name, run in who}) < len(who):
        raise ConfigError("somebody is named twice: name each of them once")
    theirs, given = {run.open().config().game for _, run in who if run}, as_game(game)
    if len(theirs) > 1:
        raise ConfigError("the runs are of different games, which have no players in common")
    if theirs and given != default_game():
        raise ConfigError("the runs have a game of their own: leave --game options out")
    made = make_game(next(iter(theirs), given))
    seated = [_member(name, run, made, as_search(search)) for name, run in who]
    total = len(seated) ** 2 * made.seats * episodes
    what = "playing everyone among everyone"
    with Progress(what, total, "episodes", quietly(quiet)) as progress:
        key = jax.random.key(seed)
        found = tables.crossplay(made, seated, key, episodes, progress.advance)
    # Seeds of one run are samples of one thing, so that a run is what they say together.
    runs = [name if run is None else str(replace(run, seed=None)) for name, run in who]
    page = crossplay_page(found, runs, episodes)
    return Found(found, replace(page, payload={"game": made.name, **page.payload}))


def _names(subject: Named | Sequence[Named]) -> tuple[str, ...]:
    several = [subject] if isinstance(subject, str | os.PathLike) else subject
    return tuple(os.fspath(one) for one in several)


def _score(protocol: str, episodes: int | None) -> Score:
    if protocol == "episodes":
        check_options(episodes=episodes)
        return ByEpisode(5 if episodes is None else episodes)
    if episodes is not None:
        raise ConfigError("--protocol hop counts steps: leave --episodes out")
    return AtTheEnd()


def _check_unlearning(rate: float | None, caution: float | None, others_learn: bool) -> None:
    """Raise `ConfigError` for what is said about learning where nobody learns."""
    if rate is not None:
        raise ConfigError("--ppo.learning-rate is given, but --learning is none")
    if caution is not None:
        raise ConfigError("--caution is given, but --learning is none")
    if others_learn:
        raise ConfigError("learn is among the others, which needs --learning online")


def _check_online(
    names: Sequence[str], search: SearchConfig, rate: float | None, caution: float | None
) -> None:
    """Raise `ConfigError` for what does not go with learning online."""
    if any(kind_of(name) is Kind.FILE for name in names):
        raise ConfigError("learning online takes a run, which says how; a player alone does not")
    if search != SearchConfig():
        raise ConfigError("--search is given, but online a player learns as in its run")
    check_above("ppo.learning-rate", rate, 0, LARGE)
    check_range("--caution", caution, 0, LARGE)


def _member(name: str, run: RunName | None, game: Game, search: SearchConfig) -> Member:
    if run is not None and run.seat is None:
        # The run's learners alone: where nobody has learned, the first who has sits down.
        known = {
            str(seat): one for seat, one in run_players(run.open(), run.seed, run.stage).items()
        }
        first = next(iter(known))
        names = [str(seat) if str(seat) in known else first for seat in range(game.seats)]
        return make_member(str(run), names, known, game, search)
    called = name if run is None else str(run)
    found = {called: find_trained(called)} if is_background(called) else {}
    return make_member(called, [called] * game.seats, found, game, search)


def _run_meant(name: str) -> RunName | None:
    """The run that is meant, with its seed; None for a scripted player or one in a file."""
    if kind_of(name) is not Kind.RUN:
        return None
    said = read_run_name(name)
    if said.seat is not None and said.seed is None:
        raise ConfigError(
            f"{name!r} once meant a seed here and means a seat elsewhere: write"
            f" {said.path}#{said.seat} for seed {said.seat}, or the seed and the seat, as in"
            f" {said.path}#0@{said.seat}"
        )
    return replace(said, seed=said.open().config().seed if said.seed is None else said.seed)
