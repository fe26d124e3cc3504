"""Measures of models as tables for people."""

from typing import Any

from rich.console import Console
from rich.table import Table

from hopplus.diagnosis.measures import Measures


def print_measures(by_seed: list[Measures]) -> None:
    """The headline figures of every seed, and the actions of an opponent model's first."""
    kind = by_seed[0].kind
    lines = [_LINES[kind](measures.figures) for measures in by_seed]
    title = f"{kind} model, {by_seed[0].figures['samples']:,} held-out steps"
    table = Table(title=title, title_justify="left")
    table.add_column("measure")
    for seed in range(len(by_seed)):
        table.add_column(f"seed {seed}" if len(by_seed) > 1 else "value", justify="right")
    for name in lines[0]:
        table.add_row(name, *(line[name] for line in lines))
    console = Console()
    console.print(table)
    if kind == "opponent":
        console.print(_classes(by_seed[0].figures))


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
        "told": "told who sits there",
        "watching": "not told, weighs all actions so far",
        "guessing": "not told, infers nothing",
    }
    for name, words in about.items():
        if name in best:
            found = best[name]
            lines[f"best possible, {words}"] = f"{found['top1']:.2%} ({found['cross_entropy']:.4f})"
    if best:
        lines["share of the best when not told"] = f"{figures['share_of_best']:.2%}"
        never = figures["never_foreseen"]
        lines["never foreseen, though it could be"] = ", ".join(never) or "none"
    return lines


def _world(figures: dict[str, Any]) -> dict[str, str]:
    lines = {
        "exact next state": f"{figures['exact_next_state']:.3%}",
        "... with ends and legality": f"{figures['exact_everything']:.3%}",
        "plane MSE (PSNR)": f"{figures['plane_mse']:.2g} ({figures['psnr']:.1f} dB)",
        "reward MSE, own (all seats)": (
            f"{figures['reward_mse']:.2g} ({figures['reward_mse_all_seats']:.2g})"
        ),
        "seat's end, episode's end, legality": ", ".join(
            f"{figures[name]:.3%}"
            for name in ("seat_end_accuracy", "episode_end_accuracy", "legality_accuracy")
        ),
        "physically possible": f"{figures['consistency']['all']:.3%}",
    }
    for row in figures["open_loop"]:
        if row["steps"] in (1, 5, 10, 15) and row["windows"]:
            name = f"exact after {row['steps']} imagined steps"
            lines[name] = f"{row['exact']:.3%} of {row['windows']:,}"
    return lines


def _goal(figures: dict[str, Any]) -> dict[str, str]:
    hits = figures["hit_ratio"]
    lines = {
        f"{figures['loss']} loss": f"{figures[figures['loss']]:.4f}",
        "told right": f"{figures['told_right']:.2%}",
        "KL": f"{figures['kl']:.3f} nats in {figures['numbers_in_use']} numbers",
        f"place visited within {hits['within']} steps": (
            f"later {hits['later']:.1%}, now {hits['now']:.1%}, chance {hits['chance']:.1%}"
        ),
    }
    for about, words in (("kind", "kind of player"), ("prey", "what it takes in the end")):
        if about in figures:
            for name, found in (
                (f"{words}, area under the curve", figures[about]),
                ("... from half an episode on", figures[about]["from_half_on"]),
            ):
                lines[name if name[0] != "." else f"{words} {name}"] = _area(found)
    return lines


def _area(found: dict[str, Any]) -> str:
    if found["auc"] is None:
        return "too few of a kind"
    return f"{found['auc']:.3f} ({found['auc_low']:.3f} to {found['auc_high']:.3f})"


_LINES = {"opponent": _opponent, "world": _world, "goal": _goal}
