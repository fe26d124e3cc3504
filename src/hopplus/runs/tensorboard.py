"""Curves and settings for TensorBoard."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.config import PretrainConfig, RunConfig, TrainConfig, flat, to_json

Record = Mapping[str, Any]


@contextmanager
def tensorboard(
    run: Path, config: RunConfig, after: int
) -> Iterator[Callable[[Mapping[str, float], int], None]]:
    """Yields what writes named numbers at a step into a run's folder; the first is after the step
    `after`, 0 for a run that begins."""
    from tensorboardX import SummaryWriter
    from tensorboardX.proto.summary_pb2 import Summary
    from tensorboardX.summary import hparams

    folder = run / "tensorboard"
    written = sorted(folder.glob("events.out.tfevents.*"))
    if after == 0:  # of a beginning that no checkpoint was made of, nothing stays
        for file in written:
            file.unlink()
    # What an earlier session wrote after the checkpoint will be written again. Files are named by
    # the second they are made in: their number keeps apart two sessions of the same second.
    writer = SummaryWriter(
        str(folder),
        purge_step=after + 1 if after else None,
        filename_suffix=f".{len(written) if after else 0:04}",
    )

    def write(numbers: Mapping[str, float], step: int) -> None:
        # All in one event: with one for each, many seeds would take longer to log than to train.
        values = [Summary.Value(tag=name, simple_value=value) for name, value in numbers.items()]
        writer.file_writer.add_summary(Summary(value=values), step)

    try:
        if after == 0:
            settings = plain(flat(to_json(config)))
            writer.add_text("config", table(settings), 0)
            training = config.kind == TrainConfig.kind
            headline = "charts/episodic_return" if training else "losses/held_out"
            experiment, began, _ = hparams(settings, {headline: 0.0})
            for summary in (experiment, began):
                writer.file_writer.add_summary(summary, 0)
            writer.flush()
        yield write
    finally:
        writer.close()


def plain(settings: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """Settings as TensorBoard takes them: what is no number is text."""
    return {
        name: value if isinstance(value, bool | int | float) else _text(value)
        for name, value in settings.items()
    }


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return "" if value is None else str(value)


def table(settings: Mapping[str, Any]) -> str:
    """In Markdown, as TensorBoard shows it."""
    rows = (f"|{name}|{str(value).replace('|', '&#124;')}|" for name, value in settings.items())
    return "\n".join(["|setting|value|", "|-|-|", *rows])


def fitting_curves(record: Record, config: PretrainConfig) -> dict[str, float]:
    """Of an epoch of fitting a model: losses in all and by part, and by seed."""
    curves = {}
    for name, values in record.items():
        if name == "update":
            continue
        if name == "best_epoch":
            shown = "charts/best_epoch"
        else:  # fitted_loss, held_out_loss; fitted/kl, held_out/kl
            shown = f"losses/{name.removesuffix('_loss')}"
        curves[shown] = float(np.mean(values))
        curves |= by_seed(shown.partition("/")[2], values, config.seed)
    return curves


def by_seed(name: str, values: Any, first: int) -> dict[str, float]:
    """Means of values [S, ...] of seeds from the `first` on."""
    seeds = enumerate(values, first)
    return {f"by_seed/{name}/seed_{seed}": float(np.mean(value)) for seed, value in seeds}
