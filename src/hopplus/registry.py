"""Tables by name that users can add to: games, contexts, scripted players, auxiliary models.

A name finds a row of the table, or, with a colon, an attribute of an importable module:
`my_package.games:Ultimatum`. So whatever is somebody's own needs no registration, and a run's
`config.json` still says by name what it was trained with.
"""

import difflib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

from hopplus.errors import ConfigError

Row = TypeVar("Row")


class Registry(Mapping[str, Row], Generic[Row]):
    """Rows by name; `what` they are is said in errors, such as "game"."""

    def __init__(self, what: str, rows: Mapping[str, Row]) -> None:
        self.what = what
        self._rows = dict(rows)
        self._imported: dict[str, Row] = {}

    def add(self, name: str, row: Row) -> None:
        """Add a row of one's own. A name that is taken is an error: runs are read back by it."""
        if name in self._rows:
            raise ConfigError(f"the {self.what} {name!r} exists already")
        if ":" in name:
            raise ConfigError(f"the name of a {self.what} has no colon in it, as {name!r} has")
        self._rows[name] = row

    def __getitem__(self, name: str) -> Row:
        if name in self._rows:
            return self._rows[name]
        if ":" in name:
            self._imported[name] = import_named(name, self.what)
            return self._imported[name]
        near = difflib.get_close_matches(name, self._rows, n=1)
        meant = f": did you mean {near[0]!r}?" if near else f", only {', '.join(self._rows)}"
        raise ConfigError(f"there is no {self.what} {name!r}{meant}")

    def known(self) -> list[Row]:
        """The rows of the table, and those that were imported so far."""
        return [*self._rows.values(), *self._imported.values()]

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def import_named(name: str, what: str) -> Any:
    """The attribute that `module:attribute` names."""
    module, _, attribute = name.partition(":")
    # As `python -m` does: what lies where one works can be named. Behind all else, so that it takes
    # nobody's place.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        # A module that is there and cannot import something itself is its author's to mend.
        if error.name is None or not module.startswith(error.name):
            raise
        raise ConfigError(f"{what} {name!r}: there is no module {module!r} here") from error
    except AttributeError as error:
        raise ConfigError(f"{what} {name!r}: {module} has no {attribute!r}") from error
