"""HOP+ in the learning loop: what each part learns from, what it leaves alone, and its switches."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import (
    GoalConfig,
    GoalOnline,
    ImagineConfig,
    NetConfig,
    OpponentOnline,
    PPOConfig,
    StagHuntConfig,
    TrainConfig,
    WorldConfig,
    WorldOnline,
)
from hopplus.learning.beside import BesidePolicy
from hopplus.learning.learner import Learner, Learning
from hopplus.learning.moments import moments_of
from hopplus.learning.online import learned
from hopplus.learning.ppo import ppo_loss
from hopplus.learning.restore import make_learner
from hopplus.learning.rollout import rollout, start

GAME = StagHuntConfig(size=3, seats=3, hares=2, horizon=12)
TINY = NetConfig(hidden=8)
ALL: Any = ("opponent", "goal", "world", "imagination")
PPO = PPOConfig(games=16, unroll=8, minibatches=2, epochs=1)
GOAL = GoalOnline(
    buffer=200,
    every=1,
    fits=2,
    batch=16,
    hidden=8,
    mixing=0.5,
    prior=GoalConfig(size=4, ahead=2, net=TINY),
)
OPPONENT = OpponentOnline(buffer=200, fits=2, batch=32, net=TINY)
WORLD = WorldOnline(buffer=200, fits=2, batch=32, model=WorldConfig(hidden=16))
IMAGINE = ImagineConfig(buffer=200, horizon=4, warm_up=256)
CONFIG = TrainConfig(
    game=GAME,
    net=TINY,
    ppo=PPO,
    parts=ALL,
    goal=GOAL,
    opponent=OPPONENT,
    world=WORLD,
    imagine=IMAGINE,
    steps=20 * PPO.steps,  # 20 updates; mixing falls to zero in the first 4
)
REAL = PPO.steps  # rows of a seat; the imagined ones are behind them
EARLY, WARM, MIXED = 1, 19, 0  # numbers of updates before, after the warm-up; with most mixing
QUICK = {"xla_backend_optimization_level": 0}  # compiling is what these tests spend their time on


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, compiler_options=QUICK)


def random_like(shapes: Any, seed: int) -> Any:
    """Random parameters; those of a seat do not depend on what else there is."""
    chance = np.random.default_rng(seed)
    return jax.tree.map(
        lambda leaf: jnp.asarray(0.4 * chance.normal(size=leaf.shape), leaf.dtype), shapes
    )


def begun(learner: Learner) -> Learning:
    """As `Learner.init`, whose compilation takes longer than all that is done with it here."""
    shapes = jax.eval_shape(learner.init, jax.random.key(0))
    minds = shapes.params[learner.learning]
    fields = ("policy", "prior", "inference", "opponents", "world")
    minds = replace(
        minds,
        **{name: random_like(getattr(minds, name), seed) for seed, name in enumerate(fields)},
    )
    zeros: Any = jax.tree.map(
        lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), (shapes.optimiser, shapes.kept)
    )
    nothing_seen = jnp.broadcast_to(jnp.array([jnp.inf, -jnp.inf]), zeros[1].observed.shape)
    starts = jax.vmap(lambda key: start(learner.game, learner.seating, key))
    now: Learning = replace(
        shapes,
        params=tuple(
            minds if group == learner.learning else params
            for group, params in enumerate(shapes.params)
        ),
        optimiser=zeros[0],
        kept=replace(zeros[1], observed=nothing_seen),
        plays=jit(starts)(jax.random.split(jax.random.key(1), PPO.games)),
        returns=jnp.zeros((PPO.games, GAME.seats)),
        key=jax.random.key(2),
        updates=jnp.int32(0),
    )
    return now


@dataclass(frozen=True)
class Setup:
    """A learner with some play, and its learning beside the policy as one program."""

    learner: Learner
    minds: Any  # [seats, ...]
    kept: Any
    whole: Any  # the trajectory from the games' starts on
    played: Any  # moments [T, B, ...] of its second half
    batch: Any
    compiled: Any

    def learn(self, **given: Any) -> tuple[Any, Any, Any, Any]:
        """Minds, what is kept, lessons and metrics after an update with what is given."""
        given = {
            "minds": self.minds,
            "kept": self.kept,
            "played": self.played,
            "batch": self.batch,
            "updates": WARM,
            "gate": 1.0,
        } | given
        found: tuple[Any, Any, Any, Any] = self.compiled(**given)
        return found


@cache
def setup() -> Setup:
    learner = make_learner(CONFIG, {})
    now = begun(learner)

    @jit
    def play(plays: Any) -> Any:
        plays, trajectory = rollout(learner.game, learner.seating, now.params, plays, PPO.unroll)
        played = moments_of(
            trajectory, learner.learning, learner.seats, learner.actor.parts.goal_size
        )
        return plays, trajectory, played, learner.batch(now.params[0], plays, trajectory)

    plays, earlier, _, _ = play(now.plays)
    _, later, played, batch = play(plays)
    whole = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), earlier, later)

    @jit
    def compiled(minds: Any, kept: Any, played: Any, batch: Any, updates: Any, gate: Any) -> Any:
        return with_gate(learner.beside, gate).learn(
            minds, kept, played, batch, updates, jax.random.key(3)
        )

    return Setup(learner, now.params[0], now.kept, whole, played, batch, compiled)


def with_gate(beside: BesidePolicy, gate: Any) -> BesidePolicy:
    """The same with the gate as a number given when it runs: one program for all of them."""
    assert beside.dreams is not None
    config = copy.copy(beside.dreams.config)
    object.__setattr__(config, "gate", gate)
    return replace(beside, dreams=replace(beside.dreams, config=config))


def same(one: Any, two: Any) -> bool:
    """Whether all numbers are equal, bit for bit."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def of_seat(tree: Any, seat: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[seat], tree)


