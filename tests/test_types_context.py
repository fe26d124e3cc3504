"""Whom each other is like: against a filter in plain numpy, and boards that can be worked by
hand."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import ConfigError, StagHuntConfig, TrainConfig, TypesConfig
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import seat_players
from hopplus.players.context.context import NoContext
from hopplus.players.context.joined import JoinedContext
from hopplus.players.context.registry import make_context
from hopplus.players.context.rhythm import CHAINS, Rhythm, unknown_rhythm
from hopplus.players.context.types import TypesContext
from hopplus.players.scripted import scripted
from hopplus.players.scripted.family import Family
from test_co_players import game_of

GAMES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "stag-hunt-v1": (
        game_of("stag-hunt-v1", size=4, seats=3, hares=3, horizon=10, obstacles=1),
        ("wary", "trusting", "stag", "hare", "random"),
    ),
    "snowdrift-v1": (
        game_of("snowdrift-v1", size=4, seats=3, drifts=3, horizon=10),
        ("clear", "idle", "late", "reciprocal"),
    ),
    "coin-v1": (
        game_of("coin-v1", size=3, seats=3, coins=2, horizon=10),
        ("cooperator", "grudger", "defector", "tit-for-tat"),
    ),
}
PLAIN = TypesConfig(slip=0.1, change=0.01, strange=0.0, rhythm=False)


def played(game: Any, seats: str, steps: int, seed: int = 3) -> Any:
    """[T, ...] one game's steps, in one trial."""
    seating = replace(seat_players(seats, game), trial=99)
    plays = jax.vmap(lambda key: start(game, seating, key))(jax.random.split(jax.random.key(seed)))
    params = tuple(() for _ in seating.groups)
    steps_ = jax.jit(lambda plays: rollout(game, seating, params, plays, steps)[1])(plays)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:, 0], steps_)


def told(context: TypesContext, game: Any, trajectory: Any, seat: int = 0) -> np.ndarray:
    """[T, N - 1, ...] what the context says at each step of one game."""

    def step(memory: Any, now: Any) -> Any:
        state, joint, done = now
        after, said = context.infer((), memory, game.view(state, seat))
        last = game.view(game.step(state, joint, jax.random.key(0))[0], seat)
        carried = context.carry(after, last)
        after = jax.tree.map(lambda a, b: jnp.where(done, a, b), carried, after)
        return after, context.about_others(said)

    rows = trajectory.state, trajectory.act.action, trajectory.outcome.done
    return np.asarray(jax.jit(lambda rows: jax.lax.scan(step, context.start(), rows)[1])(rows))


def by_hand(names: tuple[str, ...], game: Any, trajectory: Any, other: int) -> np.ndarray:
    """[T, A + T] the same of one seat, by the rules of probability and the scripts themselves."""
    scripts = [scripted(name, game) for name in names]
    memories = [one.start() for one in scripts]
    see = jax.jit(lambda state: game.view(state, other))
    after = jax.jit(lambda state, joint: game.step(state, joint, jax.random.key(0))[0])
    decide = [jax.jit(lambda m, v, one=one: one.decide(m, v, jax.random.key(1))) for one in scripts]
    chance, rows = np.full(len(names), 1 / len(names)), []
    for t, joint in enumerate(trajectory.act.action):
        state = jax.tree.map(lambda leaf: leaf[t], trajectory.state)  # noqa: B023
        view, there = see(state), trajectory.present[t, other]
        found = [one(kept, view) for one, kept in zip(decide, memories, strict=True)]
        memories = [kept for kept, _, _ in found]  # also of who has gone home, and looks on
        legal = np.asarray(view.legal) / np.asarray(view.legal).sum()
        acts = np.array([0.9 * np.asarray(one) + 0.1 * legal for _, one, _ in found])
        rows.append(np.concatenate([chance @ acts, chance]))
        if there:
            chance = chance * acts[:, joint[other]]
            chance = 0.99 * chance / chance.sum() + 0.01 / len(names)
        if trajectory.outcome.done[t]:
            last = see(after(state, joint))
            memories = [
                one.carry(kept, last) if one.carries else one.start()
                for one, kept in zip(scripts, memories, strict=True)
            ]
    return np.array(rows)


@pytest.mark.parametrize("seat", [0, 2])
@pytest.mark.parametrize("name", GAMES)
def test_as_by_the_rules_of_probability(name: str, seat: int) -> None:
    """Over several episodes, each of which begins with what those before have told. In Stag-Hunt
    some leave early, and look on."""
    game, names = GAMES[name]
    context = TypesContext(game.config, PLAIN, names)
    trajectory = played(game, f"{names[0]},{names[1]},{names[2]}", 32)
    assert trajectory.episode[-1] >= 1
    if name == "stag-hunt-v1":
        assert not trajectory.present.all()
    said = told(context, game, trajectory, seat)  # [T, 2, A + T + 2]
    for place in (1, 2):
        other = (seat + place) % 3
        want = by_hand(names, game, trajectory, other)
        there = trajectory.present[:, other] & trajectory.present[:, seat]
        assert there.sum() > 5
        np.testing.assert_allclose(said[there, place - 1, :-2], want[there], atol=2e-5)


