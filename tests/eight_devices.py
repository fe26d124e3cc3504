"""A program of `test_devices`, on a machine that seems to have eight devices: they must be there
before JAX starts. Trains in the folder it is given and prints what came of it as JSON."""

import io
import json
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
)

import jax
from jax.experimental.compilation_cache import compilation_cache

from hopplus.cli import main
from hopplus.devices import using
from hopplus.learning.checkpoints import empty_learning
from hopplus.learning.compilation import next_of
from hopplus.learning.from_run import learner_from_run
from hopplus.program_cache import SWITCH, programs_folder
from hopplus.runs.folder import open_run

_GAME = "--game.size 3 --game.seats 2 --game.hares 2 --game.horizon 8 --net.hidden 16"
MODELS = (
    "hop-plus --goal.hidden 8 --goal.batch 4 --goal.fits 2 --goal.every 2 --opponent.batch 16"
    " --opponent.fits 2 --world.batch 16 --world.fits 2 --imagine.horizon 4 --imagine.warm-up 0"
    " --imagine.gate 1 --goal.mixing 0.5 --goal.mixing-until 1 --opponent.net.hidden 8"
)
_RUN = "--ppo.games 8 --ppo.unroll 8 --ppo.minibatches 2 --ppo.epochs 1 --ppo.no-anneal"
GAME, RUN = _GAME.split(), _RUN.split()
SHARED = "ppo --ppo.parameters shared"
STEPS = 64  # of an update
COLLECTIVES = ("all-reduce", "all-gather", "all-to-all", "collective-permute", "reduce-scatter")


def said(*words: str) -> tuple[int, str, str]:
    """The status of a command, and what it printed."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        status = main(list(words))
    return status, out.getvalue(), errors.getvalue()


def run(
    name: str, devices: str, updates: int = 6, seed: int = 0, seeds: int = 4, preset: str = "ppo"
) -> dict[str, Any]:
    """Train seeds of a preset with options, and give what was logged and what came of it."""
    length = ["--steps", str(STEPS * updates), "--seeds", str(seeds), "--seed", str(seed)]
    preset, *options = preset.split()
    settings = [*GAME, *RUN, *options, *length, "--checkpoint-every", "2"]
    command = ["train", preset, "--name", name, *settings]
    status, _, errors = said(*command, "--devices", devices)
    assert status == 0, errors
    return found(name)


def again(name: str, devices: str) -> dict[str, Any]:
    """The same after its last updates are lost."""
    folder = Path("runs") / name
    shutil.rmtree(folder / "checkpoints/6")
    (folder / "result.json").unlink()
    assert said("resume", str(folder), "--devices", devices)[0] == 0
    return found(name)


def go_on(name: str, devices: str, updates: int) -> dict[str, Any]:
    steps = str(STEPS * updates)
    status, _, errors = said("resume", f"runs/{name}", "--steps", steps, "--devices", devices)
    assert status == 0, errors
    return found(name)


def found(name: str) -> dict[str, Any]:
    folder = open_run(Path("runs") / name)
    return {"log": folder.metrics(), "result": folder.result(), "config": folder.facts()["config"]}


def collectives(name: str, devices: int) -> int:
    """How often devices exchange anything in the update of that run."""
    folder = open_run(Path("runs") / name)
    config, learner = folder.config(), learner_from_run(folder)
    with using(devices):
        program: Any = next_of(learner, config, config.seeds).program
        text = program.lower(empty_learning(learner, config), 1).compile().as_text() or ""
    return sum(text.count(f" {name}(") for name in COLLECTIVES)


def gathers(name: str, devices: int, *, inside: bool) -> int:
    """How often sets tell each other anything in the update of that run: in its loops over steps,
    fits and minibatches, or outside of them."""
    folder = open_run(Path("runs") / name)
    config, learner = folder.config(), learner_from_run(folder)
    with using(devices):
        program: Any = next_of(learner, config, config.seeds).program
        traced = program.trace(empty_learning(learner, config), 1)

    def count(jaxpr: Any, looping: bool) -> int:
        found = 0
        for one in jaxpr.eqns:
            found += one.primitive.name.startswith("all_gather") and looping == inside
            within = looping or one.primitive.name == "scan"  # updates themselves are a `while`
            for part in jax.tree.leaves(list(one.params.values()), is_leaf=is_jaxpr):
                if is_jaxpr(part):
                    found += count(getattr(part, "jaxpr", part), within)
        return found

    return count(traced.jaxpr.jaxpr, False)


def is_jaxpr(part: Any) -> bool:
    return hasattr(part, "eqns") or hasattr(part, "jaxpr")


def adapted(devices: str) -> Any:
    """The returns of a player among a hare hunter."""
    trials = ["--against", "hare", "--seat", "0", "--episodes", "1", "--trials", "16", "--json"]
    status, out, errors = said("adapt", "runs/one", *trials, "--devices", devices)
    assert status == 0, errors
    return json.loads(out)["returns"]


def kept() -> dict[str, Any]:
    """A run twice, the second time with the programs that the first has kept."""
    os.environ |= {SWITCH: "1", "XDG_CACHE_HOME": os.getcwd()}
    # What is read from JAX's cache cannot be kept again.
    jax.config.update("jax_compilation_cache_dir", os.path.abspath("jax"))
    compilation_cache.reset_cache()
    first = run("first", "all", updates=2)
    files = {file: file.stat().st_ino for file in sorted(programs_folder().iterdir())}
    for file in files:
        os.utime(file, (1, 1))
    again = run("again", "all", updates=2)
    found = [(file, file.stat()) for file in files]
    # Used, and not written anew.
    used = [file for file, now in found if now.st_mtime > 1 and now.st_ino == files[file]]
    read = [file.name.partition("-")[0] for file in used]
    os.environ[SWITCH] = "0"
    return {"logs": [first["log"], again["log"]], "read": read}


def main_checks() -> dict[str, Any]:
    refused = {
        "nine": said("train", "ppo", "--name", "no", *GAME, *RUN, "--devices", "9"),
        "seven": said("train", "ppo", "--name", "no", *GAME, *RUN, "--devices", "7"),
        "none": said("train", "ppo", "--name", "no", *GAME, *RUN, "--devices", "0"),
        "ablate": said("ablate", "ladder", *GAME, "--devices", "9"),
        "certify": said("certify", *GAME, "--devices", "9"),
        "bench": said("bench", "train", *GAME, *RUN, "--devices", "9"),
        "trials": said("adapt", "ppo", "--trials", "12", "--devices", "8"),
        "folders": os.listdir(),
    }
    return {
        "refused": refused,
        "one": run("one", "1"),
        "four": run("four", "4"),
        "moved": run("moved", "4", seed=1),
        "resumed": again("moved", "4"),
        "eight": run("eight", "all", updates=2),
        "then one": go_on("eight", "1", updates=4),
        "then four": go_on("eight", "4", updates=6),
        "exchanges": collectives("four", 4),
        "models": run("models", "1", updates=3, seeds=1, preset=MODELS),
        "models apart": run("models-apart", "2", updates=3, seeds=1, preset=MODELS),
        "within": gathers("models-apart", 2, inside=True),
        "told": gathers("models-apart", 2, inside=False),
        "shared": run("shared", "1", updates=2, preset=SHARED),
        "shared apart": run("shared-apart", "8", updates=2, preset=SHARED),
        "alone": run("alone", "1", updates=2, seeds=1),
        "both apart": run("both-apart", "8", updates=2, seeds=1),
        "adapted": [adapted("1"), adapted("8")],
        "kept": kept(),
    }


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    print(json.dumps(main_checks()))