LEARNED = ("prior", "inference", "opponents", "world")


def huge(minds: Any, seats: Any = slice(None)) -> Any:
    """Minds of which those seats' worlds promise a thousand at every step."""
    return eqx.tree_at(
        lambda m: m.world.seat.layers[-1].bias, minds, replace_fn=lambda b: b.at[seats, -1].add(1e3)
    )


@cache
def plainly_learned() -> tuple[Any, Any, Any, Any]:
    return jax.device_get(setup().learn())  # type: ignore[no-any-return]


# Imagined rewards and the critic.


def test_wild_imagined_rewards_do_not_reach_the_critic() -> None:
    s = setup()
    _, _, plain, metrics = plainly_learned()
    _, kept, wild, wild_metrics = jax.device_get(s.learn(minds=huge(s.minds)))
    assert wild_metrics["imagined/predicted_least"].min() > 100
    assert abs(metrics["imagined/predicted_most"]).max() < 100
    assert wild.present[:, REAL:].all()
    np.testing.assert_array_equal(plain.valued, wild.valued)
    assert wild.valued.any()
    assert not wild.valued[:, REAL:].any()
    for name in ("returns", "value", "reward"):
        one, two = getattr(plain, name), getattr(wild, name)
        np.testing.assert_array_equal(one[plain.valued], two[wild.valued])
    np.testing.assert_array_equal(wild.returns[:, :REAL], s.batch.returns)
    # They are kept to the range of what was seen, and not the same as before.
    least, most = kept.observed[:, :1], kept.observed[:, 1:]
    assert most.max() < 10
    assert (wild.reward[:, REAL:] <= most).all()
    assert (wild.reward[:, REAL:] >= least).all()
    np.testing.assert_array_equal(
        wild.reward[:, REAL:], np.broadcast_to(most, (3, imagined_rows()))
    )
    assert (plain.reward[:, REAL:] != wild.reward[:, REAL:]).any()


def imagined_rows() -> int:
    dreams = setup().learner.beside.dreams
    assert dreams is not None
    return dreams.rows


def test_the_value_learns_nothing_from_rows_that_are_not_valued() -> None:
    """Neither its loss nor the gradient of its head; but it does from rows that are."""
    s = setup()
    _, _, lessons, _ = plainly_learned()
    lessons = of_seat(lessons, 0)
    policy = of_seat(s.minds.policy, 0)

    @jit
    def found(returns: Any, valued: Any) -> Any:
        batch = replace(lessons, returns=jnp.asarray(returns), valued=valued)

        def loss(policy: Any) -> Any:
            return ppo_loss(policy, batch, s.learner.actor.judge, PPO, jnp.float32(0.01))

        slope, parts = jax.grad(loss, has_aux=True)(policy)
        return slope.value, slope.policy, parts

    other = np.where(lessons.imagined, 1e3 * lessons.returns**2 + 7, lessons.returns)
    value, actions, parts = found(lessons.returns, lessons.valued)
    value_2, actions_2, parts_2 = found(other, lessons.valued)
    assert same(value, value_2)
    assert parts["value_loss"] == parts_2["value_loss"] > 0
    assert not same(actions, actions_2)  # the policy does learn from them
    both = lessons.valued | lessons.imagined
    assert not same(found(lessons.returns, both)[0], found(other, both)[0])
    assert not same(value, found(lessons.returns, both)[0])


