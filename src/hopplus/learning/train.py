"""A training run from beginning to end, or from where it was left."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from hopplus.config import ConfigError, TrainConfig
from hopplus.games import make_game
from hopplus.learning.company import is_file_name, make_company, split_names
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.trained import Trained, named, read_player, write_player
from hopplus.players.actor import make_actor
from hopplus.runs.folder import RunFolder, make_run, open_run, plain

LOSSES = ("policy_loss", "value_loss", "entropy", "kl", "clipped", "gradient_norm", "explained")
FINAL = 0.1  # the share of a run's updates that its result is taken from


class RunError(Exception):
    """A run that cannot go on; the message is one sentence for people."""


@dataclass(frozen=True)
class Moment:
    """Where a run stands, for whoever watches."""

    update: int
    updates: int
    steps: int
    returns: np.ndarray | None  # [N], mean over seeds of the episodes that just ended


def new_run(path: Path, config: TrainConfig) -> RunFolder:
    """Make the folder of a run; players from elsewhere are copied into it."""
    names = seat_names(config)
    guests = {name: find_trained(name, seat) for seat, name in enumerate(names) if _guest(name)}
    inside = {name: f"players/{number}.safetensors" for number, name in enumerate(guests)}
    settled = replace(config, seats=",".join(inside.get(name, name) for name in names))
    make_learner(settled, {inside[name]: guests[name] for name in guests})  # complains if it must
    run = make_run(path, settled)
    for name, trained in guests.items():
        write_player(path / inside[name], trained)
    return run


def seat_names(config: TrainConfig) -> list[str]:
    """One name per seat."""
    return split_names(config.seats) if config.seats else ["learn"] * config.game.seats


def _guest(name: str) -> bool:
    return name != "learn" and is_file_name(name)


def find_trained(name: str, seat: int, seed: int = 0) -> Trained:
    """The player that `runs/a` (of the same seat), `runs/a@2` or `file.safetensors` means."""
    path, _, number = name.rpartition("@")
    if path and not number.isdigit():
        raise ConfigError(f"{name!r} needs a seat number behind the @")
    place = Path(path or name)
    if place.is_file():
        return read_player(place)
    players = run_players(open_run(place), seed)
    seat = int(number) if path else seat
    if seat not in players:
        raise ConfigError(f"seat {seat} of {place} is no learned player; {sorted(players)} are")
    return players[seat]


def run_players(run: RunFolder, seed: int = 0) -> dict[int, Trained]:
    """The learned players of a run by their seats; `seed` counts the run's seeds from 0."""
    config = run.config()
    if not 0 <= seed < config.seeds:
        raise ConfigError(f"the run has {config.seeds} seeds, numbered from 0, and no {seed}")
    learner = restored_learner(run)
    _, learning = run.load(empty_learning(learner, config))
    sets = jax.tree.map(lambda leaf: leaf[seed], learning.params[learner.learning])
    return {
        int(seat): named(
            Trained(
                learner.actor,
                jax.tree.map(
                    lambda leaf: leaf[0 if learner.actor.shares_params else place],  # noqa: B023
                    sets,
                ),
            ),
            f"seat {seat}",
        )
        for place, seat in enumerate(learner.seats)
    }


def make_learner(config: TrainConfig, guests: dict[str, Trained]) -> Learner:
    """The learner a configuration describes, with the trained players it names."""
    names = seat_names(config)
    if "learn" not in names:
        raise ConfigError("nobody learns: at least one of --seats must be learn")
    game = make_game(config.game)
    actor = make_actor("learn", game, config.net, shares_params=config.ppo.parameters == "shared")
    company = make_company(names, game, guests, actor)
    group = [player.name for player, _ in company.seating.groups].index("learn")
    return Learner(game, company, config.ppo, config.updates, group)


def restored_learner(run: RunFolder) -> Learner:
    """The learner of an existing run."""
    config = run.config()
    files = {name for name in seat_names(config) if name.startswith("players/")}
    return make_learner(config, {name: read_player(run.path / name) for name in files})


def seed_keys(config: TrainConfig) -> jax.Array:
    """[S] a key for each seed, the same whether it runs alone or beside others."""
    return jax.vmap(jax.random.key)(np.arange(config.seed, config.seed + config.seeds))


def empty_learning(learner: Learner, config: TrainConfig) -> Learning:
    """The shapes of what is learned, over seeds."""
    shapes: Learning = jax.eval_shape(jax.vmap(learner.init), seed_keys(config))
    return shapes


