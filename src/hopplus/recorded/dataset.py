"""Recorded play in a folder: safetensors files of rows, and a JSON file that says what they are.

docs/data.md describes the format. Files hold whole episodes and are read one at a time, so that a
folder may be far larger than the memory.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from hopplus.config import ConfigError, GameConfig, from_json, to_json
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.recorded.record import Rows, packed
from hopplus.runs.checkpoint import write_durably
from hopplus.runs.folder import clear_errors
from hopplus.runs.making import whole_folder

FORMAT = "hopplus-data-1"
FACTS = "data.json"
SHARD_ROWS = 2**18  # a file is closed when it holds so many


@dataclass(frozen=True)
class Shard:
    """The episodes of one file; R rows, E episodes."""

    rows: Rows  # numpy arrays
    start: np.ndarray  # [E] int64, the first row of each episode
    number: np.ndarray  # [E] int64, the episode's number among all
    who: np.ndarray  # [E, N] int16, the player in each seat, by its number in `Data.players`

    @property
    def size(self) -> int:
        return len(self.rows.time)

    @cached_property
    def length(self) -> np.ndarray:
        """[E] rows of each episode."""
        return np.diff(self.start, append=self.size)

    @cached_property
    def episode(self) -> np.ndarray:
        """[R] the episode of each row, by its place in this file."""
        return np.repeat(np.arange(len(self.start)), self.length)

    @cached_property
    def last_seen(self) -> np.ndarray:
        """[R, N] int32, the last row of the row's episode in which the seat is present."""
        return np.asarray(self._last(self.rows.present)[self.episode], np.int32)

    @cached_property
    def caught(self) -> np.ndarray:
        """[R, N] int32, the kind of thing the seat takes last in the row's episode; K for none."""
        took = np.asarray(self.rows.took)
        last = self._last(took.any(axis=-1))
        kind = np.take_along_axis(took.argmax(axis=-1), np.maximum(last, 0), axis=0)
        caught = np.where(last >= 0, kind, took.shape[-1])
        return np.asarray(caught[self.episode], np.int32)

    def _last(self, where: Any) -> np.ndarray:
        """[E, N] the last row of each episode in which [R, N] holds, -1 for none."""
        numbers = np.where(where, np.arange(self.size)[:, None], -1)
        return np.asarray(np.maximum.reduceat(numbers, self.start))


@dataclass(frozen=True)
class Data:
    """A folder of recorded play."""

    path: Path
    facts: Mapping[str, Any]

    @cached_property
    def game(self) -> Game:
        return make_game(self.game_config)

    @property
    def game_config(self) -> GameConfig:
        return from_json(GameConfig, dict(self.facts["game"]))

    @property
    def players(self) -> list[str]:
        """Everyone who sat somewhere."""
        return list(self.facts["players"])

    @property
    def seats(self) -> list[list[str]]:
        """[N] the players of whom one sat in each seat."""
        return [list(names) for names in self.facts["seats"]]

    @property
    def shards(self) -> int:
        return len(self.facts["files"])

    @property
    def most_rows(self) -> int:
        """Rows of the largest file."""
        return max(int(file["rows"]) for file in self.facts["files"])

    @property
    def fingerprint(self) -> str:
        """The same for the same data, wherever it lies."""
        hashes = "".join(file["sha256"] for file in self.facts["files"])
        return hashlib.sha256(hashes.encode()).hexdigest()

    @property
    def origin(self) -> str:
        """The same for all data whose episodes of the same number are the same."""
        play = [self.facts[name] for name in ("game", "seats", "seed")]
        return hashlib.sha256(json.dumps(play, sort_keys=True).encode()).hexdigest()

    def shard(self, number: int) -> Shard:
        """Read one file."""
        about = self.facts["files"][number]
        path = self.path / about["file"]
        with clear_errors(f"read {path}"):
            content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != about["sha256"]:
            raise ConfigError(f"{path} is damaged: it is not what was written")
        try:
            arrays = load_tensors(content)
            loaded: dict[str, Any] = {field.name: arrays[field.name] for field in fields(Rows)}
            rows = Rows(**loaded)
            return Shard(rows, arrays["start"], arrays["number"], arrays["who"])
        except (SafetensorError, KeyError) as error:
            raise ConfigError(f"{path} is damaged: {error}") from error

    def iterate(self) -> Iterator[Shard]:
        """Read all files, one after the other."""
        return (self.shard(number) for number in range(self.shards))