def test_imagined_rows_are_those_behind_the_real_ones() -> None:
    s = setup()
    _, _, lessons, _ = plainly_learned()
    assert lessons.imagined.shape == (3, REAL + imagined_rows())
    assert not lessons.imagined[:, :REAL].any()
    assert lessons.imagined[:, REAL:].all()
    share = REAL / (REAL + imagined_rows())
    assert share == pytest.approx(IMAGINE.real_ratio, abs=0.01)
    for name in ("action", "reward", "returns", "present"):
        np.testing.assert_array_equal(getattr(lessons, name)[:, :REAL], getattr(s.batch, name))
    np.testing.assert_array_equal(lessons.view.planes[:, :REAL], s.batch.view.planes)


# Warm-up and gate.


def test_nothing_is_imagined_before_the_warm_up() -> None:
    s = setup()
    steps = np.arange(4) * PPO.steps
    for updates, ready in enumerate(steps >= IMAGINE.warm_up):
        _, _, lessons, _ = s.learn(updates=updates)
        assert bool(lessons.present[:, REAL:].any()) == ready
        assert bool(lessons.present[:, REAL:].all()) == ready
        assert lessons.imagined[:, REAL:].all()
        np.testing.assert_array_equal(lessons.present[:, :REAL], s.batch.present)


@cache
def fitted_minds() -> Any:
    """Minds that have learned this little world for long."""
    s = setup()
    part: Any = next(part for part in s.learner.beside.parts if part.name == "world")
    longer = replace(part, config=replace(part.config, fits=1500, batch=64))
    _, kept, _, _ = plainly_learned()
    return jax.jit(longer.fit)(s.minds, kept.parts["world"], jax.random.key(0))[0]


def test_the_gate_opens_for_seats_whose_world_is_right() -> None:
    s = setup()
    minds = huge(fitted_minds(), 1)
    for gate in (0.0, 0.5, 1.0):
        _, _, lessons, metrics = s.learn(minds=minds, gate=gate)
        error = np.asarray(metrics["world/error"])
        assert error[1] == 1  # wrong in every reward
        assert (error[[0, 2]] < 0.4).all()
        assert plainly_learned()[3]["world/error"].min() > 0.9  # of worlds that learned nothing
        opened = np.asarray(lessons.present[:, REAL:])
        assert opened.any(axis=1).tolist() == (error <= gate).tolist()
        assert opened.all(axis=1).tolist() == (error <= gate).tolist()
        np.testing.assert_array_equal(metrics["imagined/open"], error <= gate)


# Nobody learns from another's play, and nothing from those who are gone.


def test_what_absent_seats_do_and_think_teaches_nothing() -> None:
    s = setup()
    present = s.learner.game.present(s.played.state)  # [T, B, N]
    assert 0.1 < present.mean() < 0.95
    gone = ~present[..., None]
    assert gone[0].any()  # of these the goal part keeps the memory
    other = replace(
        s.played,
        joint=jnp.where(present, s.played.joint, (s.played.joint + 3) % 7),
        inferred=jnp.where(gone, s.played.inferred + 5.0, s.played.inferred),
        memory=jnp.where(gone, 1 - s.played.memory, s.played.memory),
    )
    assert not same(s.played, other)
    minds, _, lessons, metrics = plainly_learned()
    minds_2, _, lessons_2, metrics_2 = s.learn(played=other)
    for name in LEARNED:
        assert not same(getattr(minds, name), getattr(s.minds, name))
        assert same(getattr(minds, name), getattr(minds_2, name))
    assert same(lessons, lessons_2)
    for name in ("opponent/count", "opponent/fill", "world/error", "world/fill", "goal/fill"):
        np.testing.assert_array_equal(metrics[name], metrics_2[name])
    assert metrics["world/fill"].tolist() == present.sum(axis=(0, 1)).tolist()
    assert metrics["opponent/fill"].tolist() == present.sum(axis=(0, 1)).tolist()
    assert metrics["goal/fill"].tolist() == present.sum(axis=(0, 1)).tolist()


