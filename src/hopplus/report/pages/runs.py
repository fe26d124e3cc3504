"""The page of one run, or of several side by side."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from hopplus.config import differing
from hopplus.evaluation.statistics import (
    AcrossSeeds,
    Estimate,
    across_seeds,
    apart,
    estimate,
    seeds_json,
)
from hopplus.games import make_game
from hopplus.learning.from_run import names_met
from hopplus.report.numbers import said
from hopplus.report.page import Column, Page, Section
from hopplus.report.pages.curves import curves_section
from hopplus.report.pages.replay import replay_section
from hopplus.report.pages.summary import Summary
from hopplus.report.translations import Language, Sentence, Translations

IQM = (
    "IQM is the interquartile mean over seeds; intervals are of 95%, by bootstrap over seeds"
    " (Agarwal et al., 2021)."
)
IMPROVEMENT = (
    "The probability of improvement is that a run of one seed does better than one of {first}."
)

# By whether only some seats learn or nobody knows the best, and whether there are several runs.
HEADLINES = {
    (False, False): "Mean return {mean} of {best} at best",
    (False, True): "{name} has the highest mean return: {mean} of {best} at best",
    (True, False): "Mean return {mean} of the seats that learn",
    (True, True): "{name} has the highest mean return of the seats that learn: {mean}",
}


def runs_page(
    runs: Sequence[Summary],
    command: str,
    language: Language = "en",
    models: Sequence[Section] = (),
    replays: Sequence[tuple[str, dict[str, Any]]] = (),
) -> Page:
    """Replays, summary, curves and models; replays and models as far as they are given.

    `replays` are by the name of their run, as `hopplus.evaluation.replay.replays` records them.
    """
    say = Translations(language)
    warnings = _warnings(runs, say)
    known = any(run.returns is not None for run in runs)
    about = [say("Returns are means over the last tenth of a run.")] * known
    if any(run.partly for run in runs):
        about.append(say("Seats that learn have a *; means are over these alone."))
    seeds = compare_seeds(runs)
    sections = [
        replay_section(replays, say) if replays else None,  # what they do, before any figure of it
        Section(
            say("Summary"),
            header=["", *(run.name for run in runs)],
            rows=[[say(name), *cells] for name, cells in _rows(runs, say)],
            detail=True,
        ),
        across_seeds_section([run.name for run in runs], seeds, say),
        differences(runs, say),
        curves_section([run.curved for run in runs], say),
        *(replace(one, detail=True) for one in models),
    ]
    figures = [{**run.as_json(), **seeds_json(one)} for run, one in zip(runs, seeds, strict=True)]
    return Page(
        f"hopplus: {', '.join(run.name for run in runs)}",
        _headline(runs, say),
        "bad" if warnings else "good",
        [*about, *warnings],
        command,
        [section for section in sections if section],
        language,
        {"runs": figures},
    )


def compare_seeds(runs: Sequence[Summary]) -> list[AcrossSeeds | None]:
    """Each run over its seeds, next to the first; those that cannot be ranked each for itself."""
    by_seed = [run.by_seed for run in runs]
    if incomparable(runs):
        return [across_seeds([one])[0] for one in by_seed]
    return across_seeds(by_seed)


def across_seeds_section(
    names: Sequence[str], found: Sequence[AcrossSeeds | None], say: Translations | None = None
) -> Section | None:
    """A row for each contestant; none if nobody has several seeds."""
    say = say or Translations()
    if not any(found):
        return None
    header = [Column(say("run"), words=True), Column(say("IQM [95% bootstrap interval]"))]
    rows: list[list[object]] = [
        [name, one and one.iqm] for name, one in zip(names, found, strict=True)
    ]
    text = say(IQM)
    if any(one and one.improvement for one in found):
        header.append(Column(say("probability of improvement")))
        rows = [[*row, one and one.improvement] for row, one in zip(rows, found, strict=True)]
        text = f"{text} {say(IMPROVEMENT, first=names[0])}"
    return Section(say("Across seeds"), text, header=header, rows=rows)


def _headline(runs: Sequence[Summary], say: Translations) -> str:
    """The return of the run, or of the best one, next to the best possible."""
    known = [run for run in runs if run.mean_return is not None]
    if not known:
        losses = [_held_out(run) for run in runs]
        if len(runs) == 1 and losses[0] is not None:
            return say("Held-out loss {loss}", loss=said(losses[0]))
        return say("No returns yet")
    best = max(known, key=lambda run: run.mean_return.mean if run.mean_return else 0.0)
    values = {"name": best.name, "mean": str(best.mean_return), "best": said(best.best, "g")}
    if len(runs) > 1 and incomparable(runs):
        return say("These runs cannot be ranked by their returns")
    if even := too_close([(run.name, run.mean_return) for run in known if run.mean_return]):
        return say(even)
    unknown = best.partly or best.best is None
    return say(HEADLINES[unknown, len(runs) > 1], **values)


def too_close(found: Sequence[tuple[str, Estimate]]) -> Sentence | None:
    """That the two highest means cannot be told apart, if so."""
    if len(found) < 2:
        return None
    (one, first), (other, second), *_ = sorted(found, key=lambda pair: -pair[1].mean)
    if apart(first, second):
        return None
    text = "No significant difference between {one} ({first}) and {other} ({second})"
    if math.isinf(max(first.half_width, second.half_width)):
        text = "One seed cannot tell {one} ({first}) from {other} ({second}): train more"
    return Sentence(text, {"one": one, "first": first, "other": other, "second": second})


def incomparable(runs: Sequence[Summary]) -> str | None:
    """Why the returns of these runs do not tell which of them learned best, if so."""
    known = [run for run in runs if run.config]
    if len({run.config.game for run in known if run.config}) > 1:
        return "these runs play different games: returns cannot be compared"
    if len({run.co_players for run in known}) > 1:
        return "these runs have different co-players: their returns cannot be ranked"
    return None


def differences(runs: Sequence[Summary], say: Translations) -> Section | None:
    """The settings in which runs of training differ, if there are several and any differ."""
    known = [run for run in runs if run.config]
    settings = differing([run.config for run in known])
    if not settings:
        return None
    header = [Column(say("setting"), words=True), *(Column(run.name, "g", "-") for run in known)]
    rows = [[name, *each] for name, each in settings.items()]
    return Section(say("What differs"), header=header, rows=rows)


def _warnings(runs: Sequence[Summary], say: Translations) -> list[str]:
    several = len(runs) > 1
    lines = [
        f"⚠ {run.name}: {say(one)}" if several else f"⚠ {say(one)}"
        for run in runs
        for one in run.warnings()
    ]
    if why := incomparable(runs):
        lines.append(f"⚠ {say(why)}")
    return lines


Row = tuple[str, list[Any]]


def _rows(runs: Sequence[Summary], say: Translations) -> list[Row]:
    """What is said of every run; rows that say nothing of any are left out."""
    seats = max((run.returns.shape[1] for run in runs if run.returns is not None), default=0)
    facts: list[tuple[str, Callable[[Summary], Any]]] = [
        ("mean return ± 95%", lambda run: run.mean_return),
        ("best possible", lambda run: said(run.best, "g")),
        ("share of the best", _share),
        ("lowest and highest seed", _ends),
        *(
            (say("return of seat {seat} ± 95%", seat=seat), partial(_seat, seat=seat))
            for seat in range(seats)
        ),
        ("held-out loss ± 95%", _held_out),
        ("value loss", lambda run: run.figure("value_loss")),
        ("learns", lambda run: _learns(run, say)),
        ("game", lambda run: _game(run, say)),
        ("seats", _seats),
        ("steps of each seed", lambda run: run.steps if run.config else None),
        ("epochs", lambda run: None if run.config else run.steps),
        ("seeds", lambda run: run.seeds),
        ("time", lambda run: _time(run, say)),
        ("machine", lambda run: run.facts.get("hardware")),
        ("revision", lambda run: run.facts.get("git")),
        ("command", lambda run: run.command),
    ]
    rows = [(name, [fact(run) for run in runs]) for name, fact in facts]
    return [(name, cells) for name, cells in rows if any(cell not in (None, "") for cell in cells)]


def _seats(run: Summary) -> str:
    if run.config is None or run.config.seats is None:
        return ""
    return ", ".join(names_met(run.config, run.facts))


def _share(run: Summary) -> str:
    return f"{run.mean_return.mean / run.best:.1%}" if run.mean_return and run.best else ""


def _ends(run: Summary) -> list[float] | None:
    if run.by_seed is None or len(run.by_seed) < 2:
        return None
    return [run.by_seed.min(), run.by_seed.max()]


def _seat(run: Summary, seat: int) -> str:
    if run.returns is None or seat >= run.returns.shape[1]:
        return ""
    mark = " *" if run.partly and seat in run.learning else ""
    return f"{estimate(run.returns[:, seat])}{mark}"


def _held_out(run: Summary) -> Estimate | None:
    """Of the best epoch of every seed."""
    loss = (run.result or {}).get("held_out_loss")
    try:
        return estimate(np.array(loss, float)) if loss else None
    except (TypeError, ValueError):
        return None


def _learns(run: Summary, say: Translations) -> str:
    config = run.config
    if config is None:
        return say("a model: {kind}", kind=run.run.kind)
    parts = [say("policy"), *map(say, config.parts)]
    if config.search.simulations:
        parts.append(say("search with {n} simulations", n=config.search.simulations))
    if config.memory.kind != "none":
        parts.append(say("memory"))
    return ", ".join(parts)


def _game(run: Summary, say: Translations) -> str:
    if run.config is None:
        return ""
    text, values = make_game(run.config.game).describe()
    return say(text, **values)


def _time(run: Summary, say: Translations) -> str:
    if run.seconds is None:
        return ""
    first, text = run.figure("first_update_seconds"), "{all} s"
    if first is not None:
        text = "{all} s, of which {first} s until the first update"
    return say(text, all=f"{run.seconds:,.0f}", first=f"{first or 0:,.0f}")
