"""A context from outside the package, through the public way alone: by the name of a module."""

import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import (
    ConfigError,
    MemoryConfig,
    NetConfig,
    StagHuntConfig,
    TrainConfig,
)
from hopplus.games import make_game
from hopplus.learning.from_run import find_trained, run_players
from hopplus.play.rollout import rollout, start
from hopplus.play.seating import Seating
from hopplus.play.trained import read_player
from hopplus.players.actor import make_actor
from hopplus.players.context.registry import CONTEXTS, make_context
from hopplus.runs.folder import open_run
from tiny_hop_plus import jit


def _words(text: str) -> list[str]:
    return text.split()


ROOT = Path(__file__).resolve().parents[1]
NAME = "examples.seen_acts:make_context"
SMALL = [
    "--game.size",
    "3",
    "--game.seats",
    "3",
    "--game.hares",
    "2",
    "--game.horizon",
    "5",
    "--net.hidden",
    "8",
    "--ppo.games",
    "4",
    "--ppo.unroll",
    "6",
    "--ppo.minibatches",
    "2",
    "--ppo.epochs",
    "1",
    "--steps",
    "48",
    "--trial",
    "3",
]
MODELS = [
    "--opponent.net.hidden",
    "8",
    "--opponent.fits",
    "1",
    "--opponent.batch",
    "8",
    "--world.hidden",
    "8",
    "--world.fits",
    "1",
    "--world.batch",
    "8",
    "--imagine.horizon",
    "3",
    "--imagine.warm-up",
    "0",
    "--imagine.gate",
    "1",
]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that lie where one works are found."""
    monkeypatch.chdir(ROOT)


def train(folder: Path, *options: str) -> Path:
    assert main(["train", *options, *SMALL, "--runs", str(folder), "--name", "a"]) == 0
    return folder / "a"


def test_it_trains_and_is_kept_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train(tmp_path, "ppo", "--context", NAME)
    assert json.loads((run / "config.json").read_text())["config"]["context"] == NAME
    capsys.readouterr()
    assert main(["evaluate", str(run), "--episodes", "8", "--json"]) == 0
    before = json.loads(capsys.readouterr().out)
    out = tmp_path / "one.safetensors"
    assert main(["export", f"{run}@0", "--out", str(out)]) == 0
    back, own = read_player(out), find_trained(f"{run}#0@0")
    assert (
        back.actor.context
        == own.actor.context
        == make_context(make_game(open_run(run).config().game), open_run(run).config())
    )
    assert type(back.actor.context).__name__ == "SeenActs"
    for one, two in zip(*map(jax.tree.leaves, (back.params, own.params)), strict=True):
        np.testing.assert_array_equal(one, two)
    capsys.readouterr()
    seats = f"{out},run,run"
    assert main(["evaluate", str(run), "--players", seats, "--episodes", "8", "--json"]) == 0
    after = json.loads(capsys.readouterr().out)
    # The same player, on the same boards, with the same dice.
    assert after["seats"][1:] == before["seats"][1:]
    assert after["seats"][0]["return"] == before["seats"][0]["return"]


def test_models_of_the_others_and_imagination_are_given_it(tmp_path: Path) -> None:
    parts = ["--parts", "opponent", "world", "imagination"]
    run = train(tmp_path, "ppo", "--context", NAME, *parts, *MODELS)
    (last,) = (json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()[-1:])
    assert np.isfinite(last["opponent/loss/cross_entropy"]).all()
    assert np.asarray(last["imagined/open"]).all()
    actor = run_players(open_run(run))[0].actor
    assert actor.parts.opponent is not None
    assert actor.parts.opponent.goal == len(make_game(open_run(run).config().game).action_names)


def test_it_lasts_for_a_trial() -> None:
    game = make_game(StagHuntConfig(size=3, seats=3, hares=2, horizon=4))
    config = TrainConfig(net=NetConfig(hidden=8), context=NAME)
    actor = make_actor("one", game, config)
    seating = Seating((actor,) * 3, trial=2)

    @jit
    def played() -> Any:
        params = seating.init(jax.random.key(0))
        plays = jax.vmap(lambda key: start(game, seating, key))(
            jax.random.split(jax.random.key(1), 4)
        )
        return rollout(game, seating, params, plays, 20)[1]

    found = jax.device_get(played())
    counts = found.memory[0].sum(axis=(2, 3, 4))  # [T, B] acts that were seen
    first = found.begins & (found.episode == 0)
    assert (counts[first] == 0).all()
    assert (counts[found.begins & (found.episode == 1)] > 0).all()
    assert found.episode.max() == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--context", "nobody"], "there is no context 'nobody'"),
        (["--context", "no.such:thing"], "there is no module 'no.such'"),
        (["--context", "examples.seen_acts:nothing"], "has no 'nothing'"),
        (["--context", "recurrent"], "needs --memory.kind"),
        (["--context", NAME, "--memory.kind", "episode"], "--memory.kind episode is given too"),
        (["--parts", "goal", "--memory.kind", "episode"], "each say what a player makes"),
        (["--context", "oracle"], "needs others to be drawn"),
    ],
)
def test_clear_errors(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "ppo", *options, *SMALL, "--runs", str(tmp_path), "--name", "a"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", ["recurrent", "none", NAME])
def test_replaying_gives_what_was_inferred(name: str) -> None:
    """Of each game's steps in order, across episodes and trials."""
    game = make_game(StagHuntConfig(size=3, seats=3, hares=2, horizon=4))
    memory = MemoryConfig("trial" if name == "recurrent" else "none", size=4)
    config = TrainConfig(net=NetConfig(hidden=8), context=name, memory=memory, trial=2)
    actor = make_actor("one", game, config)
    seating = Seating((actor,) * 3, trial=2)

    @jit
    def both() -> Any:
        params = seating.init(jax.random.key(0))
        play = start(game, seating, jax.random.key(1))
        plays = jax.tree.map(lambda leaf: leaf[None], play)
        found = rollout(game, seating, params, plays, 15)[1]
        views = jax.vmap(lambda state: game.view(state, 1))(
            jax.tree.map(lambda leaf: leaf[:, 0], found.state)
        )
        before = jax.tree.map(lambda leaf: leaf[:, 0, 1], found.memory[0])
        own = actor.context.params_of(jax.tree.map(lambda leaf: leaf[1], params[0]))
        again = actor.context.replay(own, before, views, found.begins[:, 0], found.episode[:, 0])
        return again, found.act.inferred[:, 0, 1]

    again, told = both()
    np.testing.assert_allclose(again, told, atol=1e-6)


def test_the_table_says_what_there_is() -> None:
    known = ["none", "recurrent", "goals", "belief", "traits", "types", "liam", "oracle"]
    assert list(CONTEXTS) == [*known, "episodes", "record"]
    with pytest.raises(ConfigError, match="a name, or module:attribute"):
        TrainConfig(context="")


@pytest.mark.parametrize(
    "name", ["seen_acts", "follower", "reward_model", "orchard", "patient_ppo"]
)
def test_the_documents_show_the_files(name: str) -> None:
    shown = (ROOT / "docs" / "extending.md").read_text()
    assert f"```python\n{(ROOT / 'examples' / f'{name}.py').read_text()}```" in shown
