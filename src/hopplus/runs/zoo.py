"""The zoo: trained players that come with the package, each the folder of a finished run.

`zoo:NAME` stands for that folder wherever a run is named. Nothing is written there: it is the
package's own, and may be read only. `python -m benchmarks.zoo` makes it.
"""

import difflib
from functools import cache
from pathlib import Path
from typing import Any

from hopplus.errors import ConfigError
from hopplus.runs.checkpoint import read_record

ZOO = "zoo:"  # in front of a name
FOLDER = Path(__file__).resolve().parents[1] / "zoo"
MOST_NEAR = 3  # names that are told where one is wrong
MANIFEST = "zoo.json"  # what each of them is, the command that made it, hashes of its files


@cache
def zoo() -> dict[str, dict[str, Any]]:
    """What is known of each, by name."""
    try:
        return read_record(FOLDER / MANIFEST)
    except (OSError, ValueError) as error:
        raise ConfigError(f"the zoo cannot be read: {error}") from error


def is_of_zoo(name: str) -> bool:
    """Whether a name means somebody of the zoo."""
    return name.startswith(ZOO)


def find_home(path: Path) -> Path:
    """The folder that a run's name means: of the zoo, also by game and preset where the name there
    is shorter, or as it stands."""
    called = str(path)
    if not is_of_zoo(called):
        return path
    name = called.removeprefix(ZOO)
    by_preset = {f"{one['game']}-{one['preset']}": key for key, one in zoo().items()}
    if known := name if name in zoo() else by_preset.get(name):
        return FOLDER / known
    near = difflib.get_close_matches(name, zoo(), n=MOST_NEAR, cutoff=0.6)
    meant = f" did you mean {', '.join(ZOO + one for one in near)}?" if near else ""
    raise ConfigError(
        f"there is no {name!r} in the zoo:{meant} hopplus list zoo has all {len(zoo())}"
    )


def in_zoo(folder: Path) -> bool:
    """Whether a folder is the package's own."""
    return folder.parent == FOLDER
