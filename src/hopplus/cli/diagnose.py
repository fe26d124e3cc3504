"""`hopplus diagnose`: what is wrong?"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from hopplus.cli.measures import print_measures
from hopplus.cli.options import check_positive
from hopplus.diagnosis.measures import write_measures
from hopplus.diagnosis.models import MOST_ROWS, make_diagnosis
from hopplus.learning.dataset import open_data
from hopplus.learning.parts import load_part
from hopplus.runs.folder import open_run
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Diagnose:
    """Measure the model of a run on play it has not learned from."""

    what: Annotated[Literal["models"], tyro.conf.Positional]
    """What to look at."""
    run_folder: Annotated[Path, tyro.conf.Positional]
    """A run of `hopplus pretrain`."""
    data: Path | None = None
    """Recorded play; of the run's own data the held-out episodes are used, of other data all."""
    out: Path | None = None
    """Folder for JSON, CSV and pictures; when not given, `diagnosis` in the run, with the name of
    the data behind it if that is not the run's own."""
    rows: int = MOST_ROWS
    """Moments of play to measure by, at most."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check_positive(rows=self.rows)
        run = open_run(self.run_folder)
        learned_from = str(run.facts().get("data"))
        setting, _ = load_part(run)
        data = open_data(self.data or Path(setting.config.data))
        seeds = setting.config.seeds
        with Progress("measuring", seeds, "seeds") as progress:
            diagnosis = make_diagnosis(setting, data, learned_from, self.rows)
            measures = []
            for seed in range(seeds):
                measures.append(diagnosis.measure(load_part(run, seed)[1]))
                progress.advance(1)
        own = data.fingerprint == learned_from
        out = self.out or run.path / ("diagnosis" if own else f"diagnosis-{data.path.name}")
        write_measures(out, measures)
        if self.json:
            print(json.dumps({"out": str(out), "seeds": [m.figures for m in measures]}, indent=2))
        else:
            print_measures(measures)
            print(f"all figures, tables and pictures are in {out}")
        return 0
