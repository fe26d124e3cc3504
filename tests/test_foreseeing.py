"""How well models foresee others, held against players whose ways are known."""

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.cli import main
from hopplus.diagnosis import foresight
from hopplus.diagnosis.foresight import Foresight, measure_foresight
from hopplus.games import make_game
from hopplus.games.grid import STAY
from hopplus.play.trained import write_player
from test_understanding import GAME, fresh

LINEUPS = [("random", "random"), ("stag", "random"), ("stag", "stag")]
SIZE = ["--game.size", "3", "--game.seats", "3", "--game.hares", "2", "--game.horizon", "8"]


def measured(monkeypatch: pytest.MonkeyPatch, say: Any) -> Foresight:
    """Of models that say this of who may do what [M, A]."""
    monkeypatch.setattr(foresight, "predict_others", lambda *given: say(given[3][1:]))
    jax.clear_caches()
    return measure_foresight(make_game(GAME), fresh("opponent"), LINEUPS, {}, 1, 2, 40, 0)


def evenly(legal: jax.Array) -> jax.Array:
    return legal / legal.sum(axis=1, keepdims=True)


def test_who_says_anything_goes_is_right_about_random_players(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = measured(monkeypatch, evenly)
    np.testing.assert_allclose(found.right[0], found.best[0], rtol=1e-5)
    np.testing.assert_allclose(found.nats[0], 0.0, atol=1e-5)
    assert (found.best[2] > found.best[0] + 0.2).all()  # stag hunters know where to go
    assert (found.right[2] < found.best[2] - 0.2).all()
    assert (found.nats[2] > 0.5).all()
    # With one of each, in between: whoever has left earlier counts for less.
    assert (found.nats[1] > 0.05).all()
    assert (found.nats[1] < found.nats[2]).all()


def test_who_is_too_sure_is_off_by_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those who are there and have a choice, three quarters for staying whatever may come."""

    def staying(legal: jax.Array) -> jax.Array:
        stay = jnp.arange(legal.shape[1]) == STAY
        rest = legal & ~stay
        return 0.75 * stay + 0.25 * evenly(rest)

    found = measured(monkeypatch, staying)
    for episode, rows in enumerate(found.calibration):
        (row,) = [row for row in rows if row["count"]]
        assert (row["from"], row["to"]) == (0.7, 0.8)
        assert row["predicted"] == pytest.approx(0.75)
        assert row["happened"] < 0.5
        off = 0.75 - row["happened"]
        assert found.calibration_error[episode] == pytest.approx(off, rel=1e-5)
    acts = sum(row["count"] for row in found.calibration[0])
    assert 40 * 3 < acts <= 40 * 3 * 2 * 8  # two others in eight steps at most


def test_the_command_tells_of_strangers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_player(tmp_path / "models.safetensors", fresh("opponent"))
    write_player(tmp_path / "plain.safetensors", fresh())
    more = [*SIZE, "--trials", "36", "--against", "random,switch", "noisy-hare:.50,stag"]
    command = ["diagnose", "adaptation", str(tmp_path / "models.safetensors"), *more]
    assert main([*command, "--json", "--out", str(tmp_path / "page.html")]) == 0
    (told,) = json.loads(capsys.readouterr().out)["foreseen"]
    assert told["lineups"] == [["random", "switch"], ["noisy-hare:0.5", "stag"]]
    assert np.array(told["right"]).shape == (2, 2)
    assert (np.array(told["right"]) <= np.array(told["best"]) + 1e-6).all()
    assert len(told["calibration_error"]) == 2
    page = (tmp_path / "page.html").read_text()
    assert "Calibration of the models" in page
    plain = ["diagnose", "adaptation", str(tmp_path / "plain.safetensors"), *more]
    assert main(plain) == 2
    assert "--against asks for models of others" in capsys.readouterr().err
