"""Measures of models as tables for people."""

from typing import Any

from rich.console import Console
from rich.table import Table

from hopplus.diagnosis.measures import Measures


def print_measures(by_seed: dict[int, Measures]) -> None:
    """The headline figures of every seed, and the actions of an opponent model's first."""
    first = next(iter(by_seed.values()))
    kind = first.kind
    lines = [_LINES[kind](measures.figures) for measures in by_seed.values()]
    title = f"{kind} model, {first.figures['samples']:,} held-out steps"
    table = Table(title=title, title_justify="left")
    table.add_column("measure")
    for seed in by_seed:
        table.add_column(f"seed {seed}", justify="right")
    for name in lines[0]:
        table.add_row(name, *(line[name] for line in lines))
    console = Console()
    console.print(table)
    if kind == "opponent":
        console.print(_classes(first.figures))


def _classes(figures: dict[str, Any]) -> Table:
    table = Table(title="by action", title_justify="left")
    rows = figures["classes"]
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="left" if name == "action" else "right")
    for row in rows:
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else f"{v}" for v in row.values()))
    return table


def _opponent(figures: dict[str, Any]) -> dict[str, str]:
    best = figures["best"]
    lines = {
        "top-1": f"{figures['top1']:.2%}",
        "top-3": f"{figures['top3']:.2%}",
        "cross-entropy": f"{figures['cross_entropy']:.4f}",
        "calibration error": f"{figures['calibration_error']:.4f}",
    }
    about = {
        "told": "told who it is",
        "watching": "not told, watching",
        "guessing": "not told, guessing",
    }
    for name, words in about.items():
        if name in best:
            found = best[name]
            lines[f"best possible, {words}"] = f"{found['top1']:.2%} ({found['cross_entropy']:.4f})"
    if best:
        lines["share of the best when not told"] = f"{figures['share_of_best']:.2%}"
        never = figures["never_foreseen"]
        lines["never foreseen, though it could be"] = ", ".join(never) or "none"
    else:
        lines["best possible"] = "not known of learned players"
    return lines


def _world(figures: dict[str, Any]) -> dict[str, str]:
    lines = {
        "exact next state": f"{figures['exact_next_state']:.3%}",
        "... with ends and legality": f"{figures['exact_everything']:.3%}",
        "plane MSE (PSNR)": f"{figures['plane_mse']:.2g} ({figures['psnr']:.1f} dB)",
        "reward MSE, own (all seats)": (
            f"{figures['reward_mse']:.2g} ({figures['reward_mse_all_seats']:.2g})"
        ),
        "seat's end foreseen": f"{figures['seat_end_accuracy']:.3%}",
        "episode's end foreseen": f"{figures['episode_end_accuracy']:.3%}",
        "legal actions foreseen": f"{figures['legality_accuracy']:.3%}",
        "physically possible": f"{figures['consistency']['all']:.3%}",
    }
    for row in figures["open_loop"]:
        if row["steps"] in (1, 5, 10, 15) and row["windows"]:
            name = f"exact after {row['steps']} imagined steps"
            lines[name] = f"{row['exact']:.3%} of {row['windows']:,}"
    return lines


def _goal(figures: dict[str, Any]) -> dict[str, str]:
    hits, loss = figures["hit_ratio"], figures["loss"]
    what = "actions" if loss == "action" else "cells"
    lines = {
        f"{loss} loss": f"{figures[loss]:.4f}",
        f"{what} told right": f"{figures['told_right']:.2%}",
        "KL (numbers or categories in use)": f"{figures['kl']:.3f} ({figures['numbers_in_use']})",
        f"later goal's place visited in {hits['within']}": _share(hits["later"]),
        "... untrained": _share(hits["untrained"]),
        "... goal of now": _share(hits["now"]),
        "... goal of another step": _share(hits["chance"]),
    }
    for about, words in (("kind", "kind of player"), ("prey", "prey in the end")):
        if about in figures:
            for name, found in (
                (f"{words} (area)", figures[about]),
                (f"{words}, late (area)", figures[about]["from_half_on"]),
            ):
                lines[name] = _area(found)
                lines[f"{name}, untrained"] = _untrained(found)
    return lines


def _share(share: float | None) -> str:
    return "too few" if share is None else f"{share:.1%}"


def _area(found: dict[str, Any]) -> str:
    if found["auc"] is None:
        return "too few of a kind"
    return f"{found['auc']:.3f} ({found['auc_low']:.3f} to {found['auc_high']:.3f})"


def _untrained(found: dict[str, Any]) -> str:
    if found["auc"] is None:
        return "too few of a kind"
    low, high = found["gain_low"], found["gain_high"]
    return f"{found['untrained_auc']:.3f} (gain {low:+.3f} to {high:+.3f})"


_LINES = {"opponent": _opponent, "world": _world, "goal": _goal}
