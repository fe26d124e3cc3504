"""The map in docs/source.md and the chain in CONTRIBUTING are those of the source."""

import re
from pathlib import Path

import pytest

from test_imports import BESIDE, LAYERS, SOURCE

ROOT = SOURCE.parents[1]
LONGEST = 350  # lines of a file


def drawn_map() -> str:
    """The block that begins with `src/hopplus/`."""
    text = (ROOT / "docs" / "source.md").read_text("utf-8")
    found = re.search(r"```text\nsrc/hopplus/\n(.*?)```", text, re.S)
    assert found
    return found[1]


def drawn_rooms(block: str) -> dict[str, set[str]]:
    """The rooms of a map by their paths, with the files that it names in each.

    A room within a room stands below it, further in.
    """
    rooms: dict[str, set[str]] = {"": set()}
    above: list[tuple[int, str]] = []
    for line in block.splitlines():
        room = re.match(r"( +)([a-z_]+)/ ", line)
        if room:
            indent = len(room[1])
            above = [(other, path) for other, path in above if other < indent]
            path = "/".join([*(path for _, path in above[-1:]), room[2]])
            above.append((indent, path))
            rooms[path] = set()
        elif not line.startswith("      "):
            above = []
        rooms[above[-1][1] if above else ""] |= set(re.findall(r"\b([a-z_0-9]+\.py)\b", line))
    return rooms


def rooms_of_source() -> set[str]:
    found = {file.parent.relative_to(SOURCE).as_posix() for file in SOURCE.rglob("*.py")}
    return {path for path in found if path != "."}


def test_the_map_shows_every_room() -> None:
    rooms = drawn_rooms(drawn_map())
    assert set(rooms) - {""} == rooms_of_source()
    for room, files in rooms.items():
        missing = {file for file in files if not (SOURCE / room / file).exists()}
        assert not missing, f"the map shows {missing} in {room or 'src/hopplus'}"
    alone = {file.name for file in SOURCE.glob("*.py")} - {"__init__.py", "__main__.py"}
    assert rooms[""] == alone


def test_the_chain_is_the_order_of_layers() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    found = re.search(r"`(cli -> [^`]*)`", text)
    assert found
    assert found[1].split(" -> ") == LAYERS
    beside = re.search(r"with (`[^.]*`) beside", text)
    assert beside
    assert set(re.findall(r"`([a-z_]+)`", beside[1])) == BESIDE


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_no_file_is_too_long(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST
