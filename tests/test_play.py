"""A person at the board: by the rules, among the same co-players as ever, who remember the trial
and think of the person."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import plain_coin
import plain_snowdrift
import plain_stag_hunt
from board_checks import plain_rules
from hopplus.config import CoinConfig, ConfigError, SnowdriftConfig, StagHuntConfig
from hopplus.evaluation.replay.film import frames_of
from hopplus.evaluation.replay.readable import predicted_targets
from hopplus.evaluation.replay.session import Session, Table
from hopplus.evaluation.replay.watch import Watched
from hopplus.play.lineup import make_lineup
from hopplus.play.rollout import Play, rollout
from hopplus.players.human import HUMAN
from hopplus.recorded.dataset import open_data
from hopplus.recorded.played import Recording
from hopplus.recorded.record import view_at
from tiny_play import HUNT, choose, play_episode, table_of

STAY = 4
GAMES: dict[str, tuple[Any, Any, str]] = {
    "stag-hunt": (plain_stag_hunt, HUNT, "stag,human,hare"),
    "snowdrift": (
        plain_snowdrift,
        SnowdriftConfig(size=3, seats=2, drifts=3, horizon=8),
        "human,clear",
    ),
    "coin": (plain_coin, CoinConfig(size=3, seats=2, coins=2, horizon=8), "defector,human"),
}


class Kept(Table):
    """Keeps the state after every step, which a session forgets at an episode's end."""

    after: Any

    def step(self, plays: Play, action: int) -> tuple[Play, Watched]:
        plays, seen = super().step(plays, action)
        self.after = jax.tree.map(lambda leaf: np.asarray(leaf)[0, 0], seen.after)
        return plays, seen


def coins_of(state: Any, columns: int) -> list[plain_coin.Coin]:
    pairs = zip(state.coins.tolist(), state.owners.tolist(), strict=True)
    return [plain_coin.Coin(divmod(cell, columns), owner) for cell, owner in pairs]


def plain_start(plain: Any, rules: Any, table: Table, session: Session) -> Any:
    state = jax.tree.map(lambda leaf: np.asarray(leaf)[0], session.plays.state)
    board = plain.read(rules, table.game.show(state))
    if plain is plain_coin:
        board.coins = coins_of(state, rules.width)  # numbered as there
    return board


@pytest.mark.parametrize("name", GAMES)
def test_every_step_is_by_the_rules(name: str) -> None:
    plain, config, names = GAMES[name]
    made = table_of(names, config)
    table = Kept(made.game, made.lineup)
    rules, rng = plain_rules(plain.Rules, config), np.random.default_rng(0)
    session, gained = Session(table), 0.0
    for _ in range(3):  # a trial, and the first episode of the next
        board, boards = plain_start(plain, rules, table, session), []
        while not session.over:
            boards.append(plain.write(rules, board))
            assert session.legal == plain.legal(rules, board, table.person)
            action = choose(session, rng)
            session.act(action)
            shown = session.shown()
            joint = [STAY if act < 0 else act for act in shown["acts"]]
            assert joint[table.person] == action
            back: Any = ()
            if plain is plain_coin:
                coins, where = (
                    coins_of(table.after, rules.width),
                    plain.moved(rules, board, joint)[2],
                )
                takers = plain.takers_of(board, where)
                back = ({number: coins[number] for number, here in enumerate(takers) if here},)
            board, result = plain.step(rules, board, joint, *back)
            assert shown["over"] == result.done
            assert shown["now"]["rewards"] == pytest.approx(result.rewards)
            places = [tuple(cell) if cell else None for cell in shown["now"]["seats"]]
            assert places == board.where
            gained += sum(map(abs, result.rewards))
        boards.append(plain.write(rules, board))
        replay = session.shown()["replay"]
        frames = frames_of(replay, replay["episodes"][0])
        assert [frame.layout.split() for frame in frames] == [text.split() for text in boards]
        assert frames[-1].returns == pytest.approx(session.returns[-1])
        session.go_on()
    assert gained  # something has happened


def test_others_play_as_with_any_player_in_that_seat() -> None:
    """The whole of a trial and the beginning of the next: memories, who is drawn, and boards."""
    names = "human,wary,stag|trusting"
    table = table_of(names, trial=3)
    other = make_lineup(names.replace(HUMAN, "stag").split(","), table.game, trial=3)
    params = other.init(jax.random.key(0))
    play = jax.jit(lambda plays: rollout(table.game, other.seating, params, plays, 30)[1])
    for number in range(2):
        session = Session(table, number)
        begun = replace(session.plays, memory=((), *session.plays.memory[1:]))
        played = jax.tree.map(lambda leaf: np.asarray(leaf)[:, 0], play(begun))
        for step in range(30):
            assert session.episode == played.episode[step]
            session.act(int(played.act.action[step, 0]))
            acts = np.where(played.present[step], played.act.action[step], -1)
            assert session.shown()["acts"] == acts.tolist()
            if session.over:
                assert played.outcome.done[step]
                session.go_on()
        assert (np.diff(played.episode) == -2).any()  # another trial has begun


