"""Fictitious co-play: runs that keep players of several stages, and runs that learn among them."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fake_runs import saved_arrays
from hopplus.api.learned import find_learned_players
from hopplus.cli import main
from hopplus.config import ConfigError, NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.evaluation.trials import told_kinds
from hopplus.games import make_game
from hopplus.games.game import views
from hopplus.learning.checkpoints import stages_of, step_at
from hopplus.learning.from_run import (
    find_background_players,
    find_trained,
    learner_from_run,
    new_run,
    stage_names,
)
from hopplus.learning.train import train
from hopplus.play.lineup import make_lineup
from hopplus.play.seeds import seed_keys
from hopplus.players.mixture import Mixture
from hopplus.report.pages.runs import runs_page
from hopplus.report.pages.summary import summarise
from hopplus.runs.folder import RunFolder, open_run
from tiny_hop_plus import jit, same

GAME = StagHuntConfig(size=3, seats=3, hares=2, horizon=6)
PPO = PPOConfig(games=4, unroll=6, minibatches=2, epochs=1)
SELF_PLAY = TrainConfig(
    game=GAME,
    net=NetConfig(hidden=8),
    ppo=PPO,
    steps=4 * PPO.steps,
    seeds=2,
    seed=7,
    checkpoint_every=1,
    keep=1,
    keep_stages=(0, 0.5),
)
AMONG = replace(SELF_PLAY, trial=2, seeds=1, keep=3, keep_stages=())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Self-play of four updates and two seeds, with checkpoints of the start and of half way."""
    made = new_run(tmp_path_factory.mktemp("runs") / "a", SELF_PLAY)
    train(made)
    return made


def policy(name: str) -> Any:
    return find_trained(name).params.policy


def test_stages_are_kept_for_good(run: RunFolder) -> None:
    assert stages_of(run) == {0: 0.0, 2: 0.5, 4: 1.0}
    begun = jax.jit(learner_from_run(run).init_all)(seed_keys(SELF_PLAY)).params[0].policy
    assert same(policy(f"{run.path}#8~0@1"), jax.tree.map(lambda leaf: leaf[1, 1], begun))
    found = [policy(f"{run.path}#8~{stage}@1") for stage in ("0", "0.5", "1")]
    assert not same(found[0], found[1])
    assert not same(found[1], found[2])
    assert same(found[2], policy(f"{run.path}#8@1"))
    assert same(found[1], policy(f"{run.path}#8~.47@1"))  # the nearest


def test_stages_are_shares_of_the_whole_training(run: RunFolder, tmp_path: Path) -> None:
    longer = open_run(Path(shutil.copytree(run.path, tmp_path / "longer")))
    longer.extend(replace(SELF_PLAY, steps=2 * SELF_PLAY.steps))
    assert stages_of(longer) == {0: 0.0, 2: 0.25, 4: 0.5}
    assert step_at(longer, 0.27) == 2
    with pytest.raises(ConfigError, match=r"near ~1 of its training; there are ~0, .*~0.5 \(--ke"):
        step_at(longer, 1)


def test_everyone_of_a_run(run: RunFolder, tmp_path: Path) -> None:
    a = str(run.path)
    assert len(stage_names(a)) == 2 * 3 * 3
    assert stage_names(f"{a}#8~0") == [f"{a}#8~0@{seat}" for seat in range(3)]
    assert stage_names(f"{a}@2")[:3] == [f"{a}#7~{stage}@2" for stage in ("0", "0.5", "1")]
    assert stage_names("player.safetensors") == ["player.safetensors"]
    config = replace(SELF_PLAY, ppo=replace(PPO, parameters="shared"))
    with pytest.raises(ConfigError, match="no usable checkpoint yet"):
        stage_names(str(new_run(tmp_path / "shared", config).path))
    with pytest.raises(ConfigError, match="takes runs and exported players"):
        stage_names("stag")


def test_seats_of_one_policy_are_one_player(run: RunFolder, tmp_path: Path) -> None:
    shared = open_run(Path(shutil.copytree(run.path, tmp_path / "shared")))
    facts = json.loads((shared.path / "config.json").read_text())
    facts["config"]["ppo"]["parameters"] = "shared"
    (shared.path / "config.json").write_text(json.dumps(facts))
    assert stage_names(f"{shared.path}#7~1") == [f"{shared.path}#7~1@0"]


