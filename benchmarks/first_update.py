"""How long until the first update, and where does the time go? Each start in a process of its own:

- cold: nothing is kept, as on the first day;
- traced: JAX's cache has the programs, but they are traced and lowered again, as after a change of
  a comment, or with a game of one's own;
- warm: the same command once more.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from json import dumps, loads
from pathlib import Path
from typing import Any

import jax

from benchmarks import main
from hopplus.cli.paged import show
from hopplus.config import ConfigError
from hopplus.presets import PRESETS
from hopplus.program_cache import SWITCH
from hopplus.report.page import Page, Section
from hopplus.runtime import device_line

STARTS: dict[str, dict[str, str]] = {"cold": {}, "traced": {SWITCH: "0"}, "warm": {}}
EVENTS = {
    "jaxpr_trace_duration": "trace",
    "jaxpr_to_mlir_module_duration": "lower",
    "backend_compile_duration": "compile",
}
NAMED = ("init_all", "update_all", "run")  # programs with a line of their own
CHILD = "from benchmarks.first_update import child; child()"


@dataclass(frozen=True)
class FirstUpdate:
    """Time the first update of presets, cold and warm, by what it is spent on."""

    presets: tuple[str, ...] = ("ppo", "hop-plus")
    """What to start."""
    starts: tuple[str, ...] = tuple(STARTS)
    """In this order: cold, traced and warm need each other."""
    options: str = ""
    """Options of `hopplus train` for all of them, in one word, as in --options="--game.size 3"."""
    json: bool = False
    """Print JSON instead of tables."""

    def run(self) -> int:
        for name in (*self.presets, *self.starts):
            if name not in PRESETS and name not in STARTS:
                raise ConfigError(f"no preset and no kind of start is called {name!r}")
        found: dict[str, dict[str, Any]] = {}
        for preset in self.presets:
            with tempfile.TemporaryDirectory() as folder:
                found[preset] = {
                    start: measured(preset, start, Path(folder), self.options.split())
                    for start in self.starts
                }
        return show(_page(found), as_json=self.json)


def measured(preset: str, start: str, folder: Path, options: list[str]) -> dict[str, Any]:
    """One start in a process of its own, whose cache is in that folder."""
    # Bytecode is kept whatever is set: without it every start reads JAX's source for seconds.
    cache = {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": ""}
    words = ["train", preset, "--runs", str(folder), "--name", start, *options]
    given = {"FIRST_UPDATE": dumps([time.time(), words])}
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env=os.environ | cache | STARTS[start] | given,
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise ConfigError(f"{' '.join(words)} has failed")
    told: dict[str, Any] = loads(done.stdout.splitlines()[-1])
    return told


def child() -> None:
    """Train to the first update and print what was spent on what, as JSON."""
    began, words = loads(os.environ["FIRST_UPDATE"])
    spent = defaultdict[str, float](float, {"import": time.time() - began})
    processor = {"import": _processor()}

    def note(event: str, duration_secs: float, **more: Any) -> None:
        if kind := EVENTS.get(event.rpartition("/")[2]):
            program = str(more.get("fun_name", "")).removeprefix("jit(").removesuffix(")")
            spent[f"{kind} {program if program in NAMED else 'small programs'}"] += duration_secs

    jax.monitoring.register_event_duration_secs_listener(note)
    from hopplus.api.training import begin
    from hopplus.cli import parse
    from hopplus.learning.train import Moment, train

    class DoneError(Exception):
        pass

    def stop(moment: Moment) -> None:
        raise DoneError

    asked = parse(words)
    run = begin(asked.config, asked.name, asked.runs)
    spent["options and folder"] = time.time() - began - spent["import"]
    try:
        train(run, stop)
    except DoneError:
        spent["until the first update"] = time.time() - began
    processor["until the first update"] = _processor()
    print(dumps({"wall": spent, "cpu": processor}))


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _page(found: dict[str, dict[str, Any]]) -> Page:
    sections = []
    for preset, starts in found.items():
        lines = dict.fromkeys(name for one in starts.values() for name in one["wall"])
        rows = [
            [name, *(f"{one['wall'].get(name, 0):.1f}" for one in starts.values())]
            for name in sorted(lines, key=lambda name: name == "until the first update")
        ]
        for name in ("import", "until the first update"):
            rows.append([f"CPU s, {name}", *(f"{one['cpu'][name]:.1f}" for one in starts.values())])
        sections.append(Section(f"{preset}, seconds", header=["", *starts], rows=rows))
    title = f"first update; {device_line()}"
    note = "init_all and update_all are compiled side by side: lines add up to more than the whole"
    payload = {"machine": device_line(), "starts": found}
    return Page(title, "", lines=[title, note], sections=sections, payload=payload)


if __name__ == "__main__":
    sys.exit(main(FirstUpdate))
