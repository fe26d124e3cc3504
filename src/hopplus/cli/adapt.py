"""`hopplus adapt`: how fast does a player understand new co-players?"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import jax
import tyro

from hopplus.cli.paged import show
from hopplus.cli.reading.devices import Devices
from hopplus.cli.reading.options import check_options
from hopplus.cli.reading.players import find_learned_players, game_of
from hopplus.config import (
    LARGE,
    ConfigError,
    GameConfig,
    SearchConfig,
    check_above,
    check_range,
    default_game,
)
from hopplus.devices import check_rows
from hopplus.evaluation.adaptation import adapt, lineups
from hopplus.evaluation.fine_tuning import LEARN, FineTuning
from hopplus.evaluation.references import read_references
from hopplus.evaluation.trials import AtTheEnd, ByEpisode, Names, Score
from hopplus.games import make_game
from hopplus.learning.from_run import find_background_players
from hopplus.play.names import Kind, kind_of
from hopplus.report.pages.adaptation import adaptation_page
from hopplus.runs.progress import Progress


@dataclass(frozen=True)
class Adapt:
    """Seat one player among others who stay the same, and watch its returns by the number of the
    episode."""

    subject: Annotated[tuple[str, ...], tyro.conf.Positional]
    """A run, whose player is tried in each of its seeds (runs/a#1 for one of them, runs/a@2 for the
    player of seat 2 wherever it sits); exported players, each as a seed; or a preset, which first
    learns against all mixtures."""
    against: tuple[str, ...] = ("all",)
    """The others, from the next seat on, one name per seat: stag,stag,hare noisy-hare:0.2,stag,hare
    runs/a@1,runs/a#1~0.5@2,switch ...; learn for one who goes on learning too (online only); all
    for every mixture of the game's scripted players, conditional with those too whose acts depend
    on what happened in the trial, population for each family in all seats."""
    episodes: int | None = None
    """Episodes of a trial; five when not given."""
    protocol: Literal["episodes", "hop"] = "episodes"
    """Returns by episode; or HOP's protocol, 2,400 steps of which the last 600 count."""
    learning: Literal["none", "online"] = "none"
    """Nothing is learned on the way, so that a player has its inference, belief and memory alone;
    or it goes on learning as it did in its run, in each trial anew."""
    caution: float | None = None
    """Standard errors by which a policy that was learned online must have shown to be better than
    the trained one before it plays; 1 when not given, and 0 plays at once what was learned."""
    learning_rate: Annotated[float | None, tyro.conf.arg(name="ppo.learning-rate")] = None
    """Step size of the policy while it learns online; that of the run when not given."""
    trials: int = 1024
    """Trials against each lineup, for each seat and seed."""
    seat: int | None = None
    """Where it sits; each seat in turn when not given."""
    search: SearchConfig = field(default_factory=SearchConfig)
    game: GameConfig = field(default_factory=default_game)
    steps: int | None = None
    """Environment steps for which a preset learns first; its own when not given."""
    seeds: int = 5
    """Seeds of a preset."""
    runs: Path = Path("runs")
    """The folder for the run of a preset."""
    references: Path | None = None
    """A file that `hopplus certify` has kept, to tell the share of the gap that is closed."""
    out: Path | None = None
    """The page; when not given, adaptation.html in the run, or here."""
    seed: int = 0
    """Seed of everything random."""
    on: Annotated[Devices, tyro.conf.arg(name="")] = field(default_factory=Devices)
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(trials=self.trials, seeds=self.seeds, seed=self.seed)
        with self.on.used():
            check_rows("--trials", self.trials)
            return self._run()

    def _run(self) -> int:
        score = self._score()
        played = game_of(self.subject, self.game)
        game = make_game(played)
        check_range("--seat", self.seat, 0, game.seats - 1)
        seats = range(game.seats) if self.seat is None else [self.seat]
        wanted = lineups(self.against, game)
        background = find_background_players([name for lineup in wanted for name in lineup])
        known = read_references(self.references) if self.references else None
        if known and known.game != played:
            raise ConfigError(f"{self.references} is of another game than {self.subject[0]}")
        if known and (other := known.strangers(background)):
            raise ConfigError(f"{self.references} was measured with another {' and '.join(other)}")
        self._check_learning(wanted)
        subject = find_learned_players(
            self.subject, self.game, self.steps, self.seeds, self.seed, self.runs
        )
        online = None
        if self.learning == "online" and subject.config is not None:
            online = FineTuning(subject.config, learning_rate=self.learning_rate)
            if self.caution is not None:
                online = replace(online, caution=self.caution)
                if self.caution and not online.guarded:
                    raise ConfigError("--caution weighs policies, and this player acts by a search")
        total = len(wanted) * len(seats) * self.trials * len(subject.players)
        with Progress("playing with others", total, "trials") as progress:
            found = adapt(
                game,
                subject.players,
                wanted,
                {**subject.met, **background},
                list(seats),
                score,
                self.trials,
                self.search,
                jax.random.key(self.seed),
                online,
                progress.advance,
            )
        page = adaptation_page(subject.name, found, known, online.learns if online else "none")
        seated = "oracle and blind were measured in seat 0: to sit there too, give --seat 0"
        return show(
            page,
            as_json=self.json,
            html=self.out or subject.folder / "adaptation.html",
            hints=[seated] if known and self.seat != 0 else [],
        )

    def _score(self) -> Score:
        if self.protocol == "episodes":
            check_options(episodes=self.episodes)
            return ByEpisode(5 if self.episodes is None else self.episodes)
        if self.episodes is not None:
            raise ConfigError("--protocol hop counts steps: leave --episodes out")
        return AtTheEnd()

    def _check_learning(self, wanted: list[Names]) -> None:
        """Raise `ConfigError` for options that do not go together."""
        if self.learning == "none":
            if self.learning_rate is not None:
                raise ConfigError("--ppo.learning-rate is given, but --learning is none")
            if self.caution is not None:
                raise ConfigError("--caution is given, but --learning is none")
            if any(LEARN in lineup for lineup in wanted):
                raise ConfigError("learn is among the others, which needs --learning online")
            return
        if any(kind_of(name) is Kind.FILE for name in self.subject):
            raise ConfigError(
                "learning online takes a run, which says how; a player alone does not"
            )
        if self.search != SearchConfig():
            raise ConfigError("--search is given, but online a player learns as in its run")
        check_above("ppo.learning-rate", self.learning_rate, 0, LARGE)
        check_range("--caution", self.caution, 0, LARGE)