def test_one_program_acts_for_all_as_each_would_alone(run: RunFolder) -> None:
    """Also beside a family and another script, and in any order."""
    names = stage_names(f"{run.path}#7")
    called = [names[0], "hare", *names[1:5], "family-devoted", *names[5:]]
    game = make_game(GAME)
    lineup = make_lineup(["|".join(called)] * 3, game, find_background_players(called))
    (mixture, _), *_ = lineup.seating.groups
    assert isinstance(mixture, Mixture)
    assert [numbers for _, numbers in mixture.groups] == [
        (0, *range(2, 6), *range(7, 11)),
        (1,),
        (6,),
    ]
    packed = jax.tree.map(lambda leaf: leaf[0], lineup.init(jax.random.key(0))[0])
    sets, key = mixture.unpack(packed), jax.random.key(5)
    assert same(mixture.pack(sets), packed)
    assert same(sets[3], find_trained(names[2]).params)
    view = jax.tree.map(lambda leaf: leaf[1], views(game, game.init(key)))

    def both(view: Any) -> Any:
        each = jnp.arange(len(called))
        acts = jax.vmap(lambda n: mixture.act(packed, mixture.start(), view, key, n)[1])(each)
        key_act = jax.random.split(key)[1]
        alone = [
            player.act(own, player.start(), view, key_act)[1].logits
            for player, own in zip(mixture.players, sets, strict=True)
        ]
        return acts.logits, jnp.stack(alone)

    together, alone = jit(both)(view)
    np.testing.assert_allclose(together, alone, atol=1e-6)
    learned = np.delete(np.asarray(alone), [1, 6], axis=0)
    assert len({row.tobytes() for row in learned}) == len(names)


@pytest.fixture(scope="module")
def among(run: RunFolder) -> RunFolder:
    """One that has learned among players of the run alone, and resumed half way."""
    config = replace(AMONG, co_play=(f"{run.path}#8@1",), context="oracle")
    made = new_run(run.path.with_name("b"), config)
    train(made)
    return made


def test_whom_a_run_has_met_is_told(run: RunFolder, among: RunFolder) -> None:
    met = [f"{run.path}#8~{stage}@1" for stage in ("0", "0.5", "1")]
    inside = [f"players/{number}.safetensors" for number in range(3)]
    assert among.facts()["met"] == dict(zip(inside, met, strict=True))
    config = among.config()
    assert config.seats == ",".join(["learn", *["|".join(inside)] * 2])
    assert (config.co_play, config.train_against) == ((), None)
    assert config.stays == 2
    page = runs_page(summarise([among]), "hopplus report")
    (seats,) = (row[1] for row in page.sections[0].rows or [] if row[0] == "seats")
    assert seats == ", ".join(["learn", *["|".join(met)] * 2])


def test_it_goes_on_bit_for_bit(among: RunFolder) -> None:
    half = Path(shutil.copytree(among.path, among.path.with_name("half")))
    shutil.rmtree(half / "checkpoints/4")
    (half / "result.json").unlink()
    shutil.move(among.path.with_name("a"), among.path.with_name("gone"))  # needs nothing outside
    try:
        train(open_run(half))
    finally:
        shutil.move(among.path.with_name("gone"), among.path.with_name("a"))
    one, two = (saved_arrays(path / "checkpoints/4") for path in (among.path, half))
    assert set(one) == set(two)
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)


def test_an_oracle_knows_them_by_the_numbers_that_it_has_learned(
    run: RunFolder, among: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    found = find_learned_players([str(among.path)], GAME, None, 1, 0, Path("runs"))
    met = list(among.facts()["met"].values())
    assert told_kinds(found.players[0][0]) == met
    assert same(found.met[met[1]].params, find_trained(met[1]).params)
    others = f"{run.path}#8~0@1,{run.path}~0.5@2"
    given = ["--seat", "0", "--trials", "4", "--episodes", "2", "--against", others, "--json"]
    assert main(["adapt", str(among.path), *given]) == 0
    (lineup,) = json.loads(capsys.readouterr().out)["lineups"]
    assert lineup == [f"{run.path}#8~0@1", f"{run.path}#7~0.5@2"]


def test_they_come_besides_families(run: RunFolder, tmp_path: Path) -> None:
    among = replace(AMONG, train_against="population", held_out=("family-slow",))
    config = replace(among, co_play=(f"{run.path}#8~0",))
    seats = new_run(tmp_path / "c", config).config().seats
    assert seats is not None
    names = seats.split(",")[1].split("|")
    assert len(names) == 15 + 3
    assert names[14:16] == ["family-weighing", "players/0.safetensors"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train ppo --co-play runs/a --seats learn,stag,stag,hare", "--seats and --co-play both"),
        ("train ppo --co-play stag", "takes runs and exported players"),
        ("train ppo --keep-stages 0 1.5", "--keep-stages is 1.5 but must be from 0 to 1"),
        ("evaluate {run} --players run~0.5,stag,hare", "behind the run itself, as in runs/a#1~0.5"),
        ("evaluate {run}~0.8", "there are ~0, ~0.5, "),
        ("adapt {run} --against {run}~0.2@1,stag", "near ~0.2 of its training"),
    ],
)
def test_what_is_refused(
    command: str, words: str, run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.format(run=run.path).split()) == 2
    assert words in " ".join(capsys.readouterr().err.split())
