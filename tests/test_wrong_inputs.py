"""Wrong inputs, all over the command line: each is told in one sentence, and nothing is written."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from hopplus.cli import _manual, main
from hopplus.cli.commands import COMMANDS, SUBCOMMANDS
from hopplus.recorded.dataset import FACTS

Damage = Callable[[Path], None]
FOUR = "stag,stag,hare,random"


@pytest.fixture(scope="module")
def kit(
    small_run: Path, recorded: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """What commands read: a run, recorded play and an exported player."""
    folder = tmp_path_factory.mktemp("kit")
    player = folder / "player.safetensors"
    assert main(["export", str(small_run), "--out", str(player)]) == 0
    return {"runs/a": small_run, "data": recorded, "player.safetensors": player}


@pytest.fixture
def place(kit: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A copy of it to damage, in the folder where the command runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for name, source in kit.items():
        copy = shutil.copytree if source.is_dir() else shutil.copy
        copy(source, tmp_path / name)
    return {name: tmp_path / name for name in kit}


def tree(folder: Path) -> dict[str, str]:
    """Every file there is, by its content."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in folder.rglob("*")
    }


def refused(
    command: str | Sequence[str], words: str, capsys: pytest.CaptureFixture[str], said: int = 1
) -> None:
    """Check that a command is refused with one sentence, having written nothing."""
    before = tree(Path())
    capsys.readouterr()
    status = main(command.split() if isinstance(command, str) else command)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert all(line.startswith("hopplus: ") for line in lines), err
    assert len(lines) == said, err
    assert words in lines[-1]
    assert status == 2
    assert tree(Path()) == before


