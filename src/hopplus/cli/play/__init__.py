"""`hopplus play`: take a seat."""

import webbrowser
from dataclasses import dataclass, replace
from pathlib import Path

from hopplus.api.seating import RUN
from hopplus.cli.play.server import HERE, Server
from hopplus.cli.reading.options import check_options
from hopplus.cli.reading.players import Playing
from hopplus.config import ConfigError, check_range
from hopplus.evaluation.replay.session import Session, Table
from hopplus.games.game import Game, check_board
from hopplus.games.grid import STAY
from hopplus.learning.from_run import Seated
from hopplus.play.seating import options
from hopplus.players.human import HUMAN, make_human
from hopplus.players.player import Player
from hopplus.recorded.played import Recording
from hopplus.report.html import page_text
from hopplus.report.numbers import counted
from hopplus.report.pages.play import play_page
from hopplus.report.translations import LOCALES, Language
from hopplus.runs.folder import check_free
from hopplus.runs.interrupt import ending_once
from hopplus.runs.watchdog import Watchdog, say


@dataclass(frozen=True)
class Play(Playing):
    """Play yourself, in the browser, among trained or scripted players, and see what they think of
    you. Only this machine can open the page; Ctrl-C ends it."""

    seat: int | None = None
    """The seat you take in a run, 0 when not given; or name human in --seats. The player who has
    learned there, if it is the only one, sits in all others."""
    episodes: int = 5
    """Episodes of a trial, through which the others are the same and remember what they can."""
    port: int = 0
    """Where the page is served at 127.0.0.1; 0 for any port that is free."""
    open: bool = True
    """Show it in the browser."""
    record: Path | None = None
    """A folder to record episodes in, of those alone who agree to it on the page."""
    language: Language = "en"
    """Of the page at first: en or zh."""

    def run(self) -> int:
        check_options(episodes=self.episodes)
        check_range("--port", self.port, 0, 2**16 - 1)
        config, game, lineup, _ = self.setup()
        check_board(game, "a page to play on")
        lineup = replace(lineup, seating=replace(lineup.seating, trial=self.episodes))
        recording = None
        if self.record:
            check_free(self.record, "take another --record")
            recording = Recording(self.record, config, lineup.seating)
        table = Table(game, lineup, self.seed, recording)
        languages = sorted(LOCALES, key=lambda name: name != self.language)
        pages: dict[str, str] = {name: page_text(play_page(table, name)) for name in languages}
        try:
            server = Server(table, pages, self.port)
        except OSError as error:
            raise ConfigError(f"cannot serve {HERE}:{self.port}: {error.strerror}") from error
        with server:
            say("the players get ready")
            with Watchdog():
                Session(table).act(STAY)  # so that nobody waits for a program while playing
            print(server.address, flush=True)
            say("play there; only this machine can open it, and Ctrl-C ends it")
            if self.open and not webbrowser.open(server.address):
                say("no browser was found: open the address yourself")
            with ending_once():
                try:
                    server.serve_forever()
                finally:
                    if recording:
                        about = recording.write() or {"episodes": 0}
                        told = counted(about["episodes"], "episode")
                        say(f"{told} recorded" + f" in {self.record}" * bool(about["episodes"]))
        return 0

    def asked(self, seats: int, run: Seated | None) -> list[str]:
        """Who sits where, a person among them."""
        check_range("--seat", self.seat, 0, seats - 1)
        names = super().asked(seats, run)
        if self.players is None:
            person = self.seat or 0
            if run and run.learners == [run.names[person]]:  # it makes room, and is met elsewhere
                names = [f"{RUN}@{person}"] * seats
            names[person] = HUMAN
        elif self.seat is not None:
            raise ConfigError("--seats says who sits where: name human there, and leave --seat out")
        if names.count(HUMAN) != 1 or sum(HUMAN in options(name) for name in names) != 1:
            raise ConfigError("--seats must name human once, for the seat that you take")
        return names

    def newcomer(self, game: Game) -> Player:
        return make_human(game)
