"""`hopplus diagnose models`: how good is a model, on play it has not learned from?"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from hopplus.cli.diagnose.measures import measure_sections
from hopplus.cli.paged import this_command, written
from hopplus.cli.reading.options import check_options
from hopplus.diagnosis.finding import to_json
from hopplus.diagnosis.models.diagnosis import MOST_ROWS, make_diagnosis, measure_seeds
from hopplus.diagnosis.models.measures import Measures, write_measures
from hopplus.recorded.dataset import open_data
from hopplus.recorded.models import load_parts
from hopplus.report.figures.models import write_figures
from hopplus.report.pages.models import measured_page
from hopplus.report.terminal import print_sections
from hopplus.runs.folder import open_run
from hopplus.runs.watchdog import Watchdog


@dataclass(frozen=True)
class DiagnoseModels:
    """Measure the model of a run on play it has not learned from."""

    run_folder: Annotated[Path, tyro.conf.Positional]
    """The folder of a run of `hopplus pretrain`."""
    data: Path | None = None
    """Recorded play; of data of the same origin as the run's own the held-out episodes are used, of
    other data all."""
    out: Path | None = None
    """Folder for JSON, CSV and pictures; when not given, `diagnosis` in the run, with the name of
    the data behind it if that is not the run's own."""
    rows: int = MOST_ROWS
    """Moments of play to measure by, at most."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check_options(rows=self.rows)
        with Watchdog():
            out, measures = measure_run(self.run_folder, self.data, self.out, self.rows)
        first = next(iter(measures.values()))
        name = str(self.run_folder)
        page = written(out / "models.html", lambda: measured_page(name, first, this_command()))
        if self.json:
            seeds = to_json({seed: one.figures for seed, one in measures.items()})
            print(json.dumps({"page": page, "out": str(out), "seeds": seeds}, indent=2))
        else:
            print_sections(measure_sections(measures))
            print(f"all figures, tables and pictures are in {out}")
            if page:
                print(f"the page is {page}")
        return 0


def measure_run(
    path: Path, data_path: Path | None = None, out: Path | None = None, rows: int = MOST_ROWS
) -> tuple[Path, dict[int, Measures]]:
    """Measure the best model of every seed of a run and write it down; where, and what."""
    run = open_run(path)
    facts = run.facts()
    setting, best = load_parts(run)
    data = open_data(data_path or Path(setting.config.data))
    diagnosis = make_diagnosis(setting, data, facts.get("origin"), rows)
    measures = measure_seeds(diagnosis, setting, best)
    own = data.fingerprint == facts.get("data")
    out = out or run.path / ("diagnosis" if own else f"diagnosis-{data.path.name}")
    save_measures(out, measures)
    return out, measures


def save_measures(folder: Path, by_seed: dict[int, Measures]) -> None:
    """Figures and tables of all seeds, then pictures of the first: one that fails takes nothing
    with it."""
    write_measures(folder, by_seed)
    write_figures(folder, next(iter(by_seed.values())))
