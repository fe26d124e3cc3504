"""Somebody else's game: agents that are alike are called so, and others are not."""

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Discrete, Space
from pettingzoo.utils.env import AECEnv, ParallelEnv

from hopplus.cli import main
from hopplus.cli.diagnose import seats as diagnose_seats
from hopplus.config import ConfigError
from hopplus.diagnosis.seats import foreign
from hopplus.diagnosis.seats.foreign import diagnose_foreign, make_environment, play_in_turn

AGENTS = ["ann", "bob", "cid"]
MODULE = "somebody_elses_games"


class Turns(AECEnv):  # type: ignore[misc]
    """Agents act one after the other, twice each; action 1 brings a reward of 1, and one of 10 to
    whoever is favoured. Action 2 is illegal."""

    metadata = {"name": "turns"}  # noqa: RUF012

    def __init__(self, favoured: str = "", masked: bool = True, cut: bool = False) -> None:
        super().__init__()
        self.possible_agents = list(AGENTS)
        self.favoured, self.masked, self.cut = favoured, masked, cut
        self.illegal = 0

    def action_space(self, agent: str) -> Space[Any]:
        return Discrete(3 if self.masked else 2)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in AGENTS}
        self.turn = 0
        self.agent_selection = AGENTS[0]

    def observe(self, agent: str) -> Any:
        seen = {"observation": np.zeros(1)}
        return seen | {"action_mask": np.array([1, 1, 0], np.int8)} if self.masked else seen

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        self.illegal += action == 2
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self.rewards[agent] = float(action == 1) * (10.0 if agent == self.favoured else 1.0)
        self.turn += 1
        if self.turn == 2 * len(AGENTS):
            self.terminations = dict.fromkeys(AGENTS, not self.cut)
            self.truncations = dict.fromkeys(AGENTS, self.cut)
        self.agent_selection = AGENTS[self.turn % len(AGENTS)]
        self._accumulate_rewards()


class Together(ParallelEnv[str, Any, int]):  # type: ignore[misc]
    """Agents act all at once, three times; `fixed` has each gain the same in every episode."""

    metadata = {"name": "together"}  # noqa: RUF012

    def __init__(self, fixed: bool = False, endless: bool = False, barren: bool = False) -> None:
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.fixed, self.endless, self.barren = fixed, endless, barren

    def action_space(self, agent: str) -> Space[Any]:
        return Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.left = list(AGENTS), 3
        return dict.fromkeys(AGENTS, 0), {}

    def step(self, actions: dict[str, int]) -> Any:
        self.left -= 1
        rewards = {agent: float(act) for agent, act in actions.items()}
        if self.fixed:
            rewards = {agent: float(place) for place, agent in enumerate(AGENTS)}
        if self.barren:
            rewards = dict.fromkeys(AGENTS, 0.0)
        if not self.left and not self.endless:
            self.agents = []
        none = dict.fromkeys(AGENTS, False)
        return dict.fromkeys(AGENTS, 0), rewards, none, none, {}


@pytest.fixture(autouse=True)
def _somebodys_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(MODULE)
    environments = {
        "fair": Turns,
        "unfair": lambda: Turns("bob"),
        "maskless": lambda: Turns(masked=False),
        "cut": lambda: Turns(cut=True),
        "together": Together,
        "fixed": lambda: Together(fixed=True),
        "barren": lambda: Together(barren=True),
        "endless": lambda: Together(endless=True),
        "nothing": object,
    }
    for name, make in environments.items():
        setattr(module, name, make)
    monkeypatch.setitem(sys.modules, MODULE, module)


def verdict(name: str, episodes: int = 1000) -> Any:
    return diagnose_foreign(f"{MODULE}:{name}", episodes, 0, lambda count, note: None)


@pytest.mark.parametrize("name", ["fair", "maskless", "cut", "together"])
def test_agents_that_are_alike(name: str) -> None:
    found = verdict(name)
    assert found.verdict.healthy
    assert found.returns.samples.shape == (1000, 3)
    # Everything that was gained is counted: each action brings one half, on average.
    expected = 1.5 if name == "together" else 1.0
    np.testing.assert_allclose(found.returns.samples.mean(axis=0), expected, atol=0.2)
    assert set(np.unique(found.returns.samples)) <= {0.0, 1.0, 2.0, 3.0}


def test_an_agent_that_is_favoured() -> None:
    found = verdict("unfair")
    assert found.verdict.name == "unequal-game"
    assert "bob: 10." in found.verdict.evidence or "bob: 9." in found.verdict.evidence
    assert found.returns.p_value < 1e-6
    assert verdict("fixed").verdict.name == "unequal-game"


def test_masks_are_kept_to() -> None:
    environment = Turns()
    gained = [
        sum(rewards.values()) for seed in range(30) for rewards in play_in_turn(environment, seed)
    ]
    assert environment.illegal == 0
    assert sum(gained) > 0


def test_play_depends_on_the_seed_alone() -> None:
    def returns(seed: int) -> np.ndarray:
        name = f"{MODULE}:together"
        return diagnose_foreign(name, 20, seed, lambda count, note: None).returns.samples

    np.testing.assert_array_equal(returns(5), returns(5))
    assert (returns(5) != returns(50)).any()


