"""Where it is lost what kind of players one faces."""

import json
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.config import (
    FOR_EVER,
    ConfigError,
    NetConfig,
    OpponentLearnerConfig,
    PPOConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
)
from hopplus.diagnosis.adaptation import ILLNESSES, diagnose_adaptation
from hopplus.diagnosis.finding import Verdict
from hopplus.diagnosis.introspection import (
    Introspection,
    TrialSteps,
    introspect,
    pair_strangers,
    read_kinds,
)
from hopplus.diagnosis.player_faults import PLAYER_FAULTS, build_in
from hopplus.evaluation.trials import make_trials
from hopplus.games import make_game
from hopplus.learning.from_run import make_learner
from hopplus.play.trained import Trained, write_player

GAME = StagHuntConfig(size=3, seats=3, hares=2, horizon=8)
NET = NetConfig(hidden=8)


def fresh(*parts: str) -> Trained:
    config = TrainConfig(
        game=GAME,
        net=NET,
        ppo=PPOConfig(games=4, unroll=4),
        parts=parts,
        opponent=OpponentLearnerConfig(net=NET),
        train_against="all",
        trial=2,
    )
    learner = make_learner(config, {})
    param_sets = jax.jit(learner.init)(jax.random.key(0)).params[learner.learning]
    player_params = jax.tree.map(lambda leaf: leaf[0], param_sets)
    return Trained(learner.actor, player_params, config=config)


@cache
def believing(fault: str | None) -> Introspection:
    """Of a player whose belief is right by itself, and whose policy is any that listens well."""
    player = fresh("opponent", "belief")
    head = jax.tree.map(lambda leaf: 100 * leaf, player.params.policy.policy)
    params = eqx.tree_at(lambda params: params.policy.policy, player.params, head)
    player = replace(player, params=params, actor=build_in(fault, player.actor))
    return introspect(make_game(GAME), player, 1, 2, 360, [0, 3], 0)


@pytest.mark.parametrize("others", [1, 2, 3])
def test_strangers_differ_in_everyone(others: int) -> None:
    ways = np.array(list(product(range(3), repeat=others)))
    drawn = np.tile(np.repeat(ways, 2, axis=0), (2, 1))
    assert (drawn != drawn[pair_strangers(len(drawn), 3, others)]).all()


def test_who_is_tried_counts_on_the_same_company_for_ever() -> None:
    table, _ = make_trials(
        make_game(GAME), fresh("opponent", "belief"), [("stag", "hare")], {}, 0, SearchConfig()
    )
    assert table.seating.trial == FOR_EVER
    assert table.focal.carries


def test_what_a_probe_reads() -> None:
    """The kinds themselves, nothing, and a step that nobody came to."""
    drawn = np.array([[a, b] for a in range(3) for b in range(3)] * 24)
    count = len(drawn)
    rng = np.random.default_rng(0)
    drawn = drawn[rng.permutation(count)]
    shape = (2, count)
    told = np.pad(np.eye(3)[drawn].reshape(count, -1), ((0, 0), (0, 54)))  # room to learn by heart
    inferred = np.stack([told, rng.normal(size=told.shape)])
    step = np.broadcast_to(np.arange(2)[:, None], shape)
    blank = np.zeros(shape)
    seen = TrialSteps(blank, step, blank, inferred, *[blank] * 6)
    assert read_kinds(seen, drawn, 3, 0, 0) == 1.0
    assert 0.2 < read_kinds(seen, drawn, 3, 0, 1) < 0.47
    assert np.isnan(read_kinds(seen, drawn, 3, 1, 0))
    assert np.isnan(read_kinds(seen, drawn, 3, 0, 2))


def test_a_belief_is_read_and_a_policy_that_is_told_nothing_does_not_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = believing(None)
    assert found.probe[0, 0] == pytest.approx(1 / 3)  # before anything was seen
    assert found.probe[1, 0] > 0.5  # what they took in the first episode
    assert (found.accuracy[:-1] < found.best[:-1] - 0.1).all()  # the last are all chance
    assert found.best[0] > found.best[-1]  # stag hunters are easier to foresee than chance
    assert (found.moved_other > found.moved_alike).all()
    assert (found.misled != found.accuracy).any()  # whatever they say, it is of somebody else
    np.testing.assert_allclose(found.misled, found.accuracy, atol=0.03)
    assert (found.infers, found.models) == (True, True)
    assert (
        diagnose_adaptation("one", [found]).verdict.name == "lost-in-models"
    )  # nothing has been learned yet
    path = tmp_path / "plain.safetensors"
    write_player(path, fresh())
    size = ["--game.size", "3", "--game.seats", "3", "--game.hares", "2", "--game.horizon", "8"]
    command = ["diagnose", "adaptation", str(path), *size, "--trials", "36", "--json"]
    command += ["--out", str(tmp_path / "page.html")]
    assert main(command) == 0
    plain = json.loads(capsys.readouterr().out)
    assert np.array(plain["moved_other"]).tolist() == [[0, 0]]
    assert plain["accuracy"] == [[None] * 6]
    assert plain["verdict"] == "no-inference"
    assert "it infers nothing about the others" in (tmp_path / "page.html").read_text()
    saved = json.loads((tmp_path / "page.json").read_text())
    assert {"page": plain["page"], **saved} == plain
    assert [check["state"] for check in saved["checks"]] == ["fault"]
    assert main([*command[:-1], str(tmp_path / "page.json")]) == 2
    assert "--out names the page" in capsys.readouterr().err
    assert main(["diagnose", "adaptation", "belief"]) == 2
    assert "a preset has learned nothing yet" in capsys.readouterr().err


