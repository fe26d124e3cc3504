"""What strangers go for, and when: against counts in plain numpy, and players whose ways are
known."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import TypesConfig
from hopplus.players.context.habits import (
    ALIKE,
    FAR,
    FIRST,
    FORGOTTEN,
    IN_A_HALF,
    NEAR,
    TIMES,
    HabitReader,
    Habits,
)
from hopplus.players.context.types import TypesContext
from test_co_players import game_of
from test_types_context import GAMES, played, told

STAG_HUNT = GAMES["stag-hunt-v1"][0]


def numpy_habits(reader: HabitReader, acts: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """[J] chances of each aim after acts under circumstances [E] of which each aim has made this
    one so likely [J], by counting."""
    kinds, aims = len(acts[0][0]), reader.aims
    whole = 3 + 1  # stags, hares, anything and nothing; in halves all but the last
    prior = np.array([1.0] * whole + [IN_A_HALF] * (aims - whole))
    prior /= prior.sum()
    counts: dict[int, np.ndarray] = {}
    belief = np.full(kinds, 1 / kinds)

    def by_kind(now: np.ndarray) -> np.ndarray:
        always = counts.get(0, np.zeros(aims))
        always = (always + FIRST * prior) / (always.sum() + FIRST)
        rows = [counts.get(int(place), np.zeros(aims)) for place in now]
        return np.array([(row + ALIKE * always) / (row.sum() + ALIKE) for row in rows])

    for now, likely in acts[:-1]:
        each = by_kind(now) * likely
        total = each.sum(axis=1)
        for place, row in zip(now, each / total[:, None], strict=True):
            counts[int(place)] = counts.get(int(place), np.zeros(aims)) + row
        belief = belief * total / (belief * total).sum()
        belief = (1 - FORGOTTEN) * belief + FORGOTTEN / kinds
    found: np.ndarray = belief @ by_kind(acts[-1][0])
    return found


def test_habits_are_counted() -> None:
    reader = HabitReader(STAG_HUNT)
    habits = reader.start()
    rng, acts = np.random.default_rng(1), []
    view = STAG_HUNT.view(STAG_HUNT.init(jax.random.key(0)), 1)
    for step in range(12):
        if step == 6:
            habits = reader.next_episode(habits)
        habits = reader.watch(habits, replace(view, time=jnp.float32(step % 6 / 10)))
        likely = rng.random(reader.aims).astype(np.float32)
        acts.append((np.asarray(habits.now), likely))
        np.testing.assert_allclose(reader.chances(habits), numpy_habits(reader, acts), rtol=2e-5)
        habits = reader.after(habits, jnp.asarray(likely))


def acting(reader: HabitReader, habits: Habits, now: list[int], aim: int) -> Habits:
    """After it has acted as only one aim would have it, under such circumstances."""
    likely = jnp.where(jnp.arange(reader.aims) == aim, 1.0, 0.01)
    return reader.after(replace(habits, now=jnp.asarray(now)), likely)


@pytest.mark.parametrize("kind", range(6))
def test_on_what_it_hangs_is_found_out(kind: int) -> None:
    """Everything else changes by chance."""
    reader, rng = HabitReader(STAG_HUNT), np.random.default_rng(kind)
    begins = np.cumsum((0, *reader._sizes[:-1]))
    habits = reader.start()
    for _ in range(80):
        under = rng.integers(0, np.minimum(reader._sizes, 4))
        habits = acting(reader, habits, list(begins + under), aim=int(under[kind]))
    assert int(habits.belief.argmax()) == kind
    for want in range(min(reader._sizes[kind], 4)):
        under = np.minimum(np.asarray(reader._sizes) - 1, 3)
        under[kind] = want
        chances = reader.chances(replace(habits, now=jnp.asarray(begins + under)))
        assert int(chances.argmax()) == want


def test_an_episode_begins_with_nothing_taken() -> None:
    reader = HabitReader(STAG_HUNT)
    view = STAG_HUNT.view(STAG_HUNT.init(jax.random.key(3)), 0)
    habits = reader.start()
    for idle in (0, 1, 2):
        habits = reader.watch(habits, view)
        assert int(habits.idle) == idle
    habits = acting(reader, habits, habits.now.tolist(), aim=1)
    assert int(habits.last) == 1
    new = reader.next_episode(habits)
    assert (int(new.last), int(new.idle)) == (reader.aims, -1)
    assert not new.things.any()
    np.testing.assert_array_equal(new.counts, habits.counts)
    np.testing.assert_array_equal(new.belief, habits.belief)


def under(reader: HabitReader, habits: Habits) -> list[int]:
    """[E] which of each kind of circumstances it is."""
    begins = np.cumsum((0, *reader._sizes[:-1]))
    return [int(one) for one in np.asarray(habits.now) - begins]


def test_circumstances_by_hand() -> None:
    """Seat 2 of three, on a row of nine: the next seat has come from the right to stand by a hare,
    the other one stands at the left end, farther away."""
    game: Any = game_of("stag-hunt-v1", width=9, height=1, seats=3, hares=2, stags=1, horizon=12)
    reader = HabitReader(game)
    planes = np.zeros((1, 9, game.shape[2]), np.float32)
    stag, hare = (target.plane for target in game.targets.values())
    for plane, column in ((0, 3), (1, 6), (2, 0), (stag, 8), (hare, 5)):
        planes[0, column, plane] = 1
    begun = STAG_HUNT.view(STAG_HUNT.init(jax.random.key(0)), 0)
    view = replace(
        begun, planes=jnp.array(planes), time=jnp.float32(0.5), last_actions=jnp.array([4, 2, 4])
    )
    habits = reader.watch(reader.start(), view)
    last, walks, time, idle, near = under(reader, habits)[1:]
    hares_name = next(name for name, target in game.targets.items() if target.plane == hare)
    hares = list(game.targets).index(hares_name)
    assert last == reader.aims  # it has not acted yet
    assert walks == hares * FAR + 3 * FAR // 9  # three cells away, of at most nine
    assert (time, idle, near) == (TIMES // 2, 0, 3)

    # Nobody has moved for five steps: it goes for nothing that can be seen.
    still = replace(view, last_actions=jnp.array([4, 4, 4]), time=jnp.float32(1.0))
    for _ in range(5):
        habits = reader.watch(habits, still)
    assert under(reader, habits)[2:5] == [2 * FAR + 3 * FAR // 9, TIMES - 1, 2]
    # There is no hare any more, and it has just tried to take one.
    planes[0, 5, hare], tried = 0, game.targets[hares_name].action
    took = replace(still, planes=jnp.array(planes), last_actions=jnp.array([tried, 4, 4]))
    habits = reader.watch(habits, took)
    assert under(reader, habits)[4:] == [0, 3]
    # The others are gone.
    planes[..., 1:3] = 0
    habits = reader.watch(habits, replace(still, planes=jnp.array(planes)))
    assert under(reader, habits)[2] == 2 * FAR + FAR - 1
    assert under(reader, habits)[5] == NEAR - 1


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("stag-hunt-v1", {"size": 4, "seats": 3, "hares": 3, "horizon": 10, "obstacles": 1}),
        ("stag-hunt-v1", {"width": 7, "height": 3, "seats": 8, "hares": 4, "horizon": 7}),
        ("snowdrift-v1", {"size": 5, "seats": 2, "drifts": 3, "horizon": 10}),
        ("coin-v1", {"size": 3, "seats": 3, "coins": 2, "horizon": 10}),
    ],
)
def test_circumstances_have_a_place_each(name: str, rules: dict[str, int]) -> None:
    """Whatever happens in play, in every game."""
    game: Any = game_of(name, **rules)
    reader = HabitReader(game)
    others = ",".join(["family-weighing"] * (rules["seats"] - 1))
    trajectory = played(game, f"random,{others}", 40)
    ends = np.cumsum(reader._sizes)
    states = jax.tree.map(jnp.asarray, trajectory.state)

    def step(habits: Habits, state: Any) -> tuple[Habits, jax.Array]:
        habits = reader.watch(habits, game.view(state, 1))
        likely = jax.random.uniform(jax.random.key(state.steps), (reader.aims,))
        return reader.after(habits, likely), habits.now

    now = np.asarray(jax.lax.scan(step, reader.start(), states)[1])
    assert (now < ends).all()
    assert (now >= ends - np.asarray(reader._sizes)).all()
    assert (np.ptp(now, axis=0)[1:] > 0).all()  # each kind but the first changes in play


@pytest.mark.parametrize(
    ("name", "least"), [("family-territorial", 0.01), ("family-follower", 0.1)]
)
def test_strangers_are_understood(name: str, least: float) -> None:
    """Whose family is not among those that they are held against."""
    game: Any = game_of("stag-hunt-v1", size=5, seats=3, hares=3, horizon=20)
    right = {}
    for strange in (0.0, 0.2):
        config = TypesConfig(members=16, strange=strange)
        context = TypesContext(game.config, config, ("family-devoted", "family-erratic"))
        hits = []
        for seed in range(6):
            trajectory = played(game, f"random,{name},family-devoted", 100, seed)
            acts = told(context, game, trajectory)[:, 0, : len(game.action_names)].argmax(axis=-1)
            late = (trajectory.episode >= 1) & trajectory.present[:, 1]
            true = np.exp(trajectory.act.logits[:, 1])
            hits.extend(true[np.arange(len(acts)), acts][late])
        right[strange] = np.mean(hits)
    assert right[0.2] > right[0.0] + least
