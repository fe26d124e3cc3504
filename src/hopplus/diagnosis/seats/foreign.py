"""Somebody else's game: do its agents come off alike in random play?"""

import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hopplus.config import ConfigError
from hopplus.diagnosis.finding import Check, conclude
from hopplus.diagnosis.seats.checks import ILLNESSES, SURE, SeatsDiagnosis, advise_episodes
from hopplus.diagnosis.seats.ordering import Ordering, compare_episodes

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
    environment = make_environment(name)
    agents = list(environment.possible_agents)
    began = clock()

    def go_on() -> None:
        if seconds is not None and clock() - began > seconds:
            raise OutOfTimeError

    played: list[list[float]] = []
    try:
        for number in range(episodes):
            played.append(_play_episode(environment, seed + number, go_on))
            on_progress(1, "")
    except OutOfTimeError:
        pass
    if len({len(row) for row in played}) > 1:
        raise ConfigError(f"{name} has different agents from episode to episode")
    returns = np.array(played).reshape(len(played), -1 if played else len(agents))
    if len(played) < episodes and len(played) < 3 * returns.shape[1]:
        found = Ordering(returns, 1.0, 1.0)  # too few to compare anybody
    else:
        found = compare_episodes(returns)
    off = found.p_value < SURE
    short = f" in {seconds:g} s" if len(played) < episodes else ""
    means = ", ".join(f"{agent}: {own}" for agent, own in zip(agents, found.seats, strict=True))
    check = Check(
        "The game: random legal play",
        f"{len(returns):,} episodes{short}. {means}. Agent effect: permutation test, p ="
        f" {found.p_value:.3g}.",
        "unequal-game" if off else None,
        found.as_json() | {"episodes": len(returns)},
        "" if off else advise_episodes(found),
    )
    verdict = conclude([check], ILLNESSES)
    return SeatsDiagnosis(name, [check], verdict, found, np.zeros((0, 1, returns.shape[1])), {})


def make_environment(name: str) -> Any:
    """The environment that `module:function` makes."""
    module, _, function = name.partition(":")
    try:
        environment = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"cannot make the game {name}: {error}") from error
    if not hasattr(environment, "possible_agents"):
        raise ConfigError(f"{name} makes no PettingZoo environment: it has no possible_agents")
    return environment


def _play_episode(environment: Any, seed: int, go_on: Callable[[], None]) -> list[float]:
    """The returns of all agents, in the order of `possible_agents`; `go_on` is asked at every step,
    and may end it."""
    total = dict.fromkeys(environment.possible_agents, 0.0)
    play = play_in_turn if hasattr(environment, "agent_iter") else play_at_once
    for step, rewards in enumerate(play(environment, seed)):
        if step == MOST_STEPS:
            raise ConfigError(f"an episode took more than {MOST_STEPS:,} steps")
        go_on()
        for agent, reward in rewards.items():
            total[agent] += float(reward)
    return list(total.values())


def play_at_once(environment: Any, seed: int) -> Iterator[dict[str, float]]:
    """The rewards of each step of an episode in a parallel environment."""
    rng = np.random.default_rng(seed)
    seen, infos = environment.reset(seed=seed)
    while environment.agents:
        acts = {
            agent: _draw_action(environment, agent, seen.get(agent), infos.get(agent, {}), rng)
            for agent in environment.agents
        }
        seen, rewards, _, _, infos = environment.step(acts)
        yield rewards


def play_in_turn(environment: Any, seed: int) -> Iterator[dict[str, float]]:
    """The same where agents act one after the other, by the rewards since their last turns."""
    rng = np.random.default_rng(seed)
    environment.reset(seed=seed)
    for agent in environment.agent_iter(MOST_STEPS + 1):
        seen, reward, ended, cut, info = environment.last()
        yield {agent: reward}
        over = ended or cut  # whoever is out must still step, with no action
        environment.step(None if over else _draw_action(environment, agent, seen, info, rng))


def _draw_action(
    environment: Any, agent: str, seen: Any, info: dict[str, Any], rng: np.random.Generator
) -> Any:
    """A random action, a legal one where the game says which are."""
    mask = info.get("action_mask")
    if mask is None and isinstance(seen, dict):
        mask = seen.get("action_mask")
    if mask is not None:
        return int(rng.choice(np.flatnonzero(mask)))
    space = environment.action_space(agent)
    space.seed(int(rng.integers(2**31)))
    return space.sample()
