"""Runs that nobody trained: folders with the files of a run, and recorded episodes, by hand."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hopplus.config import to_json
from hopplus.games.sprites import SPRITES
from hopplus.presets import PRESETS
from hopplus.runs.checkpoint import read_checkpoint
from hopplus.runs.folder import LAYOUT

PARTS = {
    "opponent/accuracy": 0.6,
    "opponent/loss/cross_entropy": 1.0,
    "goal/hit": 0.5,
    "goal/loss/kl": 0.9,
    "goal/loss/reconstruction": 70.0,
    "world/error": 0.3,
    "world/reward_wrong": 0.1,
    "world/loss/reward": 0.2,
    "world/loss/done": 0.1,
    "imagined/open": 1.0,
    "imagined/value_loss": 0.4,
    "imagined/policy_loss": 0.01,
}
PPO = {"policy_loss": -0.01, "value_loss": 0.5, "entropy": 1.2, "kl": 0.002, "explained": 0.4}


def saved_arrays(checkpoint: Path) -> dict[str, np.ndarray]:
    """Everything in a checkpoint, by the name of its file and its place there."""
    names = [file.stem for file in checkpoint.glob("*.safetensors")]
    found = read_checkpoint(checkpoint, names)
    return {f"{name}{place}": array for name in names for place, array in found[name].items()}


def write_run(
    path: Path,
    returns: np.ndarray | None = None,
    *,
    updates: int = 6,
    seeds: int = 5,
    first_seed: int = 0,
    seats: Sequence[str] = (),
    preset: str = "hop-plus",
    finished: bool = True,
    more: Sequence[dict[str, Any]] = (),
) -> Path:
    """The folder of a run with returns [U, S, N], each of ten episodes, or with rising ones.

    `more` is put into the records, update by update; everyone learns unless `seats` says who.
    """
    if returns is None:
        rising = np.linspace(1.0, 2.8, updates)[:, None, None]
        returns = rising + 0.01 * np.random.default_rng(0).normal(size=(updates, seeds, 4))
    updates, seeds, count = returns.shape
    config = PRESETS[preset]
    steps = config.ppo.steps
    config = replace(
        config,
        steps=updates * steps,
        seeds=seeds,
        seed=first_seed,
        seats=",".join(seats or ["learn"] * count),
        train_against=None,
    )
    path.mkdir(parents=True)
    facts = {
        "layout": LAYOUT,
        "kind": "training",
        "config": to_json(config),
        "seeds": list(config.seed_numbers),
        "command": ["/somewhere/hopplus", "train", preset, "--name", path.name],
        "hardware": "a machine",
    }
    (path / "config.json").write_text(json.dumps(facts), encoding="utf-8")
    names = PPO | (PARTS if config.parts else {})
    with (path / "metrics.jsonl").open("w", encoding="utf-8") as file:
        for number, now in enumerate(returns, 1):
            record: dict[str, Any] = {
                "update": number,
                "steps": number * steps,
                "episodes": [10] * seeds,
                "return_sum": (10 * now).tolist(),
            }
            for place, (name, value) in enumerate(names.items()):
                wave = 0.1 * value * np.sin(number / 20 + place + np.arange(seeds))[:, None]
                record[name] = (value + wave + np.zeros((seeds, count))).tolist()
            record |= more[number - 1] if number <= len(more) else {}
            file.write(json.dumps(record) + "\n")
    if finished:
        result = {"seconds": 12.5, "first_update_seconds": 3.5, "value_loss": 0.5}
        (path / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return path


ACTIONS = ["stay", "up", "down", "left", "right", "hunt stag", "hunt hare"]


def fake_replay(name: str = "runs/a@0", goals: str = "belief") -> dict[str, Any]:
    """Recorded episodes of three seats on a board of three rows and four columns.

    Seat 0 walks right along the first row, seat 1 stays and leaves at the third moment, and seat 2
    is scripted: there is nothing to look at but what it does.
    """

    def looks(moment: int) -> list[Any]:
        one = {
            "action": 4,
            "policy": [0.05, 0.0, 0.15, 0.0, 0.8, 0.0, 0.0],
            "value": 2.5 - moment,
            "legal": [True, False, True, moment > 0, True, False, False],
            "about": [[0.75, 0.25], [0.1, 0.9]]
            if goals == "belief"
            else [[0.5, -1.0, 0.2], [moment, 1.0, 0.0]],
            "predicted": [[0.6, 0.1, 0.1, 0.1, 0.1, 0.0, 0.0], [0.1, 0.1, 0.5, 0.1, 0.2, 0.0, 0.0]],
            "after": [
                {"kinds": [0.6, 0.1], "cell": [0, 3], "share": 0.6},
                {"kinds": [0.1, None], "cell": None, "share": None},
            ],
            "visits": [0.1, 0.0, 0.2, 0.0, 0.7, 0.0, 0.0],
            "line": [{"seats": [[0, moment + 1], [1, 1], None]}, {"seats": [[1, 1], [2, 1], None]}],
        }
        two = {**one, "action": 0, "visits": None, "line": None, "about": None}
        return [one, two if moment < 2 else None, None]

    def step(moment: int, last: int) -> dict[str, Any]:
        gone = moment >= 2
        found = {
            "seats": [[0, moment], None if gone else [1, 1], [2, 3]],
            "targets": [{"kind": 0, "cell": [2, 1]}] + [{"kind": 1, "cell": [2, 3]}] * (not gone),
            "rewards": [0.0, 1.0 if moment == 2 else 0.0, 0.0],
            "looks": looks(moment) if moment < last else [None] * 3,
        }
        return found | ({"acts": [4, -1 if gone else 0, 2]} if moment < last else {})

    def episode(label: str, number: int, last: int, surprise: float | None) -> dict[str, Any]:
        return {
            "label": label,
            "number": number,
            "returns": [0.0, 1.0, 0.0],
            "surprise": surprise,
            "steps": [step(moment, last) for moment in range(last + 1)],
        }

    return {
        "game": "stag-hunt-v1 3x4",
        "rows": 3,
        "columns": 4,
        "obstacles": [[1, 2], [1, 3]],
        "actions": list(ACTIONS),
        "kinds": ["stag", "hare"],
        "letters": ["S", "h"],
        "drawings": [SPRITES["S"], SPRITES["h"]],
        "players": [name, name, "stag"],
        "goals": goals,
        "episodes": [episode("best", 7, 3, 1.25), episode("surprising", 11, 2, None)],
    }
