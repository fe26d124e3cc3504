"""Traits of the others: worked by hand, held against exact integration, and learned in play."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import ConfigError, SearchConfig, TrainConfig, TraitsConfig
from hopplus.evaluation.trials import make_trials
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.learning.from_run import make_learner, run_players
from hopplus.play.introspection import actor_of, predict_others
from hopplus.play.rollout import rollout, start
from hopplus.players.context.registry import make_context
from hopplus.players.context.traits import TraitsContext, TraitsMemory
from hopplus.runs.folder import open_run
from hopplus.types import View
from tiny_hop_plus import GAME, IMAGINE, OPPONENT, PPO, TINY, WORLD, jit
from tiny_search import GAME_MADE

RIGHT, STAY = 3, 4
CONTEXT = TraitsContext(GAME, TraitsConfig(size=2, drift=0.0))
OTHERS = GAME.seats - 1
CONFIG = TrainConfig(
    game=GAME,
    net=TINY,
    ppo=PPO,
    parts=("opponent", "traits"),
    opponent=OPPONENT,
    world=WORLD,
    imagine=IMAGINE,
    traits=TraitsConfig(size=2),
    seats="learn,stag|hare,stag|hare",
    trial=5,
)


class Loadings(eqx.Module):
    """In the place of opponent models: log-odds that are linear in the traits."""

    weight: jax.Array  # [N - 1, D, A]


# The first trait makes an other go right rather than stay; the second means nothing.
WEIGHT = jnp.zeros((OTHERS, 2, 7)).at[:, 0, RIGHT].set(1.0)


@pytest.fixture
def linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models of the others that read nothing but traits."""

    def logits(models: Loadings, view: View, legal: jax.Array, goals: jax.Array) -> jax.Array:
        scores = jnp.einsum("jd,jda->ja", goals, models.weight)
        return jax.nn.log_softmax(jnp.where(legal[1:], scores, -jnp.inf))

    monkeypatch.setattr("hopplus.players.context.traits.others_logits", logits)


def board() -> Any:
    """Nobody can hunt, and the first other is in the middle."""
    return GAME_MADE.parse(". 0 S\n. 1 h\nh 2 .")


def watch(context: TraitsContext, memory: TraitsMemory, acts: list[int]) -> TraitsMemory:
    """What is remembered after the first other was seen to do these, one after the other, each time
    on the same board; the second is seen to do nothing."""
    view = GAME_MADE.view(board(), 0)
    models: Any = Loadings(WEIGHT)
    memory, _ = context.infer(models, memory, view)
    for act in acts:
        last = jnp.array([STAY, act] + [-1] * (OTHERS - 1))
        memory, _ = context.infer(models, memory, replace(view, last_actions=last))
    return memory


@pytest.mark.usefixtures("linear")
def test_an_act_is_worked_by_hand() -> None:
    """Of A legal actions all are as likely: going right has the slope 1 - 1 / A."""
    legal = GAME_MADE.view(board(), 1).legal
    count = int(legal.sum())
    assert legal[RIGHT]
    assert legal[STAY]
    memory = watch(CONTEXT, CONTEXT.start(), [RIGHT])
    slope = 1 - 1 / count
    np.testing.assert_allclose(memory.mean[0], [slope / (1 + slope**2), 0.0], rtol=1e-5)
    told = slope**2 / count + (count - 1) / count**3  # the other actions' slopes are -1 / A
    np.testing.assert_allclose(memory.variance[0], [1 / (1 + told), 1.0], rtol=1e-5)
    away = watch(CONTEXT, CONTEXT.start(), [STAY])
    step = -1 / count
    np.testing.assert_allclose(away.mean[0], [step / (1 + step**2), 0.0], rtol=1e-5)


@pytest.mark.usefixtures("linear")
def test_what_nobody_did_tells_nothing() -> None:
    memory = watch(CONTEXT, CONTEXT.start(), [RIGHT, RIGHT])
    np.testing.assert_array_equal(memory.mean[1:], 0.0)
    np.testing.assert_array_equal(memory.variance[1:], 1.0)


