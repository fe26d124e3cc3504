"""What the name of a player means, the same on every command.

`runs/a`, `runs/a#1`, `runs/a@2`, `runs/a#1~0.5@2` are of a run: behind a `#` stands one of its
seeds, as tables show them, behind a `~` the share of its training that was done, behind an `@` one
of its seats. `zoo:coin` is a run that comes with the package. `player.safetensors` is a file that
`hopplus export` wrote. All other names are of presets, where one may learn first, or of players
that have not learned, which `players.scripted` knows: `stag`, or somebody's own as
`module:function`.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from hopplus.config import MIXED, ConfigError, TrainConfig
from hopplus.play.seating import options
from hopplus.presets import PRESETS
from hopplus.runs.folder import RunFolder, open_run
from hopplus.runs.zoo import find_home, is_of_zoo

PLAYER_FILE = ".safetensors"
INSIDE = "players/"  # where a run keeps players from elsewhere
MARKS = {
    "#": "the number of a seed",
    "~": "a share of the training, from 0 to 1,",
    "@": "the number of a seat",
}
_WHOLE = re.compile(
    r"(?P<path>.*?)(?:#(?P<seed>\d+))?(?:~(?P<stage>0?\.\d+|0|1(?:\.0+)?))?(?:@(?P<seat>\d+))?"
)


@dataclass(frozen=True)
class RunName:
    """A run, one of its seeds if it is said which, and one of its seats and stages likewise."""

    path: Path
    seed: int | None = None
    seat: int | None = None
    stage: float | None = None  # share of its training; as far as it has come when not said

    def __str__(self) -> str:
        seed = "" if self.seed is None else f"#{self.seed}"
        stage = "" if self.stage is None else f"~{self.stage:g}"
        seat = "" if self.seat is None else f"@{self.seat}"
        return f"{self.path}{seed}{stage}{seat}"

    def open(self) -> RunFolder:
        """The run, if it is one and has that seed."""
        run = open_run(self.path)
        if self.seed is not None:
            check_seed_of(run, self.seed)
        return run


def read_run_name(text: str) -> RunName:
    """What `runs/a#1~0.5@2` says. A folder whose own name has a mark in it is taken as it is,
    unless the name could mean another run's seed, stage or seat too."""
    found = _WHOLE.fullmatch(text)
    assert found  # anything is a path at least
    seed, seat = (None if number is None else int(number) for number in found.group("seed", "seat"))
    stage = None if found["stage"] is None else float(found["stage"])
    meant = RunName(Path(found["path"]), seed, seat, stage)
    if is_of_zoo(text):
        find_home(meant.path)  # raises if there is no such run
        return meant
    if _exists(Path(text)):
        if meant.path != Path(text) and _exists(meant.path):
            raise ConfigError(
                f"{text!r} is a folder of its own and could mean {meant.path} too: rename it"
            )
        return RunName(Path(text))
    if re.search(r"@\d+[#~][\d.]+$|~[\d.]+#\d+(@\d+)?$", text):
        raise ConfigError(
            f"{text!r} should have the seed before the seat, and the stage between them, as in"
            " runs/a#1~0.5@2"
        )
    for mark, what in MARKS.items():
        if mark in meant.path.name and not _exists(meant.path):
            raise ConfigError(f"{text!r} needs {what} behind the {mark}, as in runs/a#1~0.5@2")
    return meant


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or not a name at all
        return False


def check_seed_of(run: RunFolder, seed: int) -> int:
    """The place of a seed among a run's own."""
    seeds = run.config().seed_numbers
    if seed not in seeds:
        few = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
        raise ConfigError(f"{run.path} has the {few}, and no {seed}")
    return seeds.index(seed)


class Kind(Enum):
    """What a name may mean, on any command."""

    RUN = "a run, or somebody of it"
    FILE = "an exported player"
    PRESET = "settings to learn with first"
    PLAYER = "a player that has not learned: a scripted one, or module:function"


def kind_of(name: str) -> Kind:
    """What one name means; those of a mixture are asked about one by one."""
    if name.endswith(PLAYER_FILE):
        return Kind.FILE
    if (
        is_of_zoo(name)
        or any(mark in name for mark in ("/", *MARKS))
        or (_exists(Path(name) / "config.json"))
    ):
        return Kind.RUN
    return Kind.PRESET if name in PRESETS else Kind.PLAYER


def is_background(name: str) -> bool:
    """Whether a name means someone who has learned elsewhere: of a run, or in a file."""
    return kind_of(name) in (Kind.RUN, Kind.FILE)


def is_inside(name: str) -> bool:
    """Whether a name means a player that the run keeps in its own folder."""
    return re.fullmatch(rf"{INSIDE}\d+{re.escape(PLAYER_FILE)}", name) is not None


def full_name(name: str, seat: int) -> str:
    """The name with everything said: where it names a run, the first seed and the seat that it will
    sit in, unless others are named."""

    def full(one: str) -> str:
        if kind_of(one) is not Kind.RUN:
            return one
        said = read_run_name(one)
        first = said.open().config().seed
        seed = first if said.seed is None else said.seed
        return str(replace(said, seed=seed, seat=seat if said.seat is None else said.seat))

    return MIXED.join(full(one) for one in options(name))


def seeds_said(said: RunName, config: TrainConfig) -> list[int]:
    """The seed that is named, or all of the run's."""
    return list(config.seed_numbers) if said.seed is None else [said.seed]
