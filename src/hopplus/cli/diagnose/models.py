"""`hopplus diagnose models`: how good is a model, on play it has not learned from?"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from hopplus.cli.paged import draw_page, show, this_command
from hopplus.cli.reading.options import check_options
from hopplus.diagnosis.models.diagnosis import MOST_ROWS, make_diagnosis, measure_seeds
from hopplus.diagnosis.models.measures import Measures, write_measures
from hopplus.recorded.dataset import open_data
from hopplus.recorded.models import load_parts
from hopplus.report.figures.models import write_figures
from hopplus.report.page import Page, Section
from hopplus.report.pages.models import measured_page
from hopplus.runs.folder import open_run
from hopplus.runs.watchdog import Watchdog

# What is said of each kind of model, and of which figures.
LINES: Mapping[str, Mapping[str, str]] = {
    "opponent": {
        "top-1": "{top1:.2%}",
        "top-3": "{top3:.2%}",
        "cross-entropy": "{cross_entropy:.4f}",
        "calibration error": "{calibration_error:.4f}",
    },
    "world": {
        "exact next state": "{exact_next_state:.3%}",
        "... with ends and legality": "{exact_everything:.3%}",
        "plane MSE (PSNR)": "{plane_mse:.2g} ({psnr:.1f} dB)",
        "reward MSE, own (all seats)": "{reward_mse:.2g} ({reward_mse_all_seats:.2g})",
        "seat's end predicted": "{seat_end_accuracy:.3%}",
        "episode's end predicted": "{episode_end_accuracy:.3%}",
        "legal actions predicted": "{legality_accuracy:.3%}",
        "physically possible": "{consistency[all]:.3%}",
    },
    "goal": {"KL (numbers or categories in use)": "{kl:.3f} ({numbers_in_use})"},
}
OBSERVERS = {
    "oracle": "oracle",
    "watching": "blind, watching",
    "guessing": "blind, guessing",
}
HITS = {"untrained": "untrained", "now": "goal of now", "chance": "goal of another step"}
READ = {"kind": "kind of player", "prey": "prey in the end"}


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
    """Steps of play to measure by, at most."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        check_options(rows=self.rows)
        with Watchdog():
            out, measures = measure_run(self.run_folder, self.data, self.out, self.rows)
        first = next(iter(measures.values()))
        name = str(self.run_folder)
        page = draw_page(out / "models.html", lambda: measured_page(name, first, this_command()))
        seeds = {"seeds": {seed: one.figures for seed, one in measures.items()}}
        tables = Page(name, "", sections=measure_sections(measures), payload=seeds)
        hints = [f"all figures, tables and pictures are in {out}"]
        hints += [f"the page is {page}"] * bool(page)
        return show(tables, as_json=self.json, hints=hints, page=page, out=str(out))


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


def measure_sections(by_seed: dict[int, Measures]) -> list[Section]:
    """The headline figures of every seed, and the actions of an opponent model's first."""
    first = next(iter(by_seed.values()))
    lines = [_say_figures(measures) for measures in by_seed.values()]
    title = f"{first.kind} model, {first.figures['samples']:,} held-out steps"
    header = ["measure", *(f"seed {seed}" for seed in by_seed)]
    rows = [[name, *(line[name] for line in lines)] for name in lines[0]]
    sections = [Section(title, header=header, rows=rows)]
    if first.kind == "opponent":
        classes = first.figures["classes"]
        header = [name.replace("_", " ") for name in classes[0]]
        rows = [[_say(value) for value in row.values()] for row in classes]
        sections.append(Section("by action", header=header, rows=rows))
    return sections


def _say(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value}"


def _say_figures(measures: Measures) -> dict[str, str]:
    """What is said of one seed, by what it is said of."""
    figures = measures.figures
    lines = {name: text.format_map(figures) for name, text in LINES[measures.kind].items()}
    return _MORE[measures.kind](figures, lines)


def _add_best(figures: dict[str, Any], lines: dict[str, str]) -> dict[str, str]:
    """Opponent models compared to the best possible."""
    best = figures["best"]
    if not best:
        return lines | {"best possible": "not known of learned players"}
    for name, words in OBSERVERS.items():
        text = "{top1:.2%} ({cross_entropy:.4f})"
        lines[f"best possible, {words}"] = text.format_map(best[name])
    return lines | {
        "share of the best, blind": f"{figures['share_of_best']:.2%}",
        "never predicted, though it could be": ", ".join(figures["never_predicted"]) or "none",
    }


def _add_open_loop(figures: dict[str, Any], lines: dict[str, str]) -> dict[str, str]:
    """Worlds imagined step after step."""
    return lines | {
        f"exact after {row['steps']} imagined steps": "{exact:.3%} of {windows:,}".format_map(row)
        for row in figures["open_loop"]
        if row["steps"] in (1, 5, 10, 15) and row["windows"]
    }


def _add_goals(figures: dict[str, Any], lines: dict[str, str]) -> dict[str, str]:
    """What goals tell, compared to what they tell untrained."""
    hits, loss = figures["hit_ratio"], figures["loss"]
    what = "cells" if loss == "reconstruction" else "actions"
    compared = {
        f"... of the best, {OBSERVERS[name]}": "{cross_entropy:.4f}".format_map(one)
        for name, one in figures["best"].items()
    }
    if "per_cell" in figures:
        compared["... per cell of a plane"] = f"{figures['per_cell']:.4f}"
    found = {
        f"{loss} loss": f"{figures[loss]:.4f}",
        **compared,
        f"{what} told right": f"{figures['told_right']:.2%}",
        **lines,
        f"later goal's place visited in {hits['within']}": _share(hits["later"]),
        **{f"... {words}": _share(hits[name]) for name, words in HITS.items()},
    }
    for about, words in READ.items():
        if about in figures:
            for late, area in (("", figures[about]), (", late", figures[about]["from_half_on"])):
                name = f"{words}{late} (area)"
                found[name] = _area(area, "{auc:.3f} ({auc_low:.3f} to {auc_high:.3f})")
                gain = "{untrained_auc:.3f} (gain {gain_low:+.3f} to {gain_high:+.3f})"
                found[f"{name}, untrained"] = _area(area, gain)
    return found


def _share(share: float | None) -> str:
    return "too few" if share is None else f"{share:.1%}"


def _area(found: dict[str, Any], text: str) -> str:
    return "too few of a kind" if found["auc"] is None else text.format_map(found)


_MORE = {"opponent": _add_best, "world": _add_open_loop, "goal": _add_goals}
