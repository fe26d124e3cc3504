"""Somebody else's game: do its agents come off alike in random play?"""

import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hopplus.config import ConfigError
from hopplus.diagnosis.finding import Check, verdict_of
from hopplus.diagnosis.ordering import Ordering, of_episodes
from hopplus.diagnosis.seats import HEALTHY, ILLNESSES, SURE, SeatsDiagnosis, more_episodes

MOST_STEPS = 10_000  # of an episode, before it is given up


class OutOfTimeError(Exception):
    """An episode is given up."""


def diagnose_foreign(
    name: str,
    episodes: int,
    seed: int,
    on_progress: Callable[[int, str], None],
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> SeatsDiagnosis:
    """Play a PettingZoo game at random and hold its agents against each other; so many episodes, or
    as many as end within `seconds`, if given.

    Only names can be compared: boards of a foreign game cannot be turned, so if agents differ it
    may be for their names or for the places that they are dealt.
    """
    environment = made(name)
    began = clock()

    def go_on() -> None:
        if seconds is not None and clock() - began > seconds:
            raise OutOfTimeError

    played: list[list[float]] = []
    try:
        for number in range(episodes):
            played.append(_episode(environment, seed + number, go_on))
            on_progress(1, "")
    except OutOfTimeError:
        pass
    if len({len(row) for row in played}) > 1:
        raise ConfigError(f"{name} has different agents from episode to episode")
    returns = np.array(played).reshape(len(played), -1 if played else len(_agents(environment)))
    if len(played) < episodes and len(played) < 3 * returns.shape[1]:
        found = Ordering(returns, 1.0, 1.0)  # too few to compare anybody
    else:
        found = of_episodes(returns)
    off = found.chance < SURE
    short = f" in {seconds:g} s" if len(played) < episodes else ""
    agents = ", ".join(
        f"{agent}: {seat}" for agent, seat in zip(_agents(environment), found.seats, strict=True)
    )
    check = Check(
        "The game: random legal play",
        f"{len(returns):,} episodes{short}. {agents}. Agents that are alike differ as much with"
        f" chance {found.chance:.3g}.",
        "unequal-game" if off else None,
        found.as_json() | {"episodes": len(returns)},
        "" if off else more_episodes(found),
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


def _agents(environment: Any) -> list[str]:
    return list(environment.possible_agents)


def _episode(environment: Any, seed: int, go_on: Callable[[], None]) -> list[float]:
    """The returns of all agents, in the order of `possible_agents`; `go_on` is asked before every
    step, and may end it."""
    play = _in_turn if hasattr(environment, "agent_iter") else _at_once
    total = dict.fromkeys(_agents(environment), 0.0)
    play(environment, seed, total, go_on)
    return list(total.values())


def _at_once(
    environment: Any, seed: int, total: dict[str, float], go_on: Callable[[], None]
) -> None:
    """An episode of a parallel environment."""
    rng = np.random.default_rng(seed)
    seen, infos = environment.reset(seed=seed)
    for _ in range(MOST_STEPS):
        if not environment.agents:
            return
        go_on()
        acts = {
            agent: _act(environment, agent, seen.get(agent), infos.get(agent, {}), rng)
            for agent in environment.agents
        }
        seen, rewards, _, _, infos = environment.step(acts)
        for agent, reward in rewards.items():
            total[agent] += float(reward)
    raise ConfigError(f"an episode took more than {MOST_STEPS:,} steps")


def _in_turn(
    environment: Any, seed: int, total: dict[str, float], go_on: Callable[[], None]
) -> None:
    """An episode of an environment in which agents act one after the other."""
    rng = np.random.default_rng(seed)
    environment.reset(seed=seed)
    for step, agent in enumerate(environment.agent_iter(MOST_STEPS + 1)):
        if step == MOST_STEPS:
            raise ConfigError(f"an episode took more than {MOST_STEPS:,} steps")
        go_on()
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
