"""`hopplus replay`: look at an episode."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import jax

from hopplus.cli.options import check_seed
from hopplus.config import ConfigError, GameConfig, check
from hopplus.evaluation.film import film
from hopplus.games import make_game
from hopplus.games.render import terminal
from hopplus.learning.rollout import begin, start
from hopplus.players.seating import seat_players


@dataclass(frozen=True)
class Replay:
    """Play one episode and show it, in the terminal or as a GIF or PNG file."""

    players: str
    """Who sits where, one name per seat: stag,stag,hare,random."""
    game: GameConfig = field(default_factory=GameConfig)
    out: Path | None = None
    """A .gif file for the whole episode or a .png file for its last board; else the terminal."""
    layout: Path | None = None
    """A text file with the board to start from, instead of a random one."""
    episode: int = 0
    """Number of the episode; the same as that of `hopplus evaluate` with the same seed."""
    seed: int = 0
    """Seed of everything random."""

    def run(self) -> int:
        check_seed(self.seed)
        check(0 <= self.episode < 2**32, "--episode", self.episode, "from 0 to 4294967295")
        if self.out and self.out.suffix.lower() not in (".gif", ".png"):
            raise ConfigError(f"--out is {str(self.out)!r} but must end in .gif or .png")
        game = make_game(self.game)
        seating = seat_players(self.players, game)
        key_params, key_play = jax.random.split(jax.random.key(self.seed))
        key = jax.random.fold_in(key_play, self.episode)
        if self.layout:
            play = begin(game, seating, game.parse(read_text(self.layout)), key)
        else:
            play = start(game, seating, key)
        frames = film(game, seating, seating.init(key_params), play, f"episode {self.episode}")
        if self.out is None:
            colour = sys.stdout.isatty()
            print("\n\n".join(terminal(frame, colour=colour) for frame in frames))
            return 0
        from hopplus.games.picture import save_gif, save_png  # a machine may lack Pillow

        try:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            if self.out.suffix.lower() == ".gif":
                save_gif(self.out, frames)
            else:
                save_png(self.out, frames[-1])
        except OSError as error:
            raise ConfigError(f"cannot write {self.out}: {error.strerror}") from error
        print(f"{len(frames) - 1} steps written to {self.out}")
        return 0


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text"
        raise ConfigError(f"cannot read {path}: {reason}") from error