@pytest.mark.usefixtures("linear")
@pytest.mark.parametrize("rights", [2, 10, 18])
def test_it_comes_close_to_exact_integration(rights: int) -> None:
    """Twenty acts of one other, some of them to the right."""
    acts = [RIGHT if (n * rights) % 20 < rights else STAY for n in range(20)]
    assert acts.count(RIGHT) == rights
    memory = watch(CONTEXT, CONTEXT.start(), acts)
    others = int(GAME_MADE.view(board(), 1).legal.sum()) - 1
    grid = np.linspace(-6, 6, 4001)
    log = -(grid**2) / 2 + rights * grid - 20 * np.log(np.exp(grid) + others)
    weight = np.exp(log - log.max())
    weight /= weight.sum()
    mean = (weight * grid).sum()
    deviation = np.sqrt((weight * (grid - mean) ** 2).sum())
    assert abs(memory.mean[0, 0] - mean) < 0.5 * deviation
    np.testing.assert_allclose(np.sqrt(memory.variance[0, 0]), deviation, rtol=0.25)


@pytest.mark.usefixtures("linear")
def test_a_stranger_is_never_decided_by_one_act() -> None:
    """However steep the models are, an act moves the traits by half of their spread at most."""
    view, models = GAME_MADE.view(board(), 0), Loadings(1000 * WEIGHT)
    memory, _ = CONTEXT.infer(models, CONTEXT.start(), view)  # type: ignore[arg-type]
    last = replace(view, last_actions=jnp.array([STAY, RIGHT] + [-1] * (OTHERS - 1)))
    memory, told = CONTEXT.infer(models, memory, last)  # type: ignore[arg-type]
    assert 0 < abs(memory.mean[0, 0]) <= 0.5
    assert np.isfinite(told).all()
    assert np.isfinite(memory.slopes).all()


@pytest.mark.usefixtures("linear")
def test_what_is_known_lasts_and_fades() -> None:
    """From episode to episode of a trial, but nothing is expected before a view; and what is told
    of somebody who has drifted is less."""
    memory = watch(CONTEXT, CONTEXT.start(), [RIGHT] * 5)
    view = GAME_MADE.view(board(), 0)
    assert memory.mean[0, 0] > 0.5
    after = CONTEXT.carry(memory, view)
    np.testing.assert_array_equal(after.mean, memory.mean)
    np.testing.assert_array_equal(after.slopes, 0.0)
    seen = replace(view, last_actions=jnp.full(GAME.seats, RIGHT))
    same, _ = CONTEXT.infer(Loadings(WEIGHT), after, seen)  # type: ignore[arg-type]
    np.testing.assert_array_equal(same.mean, memory.mean)
    within = TraitsContext(GAME, TraitsConfig(size=2, drift=0.0, across=False))
    np.testing.assert_array_equal(within.carry(memory, view).mean, 0.0)
    assert CONTEXT.carries
    assert not within.carries
    drifting = TraitsContext(GAME, TraitsConfig(size=2, drift=0.2))
    lost = watch(drifting, drifting.start(), [RIGHT] * 5)
    assert lost.variance[0, 0] > memory.variance[0, 0]
    np.testing.assert_allclose(lost.variance[0, 1], 1.0, rtol=1e-6)  # as wide as at first, not more


@pytest.mark.usefixtures("linear")
def test_wider_traits_are_told_by_their_own_measure() -> None:
    wide = TraitsContext(GAME, TraitsConfig(size=2, drift=0.0, spread=3.0))
    memory, told = wide.infer(
        Loadings(WEIGHT),  # type: ignore[arg-type]
        wide.start(),
        GAME_MADE.view(board(), 0),
    )
    assert told.shape == (wide.size,)
    np.testing.assert_allclose(told.reshape(OTHERS, 4), [[0, 0, 1, 1]] * OTHERS)
    memory = watch(wide, wide.start(), [RIGHT] * 5)
    context = jnp.concatenate([memory.mean / 3, memory.variance / 9], axis=1).reshape(-1)
    np.testing.assert_allclose(wide.about_others(context), memory.mean, rtol=1e-6)
    narrow = watch(CONTEXT, CONTEXT.start(), [RIGHT] * 5)
    assert memory.mean[0, 0] > narrow.mean[0, 0]