def test_a_member_does_what_one_that_has_drawn_its_numbers_does() -> None:
    game, _ = GAMES["stag-hunt-v1"]
    view = game.view(game.init(jax.random.key(2)), 1)
    for name in ("family-devoted", "family-weighing", "family-impatient"):
        one = scripted(name, game)
        assert isinstance(one, Family)
        drawn, chances, _ = one.decide(one.start(), view, jax.random.key(5))
        memory, expected = one.expected(one.member(drawn.numbers), view)
        np.testing.assert_array_equal(expected, chances)
        np.testing.assert_array_equal(memory.numbers, drawn.numbers)


def test_a_search_has_members_play_the_others() -> None:
    """Who is certain is played by that one alone, step by step as in play."""
    game, _ = GAMES["coin-v1"]
    trajectory = played(game, "random,grudger,defector", 9)
    context = TypesContext(game.config, PLAIN, ("grudger",))
    joined = JoinedContext((NoContext(2), context))
    assert joined.casts
    assert not NoContext(2).casts
    states = jax.tree.map(jnp.asarray, trajectory.state)
    first, *later = [jax.tree.map(lambda leaf, t=t: leaf[t], states) for t in range(9)]
    memory, _ = context.infer((), context.start(), game.view(first, 0))
    said = told(context, game, trajectory)[:, :, : len(game.action_names)]
    cast, chances = joined.cast(((), memory), jax.random.key(0))
    np.testing.assert_allclose(chances, said[0], atol=1e-6)
    for want, state in zip(said[1:], later, strict=True):
        cast, chances = joined.rehearse(cast, game.view(state, 0))
        np.testing.assert_allclose(chances, want, atol=1e-6)


def test_members_are_drawn_by_what_is_known() -> None:
    game, _ = GAMES["coin-v1"]
    names = ("cooperator", "grudger", "defector")
    context = TypesContext(game.config, PLAIN, names)
    memory, _ = context.infer((), context.start(), game.view(game.init(jax.random.key(1)), 0))
    chances = np.array([[0.7, 0.3, 0.0], [0.1, 0.1, 0.8]])
    known = replace(memory.known, belief=jnp.log(jnp.asarray(chances) + 1e-9))
    memory = replace(memory, known=known)
    keys = jax.random.split(jax.random.key(3), 4000)
    cast, _ = jax.jit(jax.vmap(lambda key: context.cast(memory, key)))(keys)
    for other in (0, 1):
        share = np.bincount(np.asarray(cast.name)[:, other], minlength=3) / 4000
        np.testing.assert_allclose(share, chances[other], atol=0.03)


def test_what_is_foretold_is_legal_and_sums_to_one() -> None:
    game, _ = GAMES["stag-hunt-v1"]
    names = ("family-devoted", "family-slow", "random")
    context = TypesContext(game.config, TypesConfig(members=12), names)
    trajectory = played(game, "stag,family-slow,family-devoted", 20)
    said = told(context, game, trajectory)
    states = jax.tree.map(jnp.asarray, trajectory.state)
    legal = np.asarray(jax.vmap(lambda state: views(game, state).legal)(states))
    chances = np.asarray(
        jax.vmap(context.foretold)(jnp.asarray(said.reshape(len(said), -1)))
    )  # [T, 2, A]
    there = trajectory.present[:, 1:]
    np.testing.assert_allclose(chances.sum(axis=-1)[there], 1, atol=1e-4)
    assert (chances[there][~legal[:, 1:][there]] < 1e-6).all()
    names_ = said[..., chances.shape[-1] : -1][there]
    np.testing.assert_allclose(names_.sum(axis=-1), 1, atol=1e-4)


def test_who_acts_like_a_member_is_taken_for_one() -> None:
    """Of the three names, after two episodes among many members of each."""
    game: Any = game_of("stag-hunt-v1", size=4, seats=2, hares=3, horizon=12)
    names = ("family-devoted", "family-erratic", "family-slow")
    context = TypesContext(game.config, TypesConfig(members=48), names)
    found = []
    for seed in range(4):
        trajectory = played(game, "random,family-slow", 36, seed)
        said = told(context, game, trajectory)[:, 0]
        late = (trajectory.episode >= 1) & trajectory.present[:, 1]
        found.append(said[late, -5:-2].mean(axis=0))  # before the stranger and rest
    assert np.mean(found, axis=0).argmax() == 2
    assert np.mean(found, axis=0)[2] > 0.6


def test_a_stranger_who_rests_in_a_rhythm_is_understood() -> None:
    """`family-slow` is not among those it is held against."""
    game: Any = game_of("stag-hunt-v1", size=5, seats=2, hares=3, horizon=20)
    right = {}
    for rhythm in (False, True):
        config = TypesConfig(members=16, rhythm=rhythm)
        context = TypesContext(game.config, config, ("family-devoted",))
        hits = []
        for seed in range(6):
            trajectory = played(game, "random,family-slow", 80, seed)
            acts = told(context, game, trajectory)[:, 0, : len(game.action_names)].argmax(axis=-1)
            late = (trajectory.episode >= 1) & trajectory.present[:, 1]
            true = np.exp(trajectory.act.logits[:, 1])
            hits.extend(true[np.arange(len(acts)), acts][late])
        right[rhythm] = np.mean(hits)
    assert right[True] > right[False] + 0.15


