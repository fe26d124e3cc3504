"""`hopplus pretrain`: fit a model to recorded play."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from hopplus.cli.diagnose.models import measure_run, measure_sections, save_measures
from hopplus.cli.reading.options import one_of
from hopplus.config import (
    GameConfig,
    PretrainConfig,
    PretrainGoal,
    PretrainOpponent,
    PretrainWorld,
    from_json,
)
from hopplus.diagnosis.models.diagnosis import make_diagnosis, measure_seeds
from hopplus.games import make_game
from hopplus.recorded.models import doubts
from hopplus.recorded.pretrain import Epoch, new_pretrain, open_session, pretrain
from hopplus.report.terminal import print_sections
from hopplus.runs.folder import RunFolder, check_name
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import Watchdog, say

EPOCH_ROWS = 20_000  # of held-out play that every epoch is measured by

MODELS = {"goal": PretrainGoal, "opponent": PretrainOpponent, "world": PretrainWorld}
Model: Any = one_of(MODELS)


@dataclass(frozen=True)
class Pretrain:
    """Fit a model to recorded play and keep everything about it in a run folder."""

    config: Annotated[Model, tyro.conf.arg(name="")]
    name: str | None = None
    """Name of the run; the part and the time when not given."""
    runs: Path = Path("runs")
    """The folder that holds the runs."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        config: PretrainConfig = self.config
        stamped = f"{config.kind}-{time.strftime('%Y%m%d-%H%M%S')}"
        name = check_name(stamped if self.name is None else self.name)
        run = new_pretrain(self.runs / name, config)
        game = make_game(from_json(GameConfig, run.facts()["game"]))
        for doubt in doubts(config, game):
            say(doubt)
        return carry_on_pretrain(run, self.json)


def carry_on_pretrain(run: RunFolder, as_json: bool, data_path: Path | None = None) -> int:
    """Fit to the end, with progress, and measure after every epoch; Ctrl-C leaves a run that can be
    resumed."""
    if run.result():
        say(f"{run.path} is finished; it is measured again")
    session = open_session(run, data_path)
    data, config = session.data, session.config
    diagnosis = make_diagnosis(session.setting, data, data.origin, EPOCH_ROWS)
    samples = sum(session.counts.fitted)
    try:
        total = config.fit.epochs * samples
        with Progress("fitting", total, "samples", where=run.path) as progress:

            def measure(epoch: Epoch) -> None:
                if epoch.number % config.measure_every == 0:
                    measured = measure_seeds(diagnosis, session.setting, epoch.fit.params)
                    save_measures(run.path / "epochs" / str(epoch.number), measured)
                loss = np.mean(epoch.record["held_out_loss"])
                note = f"epoch {epoch.number}, held-out loss {loss:.4g}"
                progress.advance(epoch.number * samples - progress.done, note)

            result = pretrain(run, session, measure, progress.advance)
        with Watchdog():
            out, measures = measure_run(run.path, data.path)
    except KeyboardInterrupt:
        say(f"stopped; go on with: hopplus resume {run.path}")
        return 130
    if as_json:
        print(json.dumps({"run": str(run.path), **result}, indent=2))
        return 0
    best = ", ".join(str(epoch) for epoch in result["best_epoch"])
    losses = ", ".join(f"{loss:.4g}" for loss in result["held_out_loss"])
    print(
        f"{run.path}: {result['samples']:,} samples, {result['epochs']} epochs in"
        f" {result['seconds']:.0f} s; least held-out loss {losses} after epoch {best}"
    )
    print_sections(measure_sections(measures))
    print(f"all figures, tables and pictures of the best epoch are in {out}")
    if config.measure_every <= result["epochs"]:
        print(f"and those of others, as they were then, in {run.path / 'epochs'}")
    return 0