def test_opinions_are_about_the_person() -> None:
    """Of nobody who could not do so an action is expected; and seats could do different things."""
    table = table_of("stag,human,one")
    session, rng, told = Session(table, 1), np.random.default_rng(0), 0
    before: Any = None
    ends: list[float | None] = []
    for _ in range(4):
        while not session.over:
            view = np.asarray(session.plays.view.legal[0])
            legal, here = session.legal, session.moments[-1]["seats"][1] is not None
            session.act(choose(session, rng))
            shown = session.shown()
            if shown["over"]:  # the last that each has thought
                ends += [opinion and opinion["value"] for opinion in shown["opinions"]]
                continue
            if not here:  # what was thought of the person before it left
                assert shown["opinions"] == before["opinions"]
                assert shown["acted"] == before["acted"] > STAY
                continue
            before = shown
            assert shown["acted"] == shown["acts"][1]
            stag, person, one = shown["opinions"]
            assert person is None
            if stag:
                assert stag["acted"] == shown["acted"]
                assert {value for name, value in stag.items() if name != "acted"} == {None}
            if one is None:  # it has left
                continue
            assert isinstance(one["value"], float)
            assert sum(one["about"]) == pytest.approx(1, abs=1e-3)
            assert sum(one["predicted"]) == pytest.approx(1, abs=1e-3)
            assert [chance > 0 for chance in one["predicted"]] == legal
            board = session.moments[-2] | {"obstacles": []}
            assert one["after"] == predicted_targets(table.game, board, 1, one["predicted"], legal)
            told += legal != view[0].tolist()
        session.go_on()
    assert told > 3
    assert None not in ends[2::3]  # of whoever had thoughts, though it may have left before


def test_what_is_out_of_sight_is_shown_at_the_end() -> None:
    config = StagHuntConfig(size=5, seats=2, hares=4, horizon=5, sight=1, obstacles=1, boards=2)
    session, hidden = Session(table_of("hare,human", config)), 0
    rng = np.random.default_rng(0)
    while not session.over:
        shown, moment = session.shown()["now"], session.moments[-1]
        row, column = moment["seats"][1]

        def near(cell: list[int]) -> bool:
            return max(abs(cell[0] - row), abs(cell[1] - column)) <= 1  # noqa: B023

        assert shown["targets"] == [one for one in moment["targets"] if near(one["cell"])]
        assert shown["obstacles"] == [cell for cell in moment["obstacles"] if near(cell)]
        other = moment["seats"][0]
        assert shown["seats"] == [other if other and near(other) else None, [row, column]]
        hidden += len(moment["targets"]) - len(shown["targets"])
        legal = np.flatnonzero(session.legal[:STAY])  # it walks, and stays on the board
        session.act(int(rng.choice(legal)))
    assert hidden
    assert session.shown()["now"] == session.moments[-1]


def test_who_was_drawn_is_told_after_the_trial() -> None:
    session, rng = Session(table_of("human,wary,stag|trusting", trial=3)), np.random.default_rng(0)
    names = []
    for _ in range(3):
        names.append(play_episode(session, rng)["replay"]["players"][2])
        session.go_on()
    assert names[:2] == ["stag|trusting"] * 2
    assert names[2] in ("stag", "trusting")


def test_nothing_is_played_out_of_turn() -> None:
    session = Session(table_of("stag,human,hare"))
    with pytest.raises(ConfigError, match="not over"):
        session.go_on()
    for action in (-1, 7, 5 if not session.legal[5] else 6):
        with pytest.raises(ConfigError, match="not legal"):
            session.act(action)
    assert len(session.moments) == 1
    play_episode(session, np.random.default_rng(0))
    with pytest.raises(ConfigError, match="over"):
        session.act(STAY)


# Recorded, if the person agrees


def test_who_agrees_is_recorded(tmp_path: Path) -> None:
    """And nobody else: who was not asked, who says no, and who takes it back before the end."""
    made = table_of("human,wary,stag|trusting", trial=3)
    recording = Recording(tmp_path / "data", HUNT, made.lineup.seating)
    table, rng = Table(made.game, made.lineup, recording=recording), np.random.default_rng(0)
    agreeing = Session(table, 1)
    agreeing.agree(True)
    replays = []
    for number, answer in enumerate((None, False, True)):
        session = Session(table, number)
        if answer is not None:
            session.agree(answer)
        session.act(STAY)
        if answer:
            assert session.kept
            session.agree(False)
        assert not session.kept
        play_episode(session, rng)
        replays.append(play_episode(agreeing, rng)["replay"])
        agreeing.go_on()
    late = Session(table, 5)
    late.act(STAY)
    late.agree(True)  # from the next episode on
    play_episode(late, rng)

    about = recording.write()
    assert about is not None
    assert about["episodes"] == 3
    data = open_data(tmp_path / "data")
    assert data.players == ["human", "wary", "stag", "trusting"]
    shard = data.shard(0)
    rows = shard.rows
    drawn = data.players.index(replays[2]["players"][2])
    assert shard.who.tolist() == [[0, 1, drawn]] * 3
    for start, replay in zip(shard.start, replays, strict=True):
        steps = replay["episodes"][0]["steps"]
        for row, step in enumerate(steps, start):
            present = [cell is not None for cell in step["seats"]]
            assert rows.present[row].tolist() == present
            acts = np.where(present, rows.joint[row], -1)
            assert acts.tolist() == step.get("acts", [-1, -1, -1])
            before = rows.reward[row - 1].tolist() if row > start else [0, 0, 0]
            assert before == pytest.approx(step["rewards"])
            assert rows.done[row] == (row == start + len(steps) - 2)
            planes = np.asarray(view_at(table.game, rows, row, 0).planes)
            places = [np.argwhere(planes[..., seat]).tolist() for seat in range(3)]
            assert places == [[cell] if cell else [] for cell in step["seats"]]


def test_without_anyone_who_agrees_nothing_is_written(tmp_path: Path) -> None:
    made = table_of("stag,human,hare")
    recording = Recording(tmp_path / "data", HUNT, made.lineup.seating)
    play_episode(Session(Table(made.game, made.lineup, 0, recording)), np.random.default_rng(0))
    assert recording.write() is None
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="nothing is recorded"):
        Session(made).agree(True)
