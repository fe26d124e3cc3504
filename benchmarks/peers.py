"""How fast are the coin game and PPO beside JaxMARL's? All in turns, in one process, on one
machine."""

import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from benchmarks import main
from benchmarks.ippo import ippo, load_ippo, without_dispensable
from hopplus.cli.bench.game import play_on, start_games
from hopplus.cli.paged import show
from hopplus.cli.reading.devices import Devices
from hopplus.cli.reading.options import check_options
from hopplus.config import ConfigError, check, check_range, make_config
from hopplus.devices import count_used
from hopplus.games import make_game
from hopplus.learning.compilation import MOST, first_and_next
from hopplus.learning.from_run import make_learner
from hopplus.play.seating import seat_players
from hopplus.presets import PRESETS
from hopplus.report.page import Page, Section
from hopplus.runs.watchdog import Watchdog
from hopplus.runtime import device_line

STEPS = 64  # of a program
PEER = "JaxMARL coin game, 3x3"
IPPO, EQUAL = "JaxMARL IPPO, as it comes", "JaxMARL IPPO, our network"
OURS, ONE = "hopplus PPO", "hopplus PPO, one update a dispatch"
SIZES = (3, 5)  # of our boards: the peer's, and the one of the rules

Program = Callable[[], Any]  # plays on by STEPS steps


@dataclass(frozen=True)
class Peers:
    """Environment steps per second beside JaxMARL's: of the coin game, with random players, all
    views and new episodes; or with --ippo of PPO on the Stag-Hunt, one set of parameters for all
    seats, beside its independent PPO as it comes and with a network like ours. That has no option
    for several devices."""

    games: tuple[int, ...] = (1024,)
    """Games side by side; several numbers for several tables."""
    ippo: Path | None = None
    """The file baselines/IPPO/ippo_ff_mpe.py of a clone of JaxMARL: compare learning."""
    updates: int = 32
    """Updates of a round, with --ippo."""
    updates_per_dispatch: int = MOST
    """Updates that ours does before the host reads their metrics, at most; a run finds its own
    number. 1 is how it was before there were several."""
    rounds: int = 20
    """How often each plays or learns, in turns."""
    on: Annotated[Devices, tyro.conf.arg(name="")] = field(default_factory=Devices)
    processor: bool = False
    """Count processor seconds instead of the time that passes, with --ippo: on a CPU that has other
    things to do."""
    seed: int = 0
    """Seed of everything random."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> int:
        check_options(updates=self.updates, rounds=self.rounds, seed=self.seed)
        for games in self.games:
            check_options(games=games)
        check_range("--updates-per-dispatch", self.updates_per_dispatch, 1, MOST)
        allowed = "1 without --ippo: of all that is compared, ours alone can learn on several"
        check(self.on.devices == 1 or self.ippo is not None, "--devices", self.on.devices, allowed)
        sections, found = [], []
        with self.on.used(), Watchdog():
            machine, apart = device_line(), ""
            if (devices := count_used()) > 1:
                apart = f" (ours on {devices} devices)"
            for games in self.games:
                one = self._coin(games) if self.ippo is None else self._learning(games, self.ippo)
                found.append(one)
        for one in found:
            rows = [
                [name, f"{rate:,.0f}", f"{one.ratios[name]:.2f}", _mib(one.memory.get(name))]
                for name, rate in one.rates.items()
            ]
            unit = "steps/CPU s" if self.processor else "steps/s"
            header = ["what", unit, "ratio", "memory of the program"]
            sections.append(
                Section(f"{one.games:,} games{apart}, {machine}", header=header, rows=rows)
            )
        peak = {"host": host_peak(), "device": device_peak()}
        said = ", ".join(f"{where} {_mib(size)}" for where, size in peak.items() if size)
        payload = {
            "machine": machine,
            "devices": devices,
            "peak_bytes": peak,
            "peers": [asdict(one) for one in found],
        }
        page = Page(
            "peers", f"peak memory of all together: {said}", sections=sections, payload=payload
        )
        return show(page, as_json=self.json)

    def _coin(self, games: int) -> "Compared":
        own = {f"coin-v1, {size}x{size}": own_program(size, games, self.seed) for size in SIZES}
        programs = {PEER: jaxmarl_program(games, self.seed), **own}
        return compare(PEER, games, measure_rates(programs, games * STEPS, self.rounds))

    def _learning(self, games: int, file: Path) -> "Compared":
        config = replace(PRESETS["ppo"], seed=self.seed)
        config = replace(config, ppo=replace(config.ppo, games=games, parameters="shared"))
        game, module, key = make_game(config.game), load_ippo(file), jax.random.key(self.seed)
        clock = time.process_time if self.processor else time.perf_counter
        programs, memory, first = dict[str, Program](), dict[str, int | None](), dict[str, float]()
        for name, net in ((IPPO, None), (EQUAL, config.net)):
            given = (module, game, config.ppo)
            start = jax.jit(ippo(*given, 0, net)).lower(key).compile()
            jax.block_until_ready(start(key))
            began = clock()
            jax.block_until_ready(start(key))
            first[name] = clock() - began
            whole = jax.jit(ippo(*given, self.updates, net)).lower(key).compile()
            programs[name], memory[name] = partial(whole, key), bytes_of(whole)
        learning, update = first_and_next(make_learner(config, {}), config)
        memory[OURS], now = bytes_of(update.program), [learning]

        def learn(most: int) -> Any:
            done = 0
            while done < self.updates:
                count = min(most, self.updates - done)
                now[0], rows = update.several(now[0], count)
                jax.device_get(rows)
                done += count
            return now[0]

        programs[OURS] = partial(learn, self.updates_per_dispatch)
        if self.updates_per_dispatch > 1:
            programs[ONE] = partial(learn, 1)
        rates = measure_rates(programs, self.updates * config.ppo.steps, self.rounds, first, clock)
        return compare(EQUAL, games, rates, memory)


@dataclass(frozen=True)
class Compared:
    """What was measured at so many games."""

    games: int
    rates: dict[str, float]  # steps per second, medians
    ratios: dict[str, float]  # of the rates of a round to the peer's, medians
    memory: dict[str, int | None] = field(default_factory=dict)  # bytes, as XLA plans them


def compare(
    peer: str,
    games: int,
    rates: Mapping[str, np.ndarray],
    memory: Mapping[str, int | None] | None = None,
) -> Compared:
    middle = {name: float(np.median(found)) for name, found in rates.items()}
    ratios = {name: float(np.median(found / rates[peer])) for name, found in rates.items()}
    return Compared(games, middle, ratios, dict(memory or {}))


def bytes_of(compiled: Any) -> int | None:
    """Of the device, while the program runs: what it is given, gives and needs between."""
    plan = compiled.memory_analysis()
    if plan is None:
        return None
    parts = (plan.argument_size_in_bytes, plan.output_size_in_bytes, plan.temp_size_in_bytes)
    return int(sum(parts) - plan.alias_size_in_bytes)


def host_peak() -> int:
    """Bytes that this process has held at most."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else 1024 * peak)


