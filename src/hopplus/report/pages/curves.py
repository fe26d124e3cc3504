"""The curves of runs: what is drawn in one chart, and from which metrics."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopplus.learning.auxiliary.table import Chart, charts, others_of
from hopplus.report.page import Section
from hopplus.report.pages.logged import Logged, Thinned
from hopplus.report.translations import Translations

POINTS = 500  # of a curve, at most
ALL_POINTS = 2500  # of one curve of every run together
FEWEST = 100


ABOVE = (
    Chart(
        "Policy loss",
        "Of real and of imagined play.",
        {"policy_loss": "real", "imagined/policy_loss": "imagined"},
    ),
    Chart(
        "Value loss by source",
        "Mean squared error of the values, on real and on imagined play, and on all that they learn"
        " from.",
        {"value_loss": "real", "imagined/value_loss": "imagined", "value_loss_mixed": "both"},
    ),
)
BELOW = (
    Chart(
        "Gate of the search",
        "Share of seats that search, as their world model is accurate enough.",
        {"search/open": "gate open"},
    ),
    Chart(
        "Social rewards",
        "What a step costs by inequity, and its influence on the others in nats, before weights.",
        {"social/inequity": "inequity", "social/influence": "influence"},
    ),
    Chart("Entropy", "Of the policy, in nats.", {"entropy": "entropy"}),
    Chart("Change of the policy", "In an update.", {"kl": "divergence", "clipped": "clipped"}),
    Chart("Explained variance", "Of the returns, by the values.", {"explained": "explained"}),
    Chart("Gradient norm", "Before it is clipped.", {"gradient_norm": "gradient norm"}),
    Chart(
        "Loss of the model",
        "On the samples fitted with, and on those held out.",
        {"fitted_loss": "fitted", "held_out_loss": "held out"},
    ),
    Chart("Loss by part, held out", "By its parts.", {"held_out/": ""}),
    Chart("Loss by part, fitted", "By its parts.", {"fitted/": ""}),
)


def list_charts() -> list[Chart]:
    """All there are; of auxiliary models from outside, those of the runs that were read."""
    return [*ABOVE, *charts(), *BELOW]


@dataclass(frozen=True)
class Curved:
    """A run as far as curves go."""

    name: str
    logged: Logged
    best: float | None = None  # the best return of a seat
    gate: float | None = None  # the world error above which nothing is imagined or searched
    actions: Sequence[str] = field(default_factory=tuple)
    learning: Sequence[int] | None = None  # the seats that learn, if not all do


def curves_section(runs: Sequence[Curved], say: Translations) -> Section:
    """Charts of all runs, one over the other, to zoom, smooth and choose from."""
    points = max(FEWEST, min(POINTS, ALL_POINTS // max(1, len(runs))))
    thinned = [run.logged.thinned(points) for run in runs if len(run.logged.steps)]
    shown = [run for run in runs if len(run.logged.steps)]
    charts = list(_charts(shown, thinned, say))
    if not charts:
        return Section(say("Curves"), say("Nothing was logged yet."))
    most = max(len(run.logged.steps) for run in shown)
    text = say("Means over seeds; bands go from the worst seed to the best.")
    if most > points:
        more = say("Each point is the mean of several updates, at most {n} a curve.", n=points)
        text = f"{text} {more}"
    for chart in charts:
        epochs = all(shown[line["run"]].logged.by_epoch for line in chart["lines"])
        chart["axis"] = say("epochs") if epochs else say("environment steps of each seed")
    data = {
        "runs": [
            {"name": run.name, "x": thin.steps} for run, thin in zip(shown, thinned, strict=True)
        ],
        "charts": charts,
    }
    return Section(say("Curves"), text, view="curves", data=data)


def _charts(
    runs: Sequence[Curved], thinned: Sequence[Thinned], say: Translations
) -> Iterator[dict[str, Any]]:
    """As the script reads them; those without lines are left out."""
    about = "Return of an episode, mean over seats and each seat's own."
    if any(run.learning is not None for run in runs):
        about = "Return of an episode, mean over seats that learn (*) and each seat's own."
    returns = Chart("Return", about, {}, level="best")
    for chart in (returns, *list_charts()):
        found = (
            _return_lines(runs, thinned, say)
            if chart is returns
            else _metric_lines(runs, thinned, chart, say)
        )
        if lines := list(found):
            level = chart.level
            name = "best possible" if level == "best" else level
            heights = dict.fromkeys(getattr(run, level) for run in runs) if level else {}
            yield {
                "title": say(chart.title),
                "about": say(chart.about),
                "lines": lines,
                "levels": [{"name": say(name), "y": y} for y in heights if y is not None],
            }


def _return_lines(
    runs: Sequence[Curved], thinned: Sequence[Thinned], say: Translations
) -> Iterator[dict[str, Any]]:
    """Of each run the mean of the seats that learn, all when not given, and every seat's own."""
    for number, (run, thin) in enumerate(zip(runs, thinned, strict=True)):
        if thin.logged.episodes is None:
            continue
        totals, episodes = thin.logged.episodes
        learning = run.learning
        returns = thin.ratio(totals, np.broadcast_to(episodes[..., None], totals.shape))
        title = "mean over seats" if learning is None else "mean over learning seats"
        own = returns if learning is None else returns[:, :, list(learning)]
        yield _line(number, say(title), _mean(own, axis=2))
        for seat in range(returns.shape[2]):
            mark = " *" if learning is not None and seat in learning else ""
            title = say("seat {seat}", seat=seat) + mark
            yield _line(number, title, returns[:, :, seat], quiet=len(runs) > 1)


