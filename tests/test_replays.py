"""Recorded episodes: what is told is what was played, seen and thought, and by whom."""

import json
from dataclasses import replace
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import SearchConfig, StagHuntConfig
from hopplus.diagnosis.models.heldout import choose_seat, record_watched
from hopplus.evaluation.replay.film import frames_of
from hopplus.evaluation.replay.replays import (
    Plain,
    enough,
    most_telling,
    record_episodes,
    scores,
    telling_replays,
    watch_first,
)
from hopplus.evaluation.replay.watch import Watched, game_of
from hopplus.games import make_game
from hopplus.models.opponent import others_views
from hopplus.play.lineup import Lineup, make_lineup
from hopplus.play.trained import Trained
from hopplus.players.actor import make_actor
from hopplus.players.scripted import scripted
from hopplus.recorded.record import view_at
from hopplus.types import Act, Outcome, Trajectory
from tiny_hop_plus import GOAL, jit
from tiny_search import GAME_MADE, config_of, mind_of

WALK = StagHuntConfig(size=5, seats=3, hares=1, horizon=12, obstacles=1, boards=4)
WIDE = make_game(WALK)
STAG, HARE = 0, 1
EPISODES = 6
SEARCH = SearchConfig(simulations=16, trees=2, temperature=1.0)


def company_of(names: str, *parts: Any, **settings: Any) -> Lineup:
    """Whoever is called; `one` and `two` are players of these parts that have learned at random,
    each something else."""
    search = settings.pop("search", SearchConfig())
    config = config_of(*parts, **settings)
    game = make_game(config.game)
    actor = make_actor("learned", game, config)
    known = {
        name: Trained(actor, mind_of(actor, seed), search)
        for seed, name in enumerate(["one", "two"])
    }
    return make_lineup(names.split(","), game, known)


def looks(episode: Plain, seat: int) -> list[tuple[Plain, Plain]]:
    """All moments at which a seat thinks, and what."""
    return [(step, step["looks"][seat]) for step in episode["steps"] if step["looks"][seat]]


# Who thinks what of whom, where the truth is known


def true_logits(models: Any, view: Any, legal: jax.Array, goals: jax.Array) -> jax.Array:
    """Models that know how hunters act: as one of the kind that each is told to be after."""
    theirs = others_views(view, legal)
    key, kinds = jax.random.key(0), [scripted(name, WIDE) for name in ("stag", "hare")]

    def logits(view: Any, goal: jax.Array) -> jax.Array:
        each = [player.act((), (), view, key)[1].logits for player in kinds]
        return jnp.stack(each)[goal.argmax()]

    return jax.vmap(logits)(theirs, goals)


