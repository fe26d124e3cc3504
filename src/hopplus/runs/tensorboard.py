"""Curves for TensorBoard."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def tensorboard(run: Path, from_step: int) -> Iterator[Callable[[Mapping[str, float], int], None]]:
    """Yields what writes named numbers at a step into a run's folder."""
    from tensorboardX import SummaryWriter

    folder = run / "tensorboard"
    # What an earlier session wrote from this step on will be written again.
    writer = SummaryWriter(str(folder), purge_step=from_step if folder.exists() else None)

    def write(numbers: Mapping[str, float], step: int) -> None:
        for name, number in numbers.items():
            writer.add_scalar(name, number, step)

    try:
        yield write
    finally:
        writer.close()
