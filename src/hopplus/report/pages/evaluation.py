"""The pages of players who play together: whole episodes, and everyone among everyone."""

from collections.abc import Sequence
from typing import Any

from hopplus.evaluation.crossplay import Crossplay
from hopplus.evaluation.evaluate import Evaluation, Measured
from hopplus.evaluation.statistics import across_seeds
from hopplus.report.figures.evaluation import draw_crossplay
from hopplus.report.numbers import counted, doubt_seeds, said
from hopplus.report.page import Column, Page, Section
from hopplus.report.pages.runs import across_seeds_section


def evaluation_page(e: Evaluation) -> Page:
    """What every seat got, and all of them together."""
    several, partly = len(e.seeds) > 1, len(e.focal) < len(e.players)
    notes = ["* the mean is over these seats alone"] * partly
    if several:
        pairs = zip(e.seeds, e.mean_return.by_seed, strict=True)
        by_seed = ", ".join(f"{seed}: {said(mean)}" for seed, mean in pairs)
        notes.append(
            f"mean by seed: {by_seed}; the first interval is over episodes, for these very"
            " players, the second over seeds"
        )
    over_seeds = ["± over seeds"] * several
    rows: list[list[Any]] = [
        [
            str(seat),
            f"{player}{' *' * (partly and seat in e.focal)}",
            *_intervals(e.returns[seat]),
            *e.took[seat].tolist(),
        ]
        for seat, player in enumerate(e.players)
    ]
    means = e.took[list(e.focal)].mean(axis=0).tolist()
    rows.append(["", f"mean{' *' * partly}", *_intervals(e.mean_return), *means])
    table = Section(
        f"{e.game}, {counted(e.episodes, 'episode')}{_of_seeds(e.seeds)}",
        "\n".join(notes),
        header=[
            "seat",
            Column("player", words=True),
            "return ± 95%",
            *over_seeds,
            *(f"{kind}s" for kind in e.kinds),
        ],
        rows=rows,
        apart=1,
    )
    return Page(
        f"hopplus evaluate: {said(e.players)}", _together(e), sections=[table], payload=e.as_json()
    )


def _together(e: Evaluation) -> str:
    joint, best = e.joint_return.episodes, e.best_joint_return
    taken = ", ".join(f"{said(n)} {kind}s" for kind, n in zip(e.kinds, e.taken, strict=True))
    share = f" ({joint.mean / best:.1%})" if best and best > 0 else ""
    return (
        f"joint return {joint}{'' if best is None else f' of {best:g} at best'}{share};"
        f"{f' taken per episode: {taken};' if taken else ''} length {e.length} steps"
        f"{'; one episode: no interval' if e.episodes == 1 else ''}"
    )


def _of_seeds(seeds: Sequence[int]) -> str:
    match seeds:
        case ():
            return ""
        case (seed,):
            return f" of seed {seed}"
    return f" of each of {len(seeds)} seeds"


def _intervals(found: Measured) -> list[Any]:
    """The mean with its interval over episodes, and the interval over seeds if there is one."""
    over_seeds = [f"± {said(found.seeds.half_width)}"] if found.seeds else []
    return [found.episodes, *over_seeds]


def crossplay_page(found: Crossplay, runs: Sequence[str], episodes: int) -> Page:
    """Who gets what among whom; `runs` [R] is the run that each member is a seed of."""
    scores = found.by_run(runs)
    seeds = dict(zip(scores, across_seeds(list(scores.values())), strict=True))
    matrix = Section(
        f"return of the row in one seat among the column; {episodes:,} episodes a seat",
        header=["", *found.names],
        rows=[[name, *row] for name, row in zip(found.names, found.focal, strict=True)],
    )
    sections = [
        matrix,
        across_seeds_section(list(seeds), list(seeds.values())),
        Section("By pair", pictures=[("returns by pair", lambda: draw_crossplay(found))]),
    ]
    lines = ["each cell over all seats in turn; intervals of 95% over episodes, not over runs"]
    if scores:
        lines += filter(None, [doubt_seeds(min(map(len, scores.values())))])
    means = {
        name: sum(cell.mean for cell in row) / len(row)
        for name, row in zip(found.names, found.focal, strict=True)
    }
    best = max(means, key=means.__getitem__)
    return Page(
        f"hopplus crossplay: {said(found.names)}",
        f"{best} gets most on average among all: {said(means[best])}",
        lines=lines,
        sections=[section for section in sections if section],
        payload={**found.as_json(), "across_seeds": seeds},
    )
