"""`hopplus replay`: look at an episode."""

from dataclasses import dataclass
from pathlib import Path

import jax
from rich.console import Console

from hopplus.cli.players import Playing
from hopplus.config import ConfigError, check
from hopplus.evaluation.film import film
from hopplus.games.render import terminal
from hopplus.learning.rollout import begin, start
from hopplus.runs.watchdog import Watchdog


@dataclass(frozen=True)
class Replay(Playing):
    """Play one episode and show it, in the terminal or as a GIF or PNG file."""

    out: Path | None = None
    """A .gif file for the whole episode or a .png file for its last board; else the terminal."""
    layout: Path | None = None
    """A text file with the board to start from, instead of a random one."""
    episode: int = 0
    """Number of the episode; the same as that of `hopplus evaluate` with the same seed."""

    def run(self) -> int:
        check(0 <= self.episode < 2**32, "--episode", self.episode, "from 0 to 4294967295")
        if self.out and self.out.suffix.lower() not in (".gif", ".png"):
            raise ConfigError(f"--out is {str(self.out)!r} but must end in .gif or .png")
        _, game, company = self.setup()
        seating = company.seating
        key_params, key_play = jax.random.split(jax.random.key(self.seed))
        key = jax.random.fold_in(key_play, self.episode)
        if self.layout:
            play = begin(game, seating, game.parse(read_text(self.layout)), key)
        else:
            play = jax.jit(lambda key: start(game, seating, key))(key)
        with Watchdog():
            frames = film(game, seating, company.init(key_params), play, f"episode {self.episode}")
        if self.out is None:
            colour = Console().is_terminal and not Console().no_color
            print("\n\n".join(terminal(frame, colour=colour) for frame in frames))
            return 0
        gif = self.out.suffix.lower() == ".gif"
        from hopplus.games.picture import save_gif, save_png  # a machine may lack Pillow

        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            if gif:
                save_gif(self.out, frames)
            else:
                save_png(self.out, frames[-1])
        except OSError as error:
            raise ConfigError(f"cannot write {self.out}: {error.strerror}") from error
        what = f"{len(frames) - 1} steps" if gif else "the last board"
        print(f"{what} written to {self.out}")
        return 0


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigError(f"cannot read {path}: {reason}") from error
