"""The curves of runs: what is drawn in one chart, and from which metrics."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopplus.report.logged import Logged, Thinned
from hopplus.report.page import Section
from hopplus.report.words import Words

POINTS = 500  # of a curve, at most
ALL_POINTS = 2500  # of one curve of every run together
FEWEST = 100


@dataclass(frozen=True)
class Metrics:
    """A chart of metrics: names, or beginnings of them that end in /, and what to call them."""

    title: str
    about: str
    names: Mapping[str, str]


CHARTS = (
    Metrics(
        "Policy loss",
        "Of real and of imagined play.",
        {"policy_loss": "real", "imagined/policy_loss": "imagined"},
    ),
    Metrics(
        "Value loss by source",
        "Mean squared error of the values, on real and on imagined play.",
        {"value_loss": "real", "imagined/value_loss": "imagined"},
    ),
    Metrics("Loss of the opponent models", "By its parts.", {"opponent/loss/": ""}),
    Metrics("Loss of the goal model", "By its parts.", {"goal/loss/": ""}),
    Metrics("Loss of the world model", "By its parts.", {"world/loss/": ""}),
    Metrics(
        "World error",
        "Share of fresh real steps that the world model foresees wrongly.",
        {
            "world/error": "anything",
            "world/planes_wrong": "board",
            "world/reward_wrong": "reward",
            "world/gone_wrong": "who is gone",
            "world/legal_wrong": "legality",
            "world/done_wrong": "end",
        },
    ),
    Metrics(
        "Goal hit ratio",
        "How often an inferred goal is nearer to the one that hindsight selects than to another;"
        " 0.5 is chance.",
        {"goal/hit": "hit ratio"},
    ),
    Metrics(
        "Imagination",
        "Share of seats whose gate is open, and of imagined episodes that end.",
        {"imagined/open": "gate open", "imagined/ended": "ended"},
    ),
    Metrics(
        "Values, real and imagined",
        "Mean return that is learned from, and what the critic says of the same moments.",
        {
            "real/return": "return, real",
            "real/value": "value, real",
            "imagined/return": "return, imagined",
            "imagined/value": "value, imagined",
        },
    ),
    Metrics("Entropy", "Of the policy, in nats.", {"entropy": "entropy"}),
    Metrics("Change of the policy", "In an update.", {"kl": "divergence", "clipped": "clipped"}),
    Metrics("Explained variance", "Of the returns, by the values.", {"explained": "explained"}),
    Metrics("Gradient norm", "Before it is clipped.", {"gradient_norm": "gradient norm"}),
    Metrics(
        "Loss of the model",
        "On the samples fitted with, and on those held out.",
        {"fitted_loss": "fitted", "held_out_loss": "held out"},
    ),
    Metrics("Loss by part, held out", "By its parts.", {"held_out/": ""}),
    Metrics("Loss by part, fitted", "By its parts.", {"fitted/": ""}),
)


@dataclass(frozen=True)
class Curved:
    """A run as far as curves go."""

    name: str
    logged: Logged
    best: float | None = None  # the best return of a seat
    gate: float | None = None  # the world error above which nothing is imagined
    actions: Sequence[str] = field(default_factory=tuple)
    learning: Sequence[int] | None = None  # the seats that learn, if not all do


def curves_section(runs: Sequence[Curved], say: Words) -> Section:
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
    runs: Sequence[Curved], thinned: Sequence[Thinned], say: Words
) -> Iterator[dict[str, Any]]:
    """As the script reads them; those without lines are left out."""
    returns = [_returns(thin) for thin in thinned]
    lines = [
        line
        for number, found in enumerate(returns)
        if found is not None
        for line in _return_lines(number, found, runs[number].learning, say, len(runs) > 1)
    ]
    about = say("Return of an episode, mean over seats and each seat's own.")
    if any(run.learning is not None for run in runs):
        about = say("Return of an episode, mean over seats that learn (*) and each seat's own.")
    levels = [_level(say("best possible"), run.best) for run in runs if run.best is not None]
    if lines:
        yield {"title": say("Return"), "about": about, "lines": lines, "levels": _once(levels)}
    lines = [
        line
        for number, (run, thin) in enumerate(zip(runs, thinned, strict=True))
        for line in _accuracy_lines(number, run, thin, say)
    ]
    about = say("Share of the others' actions foreseen: of all, and of those of each kind.")
    if lines:
        yield {"title": say("Opponent accuracy"), "about": about, "lines": lines, "levels": []}
    for chart in CHARTS:
        lines = [
            line
            for number, thin in enumerate(thinned)
            for line in _metric_lines(number, thin, chart, say)
        ]
        gates = [_level(say("gate"), run.gate) for run in runs if run.gate is not None]
        levels = gates if "world/error" in chart.names else []
        if lines:
            yield {
                "title": say(chart.title),
                "about": say(chart.about),
                "lines": lines,
                "levels": _once(levels),
            }


def _returns(thin: Thinned) -> np.ndarray | None:
    """[P, S, N] mean return of the episodes that ended."""
    totals, episodes = (thin.logged.values.get(name) for name in ("return_sum", "episodes"))
    if totals is None or episodes is None or totals.ndim != 3 or episodes.ndim != 2:
        return None
    return thin.ratio(totals, np.broadcast_to(episodes[..., None], totals.shape))


def _return_lines(
    run: int, returns: np.ndarray, learning: Sequence[int] | None, say: Words, quiet: bool
) -> Iterator[dict[str, Any]]:
    """The mean of the seats that learn, all when not given, and every seat's own."""
    if learning is None:
        yield _line(run, say("mean over seats"), _mean(returns, axis=2))
    else:
        mean = _mean(returns[:, :, list(learning)], axis=2)
        yield _line(run, say("mean over learning seats"), mean)
    for seat in range(returns.shape[2]):
        mark = " *" if learning is not None and seat in learning else ""
        title = say("seat {seat}", seat=seat) + mark
        yield _line(run, title, returns[:, :, seat], quiet=quiet)


def _accuracy_lines(
    run: int, curved: Curved, thin: Thinned, say: Words
) -> Iterator[dict[str, Any]]:
    accuracy = thin.get("opponent/accuracy")
    if accuracy is None:
        return
    yield _line(run, say("all actions"), _mean(accuracy, axis=2))
    count, hit = (thin.logged.values.get(f"opponent/{name}") for name in ("count", "hit"))
    if count is None or hit is None or count.ndim != 4 or hit.shape != count.shape:
        return
    recall = thin.ratio(hit.sum(axis=2), count.sum(axis=2))  # [P, S, A]
    for action in range(recall.shape[2]):
        known = action < len(curved.actions)
        name = say(curved.actions[action]) if known else say("action {n}", n=action)
        yield _line(run, name, recall[:, :, action], quiet=True)


def _metric_lines(run: int, thin: Thinned, chart: Metrics, say: Words) -> Iterator[dict[str, Any]]:
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
            yield _line(run, title, _mean(values, axis=2)) | ({"x": own.steps} if rare else {})


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


def _level(name: str, height: float | None) -> dict[str, Any]:
    return {"name": name, "y": height}


def _once(levels: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for number, one in enumerate(levels) if one not in levels[:number]]
