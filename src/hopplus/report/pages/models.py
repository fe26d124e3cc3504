"""The models of a run on a page: how well they foresee what comes, with pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from hopplus.config import ConfigError, PretrainGoal, PretrainWorld, TrainConfig
from hopplus.diagnosis.models.diagnosis import make_diagnosis
from hopplus.diagnosis.models.goal import GoalDiagnosis
from hopplus.diagnosis.models.heldout import HeldOut, choose_seat, record_watched
from hopplus.diagnosis.models.measures import Measures
from hopplus.diagnosis.models.opponent import measure_in_play
from hopplus.diagnosis.models.world import WorldDiagnosis
from hopplus.evaluation.replay.replays import run_lineup, watch_first
from hopplus.evaluation.replay.watch import Sitting, Watched, seated, sitting
from hopplus.games.game import Game, has_board
from hopplus.learning.from_run import seat_names
from hopplus.play.lineup import Lineup
from hopplus.recorded.dataset import open_data
from hopplus.recorded.models import KINDS, load_parts, make_setting
from hopplus.report.figures.models import DRAWN
from hopplus.report.page import Page, Section
from hopplus.runs.folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 1024  # of each seat that its world is measured by
VIEWS = 4096  # of all seats that goals are measured by
ROWS = 10_000  # steps of recorded play that a model of a run of its own is measured by
DESCRIPTIONS = {
    "opponent": "what was taken for what, figures by action, and calibration",
    "world": "errors by plane, step after step, values, calibration and rewards",
    "worst": "the worst predictions of the world model next to what came",
    "goal": "goals in two dimensions, and what they tell",
}


def model_sections(
    run: RunFolder, table: tuple[Game, Lineup] | None = None, seen: Watched | None = None
) -> list[Section]:
    """Sections about the models of a run, of training or of one model; none if it has none.

    Models of a training run are measured on fresh play of the run's first seed: of `table`, the
    run's game and co-players, and as it was `seen`, if they are at hand.
    """
    try:
        if run.kind in KINDS:
            return _of_one_model(run)
        config = run.config()
        if not config.fitted:
            return []
        game, lineup = table or run_lineup(run)
        seen = seen or watch_first(game, lineup)
        return _of_training(config, game, lineup, seen)
    except ConfigError as error:
        return [Section("Models", f"The models could not be measured: {error}.")]


def _of_one_model(run: RunFolder) -> list[Section]:
    """A run of `hopplus pretrain`, measured by held-out play of its first seed."""
    setting, best = load_parts(run)
    data = open_data(Path(setting.config.data))
    diagnosis = make_diagnosis(setting, data, run.facts().get("origin"), ROWS)
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[0], best)
    return [_held_out(diagnosis.measure(first))]


def measured_page(name: str, measures: Measures, command: str) -> Page:
    """What `hopplus diagnose models` found of a run's first seed."""
    section = _held_out(measures)
    return Page(f"hopplus diagnose models: {name}", section.title, "good", [], command, [section])


def _held_out(measures: Measures) -> Section:
    text = f"Measured on {measures.figures['samples']:,} steps that were held out."
    return _section(f"The {measures.kind} model", text, measures)


def _of_training(config: TrainConfig, game: Game, lineup: Lineup, seen: Watched) -> list[Section]:
    sections = []
    if bool(seen.modelling.any()):
        sections.append(_foresight(game, seen))
    if not has_board(game):  # held-out views are kept in bits
        return sections
    held = record_watched(game, lineup, seen)
    who, names = sitting(*seated(lineup)), seat_names(config)
    param_sets = {seat: who[seat][0] for seat, name in enumerate(names) if name == "learn"}
    steps = min(STEPS, min(int((held.seat == seat).sum()) for seat in param_sets))
    if "world" in config.parts:
        setting = make_setting(PretrainWorld(data="", world=config.world.model), config.game)
        chosen = {seat: choose_seat(held, seat, steps) for seat in param_sets}
        sections.append(
            _worlds(
                {
                    seat: WorldDiagnosis(setting, chosen[seat]).measure(one.params.world)
                    for seat, one in param_sets.items()
                }
            )
        )
    if "goal" in config.parts:
        sections.append(_goals(config, param_sets, held))
    return sections


def _foresight(game: Game, seen: Watched) -> Section:
    measures = measure_in_play(seen, list(game.action_names))
    figures = measures.figures
    text = (
        "What each seat expected of the others at each step of fresh play, where they had a"
        f" choice: {figures['top1']:.1%} top-1 accuracy, {figures['top3']:.1%} top-3 accuracy,"
        f" cross-entropy {figures['cross_entropy']:.3f}, in"
        f" {figures['samples']:,} cases."
    )
    columns = {
        "seat": "{seat}",
        "about": "{other}",
        "cases": "{count:,}",
        "foreseen": "{top1:.1%}",
        "among the three likeliest": "{top3:.1%}",
        "cross-entropy": "{cross_entropy:.3f}",
    }
    return _section("Opponent models", text, measures, columns, measures.tables["pairs"])


def _worlds(measured: dict[int, Measures]) -> Section:
    """All seats in figures, and the one whose model errs most in pictures."""
    worst = max(measured, key=lambda seat: measured[seat].figures["plane_mse"])
    text = (
        "The next state as each seat's world model predicts it, on steps of the seat's own fresh"
        f" play. Pictures are of seat {worst}, whose model errs most."
    )
    columns = {
        "seat": "{seat}",
        "steps": "{samples:,}",
        "exactly right": "{exact_next_state:.1%}",
        "plane MSE": "{plane_mse:.2g}",
        "reward MSE": "{reward_mse:.2g}",
        "possible at all": "{consistency[all]:.1%}",
    }
    rows = [{"seat": seat, **one.figures} for seat, one in measured.items()]
    return _section("World models", text, measured[worst], columns, rows)


def _goals(config: TrainConfig, param_sets: dict[int, Sitting], held: HeldOut) -> Section:
    """Of the first seat that has learned; goals are of views of all seats."""
    seat, one = next(iter(param_sets.items()))
    setting = make_setting(PretrainGoal(data="", goal=config.goal.prior), config.game)
    some = replace(held, chosen=held.steps[:VIEWS])
    measures = GoalDiagnosis(setting, some).measure(one.params.prior)
    text = (
        f"What the goals tell that seat {seat} gives to views, on {measures.figures['samples']:,}"
        " steps of everyone's fresh play."
    )
    return _section("Goals", text, measures)


def _section(
    title: str,
    text: str,
    measures: Measures,
    columns: Mapping[str, str] = MappingProxyType({}),
    rows: Sequence[dict[str, Any]] = (),
) -> Section:
    """With all pictures of what was measured, or a word about why there are none; `columns` say
    how each row is written."""
    pictures: list[tuple[str, Figure]] = []
    try:
        drawn = DRAWN[measures.kind].items()
        pictures = [(DESCRIPTIONS[name], draw(measures)) for name, draw in drawn]
    except ImportError:
        text += " Pictures are left out: matplotlib is not installed here."
    cells = [[form.format_map(row) for form in columns.values()] for row in rows]
    return Section(title, text, pictures=pictures, header=list(columns), rows=cells)
