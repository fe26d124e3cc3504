"""Fit a model to recorded play: a run from beginning to end, or from where it was left."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import ConfigError, PretrainConfig
from hopplus.play.seeds import seed_keys
from hopplus.recorded.dataset import Data, open_data
from hopplus.recorded.fit import Fit, Fitter
from hopplus.recorded.models import (
    MODEL,
    Setting,
    find_prior,
    kind_of,
    make_setting,
    setting_of,
    write_prior,
)
from hopplus.recorded.samples import Source, seat_steps, source_of
from hopplus.runs.checkpoint import TRAINING, steps_of
from hopplus.runs.folder import RunError, RunFolder, Saved, spoilt
from hopplus.runs.interrupt import patient_interrupt
from hopplus.runs.making import make_run
from hopplus.runs.tensorboard import fitting_curves, tensorboard


@dataclass(frozen=True)
class Epoch:
    """Where a fit stands, for whoever watches."""

    number: int  # epochs done
    fit: Fit  # [S, ...]
    record: dict[str, Any]  # what was logged


def new_pretrain(path: Path, config: PretrainConfig) -> RunFolder:
    """Make the folder of a run; a goal prior it needs is copied into it."""
    config = replace(config, data=str(Path(config.data).resolve()))  # found from anywhere
    data = open_data(Path(config.data))
    prior = find_prior(config, data.game)
    make_setting(config, data.game_config, prior)  # raises if it must
    counted = Counts(config, data)
    for samples, name in ((counted.fitted, "fit"), (counted.measured, "measure")):
        if sum(samples) == 0:
            raise ConfigError(f"{config.data} has no episode to {name} with: record more")
    about = {"game": data.facts["game"], "data": data.fingerprint, "origin": data.origin}
    with make_run(path, config, about) as folder:
        write_prior(folder, prior)
    return RunFolder(path)


class Counts:
    """How many samples each file has, and so how many batches."""

    def __init__(self, config: PretrainConfig, data: Data) -> None:
        held_out = config.fit.held_out
        self.fitted, self.measured = [], []
        for shard in data.iterate():
            self.fitted.append(len(seat_steps(shard, held_out, measured=False)))
            self.measured.append(len(seat_steps(shard, held_out, measured=True)))
        # A batch is never larger than what the fullest file has.
        self.batch = min(config.fit.batch, max(self.fitted))

    @property
    def batches(self) -> list[int]:
        """Whole batches of each file; what is left over differs from epoch to epoch. A file that
        does not fill one has one all the same, with some samples twice."""
        return [max(count // self.batch, min(count, 1)) for count in self.fitted]


class Session:
    """Files, compiled functions and counts of a fit; everything that is not saved."""

    def __init__(self, data: Data, setting: Setting) -> None:
        self.data, self.setting, self.config = data, setting, setting.config
        self.counts = Counts(self.config, data)
        steps = self.config.fit.epochs * sum(self.counts.batches)
        self.fitter = Fitter(setting.part, setting.sampler, self.config.fit, steps)
        self._improve = jax.jit(
            jax.vmap(self.fitter.improve, in_axes=(0, None, 0, None, None)), donate_argnums=0
        )
        self._measure = jax.jit(jax.vmap(self.fitter.measure, in_axes=(0, None, None, None, None)))
        self._finish = jax.jit(jax.vmap(self.fitter.finish_epoch))
        self._read = -1

    def init(self) -> Fit:
        """Where all seeds begin."""
        begun: Fit = jax.jit(jax.vmap(self.fitter.init))(seed_keys(self.config))
        return begun

    def load(self, run: RunFolder) -> tuple[Fit | None, Saved | None]:
        """Where a run goes on, if it has a checkpoint to go on from."""
        shapes = jax.eval_shape(jax.vmap(self.fitter.init), seed_keys(self.config))
        saved = run.load(_files(shapes)) if steps_of(run.checkpoints) else None
        return saved and replace(saved.trees[TRAINING], best=saved.trees[MODEL]), saved

    def epoch(
        self, fit: Fit, epoch: int, on_samples: Callable[[int], None]
    ) -> tuple[Fit, dict[str, Any]]:
        """Once over the data, and once over what is held out."""
        fitted: dict[str, Any] = {}
        held: dict[str, Any] = {}
        order = np.random.default_rng([epoch]).permutation(self.data.shards)
        for number in order.tolist():  # the same for every seed, alone or with others
            steps, source = self._file(number, measured=False)
            batches = _batches(self.config, epoch, number, steps, self.counts)
            count = self.counts.batches[number]
            fit, sums = self._improve(fit, source, batches, count, self.setting.prior_params)
            _add(fitted, sums)
            on_samples(len(steps))
        for number in reversed(order.tolist()):  # begins with the file just read
            steps, source = self._file(number, measured=True)
            batches, real = _filled(steps, self.counts)
            _add(held, self._measure(fit, source, batches, real, self.setting.prior_params))
        record = _record(epoch, fitted, held)
        fit = self._finish(fit, jnp.asarray(record["held_out_loss"], jnp.float32))
        return fit, {**record, "best_epoch": np.asarray(fit.best_epoch).tolist()}

    def _file(self, number: int, *, measured: bool) -> tuple[np.ndarray, Source]:
        """The steps of a file to fit or measure with, and its rows on the device."""
        if number != self._read:
            self._shard = self.data.shard(number)
            self._source = source_of(self._shard, self.data.most_rows)
            self._read = number
        return seat_steps(self._shard, self.config.fit.held_out, measured=measured), self._source


def pretrain(
    run: RunFolder,
    session: Session,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    on_samples: Callable[[int, str], None] = lambda count, note: None,
) -> dict[str, Any]:
    """Fit to the end, from the newest checkpoint if there is one, and return the result.

    Goes on bit for bit as if it had never stopped. Ctrl-C raises `KeyboardInterrupt`; what was
    fitted since the last epoch will be fitted again.
    """
    with run.locked():
        began = time.monotonic()
        config = session.config
        saved_fit, saved = session.load(run)
        done, before = (saved.step, saved.facts) if saved else (0, {})
        if before.get("finished") and (result := run.result()):
            return result
        fit = session.init() if saved_fit is None else saved_fit
        run.rewind(done)
        finished, note = bool(before.get("finished")), ""
        with tensorboard(run.path, config, done) as show, patient_interrupt() as interrupted:
            while not finished:
                done += 1

                def heed(count: int) -> None:
                    on_samples(count, note)  # noqa: B023
                    if interrupted():
                        raise KeyboardInterrupt

                fit, record = session.epoch(fit, done, heed)
                if name := spoilt(record):
                    raise RunError(
                        f"{name} of epoch {done} of {run.path} is not a finite number: try a"
                        " smaller --fit.learning-rate"
                    )
                run.log(record)
                show(fitting_curves(record, config), done)
                # Or no seed is getting better any more.
                stopped = bool((fit.epoch - fit.best_epoch >= config.fit.patience).all())
                finished = done == config.fit.epochs or stopped
                facts = {
                    "score": -float(np.mean(record["held_out_loss"])),
                    "seconds": before.get("seconds", 0.0) + time.monotonic() - began,
                    "finished": finished,
                }
                on_epoch(Epoch(done, fit, record))  # before saving: a kill in between repeats it
                run.save(done, _files(fit), facts, config.keep)
                note = f"held-out loss {np.mean(record['held_out_loss']):.4g} after {done} epochs"
        seconds = before.get("seconds", 0.0) + time.monotonic() - began
        result = _summary(run, session.counts) | {"seconds": seconds}
        run.write_result(result)
        return result


def open_session(run: RunFolder, data_path: Path | None = None) -> Session:
    """What a run fits and with what data, which must be what it began with, wherever it is now."""
    config = run.config_of(kind_of(run))
    data = open_data(data_path or Path(config.data))
    if data.fingerprint != run.facts().get("data"):
        raise ConfigError(f"{data.path} is not the data that {run.path} began with")
    return Session(data, setting_of(run, data))


def _files(fit: Fit) -> dict[str, Any]:
    """Of a checkpoint: the best model, which is all that others need, and the rest."""
    return {MODEL: fit.best, TRAINING: replace(fit, best=None)}


def _batches(
    config: PretrainConfig, epoch: int, shard: int, steps: np.ndarray, counts: Counts
) -> jax.Array:
    """[S, n, batch, 2] the samples of a file in random batches, each seed's its own."""
    number = counts.batches[shard]
    all_seeds = np.zeros((config.seeds, max(counts.batches), counts.batch, 2), np.int32)
    for place in range(config.seeds):
        dice = np.random.default_rng([config.seed + place, epoch, shard])
        chosen = np.resize(dice.permutation(len(steps)), number * counts.batch)
        all_seeds[place, :number] = steps[chosen].reshape(number, counts.batch, 2)
    return jnp.asarray(all_seeds)