WRONG = [
    # Commands and words.
    ("", "expected one of {train, "),
    ("evalute", "did you mean evaluate?"),
    ("Train", "did you mean train?"),
    ("--foo", "no option '--foo' without a command"),
    ("train", "expected one of {ppo, "),
    ("train pop", "no preset 'pop' (did you mean ppo?)"),
    ("train --foo", "without a preset"),
    ("train ppo stray", "'stray' is not expected there"),
    ("train ppo ppo", "'ppo' is not expected there"),
    ("train ppo --foo", "no option '--foo'"),
    ("train ppo --steps", "--steps needs a value"),
    ("train ppo --json=3", "'3' is not expected there"),
    ("pretrain", "expected one of {goal, "),
    ("pretrain gaol", "did you mean goal?"),
    ("pretrain goal", "needs --data"),
    ("pretrain goal --dta x", "did you mean --data?"),
    ("diagnose", "expected one of {seats, "),
    ("diagnose seat", "did you mean seats?"),
    ("diagnose seats", "hopplus diagnose seats needs STR"),
    ("diagnose models", "needs PATH"),
    ("bench", "expected one of {game, "),
    ("bench gmae", "did you mean game?"),
    ("list", "needs {games,players,presets}"),
    ("list cows", "'cows' is not one of games, players, presets"),
    ("list games --sise 3", "did you mean --game.size?"),
    ("export", "needs "),
    ("export runs/a", "needs --out"),
    ("resume", "needs PATH"),
    ("ablate", "needs {ladder}"),
    ("ablate ladders", "did you mean ladder?"),
    ("evaluate runs/a runs/b", "'runs/b' is not expected there"),
    ("report", "which runs?"),
    ("evaluate", "who plays?"),
    ("collect", "who plays?"),
    ("replay", "who plays?"),
    ("adapt", "give one run"),
    ("crossplay", "two or more"),
    ("crossplay stag", "two or more"),
    # Numbers.
    ("train ppo --steps x", "--steps: 'x' is not a whole number"),
    ("train ppo --steps 1.5", "'1.5' is not a whole number"),
    ("train ppo --steps nan", "'nan' is not a whole number"),
    ("train ppo --steps 1e99", "'1e99' is too large a number"),
    ("train ppo --steps 0", "--steps is 0 but must be from 1"),
    ("train ppo --seeds 0", "--seeds is 0"),
    ("train ppo --seeds 1e6", "--seeds is 1000000 but must be from 1 to 4096"),
    ("train ppo --seed -1", "--seed is -1"),
    ("train ppo --trial 0", "--trial is 0"),
    ("train ppo --keep 0", "--keep is 0"),
    ("train ppo --checkpoint-every 0", "--checkpoint-every is 0"),
    ("train ppo --ppo.games 0", "--ppo.games is 0"),
    ("train ppo --ppo.games 1e9", "from 1 to 16777216"),
    ("train ppo --ppo.minibatches 3", "--ppo.minibatches is 3 but must be a divisor of"),
    ("train ppo --ppo.episodes whole", "--ppo.unroll is 16 but must be 35 or more"),
    ("train hop-plus --opponent.data some", "--opponent.data"),
    ("train ppo --ppo.learning-rate nan", "'nan' is not a finite number"),
    ("train ppo --ppo.learning-rate inf", "'inf' is not a finite number"),
    ("train ppo --ppo.learning-rate 0", "above 0 and at most"),
    ("train ppo --ppo.learning-rate=", "'' is not a number"),
    ("train ppo --ppo.entropy-end x", "--ppo.entropy-end is 'x' but must be"),
    ("train ppo --ppo.discount 1.1", "--ppo.discount is 1.1 but must be from 0 to 1"),
    ("train ppo --ppo.parameters both", "--ppo.parameters is 'both' but must be one of"),
    ("train ppo --net.kind mpl", "did you mean mlp?"),
    ("train ppo --net.hidden 0", "--net.hidden is 0"),
    ("train ppo --opponent.net.hidden 0", "--opponent.net.hidden is 0"),
    ("train ppo --game.size 0", "--game.size is 0"),
    ("train ppo --game.size 2", "2x2 has 4 cells"),
    ("train ppo --game.size 99", "--game.size is 99 but must be from 1 to 32"),
    ("train ppo --game.seats 1", "--game.seats is 1"),
    ("train ppo --game.seats 2 --game.stag-hunters 3", "--game.stag-hunters is 3"),
    ("train ppo --game.stags 0 --game.hares 0", "at least 1"),
    ("train ppo --game.strength 1 2", "one number for each of the 4 seats"),
    ("train ppo --game.strength 1 2 x 4", "--game.strength cannot be read"),
    ("train ppo --game.strength 1 2 0 4", "above 0 for every seat"),
    ("train ppo --game.height x", "--game.height is 'x' but must be"),
    ("train ppo --game chess", "there is no game 'chess'"),
    ("train ppo --game.obstacles 40", "need at least"),
    ("train ppo --goal.horizon 0", "--goal.horizon is 0"),
    ("train ppo --belief.floor 0", "--belief.floor is 0"),
    ("train ppo --imagine.real-ratio 1.1", "--imagine.real-ratio is 1.1"),
    ("train ppo --imagine.real-ratio 0", "--imagine.real-ratio is 0.0"),
    ("train hop-plus --imagine.critic-weight 0.5", "must be 1 where --imagine.critic-on is real"),
    (
        "train hop-plus --parts opponent world imagination --imagine.goals zero",
        "--imagine.goals is 'zero' but must be inferred without --parts goal",
    ),
    ("train ppo --imagine.real-ratio-end 0", "--imagine.real-ratio-end is 0.0"),
    ("train ppo --memory.kind always", "--memory.kind is 'always'"),
    ("train ppo --search.simulations -1", "--search.simulations is -1"),
    ("train ppo --search.trees 5", "without --search.simulations"),
    # Settings that do not go together.
    ("train ppo --parts goal gaol", "did you mean goal?"),
    ("train ppo --parts belief", "needs opponent"),
    ("train ppo --parts opponent goal belief", "only one"),
    ("train ppo --parts imagination", "needs opponent and world"),
    ("train ppo --memory.kind trial", "needs trials"),
    ("train ppo-memory --parts goal", "each say what a player makes of the others"),
    ("train hop --ppo.prosociality 1", "0 with a search"),
    ("train hop --search.infer-every 1", "--search.infer-every is 1"),
    ("train one-step --search.choice visits", "--search.choice is 'visits'"),
    ("train goal --goal.history each", "--goal.about each"),
    ("train goal --ppo.unroll 1 --ppo.games 256", "with the goal part"),
    ("train ppo --seats stag,stag,stag,stag", "nobody learns"),
    ("train ppo --seats learn,stag", "names 2 players but the game has 4 seats"),
    ("train ppo --seats learn,stag,stag,rndom", "did you mean random?"),
    ("train ppo --seats learn|stag,stag,stag,stag", "learn cannot be one of a mixture"),
    ("train ppo --seats learn,stag,stag,stag --train-against all", "give one"),
    ("train ppo --train-against some", "--train-against is 'some'"),
    ("train ppo --seats learn,runs/nope@0,stag,stag", "there is no run runs/nope"),
    ("train ppo --seats learn,nope.safetensors,stag,stag", "cannot read the player"),
    ("train ppo --seats learn,file/x@0,stag,stag", "there is no run file/x"),
    ("train goal --goal.from runs/nope", "there is no run runs/nope"),
    ("train goal --goal.from runs/a", "runs/a is a run of kind training"),
    ("train hop-plus --world.channel-weights -1", "for each plane"),
    ("train hop-plus --game.sight 1", "nobody sees what is out of sight (game.sight)"),
    # Where to write.
    ("train ppo --runs file", "is not a folder"),
    ("train ppo --runs /dev/null/x", "is not a folder"),
    ("train ppo --runs /proc/x", "cannot make the run folder"),
    ("train ppo --name a", "exists already"),
    ("collect --players stag|hare --out data --episodes 4", "data"),
    ("collect --players stag|hare --out file/x --episodes 4", "cannot"),
    ("export runs/a --out /dev/null/x.safetensors", "cannot write"),
    ("export runs/a --out empty", "exists already"),
    ("replay --players stag,stag,hare,hare --out /dev/null/x.gif", "cannot write"),
    ("replay --players stag,stag,hare,hare --out x.mp4", "must end in .gif or .png"),
    ("report runs/a --quick --out /dev/null/x.html", "cannot write"),
    ("report runs/a --quick --out empty", "cannot write"),
    ("pretrain world --data data --runs file", "is not a folder"),
    # Runs, players and data that are not there, or not what they should be.
    ("resume runs/nope", "there is no run runs/nope; there are runs/a"),
    ("resume runs", "it holds runs/a"),
    ("resume empty", "it has no config.json"),
    ("resume file", "it has no config.json"),
    ("evaluate runs/aa", "there is no run runs/aa; there are runs/a"),
    ("evaluate nowhere/a", "there is no run nowhere/a, and nowhere holds no runs"),
    ("evaluate runs", "it holds runs/a"),
    ("evaluate runs/a --game.size 5", "has a game of its own"),
    ("evaluate runs/a --players stag", "names 1 player but the game has 2 seats"),
    ("evaluate runs/a --episodes 0", "--episodes is 0"),
    ("evaluate runs/a --episodes 1e13", "--episodes is 10000000000000 but must be from 1 to"),
    ("evaluate runs/a --games 1e9", "--games is 1000000000 but must be from 1 to 4194304"),
    ("evaluate runs/a --seed -1", "--seed is -1"),
    ("evaluate --players stag,stag,hare,rndom", "did you mean random?"),
    ("evaluate --players ,,,", "''"),
    ("evaluate --players stag,stag,hare,noisy-stag:2", "noisy-stag"),
    ("evaluate --players stag,stag,hare,noisy-stag:x", "noisy-stag"),
    ("evaluate --players stag,stag,hare,random --search.simulations 5", "nobody here has learned"),
    ("evaluate --players file.safetensors,stag,stag,stag", "cannot read the player"),
    ("evaluate --players empty/x.safetensors,stag,stag,stag", "cannot read the player"),
    ("evaluate --players runs/a,runs/a", "names 2 players but the game has 4 seats"),
    ("evaluate runs/a --search.world learned --search.simulations 2", "has learned no world"),
    ("collect runs/nope", "there is no run"),
    ("collect --players stag", "names 1 player"),
    ("collect --players stag|hare --episodes 0", "--episodes is 0"),
    ("collect --players stag|hare --games -1", "--games is -1"),
    ("replay runs/nope", "there is no run"),
    ("replay runs/a --episode -1", "--episode is -1"),
    ("replay runs/a --seat 9", "--seat is 9 but must be from 0 to 1"),
    ("replay runs/a --among 0", "--among is 0"),
    ("replay runs/a --among 5 --episode 1", "leave --episode and --layout out"),
    ("replay runs/a --out x.gif --json", "give one"),
    ("replay runs/a --layout nope.txt", "cannot read nope.txt"),
    ("replay runs/a --layout empty", "cannot read empty"),
    ("replay runs/a --layout file", "layout"),
    ("replay runs/a --layout player.safetensors", "cannot read player.safetensors"),
    ("export runs/nope --out x.safetensors", "there is no run"),
    ("export runs/a --out x.safetensors --seat 9", "9"),
    ("export runs/a --out x.safetensors --seat -1", "-1"),
    ("report runs/nope", "there is no run"),
    ("report runs/a runs/nope", "there is no run"),
    ("report runs/a --language fr", "--language is 'fr'"),
    ("diagnose seats nope", "neither a run's folder nor a preset"),
    ("diagnose seats runs/a#1", "about whole runs: write runs/a instead"),
    ("resume runs/a#1", "about whole runs: write runs/a instead"),
    ("report runs/a@0", "about whole runs: write runs/a instead"),
    ("report runs/a runs/a", "a run is named twice"),
    ("crossplay hare hare", "somebody is named twice"),
    ("crossplay runs/a runs/a#0", "somebody is named twice"),
    ("export runs/a --seat -1 --out x.safetensors", "--seat is -1"),
    ("evaluate runs/a#0 --players runs/a#0@7,stag", "take runs/a#0@0"),
    ("evaluate runs/a --episodes 1e30", "too large"),
    ("diagnose seats poo", "did you mean ppo?"),
    ("diagnose seats nope:thing", "nope"),
    ("diagnose seats ppo --fault gremlins", "gremlins"),
    ("diagnose seats ppo --seeds 0", "--seeds is 0"),
    ("diagnose seats ppo --steps 0", "--steps is 0"),
    ("diagnose seats runs/a --steps 5", "it is for presets"),
    ("diagnose seats empty", "it has no config.json"),
    ("diagnose value-loss nope", "neither a run's folder nor a preset"),
    ("diagnose value-loss ppo --updates -1", "--updates is -1"),
    ("diagnose value-loss ppo --seed -1", "--seed is -1"),
    ("diagnose value-loss runs/a --fault strength", "it is for presets"),
    ("diagnose models runs/nope", "there is no run"),
    ("diagnose models runs/a", "kind"),
    ("diagnose models runs/a --rows 0", "--rows is 0"),
    ("diagnose adaptation ppo", "a preset has learned nothing yet"),
    ("diagnose adaptation nope", "neither a run's folder nor a preset"),
    ("diagnose adaptation runs/a --seat 2", "--seat is 2"),
    ("diagnose adaptation runs/a --trials 0", "--trials is 0"),
    ("pretrain world --data nope", "there is no folder "),
    ("pretrain world --data empty", "is not recorded play"),
    ("pretrain world --data file", "is not recorded play"),
    ("pretrain world --data runs/a", "is not recorded play"),
    ("pretrain world --data data --fit.batch 0", "--fit.batch is 0"),
    ("pretrain world --data data --fit.held-out 1", "--fit.held-out is 1.0"),
    ("pretrain world --data data --world.head cell", "did you mean cells?"),
    ("pretrain goal --data data --goal.prior.size 1", "--goal.prior.size is 1"),
    ("pretrain goal --data data --goal.size 4", "it is --goal.prior.size"),
    ("pretrain goal --data data --goal.prior.net.layers 0", "--goal.prior.net.layers is 0"),
    ("pretrain opponent --data data --opponent.goal hindsight", "--goal-run"),
    ("pretrain opponent --data data --goal-run runs/nope", "belong together"),
    (
        "pretrain opponent --data data --opponent.goal hindsight --goal-run runs/nope",
        "there is no run runs/nope",
    ),
    ("certify --steps 0", "--steps is 0"),
    ("certify --episodes 0", "--episodes is 0"),
    ("certify --trial 0", "--trial is 0"),
    ("certify --against stag", "names 1 player but the game has 4 seats: one for the player and 3"),
    ("certify --against stag,stag,rndom", "did you mean random?"),
    ("certify --against runs/nope@0,stag,stag", "there is no run"),
    ("certify --ppo.lr 1", "did you mean --ppo.learning-rate?"),
    ("adapt nope", "neither a run's folder nor a preset"),
    ("adapt runs/a --against stag,stag", "one for the player and one other"),
    ("adapt runs/a --against learn", "needs --learning online"),
    ("adapt runs/a --against stag|hare", "is a mixture"),
    ("adapt runs/a --trials 0", "--trials is 0"),
    ("adapt runs/a --seat 2", "--seat is 2"),
    ("adapt runs/a --steps 5", "--steps is for presets"),
    ("adapt runs/a --ppo.learning-rate 1", "--learning is none"),
    ("adapt runs/a --learning online --ppo.learning-rate 0", "--ppo.learning-rate is 0"),
    ("adapt runs/a --protocol hop --episodes 3", "leave --episodes out"),
    ("adapt runs/a --references nope.json", "cannot read the references"),
    ("adapt runs/a --references file", "cannot read the references"),
    ("adapt runs/a --references empty", "cannot read the references"),
    ("adapt player.safetensors --learning online", "takes a run"),
    ("adapt file.safetensors", "cannot read the player"),
    ("crossplay runs/a runs/nope", "runs/nope"),
    ("crossplay stag hare --episodes 0", "--episodes is 0"),
    ("crossplay stag rndom", "did you mean random?"),
    ("crossplay runs/a stag --seed -1", "--seed is -1"),
    ("ablate ladder --rungs nope", "nope"),
    ("ablate ladder --games 5", "it is --ppo.games"),
    ("ablate ladder --level nan", "'nan' is not a finite number"),
    ("ablate ladder --steps 0", "--steps is 0"),
    ("ablate ladder --runs /dev/null/x", "is not a folder"),
    ("bench game --games 0", "--games is 0"),
    ("bench game --seconds inf", "'inf' is not a finite number"),
    ("bench game --seconds 0", "--seconds is 0"),
    ("bench train --seconds -1", "--seconds is -1"),
    ("bench update --rounds 0", "--rounds is 0"),
    ("bench search --search.simulations 0", "--search.simulations is 0"),
    ("bench search --rounds 0", "--rounds is 0"),
]


