"""Options: how they may be written, what is suggested for wrong ones, what the help shows."""

import contextlib
import io
import re
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from hopplus.cli import main, parse
from hopplus.cli.commands import COMMANDS, SUBCOMMANDS
from hopplus.cli.reading.manual import path_of
from hopplus.config import (
    BeliefConfig,
    ConfigError,
    DistilConfig,
    FitConfig,
    GoalConfig,
    GoalLearnerConfig,
    ImagineConfig,
    MemoryConfig,
    NetConfig,
    OpponentLearnerConfig,
    PPOConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
    WorldConfig,
    WorldLearnerConfig,
)
from hopplus.presets import ABOUT, PRESETS


def test_switches_may_be_given_both_ways_and_the_last_one_holds() -> None:
    """Whatever a preset has, so that a line of settings can be taken over and changed."""
    off, on = "--goal.no-anneal", "--goal.anneal"
    for preset in ("goal", "goal-trial"):
        for words, held in (([off], False), ([on, off], False), ([off, on], True)):
            command: Any = parse(["train", preset, *words])
            assert command.config.goal.anneal == held


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("train --steps 4e4 ppo", "train ppo --steps 4e4"),
        ("train --name goal ppo --seed 3", "train ppo --name goal --seed 3"),  # a name, not goal
        ("train --json hop --steps=4e4", "train hop --json --steps=4e4"),  # takes no value
        ("train --parts opponent goal ppo", "train ppo --parts opponent goal"),
        ("pretrain --data x world", "pretrain world --data x"),
        ("bench --games 8 game", "bench game --games 8"),
        ("diagnose --quick seats ppo", "diagnose seats --quick ppo"),
    ],
)
def test_options_may_stand_before_the_preset(before: str, after: str) -> None:
    assert parse(before.split()) == parse(after.split())


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("evalute", "no command 'evalute' (did you mean evaluate?)"),
        ("train pop", "no preset 'pop' (did you mean ppo?)"),
        ("evaluate --size 8", "--game.size"),
        ("train ppo --ppo.lr 1", "--ppo.learning-rate"),
        ("train ppo --lr 1", "--ppo.learning-rate"),
        ("train --lr 1 ppo", "--ppo.learning-rate"),
        ("pretrain world --data x --lr 1", "--fit.learning-rate"),
        ("train ppo --gamma 1", "--ppo.discount"),
        ("train ppo --ppo.lam 1", "--ppo.gae-lambda"),
        ("train ppo --gae_lambda 1", "--ppo.gae-lambda"),
        ("train ppo --batch-size 1", "--ppo.minibatches"),
        ("pretrain goal --data x --batch-size 1", "--fit.batch"),
        ("train ppo --hidden 1", "--net.hidden"),
        ("train ppo --n-envs 1", "--ppo.games"),
        ("evaluate --num-envs 1", "--games"),
        ("train ppo --num-steps 1", "--ppo.unroll"),
        ("train ppo --ent-coef 1", "--ppo.entropy"),
        ("train ppo --clip-coef 1", "--ppo.clip"),
        ("train ppo --vf-coef 1", "--ppo.value-weight"),
        ("train ppo --total-timesteps 1", "--steps"),
        ("train ppo --max-grad-norm 1", "--ppo.gradient-norm"),
        ("train ppo --gaem.size 1", "--game.size"),
        ("train ppo --checkpoint 1", "--checkpoint-every"),
        ("train ppo --goal.foresigt 1", "--goal.foresight"),  # one that the help does not show
        ("replay --deterministic", "--greedy"),
        ("certify --n-seeds 1", "--seeds"),
        ("ablate ladder --rung 1", "--rungs"),
    ],
)
def test_what_may_be_meant(command: str, meant: str) -> None:
    """By a mistyped option, one of the same command: what another one has would help nobody."""
    with pytest.raises(ConfigError) as error:
        parse(command.split())
    said = str(error.value)
    assert (meant if " " in meant else f"(did you mean {meant}?)") in said