def test_few_episodes_and_progress() -> None:
    told: list[int] = []
    found = diagnose_foreign(f"{MODULE}:fair", 9, 0, lambda count, note: told.append(count))
    assert told == [1] * 9
    assert len(found.returns.samples) == 9


def test_too_few_episodes_tell_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "seats", f"{MODULE}:unfair", "--episodes", "1"]) == 2
    assert "too few to compare 3 seats: more --episodes" in capsys.readouterr().err


# Quickly.


class Clock:
    """A clock for games of any speed: every look at it takes so many seconds."""

    def __init__(self, each: float) -> None:
        self.now, self.each = 0.0, each

    def __call__(self) -> float:
        self.now += self.each
        return self.now


def quick(name: str, each: float, seconds: float | None = 60.0) -> Any:
    def nothing(count: int, note: str) -> None: ...

    game = f"{MODULE}:{name}"
    return diagnose_foreign(game, 2000, 0, nothing, seconds=seconds, clock=Clock(each))


def test_a_slow_game_is_played_for_so_long_only() -> None:
    """Three steps of a second to an episode: in a minute there are 20 whole ones."""
    found = quick("together", 1.0)
    assert found.returns.samples.shape == (20, 3)
    assert found.verdict.name == "not-known"
    assert "20 episodes in 60 s" in found.verdict.evidence
    assert "--episodes" in found.verdict.advice
    whole = verdict("together", 2000).returns.samples
    np.testing.assert_array_equal(found.returns.samples, whole[:20])
    assert quick("fixed", 1.0).verdict.name == "unequal-game"  # as many can tell that


@pytest.mark.parametrize("name", ["together", "fair"])
@pytest.mark.parametrize("each", [10.0, 100.0])
def test_a_game_so_slow_that_nothing_can_be_compared(name: str, each: float) -> None:
    found = quick(name, each)
    assert found.verdict.name == "not-known"
    assert len(found.returns.samples) < 9
    assert found.as_json()["returns"]["samples"] == len(found.returns.samples)


def test_a_fast_game_is_played_to_the_end() -> None:
    assert len(quick("together", 0.001).returns.samples) == 2000
    assert quick("together", 0.001).verdict.healthy
    assert len(quick("together", 1.0, seconds=None).returns.samples) == 2000


@pytest.mark.parametrize(
    ("options", "budget"),
    [(["--quick"], 60.0), (["--quick", "--episodes", "30"], None), (["--episodes", "30"], None)],
)
def test_quick_has_a_budget_unless_episodes_are_given(
    options: list[str],
    budget: float | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given: list[Any] = []

    def noted(name: str, episodes: int, seed: int, on_progress: Any, seconds: float | None) -> Any:
        given.append((episodes, seconds))
        return diagnose_foreign(name, episodes, seed, on_progress, seconds, Clock(1.0))

    monkeypatch.setattr(diagnose_seats, "diagnose_foreign", noted)
    command = ["diagnose", "seats", f"{MODULE}:together", *options, "--out", str(tmp_path)]
    assert main(command) == 0
    assert given == [(10_000 if budget else 30, budget)]
    out = " ".join(capsys.readouterr().out.split())
    assert ("20 episodes in 60 s." if budget else "30 episodes.") in out
    assert "? The game: random legal play" in out
    assert "Verdict: not-known: " in out
    page = (tmp_path / "seats.html").read_text(encoding="utf-8")
    assert "? not known" in page
    assert "✓ fine" not in page


def test_a_game_in_which_nobody_gains_anything_tells_nothing() -> None:
    found = verdict("barren")
    assert found.verdict.name == "not-known"
    assert "Nobody gains anything" in found.verdict.advice


def test_an_episode_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "MOST_STEPS", 50)
    with pytest.raises(ConfigError, match="more than 50 steps"):
        verdict("endless", 1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module_at_all:env", "No module named 'no_such_module_at_all'"),
        (f"{MODULE}:no_such_env", "no_such_env"),
        (f"{MODULE}:Turns().reset", "cannot make the game"),
        ("hopplus.games:make_game", "cannot make the game"),  # lacks an argument
        (f"{MODULE}:nothing", "possible_agents"),
        (":env", "Empty module name"),
    ],
)
def test_what_is_no_game(name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError) as told:
        make_environment(name)
    assert words in str(told.value)
    assert main(["diagnose", "seats", name, "--episodes", "2"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1


def test_the_command_takes_a_pettingzoo_game(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Our own game, as somebody else would see it."""
    name = "hopplus.games.pettingzoo:parallel_env"
    options = ["--episodes", "12", "--out", str(tmp_path), "--json"]
    assert main(["diagnose", "seats", name, *options]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "not-known"
    assert "takes about " in told["advice"]
    assert told["returns"]["samples"] == 12
    assert len(told["returns"]["seats"]) == 4
    assert told["page"] == str(tmp_path / "seats.html")
    assert json.loads((tmp_path / "seats.json").read_text())["subject"] == name
    page = (tmp_path / "seats.html").read_text(encoding="utf-8")
    assert "player_3: " in page
    assert "data:image/svg+xml" in page


def test_the_value_loss_is_no_matter_of_a_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "value-loss", f"{MODULE}:fair"]) == 2
    assert "neither a run's folder nor a preset" in capsys.readouterr().err