def train(
    run: RunFolder,
    on_update: Callable[[Moment], None] = lambda moment: None,
    stop_after: int | None = None,
) -> dict[str, Any]:
    """Train to the end from the newest checkpoint, or from the start when there is none.

    Goes on bit for bit as if it had never stopped. `stop_after` ends early, for measurements.
    """
    config = run.config()
    learner = restored_learner(run)
    update = jax.jit(jax.vmap(learner.update), donate_argnums=0)
    if (run.path / "checkpoints").exists():
        done, learning = run.load(empty_learning(learner, config))
    else:
        done, learning = 0, jax.jit(jax.vmap(learner.init))(seed_keys(config))
    run.rewind(done)
    began, first = time.monotonic(), done
    with _tensorboard(run, done) as write, _patient_interrupt() as interrupted:
        for number in range(done + 1, config.updates + 1):
            learning, metrics = update(learning)
            record = _record(number, config, metrics)
            _check_finite(record, run)
            run.log(record)
            write(record)
            if number - first == 1:
                compiled = time.monotonic() - began
            last = number == config.updates or interrupted() or number - first == stop_after
            if number % config.checkpoint_every == 0 or last:
                run.save(number, learning, {"score": _score(run, number)}, config.keep)
            on_update(_moment(record, config))
            if last:
                break
        else:
            number, compiled = done, 0.0  # it was finished already
    if number < config.updates and stop_after is None:
        raise KeyboardInterrupt
    seconds = time.monotonic() - began
    result = summary(run, config) | {
        "seconds": seconds,
        "first_update_seconds": compiled,
        "steps_per_second": (number - first - 1)
        * config.ppo.steps
        * config.seeds
        / max(seconds - compiled, 1e-9),
    }
    run.write_result(result)
    return result


def summary(run: RunFolder, config: TrainConfig) -> dict[str, Any]:
    """The run in figures: means over its last tenth."""
    records = run.metrics()
    late = records[-max(1, round(FINAL * len(records))) :]
    episodes = np.sum([r["episodes"] for r in late], axis=0)  # [S]
    returns = np.sum([r["return_sum"] for r in late], axis=0) / np.maximum(episodes, 1)[:, None]
    return {
        "steps": records[-1]["steps"],
        "seeds": list(range(config.seed, config.seed + config.seeds)),
        "returns": returns.tolist(),  # [S, N]
        "mean_return": float(returns.mean()),
        "mean_return_by_seed": returns.mean(axis=1).tolist(),
        **{name: float(np.mean([r[name] for r in late])) for name in LOSSES},
    }


def _record(number: int, config: TrainConfig, metrics: dict[str, Any]) -> dict[str, Any]:
    return {
        "update": number,
        "steps": number * config.ppo.steps,
        **plain(jax.device_get(metrics)),
    }


def _check_finite(record: dict[str, Any], run: RunFolder) -> None:
    for name in LOSSES:
        if not np.isfinite(record[name]).all():
            steps = run.checkpoints
            good = sorted((int(p.name) for p in steps.glob("[0-9]*")), reverse=True)
            last = (
                f"{steps / str(good[0])} is the last good checkpoint"
                if good
                else ("there is no checkpoint before it")
            )
            raise RunError(
                f"the {name} of update {record['update']} (step {record['steps']:,}) is not a"
                f" finite number; {last}"
            )


def _score(run: RunFolder, number: int) -> float:
    """Mean return of the last few updates, to tell the best checkpoint."""
    late = run.metrics()[-10:]
    episodes = np.sum([r["episodes"] for r in late])
    total = np.sum([np.mean(r["return_sum"], axis=1) for r in late])
    return float(total / max(episodes, 1))


def _moment(record: dict[str, Any], config: TrainConfig) -> Moment:
    episodes = np.sum(record["episodes"])
    returns = np.sum(record["return_sum"], axis=0) / episodes if episodes else None
    return Moment(record["update"], config.updates, record["steps"], returns)


@contextmanager
def _patient_interrupt() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C wait for the update in flight; a second one does not wait."""
    asked: list[int] = []

    def ask(number: int, frame: object) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    try:
        before = signal.signal(signal.SIGINT, ask)
    except ValueError:  # not the main thread: whoever runs us handles interrupts
        yield lambda: False
        return
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _tensorboard(run: RunFolder, done: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Write records for TensorBoard: every metric's mean, and the returns by seat."""
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(str(run.path / "tensorboard"), purge_step=done or None)

    def write(record: dict[str, Any]) -> None:
        steps, episodes = record["steps"], np.sum(record["episodes"])
        for name in LOSSES:
            writer.add_scalar(name, np.mean(record[name]), steps)
        if episodes:
            for seat, total in enumerate(np.sum(record["return_sum"], axis=0)):
                writer.add_scalar(f"return/seat {seat}", total / episodes, steps)

    try:
        yield write
    finally:
        writer.close()