@pytest.mark.parametrize("period", [2, 3, 4, 5])
def test_any_rhythm_is_found_out(period: int) -> None:
    rests = jnp.arange(60) % period != 0

    def step(rhythm: Rhythm, rests: jax.Array) -> tuple[Rhythm, jax.Array]:
        return rhythm.after(rests), rhythm.chance

    chances = np.asarray(jax.lax.scan(step, unknown_rhythm(), rests)[1])
    assert chances[0] == pytest.approx(0.5)
    assert (chances[40:][np.asarray(rests)[40:]] > 0.8).all()
    assert (chances[40:][~np.asarray(rests)[40:]] < 0.2).all()


def test_the_shortest_chain_counts() -> None:
    """Half a rest and half an act are there before anything was seen (Krichevsky, Trofimov)."""
    rhythm = unknown_rhythm()
    for rests in (True, True, False):
        rhythm = rhythm.after(jnp.asarray(rests))
    assert float(rhythm.chances[0]) == pytest.approx(2.5 / 4)
    assert float(rhythm.chances[1]) == pytest.approx(0.5)  # nothing was seen after an act
    rhythm = rhythm.after(jnp.asarray(True))
    assert float(rhythm.chances[1]) == pytest.approx(1.5 / 3)  # after a rest, a rest and an act
    assert rhythm.chances.shape == (CHAINS,)


def test_an_episode_begins_as_those_before() -> None:
    """Every other step is a rest, and every episode begins with an act, whose last was one, too."""
    rhythm = unknown_rhythm()
    for _ in range(4):
        for step in range(7):
            rhythm = rhythm.after(jnp.asarray(step % 2 == 1))
        rhythm = rhythm.next_episode()
        assert float(rhythm.chances[3]) < 0.5
    np.testing.assert_allclose(rhythm.chances[1:], 0.5 / 5)  # four acts at the beginning
    assert float(rhythm.chance) < 0.15
    assert float(rhythm.after(jnp.asarray(False)).chance) > 0.85


def test_members_are_spread_evenly() -> None:
    game, _ = GAMES["stag-hunt-v1"]
    names = ("family-composed", "family-devoted", "random")
    context = TypesContext(game.config, TypesConfig(members=100), names)
    composed, devoted, one = (len(numbers) for numbers in context._numbers)
    assert (composed, devoted, one) == (80, 20, 1)  # drawn four times as often
    for numbers in context._numbers[:2]:
        tenths = np.sort(numbers, axis=0) * len(numbers)
        for column in np.floor(tenths).T:
            np.testing.assert_array_equal(column, np.arange(len(numbers)))
    chances = np.exp(context._prior)
    assert chances.sum() == pytest.approx(1)
    assert chances[:80].sum() == pytest.approx(4 / 6)


def test_those_left_out_are_not_among_them() -> None:
    rules = StagHuntConfig(size=4)
    game = make_game(rules)
    config = TrainConfig(
        game=rules,
        trial=2,
        context="record+types",
        train_against="population",
        held_out=("family-slow",),
    )
    joined = make_context(game, config)
    assert isinstance(joined, JoinedContext)
    context = joined.contexts[1]
    assert isinstance(context, TypesContext)
    assert "family-slow" not in context.names
    assert "family-devoted" in context.names
    said = jnp.arange(joined.size, dtype=jnp.float32)
    foretold = joined.foretold(said)
    assert foretold is not None
    np.testing.assert_array_equal(foretold, context.foretold(said[-context.size :]))
    # As a run keeps it: the others are named by their seats; one who learns is no type.
    seats = TrainConfig(game=rules, context="types", seats="learn,stag|family-lazy,learn,hare")
    context = make_context(game, seats)
    assert isinstance(context, TypesContext)
    assert context.names == ("stag", "family-lazy", "hare")
    # In self-play nobody is drawn, and others are held against everyone.
    context = make_context(game, TrainConfig(game=rules, context="types"))
    assert isinstance(context, TypesContext)
    assert "family-slow" in context.names


def test_refusals() -> None:
    near = StagHuntConfig(size=4, sight=1)
    with pytest.raises(ConfigError, match="nobody sees"):
        make_context(make_game(near), TrainConfig(game=near, context="types"))
    rules = StagHuntConfig(size=4)
    parts: Any = ("opponent", "world", "imagination")
    with pytest.raises(ConfigError, match="too much of each step for imagination"):
        make_context(make_game(rules), TrainConfig(game=rules, context="types", parts=parts))
    seats = TrainConfig(game=rules, context="types", seats="learn,switch,switch,switch")
    with pytest.raises(ConfigError, match="knows nobody of those who are drawn"):
        make_context(make_game(rules), seats)
    with pytest.raises(ConfigError, match=r"types\.slip"):
        TypesConfig(slip=0)
