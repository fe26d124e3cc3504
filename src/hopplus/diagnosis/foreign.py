"""Somebody else's game: do its agents come off alike in random play?"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from hopplus.config import ConfigError
from hopplus.diagnosis.finding import Check, verdict_of
from hopplus.diagnosis.ordering import of_episodes
from hopplus.diagnosis.seats import HEALTHY, ILLNESSES, SURE, SeatsDiagnosis

MOST_STEPS = 10_000  # of an episode, before it is given up


def diagnose_foreign(
    name: str, episodes: int, seed: int, on_progress: Callable[[int, str], None]
) -> SeatsDiagnosis:
    """Play a PettingZoo game at random and hold its agents against each other.

    Only names can be compared: boards of a foreign game cannot be turned, so if agents differ it
    may be for their names or for the places that they are dealt.
    """
    environment = made(name)
    played = [_episode(environment, seed + number, on_progress) for number in range(episodes)]
    if len({len(row) for row in played}) != 1:
        raise ConfigError(f"{name} has different agents from episode to episode")
    returns = np.array(played)
    found = of_episodes(returns)
    off = found.chance < SURE
    agents = ", ".join(
        f"{agent}: {seat}"
        for agent, seat in zip(environment.possible_agents, found.seats, strict=True)
    )
    check = Check(
        "The game: random legal play",
        f"{len(returns):,} episodes. {agents}. Agents that are alike differ as much with chance"
        f" {found.chance:.3g}.",
        "unequal-game" if off else None,
        found.as_json(),
    )
    verdict = verdict_of([check], ILLNESSES, HEALTHY)
    return SeatsDiagnosis(name, [check], verdict, found, np.zeros((0, 1, returns.shape[1])), {})


def made(name: str) -> Any:
    """The environment that `module:function` makes."""
    module, _, function = name.partition(":")
    try:
        make = getattr(importlib.import_module(module), function)
        environment = make()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"cannot make the game {name}: {error}") from error
    if not hasattr(environment, "possible_agents"):
        raise ConfigError(f"{name} makes no PettingZoo environment: it has no possible_agents")
    return environment


def _episode(environment: Any, seed: int, on_progress: Callable[[int, str], None]) -> list[float]:
    """The returns of all agents, in the order of `possible_agents`."""
    play = _in_turn if hasattr(environment, "agent_iter") else _at_once
    total = dict.fromkeys(environment.possible_agents, 0.0)
    play(environment, seed, total)
    on_progress(1, "")
    return list(total.values())


def _at_once(environment: Any, seed: int, total: dict[str, float]) -> None:
    """An episode of a parallel environment."""
    rng = np.random.default_rng(seed)
    seen, infos = environment.reset(seed=seed)
    for _ in range(MOST_STEPS):
        if not environment.agents:
            return
        acts = {
            agent: _act(environment, agent, seen.get(agent), infos.get(agent, {}), rng)
            for agent in environment.agents
        }
        seen, rewards, _, _, infos = environment.step(acts)
        for agent, reward in rewards.items():
            total[agent] += float(reward)
    raise ConfigError(f"an episode took more than {MOST_STEPS:,} steps")


def _in_turn(environment: Any, seed: int, total: dict[str, float]) -> None:
    """An episode of an environment in which agents act one after the other."""
    rng = np.random.default_rng(seed)
    environment.reset(seed=seed)
    for step, agent in enumerate(environment.agent_iter(MOST_STEPS + 1)):
        if step == MOST_STEPS:
            raise ConfigError(f"an episode took more than {MOST_STEPS:,} steps")
        seen, reward, ended, cut, info = environment.last()
        total[agent] += float(reward)
        act = None if ended or cut else _act(environment, agent, seen, info, rng)
        environment.step(act)


def _act(
    environment: Any, agent: str, seen: Any, info: dict[str, Any], rng: np.random.Generator
) -> Any:
    """A random action, a legal one where the game says which are."""
    mask = info.get("action_mask")
    if mask is None and isinstance(seen, dict):
        mask = seen.get("action_mask")
    space = environment.action_space(agent)
    if mask is None:
        space.seed(int(rng.integers(2**31)))
        return space.sample()
    return int(rng.choice(np.flatnonzero(mask)))
