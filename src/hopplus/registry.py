"""Tables by name that users can add to: games, contexts, scripted players, auxiliary models,
presets.

A name finds a row of the table, or, with a colon, an attribute of an importable module:
`my_package.games:Ultimatum`. So whatever is somebody's own needs no registration, and a run's
`config.json` still says by name what it was trained with. A package that is installed may bring
rows, too, as entry points of the table's group, which are read when a name is not in the table.
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
    """Rows by name; `what` they are is said in errors, such as "game". `kind` is what a row of
    somebody's own must be, if that is checked here."""

    extended = False  # whether any table has a row from outside this package

    def __init__(
        self, what: str, rows: Mapping[str, Row], group: str = "", kind: type | None = None
    ) -> None:
        self.what, self.group, self.kind = what, group, kind
        self._rows = dict(rows)
        self._imported: dict[str, Row] = {}
        self._installed: dict[str, Any] | None = None  # entry points, once they were asked for

    def add(self, name: str, row: Row) -> None:
        """Add a row of one's own. A name that is taken is an error: runs are read back by it."""
        if name in self._rows:
            raise ConfigError(f"the {self.what} {name!r} exists already")
        if ":" in name:
            raise ConfigError(f"the name of a {self.what} has no colon in it, as {name!r} has")
        self._rows[name] = row
        Registry.extended = True

    def __getitem__(self, name: str) -> Row:
        if name in self._rows:
            return self._rows[name]
        self._imported[name] = self._from_outside(name)
        Registry.extended = True
        return self._imported[name]

    def _from_outside(self, name: str) -> Row:
        if ":" in name:
            row = import_named(name, self.what)
        elif name in (installed := self.installed()):
            row = load_entry_point(installed[name], self.what)
        else:
            near = difflib.get_close_matches(name, self.listed(), n=1)
            meant = f": did you mean {near[0]!r}?" if near else f", only {', '.join(self.listed())}"
            raise ConfigError(f"there is no {self.what} {name!r}{meant}")
        if self.kind and not isinstance(row, self.kind):
            raise ConfigError(f"{name} is no {self.kind.__name__}: see docs/extending.md")
        return row

    def installed(self) -> Mapping[str, Any]:
        """The entry points of installed packages, by name; reading them takes a while."""
        if self._installed is None:
            from importlib import metadata  # here, as most commands need none of it

            found = metadata.entry_points(group=self.group) if self.group else ()
            self._installed = {one.name: one for one in found if one.name not in self._rows}
        return self._installed

    def listed(self) -> list[str]:
        """All names but those with a colon."""
        return [*self._rows, *self.installed()]

    def known(self) -> list[Row]:
        """The rows of the table, and those that were imported so far."""
        return [*self._rows.values(), *self._imported.values()]

    def known_names(self) -> tuple[str, ...]:
        """What these are called."""
        return (*self._rows, *self._imported)

    def __contains__(self, name: object) -> bool:
        """Whether it is in the table or was installed; a name with a colon only where it is known
        here what its row must be."""
        if name in self._rows or not isinstance(name, str):
            return name in self._rows
        if ":" not in name:
            return name in self.installed()
        try:
            return self.kind is not None and isinstance(self[name], self.kind)
        except ConfigError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def load_entry_point(found: Any, what: str) -> Any:
    """What an entry point of an installed package stands for."""
    try:
        return found.load()
    except Exception as error:  # whatever a package does when it is imported
        package = found.dist.name if found.dist else found.module
        raise ConfigError(
            f"{what} {found.name!r} of the package {package} cannot be loaded:"
            f" {type(error).__name__}: {error}"
        ) from error


def import_named(name: str, what: str) -> Any:
    """The attribute that `module:attribute` names."""
    module, _, attribute = name.partition(":")
    if not module:
        raise ConfigError(f"{what} {name!r} names no module in front of the colon")
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
