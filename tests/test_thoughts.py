"""What a planner thinks on the way: goals inferred, what the others do; and who looks ahead."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import ConfigError, PPOConfig, SearchConfig, TrainConfig
from hopplus.games.game import views
from hopplus.models.opponent import others_logits, others_views
from hopplus.planning.dynamics import Chance, draw_chance
from hopplus.planning.search import search
from hopplus.play.lineup import make_lineup
from hopplus.play.trained import Trained, read_player, write_player
from hopplus.players.mixture import Mixture
from hopplus.players.planner import Planner, with_search
from tiny_hop_plus import jit, of_seat, same
from tiny_search import GAME_MADE, actor_of, config_of, mind_of, planner_of, seen

SEEN = seen("0 . 1\n. S h\nh 2 .")
VIEW = of_seat(SEEN, 0)
SIMULATIONS = 24


@pytest.mark.parametrize("every", [0, 1, 2])
def test_goals_are_inferred_every_so_many_steps_ahead(every: int) -> None:
    """Along the path to each node of a tree, by hand: the memory of every view on it, and the goals
    of the last of those at which it was time; models of the others and its policy are told these,
    and to the policy's priors no noise is added."""
    planner = planner_of("opponent", "goal", infer_every=every, noise=1.0)
    actor, player_params = planner.actor, mind_of(planner)
    before = 0.3 * jnp.arange(4.0).repeat(2)  # of what it has seen up to now

    @jit
    def grow(key: jax.Array) -> Any:
        root, leaf = planner.root(player_params, before, VIEW)
        chance = draw_chance(key, (SIMULATIONS,), 2)
        tree = search(
            planner.recurrent_fn(player_params), root, leaf, chance, planner.config.within(12)
        ).tree
        shown = jax.vmap(lambda embedding: views(GAME_MADE, embedding))(tree.nodes.embedding)
        return tree, jax.tree.map(lambda leaf: leaf[:, 0], shown), shown.legal

    @jit
    def infer(memory: jax.Array, view: Any) -> Any:
        return actor.infer(player_params, memory, view)

    @jit
    def told(view: Any, legal: jax.Array, inferred: jax.Array) -> Any:
        goals = actor.context.about_others(inferred)
        others = jnp.exp(others_logits(player_params.opponents, view, legal, goals))
        policy, value = player_params.policy(view, inferred)
        return goals, others, jnp.exp(policy), value

    tree, shown, legal = jax.device_get(grow(jax.random.key(2)))
    nodes = tree.nodes
    alive = np.unique([0, *tree.child[tree.child < len(tree.value)]])
    assert (nodes.depth[alive] == tree.depth[alive]).all()
    assert tree.depth[alive].max() >= 3
    for node in alive:
        path = [0, *(int(tree.child[edge]) for edge in tree.path[node][: tree.depth[node]])]
        memory, inferred = infer(before, VIEW)
        for depth, passed in enumerate(path[1:], 1) if every else ():
            memory, fresh = infer(memory, jax.tree.map(lambda leaf: leaf[passed], shown))  # noqa: B023
            inferred = fresh if depth % every == 0 else inferred
        view = jax.tree.map(lambda leaf: leaf[node], shown)  # noqa: B023
        expected = memory, inferred, *told(view, legal[node], inferred)
        thought = jax.tree.map(lambda leaf: leaf[node], nodes)  # noqa: B023
        found = thought.memory, thought.inferred, thought.goals, thought.others
        for one, two in zip((*found, tree.prior[node], tree.value[node]), expected, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
    moved = np.ptp(nodes.inferred[alive], axis=0).max()
    assert (moved > 1e-3) == bool(every)


def test_a_step_ahead_is_one_of_the_game() -> None:
    """For every action: what the others do by the chance that is given, and what comes of it."""
    planner = planner_of("opponent", simulations=1)
    player_params = mind_of(planner)
    layouts = ("0h . 1h\n. . .\n2 . S", "01S . 2h\n. . h\n. . .")
    cases = [(layout, steps) for layout in layouts for steps in (0, 11)]  # the first, and the last
    states = [replace(GAME_MADE.parse(layout), steps=jnp.int32(at)) for layout, at in cases]
    chance = jnp.array([0.6, 0.9])

    @jit
    def both(state: Any, action: jax.Array) -> Any:
        root, _ = planner.root(player_params, (), GAME_MADE.view(state, 0))
        reached = planner.recurrent_fn(player_params)(
            root, action, Chance(chance, jax.random.key(0))
        )
        others = (jnp.cumsum(root.others, axis=1) <= chance[:, None]).sum(axis=1)
        after, outcome = GAME_MADE.step(state, jnp.append(action, others), jax.random.key(0))
        shown = views(GAME_MADE, reached.node.embedding), views(GAME_MADE, after)
        return reached, shown, outcome, player_params.policy(of_seat(shown[1], 0), jnp.zeros(0))

    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    over_actions = jax.vmap(both, in_axes=(None, 0))
    found = jax.vmap(over_actions, in_axes=(0, None))(stacked, jnp.arange(7))
    reached, shown, outcome, (policy, value) = jax.device_get(found)
    jax.tree.map(np.testing.assert_array_equal, *shown)
    np.testing.assert_array_equal(reached.reward, outcome.reward[..., 0])
    np.testing.assert_array_equal(reached.ended, outcome.done | outcome.left[..., 0])
    np.testing.assert_allclose(reached.leaf.prior, policy, rtol=1e-4)
    np.testing.assert_allclose(reached.leaf.value, value, rtol=1e-4, atol=1e-6)
    assert (reached.node.depth == 1).all()
    assert 0 < reached.ended[::2].mean() < 1
    assert reached.ended[1::2].all()
    assert (outcome.reward[..., 0] != outcome.reward[..., 1]).any()


def test_each_tree_supposes_goals_drawn_from_the_belief() -> None:
    """As often as is believed, one for each other; models of them are told these."""
    planner = planner_of("opponent", "belief", simulations=1)
    player_params = mind_of(planner)
    chances = jnp.array([[0.9, 0.1], [0.3, 0.7]])
    kept = planner.start()
    memory = replace(kept, belief=jnp.log(chances))

    @jit
    def suppose(keys: jax.Array) -> Any:
        root, _ = planner.root(player_params, memory, VIEW)
        return root, jax.vmap(lambda key: planner.supposing(player_params, root, key))(keys)

    root, supposed = jax.device_get(suppose(jax.random.split(jax.random.key(0), 1000)))
    np.testing.assert_allclose(root.inferred, chances.reshape(-1), rtol=1e-5)
    np.testing.assert_array_equal(np.sort(supposed.goals, axis=2), np.tile([0, 1], (1000, 2, 1)))
    np.testing.assert_allclose(supposed.goals.mean(axis=0), chances, atol=0.05)
    told = jax.vmap(lambda goals: others_logits(player_params.opponents, VIEW, SEEN.legal, goals))
    np.testing.assert_allclose(
        supposed.others[:20], jnp.exp(jit(told)(supposed.goals[:20])), rtol=1e-4, atol=1e-6
    )
    assert len(np.unique(supposed.others.round(4), axis=0)) == 4
    # Its own policy is told the belief itself, which no draw changes.
    np.testing.assert_array_equal(supposed.inferred, np.tile(root.inferred, (1000, 1)))


def test_without_models_the_others_are_taken_to_act_as_oneself() -> None:
    planner = planner_of(simulations=1)
    player_params = mind_of(planner)
    root, leaf = jit(lambda: planner.root(player_params, (), VIEW))()
    theirs = others_views(VIEW, SEEN.legal)
    for embedding in range(2):
        view = jax.tree.map(lambda leaf: leaf[embedding], theirs)  # noqa: B023
        policy, _ = player_params.policy(view, jnp.zeros(0))
        np.testing.assert_allclose(root.others[embedding], jnp.exp(policy), rtol=1e-4, atol=1e-6)
    assert not np.allclose(root.others[0], root.others[1])
    policy, value = player_params.policy(VIEW, jnp.zeros(0))
    np.testing.assert_allclose(leaf.prior, policy, rtol=1e-4)
    np.testing.assert_allclose(leaf.value, value, rtol=1e-4)


# Who looks ahead

LEARNED_BY = SearchConfig(simulations=7, kind="tree", trees=2, noise=0.25, temperature=1.0)


def test_a_search_of_no_simulations_is_none() -> None:
    actor = actor_of("opponent", "belief")
    for simulations in (0, None):
        assert (
            with_search(actor, GAME_MADE, SearchConfig(simulations=simulations), TrainConfig())
            is actor
        )
    searching = with_search(actor, GAME_MADE, LEARNED_BY, TrainConfig())
    assert searching == Planner(actor, GAME_MADE, LEARNED_BY)
    assert (searching.name, searching.carries) == (actor.name, actor.carries)
    assert same(searching.start(), actor.start())


@pytest.mark.parametrize(
    ("parts", "settings", "words"),
    [
        (("opponent",), {"world": "learned"}, "search.world is 'learned' but tiny has learned no"),
        (("opponent", "belief"), {"infer_every": 1}, "search.infer-every is 1 but must be 0 with"),
        (("opponent",), {"infer_every": 2}, "search.infer-every is 2 but tiny infers nothing"),
    ],
)
def test_what_a_player_lacks_is_said(parts: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as error:
        with_search(actor_of(*parts), GAME_MADE, replace(LEARNED_BY, **settings), TrainConfig())
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    able = actor_of("opponent", "goal", "world")
    asked = replace(LEARNED_BY, **settings)
    assert isinstance(with_search(able, GAME_MADE, asked, TrainConfig()), Planner)


def seated(trained: Trained, search: SearchConfig | None) -> Any:
    """Who sits at the board where a trained player is named, alone and in a mixture."""
    lineup = make_lineup(["one", "hare", "one|stag"], GAME_MADE, {"one": trained}, search=search)
    first, _, mixture = lineup.seating.players
    assert isinstance(mixture, Mixture)
    assert mixture.players[0] == first
    assert first.name == "one"
    return first


def test_players_look_ahead_as_they_have_learned_to_unless_told_otherwise() -> None:
    """And without the noise that is there to explore. A reward later is worth to the search what it
    is to the values that it has learned."""
    actor = actor_of("opponent")
    own = replace(actor, name="one")
    trained = Trained(actor, mind_of(actor), LEARNED_BY.valuing(0.9))
    assert trained.search.discount == 0.9
    for asked in (None, SearchConfig()):
        found = seated(trained, asked)
        assert found == Planner(own, GAME_MADE, replace(LEARNED_BY, noise=0.0, discount=0.9))
    assert seated(trained, SearchConfig(simulations=0)) == own
    other = SearchConfig(simulations=3, outcomes=2)
    assert seated(trained, other) == Planner(own, GAME_MADE, replace(other, discount=0.9))
    told = replace(other, discount=0.5)
    assert seated(trained, told) == Planner(own, GAME_MADE, told)
    by_ppo = Trained(actor, trained.params)
    assert seated(by_ppo, None) == own
    assert seated(by_ppo, other) == Planner(own, GAME_MADE, replace(other, discount=1.0))
    with pytest.raises(ConfigError, match=r"are given without --search\.simulations"):
        seated(trained, SearchConfig(trees=9))
    with pytest.raises(ConfigError, match="has learned to value more than its own rewards"):
        seated(replace(by_ppo, config=TrainConfig(ppo=PPOConfig(prosociality=0.5))), other)


@pytest.mark.parametrize("parts", [("opponent", "belief"), ("opponent", "goal"), ()], ids=str)
def test_files_of_players_keep_the_search(parts: Any, tmp_path: Path) -> None:
    actor = actor_of(*parts)
    trained = Trained(actor, mind_of(actor), LEARNED_BY, config=config_of(*parts))
    write_player(tmp_path / "one.safetensors", trained)
    back = read_player(tmp_path / "one.safetensors")
    assert back.search == LEARNED_BY
    assert back.actor == actor
    assert same(back.params, trained.params)
    assert isinstance(seated(back, None), Planner)
