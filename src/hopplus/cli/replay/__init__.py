"""`hopplus replay`: look at an episode."""

import json
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
from rich.console import Console

from hopplus.cli.reading.options import check_options
from hopplus.cli.reading.players import Playing
from hopplus.cli.replay.panel import line_cells, panel
from hopplus.cli.replay.screen import standard_screen
from hopplus.cli.replay.viewer import view
from hopplus.config import ConfigError, check_range
from hopplus.evaluation.replay.film import film, frames_of
from hopplus.evaluation.replay.replays import (
    CHOSEN,
    Plain,
    enough,
    play_key,
    record_episodes,
    replays,
    start_episodes,
)
from hopplus.evaluation.replay.watch import seated, watch
from hopplus.games.game import Game, check_board
from hopplus.games.render import Frame, terminal
from hopplus.play.lineup import Lineup
from hopplus.play.rollout import Play, begin
from hopplus.play.seating import Seating
from hopplus.runs.folder import clear_errors
from hopplus.runs.progress import Progress
from hopplus.runs.watchdog import Watchdog


@dataclass(frozen=True)
class Replay(Playing):
    """Step through episodes in a terminal, with policies, values and predictions; print one as text
    elsewhere, or write it to a GIF or PNG file."""

    out: Path | None = None
    """A .gif file for the whole episode or a .png file for its last board."""
    layout: Path | None = None
    """A text file with the board to start from, instead of a random one."""
    episode: int | None = None
    """Number of the episode; the same as that of `hopplus evaluate` with the same seed. When not
    given, the best, the worst, the median and the most surprising in a terminal, else the first."""
    seat: int | None = None
    """The seat to look through at first; without a terminal, the text tells what it thinks."""
    among: int | None = None
    """Episodes to pick from; when not given 256, or 64 where players search."""
    json: bool = False
    """Print everything as JSON."""

    def run(self) -> int:
        self._check()
        _, game, lineup, _ = self.setup()
        check_board(game, "a replay")
        check_range("--seat", self.seat, 0, game.seats - 1)
        screen = None if self.out or self.json else standard_screen()
        colour = Console().is_terminal and not Console().no_color
        if self.json or screen:
            replay = self._telling(game, lineup)
            if screen:
                view(replay, screen, self.seat or 0, colour=colour)
            else:
                print(json.dumps(replay, allow_nan=False))
        elif self.seat is not None:
            replay = self._recorded(game, lineup)
            print("\n\n".join(_transitions(replay, self.seat, colour=colour)))
        else:
            frames = self._film(game, lineup)
            if self.out:
                self._write(self.out, frames)
            else:
                print("\n\n".join(terminal(frame, colour=colour) for frame in frames))
        return 0

    def _check(self) -> None:
        check_range("--episode", self.episode, 0, 2**32 - 1)
        check_options(among=self.among)
        if self.among is not None and (self.episode is not None or self.layout):
            raise ConfigError("--among picks episodes: leave --episode and --layout out")
        if self.out and self.out.suffix.lower() not in (".gif", ".png"):
            raise ConfigError(f"--out is {str(self.out)!r} but must end in .gif or .png")
        if self.out and (self.seat is not None or self.json):
            raise ConfigError("--out is for pictures, --seat and --json are for text: give one")

    def _begun(self, game: Game, seating: Seating) -> Play:
        """The game [1, ...] in which the episode that is asked for begins."""
        number = self.episode or 0
        if not self.layout:
            return start_episodes(game, seating, self.seed, np.array([number]))
        key = jax.random.fold_in(play_key(self.seed), number)
        state = game.parse(read_text(self.layout))

        # One program, where there would be a hundred: one for every operation.
        begun = jax.jit(jax.vmap(lambda state, key: begin(game, seating, state, key)))
        return begun(jax.tree.map(lambda leaf: leaf[None], state), key[None])

    def _film(self, game: Game, lineup: Lineup) -> list[Frame]:
        key_params, _ = jax.random.split(jax.random.key(self.seed))
        play = jax.tree.map(lambda leaf: leaf[0], self._begun(game, lineup.seating))
        with Watchdog():
            params = lineup.init(key_params)
            return film(game, lineup.seating, params, play, f"episode {self.episode or 0}")

    def _telling(self, game: Game, lineup: Lineup) -> Plain:
        """The episode that is asked for, or those that tell most."""
        if self.layout or self.episode is not None:
            return self._recorded(game, lineup)
        among = self.among or enough(lineup)
        with Progress("playing", among, "episodes") as progress:
            replay = replays(game, lineup, self.seed, among)
            progress.advance(among)
        return replay

    def _recorded(self, game: Game, lineup: Lineup) -> Plain:
        with Watchdog():
            seating, params = seated(lineup)
            seen = watch(game, seating, params, self._begun(game, seating))
            return record_episodes(game, lineup, seen, {CHOSEN: 0}, self.episode or 0)

    def _write(self, out: Path, frames: list[Frame]) -> None:
        gif = out.suffix.lower() == ".gif"
        from hopplus.games.picture import save_gif, save_png  # a machine may lack Pillow

        with clear_errors(f"write {out}"):
            out.parent.mkdir(parents=True, exist_ok=True)
            if gif:
                save_gif(out, frames)
            else:
                save_png(out, frames[-1])
        what = f"{len(frames) - 1} steps" if gif else "the last board"
        print(f"{what} written to {out}")


def _transitions(replay: Plain, seat: int, *, colour: bool) -> list[str]:
    """Every step of the first episode, and what a seat thinks then."""
    episode = replay["episodes"][0]
    return [
        terminal(frame, colour=colour, marked=line_cells(episode, step, seat))
        + "\n"
        + "\n".join(panel(replay, episode, step, seat))
        for step, frame in enumerate(frames_of(replay, episode))
    ]


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigError(f"cannot read {path}: {reason}") from error