@pytest.fixture(scope="module")
def hunters() -> tuple[Lineup, Watched, Plain]:
    """A player with a belief in seat 1, between one that hunts stags and one that hunts hares,
    whose models of them are right."""
    lineup = company_of("stag,one,hare", "opponent", "belief", game=WALK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hopplus.players.context.belief.others_logits", true_logits)
        patch.setattr("hopplus.play.introspection.others_logits", true_logits)
        seen = watch_first(WIDE, lineup, among=12)
        return lineup, seen, telling_replays(WIDE, lineup, seen)


def test_what_is_believed_and_expected_is_about_the_right_ones(hunters: Any) -> None:
    _, _, replay = hunters
    assert (replay["goals"], replay["players"]) == ("belief", ["stag", "one", "hare"])
    certain = 0
    for episode in replay["episodes"]:
        for moment, look in looks(episode, 1):
            for place, (other, kind) in enumerate([(0, STAG), (2, HARE)]):
                belief = np.array(look["about"][place])
                if moment["seats"][other] is None:
                    assert look["predicted"][place] is None
                    continue
                truth = np.array(moment["looks"][other]["policy"])
                expected = np.array(look["predicted"][place])
                assert expected.sum() == pytest.approx(1, abs=1e-3)
                assert (expected >= belief[kind] * truth - 1e-3).all()
                certain += belief[kind] > 0.9
                assert belief[1 - kind] < 0.9
    assert certain > 10


def test_surprise_is_of_what_the_others_did(hunters: Any) -> None:
    """By hand from what is told: where they had a choice."""
    _, seen, replay = hunters
    labels = [episode["label"] for episode in replay["episodes"]]
    assert labels == ["best", "worst", "median", "surprising"]
    assert replay["episodes"][3]["number"] == np.nanargmax(seen.surprise)
    for episode in replay["episodes"]:
        missed = []
        for moment, look in looks(episode, 1):
            for place, other in enumerate([0, 2]):
                theirs = moment["looks"][other]
                if theirs and sum(theirs["legal"]) > 1:
                    missed.append(-np.log(look["predicted"][place][moment["acts"][other]]))
        assert episode["surprise"] == pytest.approx(np.mean(missed), abs=2e-3)


def test_surprise_by_hand() -> None:
    """Seat 0 has models, seat 1 none. The last step is behind the end, and before it seat 1 has a
    choice first, then none, then has left."""
    array: Any = np.array
    half, tenth = [0.5, 0.5], [0.1, 0.9]
    yes, no = [True, True], [True, False]
    rest: Any = [None] * 5
    done = array([[0], [0], [0], [1], [0]])
    ended = Outcome(rest, rest, done, rest, rest, rest)
    play = Trajectory(
        state=None,
        present=array([yes, yes, yes, no, yes])[:, None],
        memory=(),
        act=Act(array([[0, 0]] * 5)[:, None], *rest, *rest[:1]),
        outcome=ended,
        choice=rest,
        episode=rest,
        begins=rest,
        key=rest,
    )
    seen: Any = Watched(
        trajectory=play,
        after=None,
        legal=array([[yes, yes], [yes, yes], [yes, no], [yes, yes], [yes, yes]])[:, None],
        expected=array([[[half, p], [half, half]] for p in (tenth, half, half, half, half)])[
            :, None
        ],
        choice=None,  # type: ignore[arg-type]
        modelled=array([[True, False]] * 5)[:, None],
    )
    np.testing.assert_allclose(seen.surprise, [-(np.log(0.1) + np.log(0.5)) / 2], rtol=1e-5)


@pytest.fixture(scope="module")
def thinkers() -> tuple[Lineup, Watched, Plain]:
    """Two players that search, with models of the others and goals about each, and someone who
    hunts stags or walks at random."""
    goal = replace(config_of().goal, about="each")
    names = "one,two,stag|random"
    lineup = company_of(names, "opponent", "goal", goal=goal, search=SEARCH)
    seen = watch_first(GAME_MADE, lineup, among=EPISODES)
    picked = {str(place): place for place in range(EPISODES)}
    return lineup, seen, record_episodes(GAME_MADE, lineup, seen, picked)


def test_each_seat_asks_its_own_models_of_the_others(thinkers: Any) -> None:
    """Random ones, each of which says something else, told goals about each other."""
    lineup, seen, replay = thinkers
    assert replay["goals"] == "inferred"
    play, first = seen.trajectory, replay["episodes"][0]["steps"][0]
    state = jax.tree.map(lambda leaf: leaf[0, 0], play.state)

    @jit
    def expected(player_params: Any, place: int, other: int, told: jax.Array) -> Any:
        model = jax.tree.map(lambda leaf: leaf[place], player_params.opponents)
        return jnp.exp(model(GAME_MADE.view(state, other), told))

    for seat, name in enumerate(["one", "two"]):
        look, player_params = first["looks"][seat], lineup.trained[name]
        told = np.asarray(play.act.inferred)[0, 0, seat, : 2 * GOAL.prior.size].reshape(2, -1)
        others = [other for other in range(3) if other != seat]
        for number, other in enumerate(others):
            place = (other - seat) % 3 - 1  # among those who sit after the seat
            right = expected(player_params, place, other, told[place])
            np.testing.assert_allclose(look["predicted"][number], right, atol=1e-4)
            np.testing.assert_allclose(look["about"][number], told[place], atol=1e-4)
        assert not np.allclose(look["about"][0], look["about"][1], atol=1e-3)
    assert first["looks"][2]["predicted"] is first["looks"][2]["about"] is None


# What is told of an episode


def test_frames_show_what_was_played(thinkers: Any, hunters: Any) -> None:
    for game, (_, seen, replay) in ((GAME_MADE, thinkers), (WIDE, hunters)):
        for episode in replay["episodes"]:
            one: Any = game_of(seen, episode["number"])
            reward, acts = one.trajectory.outcome.reward, one.trajectory.act.action
            frames = frames_of(replay, episode)
            assert len(frames) == one.trajectory.outcome.done.argmax() + 2
            for step, frame in enumerate(frames):
                states, place = (one.after, step - 1) if step else (one.trajectory.state, 0)
                state = jax.tree.map(lambda leaf: leaf[place], states)  # noqa: B023
                assert frame.layout == game.show(state)
                np.testing.assert_allclose(frame.returns, reward[:step].sum(axis=0), atol=1e-3)
                if step:
                    there = one.trajectory.present[step - 1]
                    names = [game.action_names[act] for act in acts[step - 1]]
                    assert list(frame.doing) == np.where(there, names, "").tolist()
            np.testing.assert_allclose(episode["returns"], frames[-1].returns, atol=1e-3)


def test_what_is_told_is_plain_and_short(hunters: Any) -> None:
    _, _, replay = hunters
    text = json.dumps(replay, allow_nan=False)
    assert json.loads(text) == replay
    numbers = [word for word in text.replace("]", " ").replace(",", " ").split() if "." in word]
    assert max(len(word.strip("[{}").partition(".")[2]) for word in numbers) == 4
    for episode in replay["episodes"]:
        *transitions, last = episode["steps"]
        assert "acts" not in last
        assert last["looks"] == [None] * 3
        assert episode["steps"][0]["rewards"] == [0, 0, 0]
        for moment in transitions:
            gone = [cell is None for cell in moment["seats"]]
            assert gone == [act < 0 for act in moment["acts"]]
            assert gone == [look is None for look in moment["looks"]]
            for look, act in zip(moment["looks"], moment["acts"], strict=True):
                if look:
                    assert look["action"] == act
                    assert look["policy"][act] > 0
                    assert all(np.array(look["policy"])[~np.array(look["legal"])] == 0)
        assert all(look["value"] is None for _, look in looks(episode, 0))
        assert all(look["value"] is not None for _, look in looks(episode, 1))
    boards = {str(episode["obstacles"]) for episode in replay["episodes"]}
    assert len(boards) > 1  # each episode has its own
    assert all(len(episode["obstacles"]) >= 3 for episode in replay["episodes"])


def test_it_is_told_who_of_a_mixture_sat_there(thinkers: Any) -> None:
    *_, replay = thinkers
    for episode in replay["episodes"]:
        even = [
            np.ptp(np.array(look["policy"])[look["legal"]]) < 1e-3
            for _, look in looks(episode, 2)
            if sum(look["legal"]) > 1
        ]
        assert episode["players"] == ["one", "two", "random" if all(even) else "stag"]
    assert {episode["players"][2] for episode in replay["episodes"]} == {"stag", "random"}
    assert replay["players"] == ["one", "two", "stag|random"]


def test_which_episodes_tell_most() -> None:
    picked = most_telling(np.array([3.0, 1.0, 2.0, 5.0, 4.0]), np.array([1, np.nan, 7, 2, 3]))
    assert picked == {"best": 3, "worst": 1, "median": 0, "surprising": 2}
    alike = most_telling(np.zeros(5), np.full(5, np.nan))
    assert len(set(alike.values())) == 3
    lineup = company_of("stag,one,hare", "opponent")
    returns = np.array([[9.0, 1.0, 9.0], [0.0, 2.0, 0.0]])
    assert scores(lineup.seating, returns).tolist() == [1, 2]
    plain = make_lineup(["stag", "hare", "hare|stag"], GAME_MADE)
    assert scores(plain.seating, returns).tolist() == pytest.approx([19 / 3, 2 / 3])
    assert enough(plain) == enough(lineup) == 256
    assert enough(company_of("stag,one|hare,hare", "opponent", search=SEARCH)) == 64


# Searches


def test_what_a_search_came_to(thinkers: Any) -> None:
    """With a temperature of 1 a player acts by the very shares of its looks; on its line everyone
    goes a step at a time from where they are, itself as it looked at most."""
    *_, replay = thinkers
    moves = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    lengths = []
    for episode, seat in product(replay["episodes"], range(2)):
        for moment, look in looks(episode, seat):
            np.testing.assert_allclose(look["visits"], look["policy"], atol=2e-4)
            best, here = int(np.argmax(look["visits"])), moment["seats"]
            own = look["line"][0]["seats"][seat]
            row, column = moves[best] if best < 4 else (0, 0)
            if own is None:
                assert best > 4  # it took something
            else:
                assert own == [here[seat][0] + row, here[seat][1] + column]
            for after in look["line"]:
                for before, cell in zip(here, after["seats"], strict=True):
                    assert cell is None or before is not None
                    assert cell is None or abs(np.subtract(cell, before)).sum() <= 1
                here = after["seats"]
            lengths.append(len(look["line"]))
        assert all(look["visits"] is look["line"] is None for _, look in looks(episode, 2))
    assert len(lengths) > 20
    assert max(lengths) > 2


# The same episodes as play to measure models by


def test_fresh_play_is_what_was_watched(hunters: Any, thinkers: Any) -> None:
    lengths, tables = set(), ((WIDE, hunters), (GAME_MADE, thinkers))
    for game, (lineup, seen, replay) in tables:
        held = record_watched(game, lineup, seen)
        rows = held.shard.rows
        planes = np.asarray(
            jit(jax.vmap(seen_by(game, held.source.rows)))(np.arange(len(rows.time)))
        )
        for episode in replay["episodes"]:
            numbers = np.flatnonzero(held.shard.episode == episode["number"])
            lengths.add(len(numbers))
            for row, moment in zip(numbers, episode["steps"], strict=True):
                for seat, cell in enumerate(moment["seats"]):
                    shown = np.argwhere(planes[row, ..., (seat - 1) % 3]).tolist()
                    assert shown == ([cell] if cell else [])
                hares = [one["cell"] for one in moment["targets"] if one["kind"] == HARE]
                plane = game.targets["hare"].plane
                assert np.argwhere(planes[row, ..., plane]).tolist() == hares
                before = rows.reward[row - 1] if row > numbers[0] else np.zeros(3)
                np.testing.assert_allclose(before, moment["rewards"], atol=1e-4)
                assert bool(rows.done[row]) == (moment is episode["steps"][-2])
                joint = np.where(rows.present[row], rows.joint[row], -1)
                assert joint.tolist() == moment.get("acts", [-1] * 3)
            assert set(np.asarray(rows.joint)[numbers[-1]].tolist()) == {-1}
    assert min(lengths) < max(lengths) == 13
    assert held.players == ["learned", "stag", "random"]
    who = [[held.players[number] for number in seats] for seats in held.shard.who]
    assert [names[2] for names in who] == [one["players"][2] for one in replay["episodes"]]
    own = choose_seat(held, 1, 7)
    assert own.steps.shape == (7, 2)
    assert set(own.seat) == {1}
    assert own.action.tolist() == held.action[held.seat == 1][:7].tolist()


def seen_by(game: Any, rows: Any) -> Any:
    """The planes that seat 1 sees in a row."""
    return lambda row: view_at(game, rows, row, 1).planes