def _filled(steps: np.ndarray, counts: Counts) -> tuple[jax.Array, jax.Array]:
    """[n, batch, 2] the samples in order, and [n, batch] which of them are real."""
    size = -(-max(counts.measured) // counts.batch) * counts.batch
    padded = np.zeros((size, 2), np.int32)
    padded[: len(steps)] = steps
    real = np.arange(size) < len(steps)
    return (
        jnp.asarray(padded.reshape(-1, counts.batch, 2)),
        jnp.asarray(real.reshape(-1, counts.batch)),
    )


def _add(sums: dict[str, Any], metrics: dict[str, jax.Array]) -> None:
    for name, value in metrics.items():
        sums[name] = sums.get(name, 0.0) + np.asarray(value, np.float64)


def _record(epoch: int, sums: dict[str, Any], held: dict[str, Any]) -> dict[str, Any]:
    """Means of the named losses, [S] each, over the samples fitted and those held out."""
    record: dict[str, Any] = {"update": epoch}
    for prefix, total in (("fitted", sums), ("held_out", held)):
        weight = np.maximum(total.pop("weight"), 1e-8)
        means = {name: value / weight for name, value in total.items()}
        record[f"{prefix}_loss"] = np.sum(list(means.values()), axis=0).tolist()
        record |= {f"{prefix}/{name}": value.tolist() for name, value in means.items()}
    return record


def _summary(run: RunFolder, counts: Counts) -> dict[str, Any]:
    records = run.metrics()
    best = np.asarray(records[-1]["best_epoch"])
    names = [name for name in records[0] if name.startswith("held_out")]
    return {
        "epochs": len(records),
        "best_epoch": best.tolist(),
        "samples": sum(counts.fitted),
        "samples_held_out": sum(counts.measured),
        **{
            name: [records[epoch - 1][name][seed] for seed, epoch in enumerate(best)]
            for name in names
        },
    }