def device_peak() -> int | None:
    """The same of the device; None where it does not tell, as a CPU."""
    told = jax.local_devices()[0].memory_stats() or {}
    return told.get("peak_bytes_in_use")


def _mib(size: int | None) -> str:
    return "" if size is None else f"{size / 2**20:,.0f} MiB"


def measure_rates(
    programs: Mapping[str, Program],
    steps: int,
    rounds: int,
    less: Mapping[str, float] | None = None,
    clock: Callable[[], float] | None = None,
) -> dict[str, np.ndarray]:
    """[rounds] steps per second of each, one after the other in every round, so that whatever else
    the machine does slows all of them alike; `less` the seconds that a program takes to begin."""
    clock = clock or time.perf_counter
    for play in programs.values():
        jax.block_until_ready(play())  # compiled
    rates: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(rounds):
        for name, play in programs.items():
            began = clock()
            jax.block_until_ready(play())
            spent = clock() - began - (less or {}).get(name, 0.0)
            rates[name].append(steps / spent)
    return {name: np.array(found) for name, found in rates.items()}


def own_program(size: int, games: int, seed: int) -> Program:
    """Our game, as `hopplus bench game` plays it."""
    game = make_game(make_config("coin-v1", size=size))
    seating = seat_players(",".join(["random"] * game.seats), game)
    now = [start_games(game, seating, jax.random.key(seed), games)]

    def play() -> Any:
        now[0], total = play_on((game, seating), now[0], STEPS)
        return total

    return play


def jaxmarl_program(games: int, seed: int) -> Program:
    """JaxMARL's, as its own guide steps games: a key for each, and new episodes in its `step`."""
    try:
        with without_dispensable():
            env = import_module("jaxmarl.environments.coin_game.coin_game").CoinGame()
    except ImportError as error:
        raise ConfigError(f"jaxmarl is not installed (pip install jaxmarl): {error}") from error

    def advance(carry: Any, key: jax.Array) -> tuple[Any, jax.Array]:
        key_act, key_step = jax.random.split(key)
        drawn = jax.random.randint(key_act, (len(env.agents), games), 0, 5)
        actions = dict(zip(env.agents, drawn, strict=True))
        keys = jax.random.split(key_step, games)
        obs, state, reward, _, _ = jax.vmap(env.step)(keys, carry[1], actions)
        return (obs, state), sum(one.sum() for one in jax.tree.leaves(reward))

    @jax.jit
    def play_steps(carry: Any, key: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        key, key_steps = jax.random.split(key)
        carry, rewards = jax.lax.scan(advance, carry, jax.random.split(key_steps, STEPS))
        return carry, key, jnp.sum(rewards)

    key_start, key = jax.random.split(jax.random.key(seed))
    now = [(jax.jit(jax.vmap(env.reset))(jax.random.split(key_start, games)), key)]

    def play() -> Any:
        carry, key, total = play_steps(*now[0])
        now[0] = (carry, key)
        return carry, total

    return play


if __name__ == "__main__":
    sys.exit(main(Peers))
