"""Which part of the gain is what a player makes of the others, and which is imagination: rows of
`benchmarks.methods` that differ in these alone, and how they adapt among families held out."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.kept import find_figures, keep_figures
from hopplus.config import (
    BeliefConfig,
    LiamConfig,
    MemoryConfig,
    PartName,
    SearchConfig,
    TrainConfig,
)
from hopplus.evaluation.adaptation import adapt, lineups
from hopplus.evaluation.statistics import estimate
from hopplus.evaluation.trials import ByEpisode
from hopplus.games import make_game
from hopplus.learning.from_run import players_by_seed
from hopplus.presets import PRESETS
from hopplus.report.page import Column, Section, make_table
from hopplus.runs.folder import RunFolder

IMAGINED: tuple[PartName, ...] = ("opponent", "world", "imagination")
HOP_PLUS = PRESETS["hop-plus-trial"]
# Everyone learns as hop-plus-trial does, and LIAM is fitted as often as its goals are.
FITTED: dict[str, Any] = {
    name: getattr(HOP_PLUS.goal, name)
    for name in ("every", "fits", "batch", "learning_rate", "anneal", "hidden", "across")
}
SHARED = replace(
    HOP_PLUS,
    train_against="population",
    liam=LiamConfig(**FITTED),
    belief=BeliefConfig(none=True),
)


def _rows(name: str, *parts: PartName, memory: MemoryConfig | None = None) -> Any:
    """Without imagination and with it."""
    every = tuple(dict.fromkeys([*parts, *IMAGINED]))
    imagining = replace(SHARED, parts=every, memory=memory or MemoryConfig())
    alone = imagining.without(*(part for part in every if part not in parts))
    return {name: alone, f"{name}-imagination": imagining}


PARTS: Mapping[str, TrainConfig] = {
    **_rows("blind"),
    **_rows("memory", memory=MemoryConfig(kind="trial")),
    **_rows("liam", "liam"),
    **_rows("belief", "opponent", "belief"),
    **_rows("traits", "opponent", "traits"),
    **_rows("goal", "opponent", "goal"),  # with imagination, HOP+ in trials
}


def adapted_tables(
    done: Mapping[str, RunFolder], held_out: tuple[str, ...], trials: int, kept: Path
) -> tuple[list[Section], dict[str, Any]]:
    """Returns by episode among each family in all other seats, averaged over those that were held
    out and over those that were met; and the figures [S, K, E] of every row."""
    found, first = {}, next(iter(done.values())).config()
    game = make_game(first.game)
    wanted = lineups(["population"], game)
    families = [lineup[0] for lineup in wanted]
    about = {"families": families, "trials": trials}
    for name, run in done.items():
        config = run.config()
        own = {**about, "seed": config.seed, "seeds": config.seeds, "steps": config.steps}
        figures = find_figures(kept, name, own)
        if figures is None:
            players = list(players_by_seed(run, list(config.seed_numbers)).values())
            seen = adapt(
                game,
                players,
                wanted,
                {},
                [0],
                ByEpisode(config.trial),
                trials,
                SearchConfig(),
                jax.random.key(config.seed),
            )
            figures = {**own, "returns": seen.returns.tolist()}
            keep_figures(kept, {name: figures})
        found[name] = figures["returns"]
    met = np.array([name not in held_out for name in families])

    def table(title: str, which: np.ndarray) -> Section:
        columns: dict[str | Column, Any] = {"row": lambda one: one[0]}
        for episode in range(first.trial):
            columns[f"episode {episode + 1}"] = lambda one, episode=episode: estimate(
                np.array(one[1])[:, which, episode].mean(axis=1)
            )
        return make_table(title, columns, found.items())

    tables = [table(f"Among families held out: {', '.join(held_out)}", ~met)] if held_out else []
    return [*tables, table("Among families met", met)], {**about, "returns": found}
