"""Checkpoints: what is written is read back, damage is named, and only the newest keep buffers."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.runs import checkpoint
from hopplus.runs.folder import LAYOUT, open_run


def tree() -> dict[str, Any]:
    return {
        "weights": jnp.arange(6.0).reshape(2, 3),
        "count": jnp.int32(7),
        "flags": jnp.array([True, False]),
        "key": jax.random.split(jax.random.key(3), 2),
        "none": jnp.zeros((0, 4)),
    }


def trees() -> dict[str, Any]:
    return {"players": tree(), "training": {"buffer": jnp.ones((3, 2))}}


def test_checkpoints_round_trip(tmp_path: Path) -> None:
    path = checkpoint.write_checkpoint(tmp_path, 5, trees(), {"score": 1.5})
    arrays = checkpoint.read_checkpoint(path, ["players"])["players"]
    back = checkpoint.filled(tree(), arrays, "it")
    for one, two in zip(jax.tree.leaves(tree()), jax.tree.leaves(back), strict=True):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(checkpoint._plain(one), checkpoint._plain(two))
    assert checkpoint.read_manifest(path)["score"] == 1.5
    with pytest.raises(checkpoint.DamagedError, match="weights"):
        checkpoint.filled({**tree(), "weights": jnp.zeros(3)}, arrays, "it")
    with pytest.raises(checkpoint.DamagedError, match="missing or too much"):
        checkpoint.filled({"other": jnp.zeros(1)}, arrays, "it")


def damage_nothing(path: Path) -> None:
    pass


def flip_a_bit(path: Path) -> None:
    file = path / checkpoint.file_of("players")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def cut_short(path: Path) -> None:
    file = path / checkpoint.file_of("players")
    file.write_bytes(file.read_bytes()[:-10])


def lose_the_manifest(path: Path) -> None:
    (path / checkpoint.MANIFEST).unlink()


@pytest.mark.parametrize("damage", [flip_a_bit, cut_short, lose_the_manifest, damage_nothing])
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    damage: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"layout": LAYOUT}))
    run = open_run(tmp_path)
    run.save(1, trees(), {"score": 0.0}, keep=3)
    run.save(2, trees(), {"score": 0.0}, keep=3)
    damage(run.checkpoints / "2")
    saved = run.load(trees())
    assert saved
    said = capsys.readouterr().err
    if damage is damage_nothing:
        assert (saved.step, said) == (2, "")
    else:
        assert saved.step == 1
        assert str(run.checkpoints / "2") in said
        assert "using the one before it" in said


def test_after_damage_newer_ones_are_set_aside(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"layout": LAYOUT}))
    run = open_run(tmp_path)
    run.save(5, trees(), {"score": 1.0}, keep=1)
    run.save(7, trees(), {"score": 0.0}, keep=1)
    cut_short(run.checkpoints / "7")
    run.save(6, trees(), {"score": 0.5}, keep=1)  # resumed from 5
    assert sorted(path.name for path in run.checkpoints.iterdir()) == ["5", "6", "damaged-7"]
    saved = run.load(trees())
    assert saved
    assert saved.step == 6
    assert saved.facts["score"] == 0.5


def test_pruning_keeps_the_last_and_the_best(tmp_path: Path) -> None:
    for step, score in enumerate([1.0, 9.0, 3.0, 2.0, 4.0], 1):
        checkpoint.write_checkpoint(tmp_path, step, trees(), {"score": score})
    (tmp_path / f"{checkpoint.WRITING}-6").mkdir()
    checkpoint.prune(tmp_path, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "4", "5"]
    held = [path.parent.name for path in tmp_path.glob("*/training.safetensors")]
    assert sorted(held) == ["4", "5"]  # the best one keeps its players alone
    checkpoint.read_checkpoint(tmp_path / "2", ["players"])