@pytest.mark.parametrize(
    "command", ["train ppo --zebra 1", "evaluate --learning-rate 1", "list games --steps 3"]
)
def test_nothing_is_suggested_that_is_not_like_it(command: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(command.split())
    assert "did you mean" not in str(error.value)
    assert f"see hopplus {' '.join(path_of(command.split()))} --help" in str(error.value)


@pytest.mark.parametrize(
    ("command", "instead"),
    [
        ("train ppo --world.model.head cells", "it is --world.head"),
        ("pretrain goal --data x --goal.kl 1", "it is --goal.prior.kl"),
        ("pretrain goal --data x --goal.net.hidden 1", "it is --goal.prior.net.hidden"),
        ("ablate ladder --games 8", "it is --ppo.games"),
        ("ablate ladder --unroll 8", "it is --ppo.unroll"),
        ("adapt runs/a --learning-rate 8", "it is --ppo.learning-rate"),
    ],
)
def test_old_names_are_refused_with_the_new_one(command: str, instead: str) -> None:
    with pytest.raises(ConfigError, match=f": {instead};"):
        parse(command.split())


def test_one_thing_has_one_name() -> None:
    """In every command whose settings hold it."""
    for path in (("train", "hop-plus"), ("pretrain", "world")):
        shown = helped(*path, "--help-all")
        for name in ("--world.head", "--world.hidden", "--world.channel-weights"):
            assert f"  {name} " in shown
    for path in (("train", "hop-plus"), ("pretrain", "goal")):
        shown = helped(*path, "--help-all")
        for name in ("kind", "size", "loss", "kl", "ahead", "temperature", "net.hidden"):
            assert f"  --goal.prior.{name} " in shown
    for command in ("train ppo", "ablate", "certify", "bench train"):
        assert "  --ppo.games " in helped(*command.split(), "--help-all")


def test_a_wrong_value_is_told_by_the_name_that_was_typed() -> None:
    for name in ("--net.hidden", "--opponent.net.hidden", "--goal.prior.net.hidden"):
        with pytest.raises(ConfigError, match=f"^{name} is 0 but must be from 1 to 8192"):
            parse(["train", "ppo", name, "0"])


def helped(*words: str) -> str:
    """What the help prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 0
    return out.getvalue()


def test_help_shows_what_acts_in_a_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = helped("train", "ppo", "--help")
    lines = text.splitlines()
    assert len(lines) <= 110
    assert max(map(len, lines)) <= 100
    assert ABOUT["ppo"] in text
    for name in ("--steps", "--parts", "--search.simulations", "--memory.kind", "--ppo.clip"):
        assert f"  {name} " in text
    for name in ("--goal.", "--belief.", "--opponent.", "--world.", "--imagine.", "--memory.size"):
        assert f"  {name}" not in text
    assert lines[-1].endswith(
        "more options that do nothing here by default: hopplus train ppo --help-all"
    )
    everything = helped("train", "ppo", "--help-all")
    assert "  --goal.prior.size INT" in everything
    assert "--help-all" not in everything


def test_help_shows_what_acts_with_search_distillation() -> None:
    text = helped("train", "hop", "-h")
    for name in ("--belief.floor", "--opponent.fits", "--search.trees", "--ppo.value-weight"):
        assert f"  {name} " in text
    for name in ("--ppo.clip", "--ppo.entropy", "--imagine.", "--goal.", "--world."):
        assert f"  {name}" not in text
    assert "  --imagine.gate " in helped("train", "hop-plus", "--help")


def test_hidden_options_work() -> None:
    command: Any = parse(["train", "ppo", "--goal.kl", "0.5"])
    assert command.config.goal.kl == 0.5


def test_help_of_every_command() -> None:
    """There is one, it names what there is, and only the tuning of searches is left out."""
    assert all(f"  {name} " in helped("--help") for name in COMMANDS)
    first_words = {
        line.strip().partition(" ")[0] for line in helped("train", "--help").splitlines()
    }
    assert set(PRESETS) <= first_words
    assert all(text[:40] in helped("train", "--help") for text in ABOUT.values())
    for command in COMMANDS:
        inner = [[name] for name in SUBCOMMANDS[command]] if command in SUBCOMMANDS else [[]]
        for more in inner if command != "train" else []:
            text = helped(command, *more, "--help")
            assert text.startswith(f"usage: {' '.join(['hopplus', command, *more])} ")
            assert ("--help-all" in text) == ("--search.simulations" in text and more != ["search"])


def test_help_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (60, 80, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = helped("evaluate", "--help").splitlines()
        wide = [line for line in lines if len(line) > width]
        assert all(line.startswith("usage") for line in wide)


@pytest.mark.parametrize(
    ("command", "ends"),
    [
        ("train ppo --ppo.games 1e9", "--ppo.games is 1000000000 but must be from 1 to 16777216"),
        ("train ppo --seed -1", "--seed is -1 but must be from 0 to 2147483647"),
        ("train ppo --seeds 1e9", "must be from 1 to 4096"),
        ("train ppo --ppo.clip 0", "must be above 0 and at most 1000000"),
        ("train ppo --goal.mixing-until 2", "--goal.mixing-until is 2.0 but must be from 0 to 1"),
    ],
)
def test_a_range_is_told_with_both_ends(command: str, ends: str) -> None:
    with pytest.raises(ConfigError, match=ends):
        parse(command.split())


SETTINGS = (
    BeliefConfig,
    DistilConfig,
    FitConfig,
    GoalConfig,
    GoalLearnerConfig,
    ImagineConfig,
    MemoryConfig,
    NetConfig,
    OpponentLearnerConfig,
    PPOConfig,
    SearchConfig,
    StagHuntConfig,
    TrainConfig,
    WorldConfig,
    WorldLearnerConfig,
)


@pytest.mark.parametrize("kind", SETTINGS)
def test_no_check_tells_one_end_of_two(kind: type) -> None:
    """Every number of the settings is refused below and above what makes sense, with both ends."""
    for name, hint in get_type_hints(kind).items():
        types = {hint, *get_args(hint)}
        for given in (-(10**7), 10**16) if int in types else (-1e7, 1e16) if float in types else ():
            if get_origin(hint) is tuple:
                continue
            with pytest.raises(ConfigError) as error:
                kind(**{name: given})
            said = str(error.value)
            assert said.startswith("--")
            assert re.search(r" must be (from \S+ to \S|above \S+ and (at most|below) \S)", said)