def test_games_that_a_seat_is_not_in_teach_it_nothing() -> None:
    """Seat 0 is gone from four games: other boards and actions there change the others' minds."""
    s = setup()
    state = s.played.state
    games = jnp.arange(PPO.games) < 4
    state = replace(state, present=state.present.at[:, :4, 0].set(False))
    played = replace(s.played, state=state, done=jnp.where(games, False, s.played.done))
    prey = jnp.where(games[:, None], (state.prey + 4) % 9, state.prey)
    seats = jnp.where(games[:, None], (state.seats + 2) % 9, state.seats)
    joint = jnp.where(games[:, None], (played.joint + 1) % 7, played.joint)
    other = replace(played, state=replace(state, prey=prey, seats=seats), joint=joint)
    minds, _, lessons, _ = s.learn(played=played)
    minds_2, _, lessons_2, _ = s.learn(played=other)
    for name in LEARNED:
        one, two = getattr(minds, name), getattr(minds_2, name)
        assert same(of_seat(one, 0), of_seat(two, 0)), name
        for seat in (1, 2):
            assert not same(of_seat(one, seat), of_seat(two, seat)), name
    assert same(of_seat(lessons, 0), of_seat(lessons_2, 0))
    assert not same(of_seat(lessons, 1), of_seat(lessons_2, 1))


def third(leaf: Any) -> Any:
    """A little for the third seat, nothing for the others."""
    shape = (3,) + (1,) * (leaf.ndim - 1)
    return np.array([0.0, 0.0, 0.1], np.float32).reshape(shape)


def test_minds_are_each_their_own() -> None:
    s = setup()
    other = jax.tree.map(lambda leaf: np.asarray(leaf) + third(leaf), s.minds)
    minds, _, lessons, metrics = plainly_learned()
    minds_2, _, lessons_2, metrics_2 = s.learn(minds=other)
    for seat in (0, 1):
        assert same(of_seat(minds, seat), of_seat(minds_2, seat))
        assert same(of_seat(lessons, seat), of_seat(lessons_2, seat))
        assert same(of_seat(metrics, seat), of_seat(metrics_2, seat))
    for name in LEARNED:
        start, end = getattr(minds, name), getattr(minds_2, name)
        moved = jax.tree.map(lambda a, b: np.abs(a[2] + 0.1 - b[2]).max(), start, end)
        assert max(jax.tree.leaves(moved)) > 1e-4, name  # it learns otherwise, not only elsewhere
    assert not same(of_seat(lessons, 2), of_seat(lessons_2, 2))


def changed_fields(minds: Any) -> set[str]:
    """What differs from the minds before."""
    fields = ("policy", *LEARNED)
    return {name for name in fields if not same(getattr(minds, name), getattr(setup().minds, name))}


def test_parts_learn_only_their_own() -> None:
    """For the opponents, see the test that follows; the policy learns from the lessons."""
    minds, _, _, metrics = plainly_learned()
    assert changed_fields(minds) == set(LEARNED)
    assert changed_fields(fitted_minds()) == {"world"}
    for name, value in metrics.items():
        assert np.isfinite(value).all(), name


def test_fitting_waits_for_its_turn() -> None:
    s = setup()
    part: Any = next(part for part in s.learner.beside.parts if part.name == "opponent")

    def found(every: int) -> Any:
        now = replace(part, config=replace(part.config, every=every))
        beside = s.kept.parts["opponent"]
        return jit(lambda n: learned(now, s.minds, beside, s.played, n, jax.random.key(0)))

    for every, due in ((2, [True, False, True, False]), (0, [False] * 4)):
        update = found(every)
        for updates, fits in enumerate(due):
            minds, beside, metrics = update(updates)
            assert changed_fields(minds) == ({"opponents"} if fits else set())
            assert same(beside.optimiser, s.kept.parts["opponent"].optimiser) != fits
            assert metrics["opponent/fill"].min() > 0  # it keeps what it sees all the same
            rounds = updates // every + 1 if every else 0
            assert metrics["opponent/fits"].tolist() == [rounds * OPPONENT.fits] * 3


# Goals that hindsight selects, among those the policy learns with.


