"""How the commands of the documents are made small, and which are not run, each with a reason.

A command is run as it stands with the options below behind its own: later ones win. So everything
in it is read, and what it is about (its preset, its players, its switches) stays as it is.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from docs_markdown import Command, Step, read_steps

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
START = ROOT / "docs" / "start.md"
TRANSLATED = ROOT / "README.zh-CN.md"  # has the commands of README.md, which are run
TRANSLATIONS = (TRANSLATED, *sorted((ROOT / "docs").glob("*.zh-CN.md")))
# What is run, the longest at both ends; translations have the same commands and the same code.
DOCUMENTS = (*sorted({*(ROOT / "docs").glob("*.md")} - {*TRANSLATIONS}), README)

NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
MOST_SEEDS = 2

# Two updates; an episode ends in each, as it has 35 steps at most.
_UPDATE = "--steps 576 --ppo.games 8 --ppo.unroll 36 --ppo.minibatches 2 --ppo.epochs 1"
_MODELS = "--opponent.fits 1 --goal.fits 1 --world.fits 1 --imagine.warm-up 0"
_SEARCH = "--search.simulations 4 --search.trees 1"
_FIT = "--fit.epochs 1"
_EIGHT = (
    "family-alternating family-follower family-cautious family-shy family-impatient"
    " family-resentful family-grateful family-slow"
)
_MOST = (
    f"{_EIGHT} family-shifting family-homebound family-territorial family-lazy family-composed"
    " family-weighing"
)
_WIDE = (
    "--net.kind centred --net.hidden 128 --ppo.games 1024 --ppo.unroll 32 --ppo.minibatches 64"
    " --ppo.epochs 2 --ppo.learning-rate 1e-3 --ppo.clip 0.3"
)
# Every line whose words a command begins with applies, one after the other.
SMALL = {
    "hopplus train": f"{_UPDATE} {_MODELS}",
    "hopplus train hop ": _SEARCH,
    "hopplus train hop-plus-mcts": _SEARCH,
    "hopplus train one-step": _SEARCH,
    "hopplus train lola": "--ppo.minibatches 1",
    # Sixteen families are long to compile, and HOP+ is, too.
    "hopplus train hop-plus-memory": f"--held-out {_MOST}",
    "hopplus train ppo-population": f"--held-out {_MOST}",
    "hopplus train belief --parts opponent belief world imagination": f"--held-out {_MOST}",
    "hopplus train ppo-memory --context recurrent+record": f"--held-out {_MOST}",
    "hopplus train ppo --context types": f"--held-out {_MOST}",
    f"hopplus train ppo-memory --game.size 8 {_WIDE} --train-against population --trial 5 --seeds 5"
    " --steps": f"--held-out {_MOST}",
    "hopplus train ppo --game jaxmarl": "--game.horizon 16",  # else no episode would end
    "python -m benchmarks.first_update": "--presets ppo --starts cold",
    "hopplus evaluate": "--episodes 64 --games 64",
    "hopplus evaluate runs/first --seats run,hare,hare,hare --search": _SEARCH,
    "hopplus replay runs/first --search": _SEARCH,
    "hopplus replay runs": "--among 8",
    "hopplus ablate": "--steps 576 --ppo.games 8 --ppo.unroll 36",
    "hopplus ablate ladder --seeds": "--rungs ppo goal",  # `make demo` has imagination
    "hopplus collect": "--episodes 100 --games 64",
    "hopplus resume runs/first --steps": "--steps 1152",
    "hopplus pretrain": _FIT,
    "hopplus certify": f"{_UPDATE} --episodes 16",
    # Programs of all families, or of all who remember the trial, are long to compile.
    "hopplus certify --game.size 8 --net.kind centred --net.hidden 128 --ppo.games 1024": (
        "--kinds family-shy|family-slow --against family-shy,family-shy,family-slow"
    ),
    "hopplus certify --game.size 8 --against conditional": "--kinds stag|trusting --against all",
    "hopplus certify --game snowdrift-v1": "--kinds clear|reciprocal",
    "hopplus adapt": "--trials 4",
    "hopplus adapt runs/om --search.simulations 100": f"--trials 1 {_SEARCH}",
    "hopplus adapt runs/mem --learning online": "--trials 1 --against stag,hare,hare --seat 0",
    "hopplus adapt runs/soft": "--trials 1 --episodes 3",
    "hopplus adapt runs/met": "--against family-shy,family-slow,family-slow",
    "hopplus adapt runs/wide": "--against family-shy,family-slow,family-slow",
    "hopplus leave-one-out": "--families family-shy --steps 4096 --trials 4 --game.horizon 12"
    " --seeds 2",
    # An option of one value more is what all runs have in common.
    "hopplus sweep": "--steps 1152 --over ppo.games=8 --over ppo.unroll=36"
    " --over ppo.minibatches=2 --over ppo.epochs=1",
    "hopplus sweep ppo --over ppo.learning_rate=1e-3": "--over ppo.entropy=0.01",
    "hopplus sweep ppo --over ppo.learning_rate=log": "--random 2",
    "hopplus sweep ppo --net.hidden 128": "--over ppo.clip=0.1",
    "hopplus sweep examples": "--random 2 --seeds 2",
    "hopplus sweep ppo --over ppo.games": "--random 1",
    "hopplus sweep hop-plus --over ppo.games": "--random 1",
    "hopplus sweep hop-plus": "--over imagine.real-ratio=0.3 --over imagine.warm-up=0"
    " --over opponent.fits=1 --over goal.fits=1 --over world.fits=1",
    "hopplus crossplay": "--episodes 16",
    "hopplus diagnose seats": "--quick --episodes 128",
    "hopplus diagnose seats ppo": "--steps 4096",
    "hopplus diagnose value-loss": "--quick --updates 2",
    "hopplus diagnose value-loss hop-plus": "--steps 16384",
    "hopplus diagnose adaptation": "--trials 40",
    "hopplus bench game": "--seconds 0.2 --games 64",
    "hopplus bench train": f"--seconds 0.2 {_UPDATE}",
    "hopplus bench update": "--rounds 1",
    "hopplus bench search": "--games 2 --rounds 1 --search.simulations 8",
    "python -m benchmarks.scaling": "--only predict --games 16 --rounds 1",
    "python -m benchmarks.report": "--runs 2 --seeds 2 --points 50",
    "python -m benchmarks.pettingzoo": "--steps 70 --rounds 1",
    "python -m benchmarks.soak": "--runs 1 --updates 2",
    "python -m benchmarks.faults": "--seeds 1 --faults none first-seat --healthy ppo"
    " --commands seats value-loss --episodes 500 --steps 8192",
    "python -m benchmarks.methods": "--only ppo --steps 4096 --seeds 1",
    "python -m benchmarks.methods --only parts": "--only blind --steps 32768 --trials 4",
    "python -m benchmarks.methods --time": "--only blind",
    "python -m benchmarks.methods --as-long-as": (
        "--as-long-as blind --only blind --steps 32768 --trials 4"
    ),
    "python -m benchmarks.pretrained": "--only goal --prepare --episodes 64 --epochs 1",
    "python -m benchmarks.hop_setting": "--only ppo --steps 28672 --seeds 1 --no-references"
    " --trials 1 --trial-steps 128 --last 64",
    "python -m benchmarks.returns": "--presets ppo --steps 12288 --seeds 1",
    "python -m benchmarks.zoo": "--help",
    "make": "--dry-run",  # what it would do; `make test` is what runs this
    "pytest": "--collect-only --quiet",  # `make test` runs them all
}
# The arguments of an example behind its name and the run.
EXAMPLES = {
    "examples/trained_players.py": ("2",),
    "examples/search_at_play.py": ("4", "2"),
}
# What stands for something of the reader's.
PLACEHOLDERS = {
    "your.package:parallel_env": "hopplus.games.pettingzoo:parallel_env",
    "package.module:function": "hopplus.games.pettingzoo:parallel_env",
    "coins:ROW": "toy_game:ROW",  # which is the file that docs/extending.md shows
    "orchard:ROW": "examples.orchard:ROW",
    "apple,orchard:patient": "apple,examples.orchard:patient",
    "run,orchard:patient": "run,examples.orchard:patient",
}
# In running text these name a command; they are none without more.
NAMES = (
    "hopplus adapt",
    "hopplus collect",
    "hopplus diagnose",
    "hopplus evaluate",
    "hopplus export",
    "hopplus leave-one-out",
    "hopplus play",
    "hopplus pretrain",
)
_ROWS = f"ppo {_WIDE} ppo-memory {_WIDE} liam {_WIDE} hop-plus-trial"
_TWO = (
    "hopplus train ppo --seeds 2 --name big --devices all --coordinator 10.0.0.1:1234 --processes 2"
)
# Not run, and why. What hopplus itself is asked is still read as a command line.
NOT_RUN = {
    "pip install .": "installs",
    "python -m benchmarks.peers --ippo ../JaxMARL/baselines/IPPO/ippo_ff_mpe.py"
    " --games 1024 16384": "needs a clone of JaxMARL; tests/test_bench_peers.py stands in",
    "python -m benchmarks.peers --games 1024 --rounds 8": (
        "needs JaxMARL, which may not be there; tests/test_bench_peers.py has it"
    ),
    "pip install tensorboard": "installs",
    "pip install hopplus[jaxmarl]": "installs",
    "pip install hopplus[ray]": "installs",
    "pip install hopplus[pandas]": "installs",
    "hopplus train ppo --log csv wandb mlflow": "needs accounts; tests/test_loggers.py stands in",
    "pip install jax[cuda13]": "installs, for a GPU",
    "apt install chromium": "installs",
    "nvidia-cuda-mps-control -d": "a service of NVIDIA's driver",
    "hopplus train ppo --seeds 64 --name big --devices all --coordinator auto": "needs SLURM",
    f"{_TWO} --process 0": "waits for the other process",
    f"{_TWO} --process 1": "waits for the other process",
    "tensorboard --logdir runs": "another program, which may not be there",
    **{
        f"hopplus {command}": "needs Ray, which may not be there: tests/test_on_ray.py has it"
        for command in (
            "sweep examples/sweep.toml --engine ray",
            "sweep examples/sweep.toml --engine ray --address host:6379",
            "ablate ladder --engine ray --name ladder",
            "leave-one-out ppo ppo-memory --engine ray",
        )
    },
    "python -m benchmarks.ray_sweep": "needs Ray, too",
    "hopplus train ppo --steps 5e5 --seeds 5 --seed 100 --devices 2": (
        "needs two devices: tests/test_devices.py has eight"
    ),
    "hopplus train hop-plus --seeds 2 --devices 2": (
        "needs JAX not to have started: tests/test_cores.py has such a run"
    ),
    "python -m benchmarks.processes": "starts 32 processes; tests/test_processes.py starts some",
    "hopplus bench update --curve": "compiles HOP+ ten times; `bench update` is run in learning.md",
    **{
        f"hopplus play {rest}": "serves a page until Ctrl-C"
        for rest in (
            "zoo:stag-hunt-4x4-hop-plus",
            "runs/first",
            "runs/first --seats run,human,run,stag",
            "--seats human,stag,hare,trusting --game.size 8",
            "--seats human,grudger --game coin-v1 --language zh",
            "runs/first --record data/people",
        )
    },
    "python -m benchmarks.breakdown --update hop-plus-mcts": "takes ten minutes",
    "hopplus diagnose value-loss hop-plus": "is run with a fault, in diagnosis.md",
    "hopplus diagnose value-loss hop-plus-notes --steps 4e5 --seed 100": (
        "takes four minutes; the preset is trained by itself, in diagnosis.md"
    ),
    f"hopplus leave-one-out {_ROWS} --game.size 8 --steps 16e6 --seed 100": (
        "rows cannot be made small"
    ),
    f"hopplus leave-one-out ppo {_WIDE} memory=ppo-memory {_WIDE} --context recurrent+record"
    " --families family-follower family-cautious family-shy family-slow --game.size 8 --steps 24e6"
    " --best-steps 16e6 --seed 100 --runs runs/four": "rows cannot be made small",
    "hopplus leave-one-out ppo-population --ppo.games 2048 blind=ppo-population --ppo.games 2048"
    f" --memory.kind none --context none --families {_EIGHT} --game.size 8 --steps 48e6 --seed 100"
    " --runs runs/one-out": "rows cannot be made small",
    **{
        f"hopplus leave-one-out {_ROWS} hop-plus-memory --game {game}-v1 --families {_EIGHT}"
        f" --at-once --steps 6e6 --seed 100 --runs runs/{game[:4]}": "rows cannot be made small"
        for game in ("snowdrift", "coin")
    },
}


def code_cells(path: Path) -> list[str]:
    """The code of a notebook, cell by cell."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def small(command: Command) -> list[str]:
    """The words of a command as they are run."""
    words = [PLACEHOLDERS.get(word, word) for word in command.words]
    if words[0] == "python" and words[1] != "-m":
        return [*words[:3], *EXAMPLES[words[1]]] if words[1] in EXAMPLES else words
    if "--help" in words:
        return words
    text = " ".join(words) + " "
    for prefix, options in SMALL.items():
        if text.startswith(prefix):
            words += options.split()
    if "--seeds" in command.words:
        asked = int(command.words[command.words.index("--seeds") + 1])
        words += ["--seeds", str(min(asked, MOST_SEEDS))]
    return words


def is_name(command: Command) -> bool:
    """Whether it stands in running text as a name."""
    return command.inline and str(command) in NAMES


def read_documents(paths: Iterable[Path] = DOCUMENTS) -> dict[Path, list[Step]]:
    return {path: read_steps(path) for path in paths}


def stale(documents: dict[Path, list[Step]]) -> list[str]:
    """Entries of the tables above that no command needs any more."""
    commands = [s for steps in documents.values() for s in steps if isinstance(s, Command)]
    texts = [f"{command} " for command in commands]
    words = {word for command in commands for word in command.words}
    inline = {str(command) for command in commands if command.inline}
    return [
        *(prefix for prefix in SMALL if not any(text.startswith(prefix) for text in texts)),
        *(text for text in NOT_RUN if f"{text} " not in texts),
        *(name for name in NAMES if name not in inline),
        *(name for name in (*EXAMPLES, *PLACEHOLDERS) if name not in words),
    ]