def test_models_are_told_one_thing() -> None:
    for parts in (("opponent", "goal", "traits"), ("opponent", "belief", "traits")):
        with pytest.raises(ConfigError, match="only one"):
            replace(CONFIG, parts=parts)
    with pytest.raises(ConfigError, match="needs opponent"):
        replace(CONFIG, parts=("traits",))
    assert make_context(GAME_MADE, CONFIG) == replace(CONTEXT, config=CONFIG.traits)


def test_with_imagination_search_and_limited_sight() -> None:
    """Nothing of these asks which context there is."""
    parts = ("opponent", "traits", "world", "imagination")
    seeing = replace(GAME, sight=1)
    for config in (
        replace(CONFIG, parts=parts),
        replace(CONFIG, search=SearchConfig(simulations=2, trees=1)),
        replace(CONFIG, context="traits+episodes"),
        replace(CONFIG, game=seeing),
    ):
        made = make_learner(config, {})
        shapes = jax.eval_shape(made.init, jax.random.key(0))
        assert shapes.params[0].opponents.body.dense.layers[0].weight.shape[-2] >= 9 + 1 + 21 + 2
        jax.eval_shape(made.update, shapes)


@pytest.mark.usefixtures("shared_programs")
def test_models_learn_what_traits_mean(tmp_path: Path) -> None:
    """After a run among hunters of stags and of hares, what was seen in an episode tells in the
    next who is which: with other traits than its own, an other is foreseen worse."""
    words = "--game.size 3 --game.seats 3 --game.hares 2 --game.horizon 8 --net.hidden 8"
    words += " --opponent.net.hidden 32 --ppo.games 64 --ppo.epochs 1 --traits.size 2 --trial 3"
    words += " --seats learn,stag|hare,stag|hare --opponent.fits 16 --steps 120000"
    command = ["train", "ppo", "--parts", "opponent", "traits", *words.split()]
    assert main([*command, "--runs", str(tmp_path), "--name", "a"]) == 0
    player = run_players(open_run(tmp_path / "a"))[0]
    game = make_game(replace(GAME, horizon=8))
    lineups = [(a, b) for a in ("stag", "hare") for b in ("stag", "hare")]
    table, params = make_trials(game, player, lineups, {}, 0, SearchConfig())
    own = jax.tree.map(lambda leaf: leaf[0], params[table.group])
    actor = actor_of(table.focal)
    assert actor is not None

    def told(now: Any, traits: jax.Array) -> jax.Array:
        """[N - 1] nats by which each act of the others surprises; 0 where there was no choice."""
        seen = views(game, now.state)
        view = jax.tree.map(lambda leaf: leaf[0], seen)
        chances = predict_others(actor, own, view, seen.legal, traits)
        chosen = jnp.take_along_axis(chances, now.act.action[1:, None], axis=1)[:, 0]
        return jnp.where(now.present[1:], -jnp.log(chosen), 0.0)

    def measured(keys: jax.Array, choices: jax.Array) -> Any:
        plays = jax.vmap(lambda key, one: start(game, table.seating, key, one))(keys, choices)
        steps = rollout(game, table.seating, params, plays, 3 * game.horizon)[1]
        traits = steps.act.inferred[:, :, 0]
        another = traits[:, ::-1]  # of a game in which all others are another
        later = (steps.episode > 0) & steps.present[..., 0]
        nats = [jax.vmap(jax.vmap(told))(steps, one) for one in (traits, 0 * traits, another)]
        return [jnp.where(later[..., None], one, 0.0).sum() for one in nats]

    chosen = [table.choices(lineup) for lineup in lineups]
    choices = jnp.repeat(jnp.array(chosen), 64, axis=0)
    known, nothing, another = jit(measured)(jax.random.split(jax.random.key(3), 256), choices)
    assert known < 0.85 * nothing
    assert known < 0.5 * another
