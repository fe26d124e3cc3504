"""A recorded episode made by hand: what tests of how it is shown share."""

from typing import Any

from hopplus.games.sprites import SPRITES

EVIL = "run\x1b[31m\x07@1"  # the name of a run may be anything


def look(action: int, **more: Any) -> dict[str, Any]:
    plain = {
        "action": action,
        "policy": [0.25, 0.0, 0.0, 0.75, 0.0],
        "value": 1.256,
        "legal": [True, False, False, True, True],
        "about": None,
        "predicted": None,
        "after": None,
        "visits": None,
        "line": None,
    }
    return plain | more


def moment(seats: Any, looks: Any, acts: Any = None, **more: Any) -> dict[str, Any]:
    targets = [{"kind": 0, "cell": [0, 2]}, {"kind": 1, "cell": [1, 1]}]
    plain = {"seats": seats, "targets": targets, "rewards": [0, 0], "looks": looks}
    return plain | ({"acts": acts} if acts else {}) | more


THINKS = look(
    3,
    about=[[0.9, 0.1]],
    predicted=[[0.05, 0.0, 0.6, 0.0, 0.35]],
    after=[{"kinds": [0.6, None], "cell": [0, 2], "share": 0.6}],
    visits=[0.2, 0.0, 0.0, 0.8, 0.0],
    line=[{"seats": [[0, 1], [1, 1]]}, {"seats": [[0, 2], None]}],
)
STEPS = [
    moment([[0, 0], [1, 1]], [THINKS, look(0)], [3, 0]),
    moment([[0, 1], [0, 1]], [look(3), look(0)], [3, 4]),
    moment([[0, 2], None], [look(4), None], [4, -1], rewards=[0, 1]),
    moment([[0, 2], None], [None, None], rewards=[0.5, 0]),
]
EPISODE = {
    "label": "best",
    "number": 7,
    "surprise": 1.5,
    "returns": [0.5, 1],
    "obstacles": [[1, 0]],
}
REPLAY: dict[str, Any] = {
    "game": "hunt 2x3",
    "rows": 2,
    "columns": 3,
    "horizon": 9,
    "obstacles": [[1, 0]],
    "actions": ["up", "down", "left", "right", "stay"],
    "kinds": ["stag", "hare"],
    "letters": ["S", "h"],
    "drawings": [SPRITES["S"], SPRITES["h"]],
    "players": ["run@0", EVIL],
    "goals": "belief",
    "episodes": [
        EPISODE | {"players": ["run@0", EVIL], "steps": STEPS},
        EPISODE | {"label": "worst", "number": 3, "players": ["run@0", EVIL], "steps": STEPS[2:]},
    ],
}
