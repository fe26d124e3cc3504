"""A page to play on: a board, keys, and what the others think of the person who plays."""

from hopplus.evaluation.replay.session import Table
from hopplus.report.page import Page, Section
from hopplus.report.pages.replay import drawn_with
from hopplus.report.translations import LOCALES, Language, Sentence, Translations


def play_page(table: Table, language: Language) -> Page:
    """The page of a table; its script asks the server for everything that happens."""
    say = Translations(language)
    data = {
        **drawn_with([table.common]),
        "table": table.common,
        "person": table.person,
        "episodes": table.seating.trial,
        "recorded": str(table.recording.path) if table.recording else None,
        "language": language,
        "languages": list(LOCALES),
    }
    text = say(
        "Arrow keys move, the space bar stays, and the keys on the buttons do the rest; on a touch"
        " screen swipe over the board or press the buttons. Everyone acts at once. Your co-players"
        " stay for {n} episodes, and those who can remember do; then others may come.",
        n=table.seating.trial,
    )
    return Page(
        title=say("hopplus: take a seat"),
        answer=say(Sentence(*table.game.describe())),
        sections=[Section(say("Play"), text, view="play", data=data)],
        language=language,
    )