def test_faults_of_players_are_named() -> None:
    """Of one whose models, which have learned nothing, are not asked."""
    player = fresh("opponent", "belief")
    names = {None: "healthy", "wiped-memory": "lost-in-inference", "deaf-policy": "lost-in-policy"}
    for name, said in names.items():
        assert verdict(replace(believing(name), models=False)).name == said
    for name, fault in PLAYER_FAULTS.items():
        assert fault.adaptation == names.get(name, "lost-in-models")
    usual, shifted = (
        build_in(name, player.actor).context.about_others(jnp.arange(6.0)).tolist()
        for name in (None, "shifted-goals")
    )
    assert shifted == [usual[1], usual[0]]
    assert usual[0] != usual[1]
    with pytest.raises(ConfigError, match="infers nothing"):
        build_in("deaf-policy", fresh().actor)
    with pytest.raises(ConfigError, match="must be one of wiped-memory, shifted-goals"):
        build_in("deaf", player.actor)


# What it means.


def watched(
    read: float = 0.9,
    right: float = 0.8,
    misled: float = 0.5,
    alike: float = 0.1,
    other: float = 0.3,
    models: bool = True,
) -> Introspection:
    """By two lineups, in two episodes, at two times: nothing is read before anything is seen."""
    return Introspection(
        times=[0, 4],
        probe=np.array([[1 / 3, read], [1 / 3, read]]),
        chance=1 / 3,
        lineups=[("stag",), ("hare",)],
        accuracy=np.full(2, right if models else np.nan),
        best=np.full(2, 0.9),
        misled=np.full(2, misled),
        moved_alike=np.array([0.0, alike]),
        moved_other=np.array([0.0, other]),
        infers=True,
        models=models,
    )


def verdict(*found: Introspection) -> Verdict:
    return diagnose_adaptation("made up", found).verdict


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, "healthy"),
        ({"models": False}, "healthy"),  # a memory needs none
        ({"read": 0.36}, "lost-in-inference"),
        ({"read": 0.36, "right": 0.3, "other": 0.001}, "lost-in-inference"),  # causes come first
        ({"right": 0.58}, "lost-in-models"),  # a fifth of what hangs on who they are
        ({"right": 0.5}, "lost-in-models"),  # they do not listen
        ({"right": 0.89, "misled": 0.89}, "not-known"),  # nor would it matter
        ({"alike": 0.0, "other": 0.001}, "lost-in-policy"),
        ({"alike": 0.2, "other": 0.2}, "lost-in-policy"),
        ({"read": float("nan")}, "not-known"),
        ({"other": float("nan")}, "not-known"),
    ],
)
def test_where_it_is_lost(given: dict[str, float], name: str) -> None:
    """Of one player, and of five that are all the same."""
    one = watched(**given)  # type: ignore[arg-type]
    for found in (verdict(one), verdict(*[one] * 5)):
        assert found.name == name
    assert name in (*ILLNESSES, "healthy", "not-known")


def test_too_few_trials_are_not_known() -> None:
    found = verdict(watched(read=float("nan")))
    assert found.name == "not-known"
    assert "too few trials" in found.evidence
    assert "--trials" in found.advice


def test_an_effect_is_no_verdict_while_its_cause_is_not_known() -> None:
    found = verdict(watched(read=float("nan"), other=0.001))
    assert found.name == "not-known"
    assert found.also == ("lost-in-policy",)


def test_seeds_that_differ_cannot_tell() -> None:
    """Their interval holds the threshold; those of one mind do not."""
    apart = verdict(watched(read=0.35), watched(read=0.9))
    assert apart.name == "not-known"
    assert "--seeds" in apart.advice
    assert verdict(watched(read=0.85), watched(read=0.9)).name == "healthy"
    assert verdict(watched(other=0.12), watched(other=0.3)).name == "not-known"


def test_who_infers_nothing_is_not_healthy() -> None:
    for one in (watched(models=False), watched(right=0.5)):  # whose models are told nothing
        found = verdict(replace(one, infers=False, probe=np.full((2, 2), np.nan)))
        assert (found.name, found.area) == ("no-inference", "inference")
        assert found.also == ()