def open_data(path: Path) -> Data:
    """Recorded play that `hopplus collect` wrote."""
    if not path.exists():
        raise ConfigError(f"there is no folder {path}; hopplus collect records play")
    try:
        facts = json.loads((path / FACTS).read_text(encoding="utf-8"))
        data = Data(path, facts)
        usable = facts["format"] == FORMAT and data.most_rows > 0 and bool(data.origin)
        usable = usable and data.game.seats == len(data.seats) and bool(data.fingerprint)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ConfigError):
        usable = False
    if not usable:
        raise ConfigError(f"{path} is not recorded play: no usable {FACTS}; see hopplus collect")
    return data


def is_held_out(number: np.ndarray, share: float) -> np.ndarray:
    """Whether the episodes of those numbers are kept for measuring: evenly spread, no chance."""
    return np.floor((number + 1) * share) > np.floor(number * share)


class Writer:
    """Writes rows to files as they come. A file is closed with the episode that fills it, so files
    depend on the play alone, and not on how many episodes come at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[dict[str, Any]] = []
        self._waiting: list[dict[str, np.ndarray]] = []  # by rows, and `length`, `who` by episodes
        self._rows = 0  # that are waiting
        self._episodes = 0  # that are written

    def add(self, rows: Rows, counts: np.ndarray, who: np.ndarray) -> None:
        """Episodes [B, T, ...], the rows that each has [B], and who sat where [B, N]."""
        first = 0
        while first < len(counts):
            filled = self._rows + np.cumsum(counts[first:]) >= SHARD_ROWS
            last = first + int(filled.argmax()) + 1 if filled.any() else len(counts)
            length = counts[first:last].astype(np.int64)
            real = np.arange(rows.time.shape[1]) < length[:, None]  # [B, T]
            kept = packed(jax.tree.map(lambda leaf: leaf[first:last][real], rows))  # noqa: B023
            chunk = {field.name: getattr(kept, field.name) for field in fields(Rows)}
            self._waiting.append({**chunk, "length": length, "who": who[first:last]})
            self._rows += int(length.sum())
            first = last
            if filled.any():
                self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if not self._waiting:
            return
        together = {
            name: np.concatenate([chunk[name] for chunk in self._waiting])
            for name in self._waiting[0]
        }
        length = together.pop("length")
        together["start"] = np.cumsum(length) - length
        together["number"] = self._episodes + np.arange(len(length))
        together["who"] = together["who"].astype(np.int16)
        name = f"{len(self.files):05d}.safetensors"
        content = save_tensors({key: np.ascontiguousarray(a) for key, a in together.items()})
        write_durably(self.folder / name, content)
        self.files.append(
            {
                "file": name,
                "episodes": len(length),
                "rows": int(length.sum()),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        )
        self._episodes += len(length)
        self._waiting, self._rows = [], 0


@contextmanager
def writing_data(
    path: Path, game: GameConfig, seats: list[list[str]], about: dict[str, Any]
) -> Iterator[Writer]:
    """Make a folder of recorded play; it takes its name when all is written, or not at all.

    `about` is written to the JSON file at the end, so it may be filled meanwhile.
    """
    with clear_errors(f"write the data {path}"):
        if path.exists():
            raise ConfigError(f"{path} exists already: take another --out, or remove it")
        with whole_folder(path) as folder:
            writer = Writer(folder)
            yield writer
            writer.flush()
            facts = {
                "format": FORMAT,
                "game": to_json(game),
                "players": players_of(seats),
                "seats": seats,
                "files": writer.files,
                **about,
            }
            write_durably(folder / FACTS, json.dumps(facts, indent=2).encode())


def players_of(seats: list[list[str]]) -> list[str]:
    """Everyone who may sit somewhere, once."""
    return list(dict.fromkeys(name for names in seats for name in names))
