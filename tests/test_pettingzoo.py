"""The adapter against PettingZoo's own tests, and its promises."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from hopplus.config import ConfigError, StagHuntConfig
from hopplus.games.game import views
from hopplus.games.pettingzoo import HopplusEnv, parallel_env
from hopplus.games.stag_hunt import StagHunt

STAG_AND_HARE = """
01S .  .  .
.   .  .  .
.   2h .  .
.   .  .  3
"""


@pytest.mark.parametrize("make", [parallel_env, lambda: parallel_env(size=6, seats=3, grace=2)])
def test_pettingzoo_accepts_it(make: Callable[[], HopplusEnv]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # PettingZoo warns of what it dislikes
        parallel_api_test(make(), num_cycles=200)
        parallel_seed_test(make, num_cycles=100)


def test_catches_terminate_and_drop_out() -> None:
    env = parallel_env()
    env.reset(options={"layout": STAG_AND_HARE})
    hunt = {"player_0": 5, "player_1": 5, "player_2": 6, "player_3": 0}
    seen, rewards, ended, cut, info = env.step(hunt)
    assert rewards == {"player_0": 5.0, "player_1": 5.0, "player_2": 1.0, "player_3": 0.0}
    assert [ended[n] for n in env.possible_agents] == [True, True, True, True]  # no prey is left
    assert not any(cut.values())
    assert env.agents == []

    env.reset(options={"layout": STAG_AND_HARE})
    seen, rewards, ended, cut, info = env.step(hunt | {"player_2": 4})
    assert env.agents == ["player_2", "player_3"]
    assert rewards["player_2"] == 0.0
    seen, rewards, ended, cut, info = env.step({"player_2": 5, "player_3": 4})
    assert set(seen) == set(rewards) == set(info) == {"player_2", "player_3"}
    assert info["player_2"]["illegal"]
    assert not info["player_3"]["illegal"]


def test_horizon_terminates() -> None:
    env = parallel_env(horizon=3)
    env.reset(seed=1)
    for step in range(3):
        assert env.agents
        seen, _, ended, cut, _ = env.step(dict.fromkeys(env.agents, 4))
        assert seen["player_0"]["time"] == np.float32((step + 1) / 3)
    assert all(ended.values())
    assert not any(cut.values())
    assert env.agents == []


def test_observations_are_the_views() -> None:
    """At the start and after steps, also after someone has left."""
    env = parallel_env(sight=1)
    game = StagHunt(StagHuntConfig(sight=1))
    observations, _ = env.reset(options={"layout": STAG_AND_HARE})
    for joint in ([0, 4, 6, 2], [1, 5, 4, 0], [1, 3, 4, 2]):
        seen = views(game, env._state)
        for name in env.agents:
            seat, got = int(name[-1]), observations[name]
            assert env.observation_space(name).contains(got)
            np.testing.assert_array_equal(got["observation"], seen.planes[seat])
            np.testing.assert_array_equal(got["action_mask"], seen.legal[seat])
            np.testing.assert_array_equal(got["last_actions"], seen.last_actions[seat])
            assert got["time"] == seen.time[seat]
        observations, *_ = env.step({f"player_{seat}": a for seat, a in enumerate(joint)})
    assert env.agents == ["player_0", "player_1", "player_3"]
    observations["player_0"]["observation"][:] = 7  # a program may change what it was given


def test_seeds_repeat_and_episodes_differ() -> None:
    env = parallel_env(render_mode="ansi")

    def boards(seed: int) -> list[str]:
        env.reset(seed=seed)
        first = str(env.render())
        env.reset()
        return [first, str(env.render())]

    assert boards(7) == boards(7)
    assert boards(7) != boards(8)
    assert len(set(boards(7))) == 2


def test_render() -> None:
    env = parallel_env(render_mode="rgb_array")
    env.reset(options={"layout": STAG_AND_HARE})
    before = env.render()
    env.step({"player_3": 0})
    after = env.render()
    assert isinstance(before, np.ndarray)
    assert isinstance(after, np.ndarray)
    assert before.dtype == np.uint8
    assert before.shape == after.shape
    assert (before != after).any()
    assert parallel_env().render() is None


def test_rendered_words() -> None:
    env = parallel_env(render_mode="ansi")
    with pytest.raises(ConfigError, match="call reset first"):
        env.render()
    with pytest.raises(ConfigError, match="call reset first"):
        env.step({})
    env.reset(options={"layout": STAG_AND_HARE})
    env.step({"player_2": 6, "player_3": 5})  # seat 3 hunts a stag that is not there
    words = str(env.render())
    assert "returns  0:0  1:0  2:1  3:0" in words
    assert "3  player_3  stay" in words
    env.reset(options={"layout": STAG_AND_HARE})
    assert "returns  0:0  1:0  2:0  3:0" in str(env.render())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"render_mode": "human"}, "render_mode is 'human'"),
        ({"sise": 4}, "no setting sise"),
        ({"size": "8"}, "game.size is '8' but must be a whole number"),
        ({"size": 2}, "2x2 has 4 cells"),
    ],
)
def test_wrong_settings(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parallel_env(**settings)  # type: ignore[arg-type]


def test_wrong_layout_and_names() -> None:
    env = parallel_env()
    with pytest.raises(ConfigError, match="has 1 rows"):
        env.reset(options={"layout": "0 S"})
    env.reset(seed=0)
    with pytest.raises(ConfigError, match="player_9"):
        env.step({"player_9": 4})
