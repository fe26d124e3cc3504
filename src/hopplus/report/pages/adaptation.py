"""The pages of adaptation: what a player gets among new co-players, what there is to be had, and
where it is lost who they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hopplus.diagnosis.introspection import Introspection
from hopplus.evaluation.adaptation import Adaptation
from hopplus.evaluation.references import SAID, References
from hopplus.evaluation.statistics import ENOUGH, Estimate, estimate
from hopplus.report.figures.evaluation import draw_adaptation, draw_certificate, draw_episodes
from hopplus.report.numbers import counted, doubt_seeds, said
from hopplus.report.page import Page, Section

PRACTISED = (
    "Among others than the mixtures' (the mean marked practised), the oracle has learned and"
    " blind has not: what it brings there is knowing and practice."
)


def adaptation_page(name: str, found: Adaptation, known: References | None, learning: str) -> Page:
    """Returns among each lineup, next to those of oracle and blind where they were measured."""
    seeds = len(found.returns)
    means, closed = found.means(), found.closed(known) if known else None
    rows: list[list[Any]] = [
        [lineup, *found.estimates(place)] for place, lineup in enumerate(found.lineups)
    ]
    regret = found.regret(known) if known else None
    totals: list[list[Any]] = [["mean", *means]]
    if known and closed:
        totals.append([known.aim_says, *closed])
    if known and regret:
        totals += [["regret", *regret], ["regret, added up", *(found.regret(known, True) or ())]]
    if known and closed:
        answer = f"{known.aim_says.capitalize()}: {closed[0]} in {found.columns[0]}"
        if len(closed) > 1:
            answer += f", {closed[-1]} in {found.columns[-1]}"
    else:
        answer = f"Mean return {means[0]} in {found.columns[0]}"
    lines = ["mean returns ± 95% over seeds"] * (seeds > 1)
    lines += filter(None, [doubt_seeds(seeds)])
    if known and closed is None:
        lines.append(f"among these co-players there is no gap from blind to {known.aim_called}")
    title = f"{name}, learning: {learning}, {counted(seeds, 'seed')}"
    table = Section(title, header=["others", *found.columns], rows=rows + totals, apart=len(totals))
    picture = Section(
        "By lineup",
        "Dots are the player's returns, from the first column (light) to the last (dark).",
        pictures=[("returns by lineup", lambda: draw_adaptation(found, known))],
    )
    # One column is no curve.
    drawn = ("returns by episode", lambda: draw_episodes(found, known))
    curve = [Section("Episode by episode", pictures=[drawn])] if len(found.columns) > 1 else []
    sure = closed is None or closed[-1].mean > closed[-1].half_width
    return Page(
        f"hopplus adapt: {name}",
        answer,
        "good" if sure and seeds >= ENOUGH else "bad",
        lines,
        sections=[table, *curve, picture],
        payload={"learning": learning, **found.as_json(), "closed": closed, "regret": regret},
    )


def certificate_page(found: References, title: str) -> Page:
    """What being told brings, by lineup."""
    header, rows = certificate_rows(found)
    gaps, gap = found.gaps(), found.gap
    sure = sum(one.mean > one.half_width for one in gaps)
    lines = [
        f"the largest gap, {gaps[found.widest]}, is with {said(found.lineups[found.widest])};"
        f" with {sure} of {len(gaps)} lineups its interval is above 0"
    ]
    lines += [PRACTISED] * bool(found.practised.any())
    lines += filter(None, [doubt_seeds(len(found.oracle))])
    sections = [
        Section(f"return of seat 0, {title}", header=header, rows=rows, apart=len(rows) - len(gaps))
    ]
    lost = found.lost_by_episode()
    if lost:
        lines.append(
            f"some co-players remember the trial: not knowing them costs {lost[0]} in its first"
            f" episode, which finding out would cost, and {lost[-1]} in the last"
        )
        sections.append(
            Section(
                "By episode of the trial, over the same lineups as the mean",
                "Neither oracle nor blind remembers anything; their co-players do, and the oracle"
                " is told what they are after.",
                header=["", *(f"episode {number + 1}" for number in range(len(lost)))],
                rows=[
                    *(
                        [SAID.get(name, name), *found.means_by_episode(name)]
                        for name in found.by_episode
                    ),
                    ["oracle − blind", *lost],
                ],
            )
        )
    drawn = ("oracle and blind by lineup", lambda: draw_certificate(found))
    return Page(
        f"hopplus certify: {title}",
        f"The value of knowing your co-players (oracle minus blind PPO) is {gap} on average"
        + f", {found.share.mean:.0%} of the oracle's return" * (found.share.mean * gap.mean > 0),
        "good" if gap.mean > gap.half_width else "bad",
        lines,
        sections=[*sections, Section("By lineup", pictures=[drawn])],
        payload={**found.as_json(), **({"lost_by_episode": lost} if lost else {})},
    )


def certificate_rows(found: References) -> tuple[list[str], list[list[Any]]]:
    """The names of columns; a row for each lineup, and one for the mean over the mixtures and over
    the lineups that only the oracle has learned among, where there are any."""
    columns = {} if found.best is None else {SAID["best"]: found.best}
    columns |= {
        "oracle": found.oracle,
        "blind": found.blind,
        "oracle − blind": found.oracle - found.blind,
        "random": found.random,
    }
    rows = [
        [lineup, *(estimate(returns[:, place]) for returns in columns.values())]
        for place, lineup in enumerate(found.lineups)
    ]
    for name, held in (("mean", ~found.practised), ("mean, practised", found.practised)):
        if held.any():
            means = (estimate(returns[:, held].mean(axis=1)) for returns in columns.values())
            rows.append([name, *means])
    return ["others", *columns], rows


def introspection_sections(found: Sequence[Introspection]) -> list[Section]:
    """The three measures of where it is lost who the others are, over seeds."""

    def over_seeds(measure: str, *place: int) -> Estimate | None:
        """The mean with its interval; nothing where it cannot be told."""
        values = np.array([getattr(one, measure)[place] for one in found])
        return None if np.isnan(values).any() else estimate(values)

    first, episodes = found[0], range(len(found[0].probe))
    numbers = [f"episode {number + 1}" for number in episodes]
    return [
        Section(
            "Kinds of co-players: accuracy of a linear probe on what is inferred",
            f"{first.chance:.3f} is chance. Over {counted(len(found), 'seed')}, ± 95%.",
            header=["after steps", *numbers],
            rows=[
                [time, *(over_seeds("probe", episode, place) for episode in episodes)]
                for place, time in enumerate(first.times)
            ],
        ),
        Section(
            "Accuracy of the opponent models",
            header=["others", "right", "at best"],
            rows=[
                [lineup, over_seeds("accuracy", place), over_seeds("best", place)]
                for place, lineup in enumerate(first.lineups)
            ],
        ),
        Section(
            "Sensitivity of the policy to what is inferred",
            "Total variation, from 0 to 1; a policy that uses it moves more among other"
            " co-players.",
            header=["", "among the same co-players", "among others"],
            rows=[
                [number, over_seeds("moved_alike", episode), over_seeds("moved_other", episode)]
                for episode, number in enumerate(numbers)
            ],
        ),
    ]
