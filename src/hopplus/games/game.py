"""The seam between rules and everything else."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from hopplus.errors import ConfigError
from hopplus.types import Outcome, View, ViewShape


class Target(NamedTuple):
    """A kind of thing on the board that a player may be after."""

    plane: int  # where it shows in a view
    action: int | None  # what takes it, on its cell; None where walking onto it does
    letter: str  # how a layout writes it
    drawing: str = ""  # as in `hopplus.games.sprites`; the letter on a disc where there is none
    common: bool = False  # whether others gain or lose, too, when one is taken
    owner: int | None = None  # whose they are, in seats after one's own; None for nobody's
    returns: bool = False  # whether one that was taken comes back somewhere by chance


class Game(Protocol):
    """The rules of one game, for one board; pure functions that `vmap` and `jit` as they are.

    Planes of a view are the seats (ego first), the obstacles, then one for each target. The first
    five actions are the moves up, down, left, right and stay. Chance enters by key only, so a
    planner that holds a state cannot see what is to come. Whether seats leave, and whether things
    that were taken come back, is up to the game.
    """

    @property
    def name(self) -> str: ...
    @property
    def seats(self) -> int: ...
    @property
    def shape(self) -> ViewShape:
        """Height, width and planes of a view."""

    @property
    def action_names(self) -> tuple[str, ...]:
        """[A] the actions in words."""

    @property
    def horizon(self) -> int: ...
    @property
    def targets(self) -> Mapping[str, Target]:
        """The kinds of things on the board, in the order of `Outcome.took`. Where they are owned,
        every seat tells kinds as it sees them, `Outcome.taken` as the
        nearest taker does (the owner itself, if it is one), and layouts as seat 0."""

    @property
    def hidden(self) -> str | None:
        """What rules depend on and a view does not show, in words; None for nothing. Chance that is
        still to come is not meant."""

    @property
    def sees_all(self) -> bool:
        """Whether a view shows the whole board, so that nobody comes into sight or goes out."""

    @property
    def symmetric(self) -> bool:
        """Whether the rules treat all seats alike."""

    @property
    def best_joint_return(self) -> float | None:
        """What all seats together can get from an episode at most; None where nobody knows."""

    def describe(self) -> tuple[str, Mapping[str, Any]]:
        """The game and its settings in one line, as a text with {places} and what belongs there, so
        that a page can say it in the reader's language."""

    def init(self, key: jax.Array) -> Any:
        """Draw the start of an episode."""

    def step(self, state: Any, joint: jax.Array, key: jax.Array) -> tuple[Any, Outcome]:
        """Play one action per seat, [N] int32, all at once; `key` draws whatever is left to chance.

        The same state, joint and key always do the same, so a step can be repeated from them.
        """

    def view(self, state: Any, seat: jax.Array | int) -> View:
        """What a seat sees."""

    def seen(self, view: View) -> Any:
        """The state that a seat sees, with the seats in the view's order, own first.

        Rules applied to it do what they do to the real one, unless something is `hidden`.
        """

    def present(self, state: Any) -> jax.Array:
        """[N] bool, the seats still on the board."""

    def parse(self, text: str) -> Any:
        """Read a layout as the start of an episode; seats and things not in it are gone."""

    def show(self, state: Any) -> str:
        """Write the board as a layout."""


def has_board(game: Game) -> bool:
    """Whether views are the planes of a board, cells of 0 and 1. They are, unless a game has an
    attribute of that name which says otherwise; then they are any numbers behind a plane for each
    seat, of which the first is 1."""
    return getattr(game, "has_board", True)


def check_board(game: Game, what: str) -> None:
    """Raise `ConfigError` naming what cannot be done without a board, if there is none."""
    if not has_board(game):
        raise ConfigError(f"{what} needs a board, which {game.name} does not have")


def board_size(game: Game) -> str:
    """Height and width, as in 4x4."""
    height, width, _ = game.shape
    return f"{height}x{width}"


def kinds_seen(game: Game, after: int) -> np.ndarray:
    """[K] what the seat that comes `after` another calls the kinds of things that this one sees."""
    targets = list(game.targets.values())
    by_owner = {target.owner: kind for kind, target in enumerate(targets)}
    return np.array(
        [
            kind if target.owner is None else by_owner[(target.owner - after) % game.seats]
            for kind, target in enumerate(targets)
        ]
    )


def drawings_of(game: Game) -> dict[str, str]:
    """The drawings of a game's things, by the letters that layouts have for them."""
    return {target.letter: target.drawing for target in game.targets.values()}


def repeat_step(game: Game, state: Any, joint: jax.Array, key: jax.Array) -> tuple[Any, Outcome]:
    """A step once more, as it was, from the data [2] uint32 of its key that a trajectory keeps."""
    return game.step(state, joint, jax.random.wrap_key_data(key))


def views(game: Game, state: Any) -> View:
    """What every seat sees: a `View` with a leading axis [N]."""
    return jax.vmap(game.view, in_axes=(None, 0))(state, jax.numpy.arange(game.seats))
