"""Episodes to look at, step by step, through the eyes of any seat."""

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from hopplus.games.render import PALETTE, readable_on
from hopplus.games.sprites import SPRITES, shapes
from hopplus.report.page import Section
from hopplus.report.translations import Translations


def replay_section(replays: Sequence[tuple[str, dict[str, Any]]], say: Translations) -> Section:
    """Recorded episodes by the name of their run, for the page's script to show."""
    data = {
        "replays": [{"name": name, **replay} for name, replay in replays],
        **drawn_with([replay for _, replay in replays]),
    }
    text = say(
        "Keys: arrows go a step back and on, Home and End to the first and the last moment, the"
        " space bar plays and stops, a number picks the seat to look through."
    )
    return Section(say("Replay"), text, view="replay", data=data)


def drawn_with(replays: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The colours of seats, and drawings of all kinds of things that there are any of."""
    pairs = [pair for one in replays for pair in zip(one["kinds"], one["drawings"], strict=True)]
    drawings = {kind: drawing for kind, drawing in pairs if drawing} | {"rock": SPRITES["#"]}
    return {
        "seats": [{"back": colour, "ink": readable_on(colour)} for colour in PALETTE],
        "sprites": {
            name: [list(astuple(shape)) for shape in shapes(drawing)]
            for name, drawing in drawings.items()
        },
    }
