"""`python -m benchmarks.peers`: rates in turns, JaxMARL's file run as it is on our game, and a
sentence where something is missing."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import main
from benchmarks.ippo import Categorical, as_environment, ippo, load_ippo, without_dispensable
from benchmarks.peers import Peers, bytes_of, compare, host_peak, measure_rates, own_program
from hopplus.config import NetConfig, PPOConfig, StagHuntConfig
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.models.nets import ActorCritic

GAME = make_game(StagHuntConfig(size=2, seats=2, hares=1, horizon=5))
# What the file of JaxMARL has: imports that may be missing, a network, and a function that trains.
IPPO = """
import distrax
import flax.linen as nn
import hydra
import jax
import jax.numpy as jnp
import jaxmarl
import matplotlib.pyplot as plt
import wandb
from omegaconf import OmegaConf


class ActorCritic(nn.Module):
    action_dim: int
    activation: str = "tanh"

    @nn.compact
    def __call__(self, x):
        return distrax.Categorical(logits=nn.Dense(self.action_dim)(x)), nn.Dense(1)(x)[..., 0]


def make_train(config):
    env = jaxmarl.make(config["ENV_NAME"], **config["ENV_KWARGS"])

    def train(key):
        network = ActorCritic(env.action_space(env.agents[0]).n, activation=config["ACTIVATION"])
        keys = jax.random.split(key, config["NUM_ENVS"])
        obs, state = jax.vmap(env.reset)(keys)
        params = network.init(key, jnp.zeros(env.observation_space(env.agents[0]).shape))
        total = jnp.zeros(())
        for _ in range(config["TOTAL_TIMESTEPS"] // config["NUM_ENVS"]):
            acts = {}
            for agent in env.agents:
                pi, _ = network.apply(params, obs[agent])
                acts[agent] = pi.sample(seed=key)[:, None]
            obs, state, reward, done, _ = jax.vmap(env.step)(keys, state, acts)
            total += reward[env.agents[0]].sum()
        jax.experimental.io_callback(wandb.log, None, total)
        return params

    return train


@hydra.main(version_base=None, config_path="config")
def main(config):
    plt.plot(OmegaConf.to_container(config))
"""


def test_rates_are_measured_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    now, played = [0.0], []
    monkeypatch.setattr("benchmarks.peers.time.perf_counter", lambda: now[0])

    def program(name: str, seconds: float) -> Any:
        def play() -> np.ndarray:
            played.append(name)
            now[0] += seconds
            return np.zeros(1)

        return play

    rates = measure_rates({"a": program("a", 0.5), "b": program("b", 0.25)}, 100, 2)
    assert played == ["a", "b"] * 3  # the first is compilation
    assert rates["a"].tolist() == [200, 200]
    assert rates["b"].tolist() == [400, 400]


def test_our_game_plays_on() -> None:
    play = own_program(3, 4, 0)
    assert np.isfinite(play())
    assert np.isfinite(play())


def test_it_says_that_jaxmarl_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jaxmarl", None)
    assert main(Peers, []) == 2
    assert "jaxmarl is not installed" in capsys.readouterr().err


def test_what_is_installed_is_not_stood_in_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a part that it does not have: matplotlib asks six for one, and lives without it."""
    (tmp_path / "six").mkdir()
    (tmp_path / "six" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "six", raising=False)
    monkeypatch.setattr("benchmarks.ippo.DISPENSABLE", ("six", "nowhere"))
    with without_dispensable():
        assert import_module("six").__path__ == [str(tmp_path / "six")]
        with pytest.raises(ImportError):
            import_module("six.moves")
        assert import_module("nowhere.anything").whatever is not None


@pytest.fixture(scope="module")
def ippo_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("jaxmarl")
    file = tmp_path_factory.mktemp("baselines") / "ippo.py"
    file.write_text(IPPO)
    return file


def test_its_file_runs_on_our_game_with_both_networks(ippo_file: Path) -> None:
    """The one like ours has as many weights as ours."""
    module = load_ippo(ippo_file)
    config, net = PPOConfig(games=4, unroll=2, minibatches=1), NetConfig(hidden=8)

    def weights(net: NetConfig | None) -> list[tuple[int, ...]]:
        params = jax.jit(ippo(module, GAME, config, 1, net))(jax.random.key(0))
        return sorted(leaf.shape for leaf in jax.tree.leaves(params))

    ours = ActorCritic(GAME.shape, len(GAME.action_names), net, jax.random.key(0))
    assert weights(net) == sorted(leaf.shape for leaf in jax.tree.leaves(ours))
    size = int(np.prod(GAME.shape)) + 1
    assert weights(None) == [(1,), (7,), (size, 1), (size, 7)]
    assert module.ActorCritic.__name__ == "ActorCritic"  # as it was
    assert "hydra" not in sys.modules or hasattr(sys.modules["hydra"], "__version__")


def test_its_environment_is_our_game(ippo_file: Path) -> None:
    load_ippo(ippo_file)
    env, key = as_environment(GAME), jax.random.key(3)
    state = GAME.init(key)
    obs, begun = env.reset(key)
    seen = views(GAME, state)
    for seat, name in enumerate(env.agents):
        np.testing.assert_array_equal(obs[name][:-1], np.asarray(seen.planes[seat]).ravel())
        assert obs[name][-1] == seen.time[seat]
    joint = jnp.array([1, 0])
    after, outcome = GAME.step(state, joint, key)
    acts = {name: joint[seat, None] for seat, name in enumerate(env.agents)}
    _, there, reward, done, _ = env.step_env(key, begun, acts)
    np.testing.assert_array_equal(there.seats, after.seats)
    np.testing.assert_array_equal([reward[name] for name in env.agents], outcome.reward)
    assert bool(done["__all__"]) == bool(outcome.done)


def test_numbers_of_a_distribution() -> None:
    drawn = Categorical(jnp.log(jnp.array([[0.5, 0.25, 0.25]])))
    np.testing.assert_allclose(drawn.entropy(), [1.5 * np.log(2)], rtol=1e-6)
    np.testing.assert_allclose(drawn.log_prob(jnp.array([1])), [np.log(0.25)], rtol=1e-6)
    assert set(np.asarray(Categorical(jnp.zeros((99, 3))).sample(seed=jax.random.key(0)))) == {
        0,
        1,
        2,
    }


def test_ratios_are_of_rounds_and_memory_is_told() -> None:
    rates = {"a": np.array([1.0, 10.0, 100.0]), "b": np.array([2.0, 20.0, 100.0])}
    found = compare("a", 7, rates, {"b": 3})
    assert (found.rates["b"], found.ratios["b"], found.memory) == (20.0, 2.0, {"b": 3})
    compiled = jax.jit(lambda x: x + 1.0).lower(jnp.zeros(1000)).compile()
    assert (bytes_of(compiled) or 0) >= 8000
    assert host_peak() > 10 * 2**20


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ippo", "nowhere.py"], "--ippo is nowhere.py, which is no file"),
        (["--updates-per-dispatch", "0"], "updates-per-dispatch"),
        (["--games", "8", "0"], "games"),
        (["--devices", "2"], "--devices is 2 but must be 1 without --ippo"),
    ],
)
def test_wrong_options(options: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(Peers, options) == 2
    assert said in capsys.readouterr().err
