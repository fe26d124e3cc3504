"""A small table with a seat for a person, made once: what tests of playing share."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Thread
from typing import Any

import numpy as np

from hopplus.cli.play.server import Server
from hopplus.config import GameConfig, StagHuntConfig
from hopplus.evaluation.replay.session import Session, Table
from hopplus.games import make_game
from hopplus.play.lineup import make_lineup
from hopplus.play.trained import Trained
from hopplus.players.actor import make_actor
from hopplus.players.human import make_human
from hopplus.report.html import page_text
from hopplus.report.pages.play import play_page
from tiny_search import config_of, mind_of

HUNT = StagHuntConfig(size=3, seats=3, hares=3, horizon=6)


@cache
def table_of(names: str, config: GameConfig = HUNT, trial: int = 2) -> Table:
    """Whoever is called; `one` has a belief and models of the others, learned at random."""
    game = make_game(config)
    known = {}
    if "one" in names.split(","):
        actor = make_actor("one", game, config_of("opponent", "belief", game=config))
        known["one"] = Trained(actor, mind_of(actor))
    lineup = make_lineup(names.split(","), game, known, make_human(game), trial=trial)
    return Table(game, lineup)


def choose(session: Session, rng: np.random.Generator) -> int:
    """Something legal, whatever takes things first."""
    legal = np.flatnonzero(session.legal)
    return int(legal[-1] if legal[-1] > 4 else rng.choice(legal))


def play_episode(session: Session, rng: np.random.Generator) -> Any:
    """Play to the episode's end; what is shown then."""
    while not session.over:
        session.act(choose(session, rng))
    return session.shown()


@contextmanager
def serving(table: Table) -> Iterator[Server]:
    """A server of a table's pages, while it is needed."""
    pages = {"en": page_text(play_page(table, "en")), "zh": page_text(play_page(table, "zh"))}
    with Server(table, pages) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