def _metric_lines(
    runs: Sequence[Curved], thinned: Sequence[Thinned], chart: Chart, say: Translations
) -> Iterator[dict[str, Any]]:
    for number, (run, thin) in enumerate(zip(runs, thinned, strict=True)):
        for name, called in chart.names.items():
            for full in _matching(thin.logged, name):
                rare = full in thin.logged.left_out  # has steps of its own then
                own = thin.logged.of(full).thinned(len(thin.starts)) if rare else thin
                values = own.get(full)
                if values is None or not np.isfinite(values).any():
                    continue
                if full == "imagined/value_loss" and not np.nan_to_num(values).any():
                    continue  # the critic learns from real play alone
                title = say(called) if called else full.removeprefix(name).replace("_", " ")
                line = _line(number, title, _mean(values, axis=2))
                yield line | ({"x": own.steps} if rare else {})
        for names, lines in ((chart.by_action, _recall_lines), (chart.by_other, _other_lines)):
            hit, count = (thin.logged.values.get(name) for name in names or ("", ""))
            if count is not None and hit is not None and hit.ndim == 5 and hit.shape == count.shape:
                yield from lines(number, run, thin, hit, count, say)


def _recall_lines(
    number: int, run: Curved, thin: Thinned, hit: np.ndarray, count: np.ndarray, say: Translations
) -> Iterator[dict[str, Any]]:
    """By action, the share of the counts [U, S, sets, N - 1, A] that are hits."""
    recall = thin.ratio(hit.sum(axis=(2, 3)), count.sum(axis=(2, 3)))  # [P, S, A]
    for action in range(recall.shape[2]):
        known = action < len(run.actions)
        name = say(run.actions[action]) if known else say("action {n}", n=action)
        yield _line(number, name, recall[:, :, action], quiet=True)


def _other_lines(
    number: int, run: Curved, thin: Thinned, hit: np.ndarray, count: np.ndarray, say: Translations
) -> Iterator[dict[str, Any]]:
    """The same by seat, and by seat and other."""
    seats = range(count.shape[3] + 1) if run.learning is None else run.learning
    pairs = list(others_of(count, seats))
    by_seat = thin.ratio(hit.sum(axis=(3, 4)), count.sum(axis=(3, 4)))  # [P, S, sets]
    for seat_set, seat in {one[0]: one[2] for one in pairs}.items():
        yield _line(number, say("seat {seat}", seat=seat), by_seat[:, :, seat_set])
    by_other = thin.ratio(hit.sum(axis=4), count.sum(axis=4))  # [P, S, sets, N - 1]
    for seat_set, place, seat, other in pairs:
        title = say("seat {seat} of seat {other}", seat=seat, other=other)
        yield _line(number, title, by_other[:, :, seat_set, place], quiet=True)


def _matching(logged: Logged, name: str) -> list[str]:
    """The metrics of that name, or whose names begin with it."""
    if name.endswith("/"):
        return [full for full in logged.values if full.startswith(name)]
    return [name] if name in logged.values else []


def _line(run: int, name: str, by_seed: np.ndarray, quiet: bool = False) -> dict[str, Any]:
    """The mean over seeds of [P, S] with the worst and the best; `quiet` is hidden at first."""
    line = {"run": run, "name": name, "y": _mean(by_seed, axis=1)}
    if by_seed.shape[1] > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # bins without any number
            line |= {"low": np.nanmin(by_seed, axis=1), "high": np.nanmax(by_seed, axis=1)}
    return line | ({"quiet": True} if quiet else {})


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Over the numbers there are; NaN of none."""
    counts = np.isfinite(values).sum(axis=axis)
    totals = np.nansum(values, axis=axis)
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