def test_mixing_falls_to_zero() -> None:
    s = setup()
    assert GOAL.mixing_until * s.learner.updates == 4
    shares = []
    for updates in (0, 2, 4, 5):
        _, _, lessons, _ = s.learn(updates=updates)
        told = jax.tree.map(lambda leaf: leaf[:, :REAL], lessons)
        other = (told.inferred != s.batch.inferred).any(axis=-1)
        shares.append(float(other.mean()))
        for name in ("log_prob", "value"):
            plain, mixed = getattr(s.batch, name), getattr(told, name)
            assert not (plain != mixed)[~other].any() or updates < 4
            np.testing.assert_allclose(
                np.where(other, plain, mixed), plain, rtol=1e-4, atol=1e-5
            )  # as they were where nothing was told
            assert (plain != mixed)[other].any() == (shares[-1] > 0)
        judged = jax.vmap(s.learner.actor.judge, in_axes=(None, 0, 0))
        logits, value = jit(jax.vmap(judged))(s.minds.policy, told.view, told.inferred)
        log_prob = np.take_along_axis(np.asarray(logits), np.asarray(told.action)[..., None], -1)
        np.testing.assert_allclose(log_prob[..., 0], told.log_prob, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(value, told.value, rtol=1e-4, atol=1e-5)
    assert 0.1 < shares[0] < GOAL.mixing
    assert 0.3 * shares[0] < shares[1] < 0.75 * shares[0]
    assert shares[2:] == [0, 0]


# Switches.


@pytest.mark.parametrize("count", range(5))
def test_a_rung_has_what_it_names(count: int) -> None:
    parts = ALL[:count]
    learner = make_learner(replace(CONFIG, parts=parts), {})
    assert tuple(part.name for part in learner.beside.parts) == tuple(
        name for name in parts if name != "imagination"
    )
    assert (learner.beside.dreams is not None) == ("imagination" in parts)
    mind = jax.eval_shape(learner.actor.init, jax.random.key(0))
    assert (mind.opponents is not None) == ("opponent" in parts)
    assert (mind.prior is not None) == (mind.inference is not None) == ("goal" in parts)
    assert (mind.world is not None) == ("world" in parts)
    # Whoever has goals is told; nobody else is.
    sizes = GOAL.prior.size * ("goal" in parts)
    body = 9 * 6 + 1
    assert mind.policy.body.dense.layers[0].weight.shape == (body + sizes, 8)
    if mind.opponents is not None:
        shape = mind.opponents.body.dense.layers[0].weight.shape
        assert shape == (2, body + 3 * 7 + sizes, 8)


def two_updates(config: TrainConfig) -> tuple[Learning, Learning, dict[str, Any]]:
    learner = make_learner(config, {})
    before = now = begun(learner)
    update = jit(learner.update)
    returns = 0.0
    for _ in range(2):
        now, metrics = update(now)
        returns = returns + metrics["return_sum"]
    return before, now, jax.device_get(metrics | {"return_sum": returns})


def test_parts_without_goals_or_imagination_leave_the_policy_alone() -> None:
    _, plain, metrics = two_updates(replace(CONFIG, parts=()))
    before, after, found = two_updates(replace(CONFIG, parts=("opponent", "world")))
    np.testing.assert_array_equal(metrics["return_sum"], found["return_sum"])
    assert metrics["return_sum"].sum() > 0
    np.testing.assert_allclose(metrics["value_loss"], found["value_loss"], rtol=1e-5)
    for one, two, first in zip(
        *(jax.tree.leaves(now.params[0].policy) for now in (plain, after, before)), strict=True
    ):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)
        assert (two != first).any()
    for name in ("opponents", "world"):
        one, two = getattr(before.params[0], name), getattr(after.params[0], name)
        assert all((a != b).any() for a, b in zip(*map(jax.tree.leaves, (one, two)), strict=True))
    for value in found.values():
        assert np.isfinite(value).all()


def test_everything_the_other_way() -> None:
    """All options that are not the usual ones together: one set of parameters for two seats beside
    a scripted one, goals about each, discrete and of reconstruction, a head per cell."""
    config = replace(
        CONFIG,
        ppo=replace(PPO, parameters="shared"),
        seats="stag,learn,learn",
        goal=replace(
            GOAL,
            about="each",
            selector="conservative",
            prior=GoalConfig("discrete", 3, "reconstruction", net=TINY),
        ),
        world=replace(WORLD, model=WorldConfig("cells", hidden=8)),
        imagine=replace(IMAGINE, warm_up=0, gate=1.0, critic_on="both", reward="predicted"),
    )
    before, after, metrics = two_updates(config)
    for name, value in metrics.items():
        assert np.isfinite(value).all(), name
    group = 1
    for one, two in zip(
        *(jax.tree.leaves(now.params[group]) for now in (before, after)), strict=True
    ):
        assert one.shape[0] == 1  # one set
        assert (one != two).any()
    assert jax.tree.leaves(after.params[0]) == []
    assert metrics["imagined/open"].tolist() == [1]
    assert metrics["imagined/value_loss"].shape == (1,)
    assert metrics["imagined/value_loss"][0] > 0
    assert metrics["goal/loss/prior_reconstruction"][0] > 0
    assert metrics["world/loss/planes"][0] > 0
    inferred = after.kept.parts["opponent"].ring.inferred  # [R, n, J * G]
    assert inferred.shape[1:] == (2, 2 * 3)
    np.testing.assert_allclose(inferred.reshape(-1, 2, 3).sum(axis=-1)[: 2 * REAL], 1)