@pytest.mark.parametrize(("command", "words"), WRONG, ids=[command for command, _ in WRONG])
def test_wrong_words(
    command: str, words: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    refused(command, words, capsys)


def put(name: str, content: str | bytes) -> Damage:
    """Damage that replaces a file."""
    data = content.encode() if isinstance(content, str) else content

    def damage(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return damage


def cut(name: str) -> Damage:
    """Damage that leaves half of a file."""

    def damage(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


def gone(name: str) -> Damage:
    def damage(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def folder_for(name: str) -> Damage:
    """Damage that puts a folder where a file should be."""

    def damage(folder: Path) -> None:
        gone(name)(folder)
        (folder / name).mkdir()

    return damage


def edited(name: str, *keys: str, value: object) -> Damage:
    """Damage within a JSON file."""

    def damage(folder: Path) -> None:
        whole = json.loads((folder / name).read_text())
        inner = whole
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value
        (folder / name).write_text(json.dumps(whole))

    return damage


CONFIG_DAMAGE: dict[str, Damage] = {
    "no config": gone("config.json"),
    "empty config": put("config.json", ""),
    "half a config": cut("config.json"),
    "config of words": put("config.json", "once upon a time"),
    "config of bytes": put("config.json", b"\xff\xfe\x00"),
    "config is a list": put("config.json", "[1]"),
    "config without settings": put("config.json", "{}"),
    "config is a folder": folder_for("config.json"),
    "settings are a number": edited("config.json", "config", value=3),
    "a group is a number": edited("config.json", "config", "ppo", value=3),
    "a count is a word": edited("config.json", "config", "ppo", "games", value="x"),
    "a rate is a word": edited("config.json", "config", "ppo", "learning_rate", value="x"),
    "a rate is nothing": edited("config.json", "config", "ppo", "learning_rate", value=None),
    "a setting is out of range": edited("config.json", "config", "game", "size", value=99),
    "a setting is unknown": edited("config.json", "config", "sauce", value=1),
    "parts are a number": edited("config.json", "config", "parts", value=3),
    "strengths are words": edited("config.json", "config", "game", "strength", value=["a", "b"]),
    "kind is unknown": edited("config.json", "kind", value="opera"),
    "kind is a list": edited("config.json", "kind", value=[1]),
}
READERS = (
    "resume runs/a",
    "evaluate runs/a",
    "replay runs/a --episode 0",
    "export runs/a --out x.safetensors",
    "adapt runs/a --trials 2",
    "crossplay runs/a stag",
    "report runs/a --quick",
    "diagnose seats runs/a",
    "diagnose value-loss runs/a",
    "diagnose adaptation runs/a --trials 2",
    "collect runs/a --episodes 2",
    "diagnose models runs/a",
)


@pytest.mark.parametrize("damage", CONFIG_DAMAGE)
@pytest.mark.parametrize("command", READERS)
def test_damaged_settings(
    command: str, damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a run: whoever reads it says which run."""
    CONFIG_DAMAGE[damage](place["runs/a"])
    refused(command, "runs/a", capsys)


def checkpointed(damage: Damage) -> Damage:
    """The same for the files of the newest checkpoint, of which there is one then."""

    def spoil(folder: Path) -> None:
        steps = sorted((folder / "checkpoints").iterdir(), key=lambda path: int(path.name))
        for step in steps[:-1]:
            shutil.rmtree(step)
        damage(steps[-1])

    return spoil


def rehashed(content: bytes) -> Damage:
    """Arrays that are what the manifest says, and no arrays."""

    def damage(folder: Path) -> None:
        put("players.safetensors", content)(folder)
        digest = hashlib.sha256(content).hexdigest()
        edited("manifest.json", "sha256", "players", value=digest)(folder)

    return damage


CHECKPOINT_DAMAGE: dict[str, Damage] = {
    "half of the arrays": checkpointed(cut("players.safetensors")),
    "no arrays": checkpointed(gone("players.safetensors")),
    "arrays of words": checkpointed(put("players.safetensors", "once")),
    "arrays that are none": checkpointed(rehashed(b"once upon a time")),
    "other arrays": checkpointed(rehashed(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")),
    "no manifest": checkpointed(gone("manifest.json")),
    "half a manifest": checkpointed(cut("manifest.json")),
    "manifest is a list": checkpointed(put("manifest.json", "[1]")),
    "arrays are a folder": checkpointed(folder_for("players.safetensors")),
}


@pytest.mark.parametrize("damage", CHECKPOINT_DAMAGE)
@pytest.mark.parametrize(
    "command", ["evaluate runs/a", "export runs/a --out x.safetensors", "crossplay runs/a stag"]
)
def test_damaged_checkpoints(
    command: str, damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever needs one says which is damaged, and that there is none left."""
    CHECKPOINT_DAMAGE[damage](place["runs/a"])
    refused(command, "has no usable checkpoint", capsys, said=2)


def test_no_checkpoint(place: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    gone("checkpoints")(place["runs/a"])
    refused("evaluate runs/a", "has no usable checkpoint", capsys)


LOG_DAMAGE: dict[str, tuple[str, Damage]] = {
    "metrics of words": ("report runs/a --quick", put("metrics.jsonl", "once\n")),
    "metrics of bytes": ("report runs/a --quick", put("metrics.jsonl", b"\xff\xfe\n")),
    "metrics are lists": ("report runs/a --quick", put("metrics.jsonl", "[1]\n")),
    "metrics are numbers": ("report runs/a --quick", put("metrics.jsonl", "3\n")),
    "metrics without steps": ("report runs/a --quick", put("metrics.jsonl", "{}\n")),
    "metrics are a folder": ("report runs/a --quick", folder_for("metrics.jsonl")),
    "result of words": ("report runs/a --quick", put("result.json", "once")),
    "result of bytes": ("report runs/a --quick", put("result.json", b"\xff\xfe")),
    "result is a list": ("report runs/a --quick", put("result.json", "[1]")),
    "half a result": ("report runs/a --quick", cut("result.json")),
    "result is a folder": ("report runs/a --quick", folder_for("result.json")),
    "half a result, resumed": ("resume runs/a", cut("result.json")),
    "result is a list, resumed": ("resume runs/a", put("result.json", "[1]")),
}


@pytest.mark.parametrize("damage", LOG_DAMAGE)
def test_damaged_logs(
    damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command, spoil = LOG_DAMAGE[damage]
    spoil(place["runs/a"])
    refused(command, "runs/a", capsys)


METRICS_DAMAGE: dict[str, Damage] = {
    "words": put("metrics.jsonl", "once\n"),
    "bytes": put("metrics.jsonl", b"\xff\xfe\n"),
    "lists": put("metrics.jsonl", "[1]\n"),
    "nothing": put("metrics.jsonl", ""),
    "no updates": put("metrics.jsonl", "{}\n"),
    "wrong updates": put("metrics.jsonl", '{"update": "x"}\n'),
    "a folder": folder_for("metrics.jsonl"),
}


@pytest.mark.parametrize("damage", METRICS_DAMAGE)
def test_damaged_metrics_of_a_run_that_goes_on(
    damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    gone("result.json")(place["runs/a"])
    METRICS_DAMAGE[damage](place["runs/a"])
    refused("resume runs/a", "metrics.jsonl", capsys)


DATA_DAMAGE: dict[str, Damage] = {
    "no facts": gone(FACTS),
    "half the facts": cut(FACTS),
    "facts of words": put(FACTS, "once"),
    "facts of bytes": put(FACTS, b"\xff\xfe"),
    "facts are a list": put(FACTS, "[1]"),
    "no facts in them": put(FACTS, "{}"),
    "facts are a folder": folder_for(FACTS),
    "another format": edited(FACTS, "format", value="x"),
    "a game that is none": edited(FACTS, "game", value=3),
    "a game out of range": edited(FACTS, "game", "size", value=99),
    "seats that are none": edited(FACTS, "seats", value=3),
    "files that are none": edited(FACTS, "files", value=3),
}


@pytest.mark.parametrize("damage", DATA_DAMAGE)
def test_damaged_data(
    damage: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    DATA_DAMAGE[damage](place["data"])
    refused("pretrain world --data data", "data", capsys)


@pytest.mark.parametrize("content", [b"", b"once", b"\x02\x00\x00\x00\x00\x00\x00\x00{}"])
@pytest.mark.parametrize(
    "command",
    [
        "evaluate --players player.safetensors,stag --game.seats 2",
        "adapt player.safetensors",
        "train ppo --seats learn,player.safetensors --game.seats 2",
        "diagnose adaptation player.safetensors",
        "certify --game.seats 2 --against player.safetensors",
    ],
)
def test_damaged_players(
    command: str, content: bytes, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    place["player.safetensors"].write_bytes(content)
    refused(command, "player.safetensors", capsys)


@pytest.mark.parametrize(
    "content", ["", "once", "[1]", "{}", '{"told": 3}', '{"told": 1, "config": 3}', "3", "null"]
)
def test_damaged_references(
    content: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("references.json").write_text(content)
    refused("adapt runs/a --references references.json", "references.json", capsys)


@pytest.mark.parametrize(
    "content", ["", "\n", "0 1 2 3\n", "0 1S\n. x\n", "0 0 1 .\n. . . .\n. . . .\n. . . .\n"]
)
def test_damaged_layouts(
    content: str, place: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("board.txt").write_text(content)
    refused(f"replay --players {FOUR} --layout board.txt", "", capsys)


SMALL_COLLECT = (
    "collect --players stag,hare --game.size 3 --game.seats 2 --game.hares 2 --episodes 4"
    " --games 4 --out new"
)


@pytest.mark.parametrize(
    "command",
    [
        "train ppo --game.size 3 --game.seats 2 --game.hares 2 --name new",
        "pretrain world --data data --name new",
        SMALL_COLLECT,
        "export runs/a --out x.safetensors",
        "report runs/a --quick",
    ],
)
@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_disk_that_takes_nothing(
    command: str,
    reason: int,
    place: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is half written is taken away again."""

    def fail(*_: object) -> NoReturn:
        raise OSError(reason, os.strerror(reason))

    main(["list", "games"])
    monkeypatch.setattr(os, "fsync", fail)
    monkeypatch.setattr("hopplus.runs.progress.Progress.advance", lambda *_: None)
    before = tree(Path())
    capsys.readouterr()
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert os.strerror(reason) in err.splitlines()[-1]
    assert "Traceback" not in err
    assert tree(Path()) == before


@pytest.mark.parametrize("command", ["list games", "evaluate --players stag,stag,hare,random"])
def test_output_that_is_full(command: str) -> None:
    """As `hopplus list games > /dev/full`."""
    import subprocess
    import sys

    more = ["--episodes", "8", "--games", "8"] if command.startswith("evaluate") else []
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "hopplus", *command.split(), *more],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ended.returncode == 1
    assert "cannot write: No space left on device" in ended.stderr
    assert "Traceback" not in ended.stderr


# A command line for every command that is refused for its subject once all of its options are fine.
SUBJECTS = {
    "train": "train hop-plus --seats learn,nope.safetensors,stag,stag",
    "resume": "resume nope",
    "evaluate": "evaluate nope",
    "collect": "collect nope",
    "pretrain": "pretrain opponent --data nope",
    "diagnose": "diagnose seats nope",
    "diagnose value-loss": "diagnose value-loss nope",
    "diagnose models": "diagnose models nope",
    "diagnose adaptation": "diagnose adaptation nope",
    "certify": "certify --against nope/x@0,stag,stag",
    "adapt": "adapt nope",
    "crossplay": "crossplay nope/x nope/y",
    "ablate": "ablate ladder --rungs nope",
    "report": "report nope",
    "replay": "replay nope",
    "export": "export nope --out x",
    "list": "list players --game.size 2",
    "bench": "bench game --game.size 2",
    "bench train": "bench train --game.size 2",
    "bench update": "bench update --game.size 2",
    "bench search": "bench search --game.size 2",
}
ODD = ("nan", "inf", "-1", "0", "", "x", "1e99")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_odd_numbers(
    subject: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every option of every command that takes a number."""
    monkeypatch.chdir(tmp_path)
    line = SUBJECTS[subject].split()
    path = tuple(line[: 2 if line[0] in SUBCOMMANDS else 1])
    numeric = [one.names[-1] for one in _manual(path).options if re.search("INT|FLOAT", one.shown)]
    assert numeric or subject in ("resume", "report")
    # The settings are the same everywhere: all of them for training, one of each group elsewhere.
    grouped = {name.partition(".")[0]: name for name in numeric if "." in name}
    alone = [name for name in numeric if "." not in name]
    for name in numeric if subject == "train" else [*alone, *grouped.values()]:
        for given in ODD if subject != "train" or "." not in name else ("nan", "-1", "1e99"):
            if name in line:
                continue
            assert main([*line, f"{name}={given}"]) == 2, (name, given)
            out, err = capsys.readouterr()
            assert out == ""
            assert err.startswith("hopplus: ")
            assert err.count("\n") == 1
            # What is no number at all is refused for itself, not for what else is wrong.
            other = given in ("-1", "0", "1e99") or "--game.size" in line  # read before it
            assert name in err or other, (name, given, err)
    assert not list(tmp_path.iterdir())


def test_every_command_is_tried() -> None:
    assert {line.split()[0] for line in SUBJECTS.values()} == set(COMMANDS)
    assert len(WRONG) >= 200
