"""`python -m benchmarks.scaling`: predictions worked by hand, and programs that take turns."""

from dataclasses import replace
from typing import Any

import pytest

from benchmarks import main, scaling
from benchmarks.processes import rate_of_all
from benchmarks.scaling import Moved, Scaling, measure, over_devices, predict, seconds_to_sum
from hopplus.presets import PRESETS
from hopplus.runs.folder import RunError

PPO = PRESETS["ppo"]
CONFIG = replace(PPO, ppo=replace(PPO.ppo, games=100, unroll=10, minibatches=10, epochs=1))


def test_a_sum_waits_for_hops_and_for_bytes() -> None:
    near = 6.8e-6 + 2 * 7 * 0.6e-6
    assert seconds_to_sum(0, 8) == pytest.approx(near)
    assert seconds_to_sum(450e9, 8) == pytest.approx(near + 2)
    # Of eight hosts, by three doublings and over the slower link.
    assert seconds_to_sum(50e9, 64) == pytest.approx(near + 2 * 3 * 5e-6 + 2)


def test_what_is_predicted() -> None:
    """An update is 1,000 steps, and takes one device a second."""
    still = Moved(gathered=0, reduced=0, minibatches=0, exchanges=1, checkpoint=0, player=0)
    found = predict(8, CONFIG, 1000.0, still, logging=0.125)
    assert found.seeds == pytest.approx(8000)
    assert found.logged == pytest.approx(4000)  # another second of the host
    assert found.games == pytest.approx(8000, rel=1e-4)
    played = replace(still, gathered=int(450e9 / 7))  # a second to have all that others played
    assert predict(8, CONFIG, 1000.0, played, 0).games == pytest.approx(4000, rel=1e-4)
    summed = replace(still, reduced=int(450e9 / 20), minibatches=10)  # a tenth for each of ten
    assert predict(8, CONFIG, 1000.0, summed, 0).games == pytest.approx(4000, rel=1e-3)


def test_programs_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def updating(config: Any, devices: int) -> Any:
        def advance() -> tuple[float, float]:
            ran.append(devices)
            return 0.25 / devices, 0.5

        return advance

    monkeypatch.setattr(scaling, "_updating", updating)
    found = measure("seeds on devices", 2, replace(CONFIG, seeds=2), 2, 3)
    assert ran == [2, 1] * 3
    assert (found.seconds, found.alone, found.rate) == (0.125, 0.25, 16_000)
    assert found.cpu == 0.5


def test_every_device_has_as_much_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jax.devices", lambda: [None] * 4)
    work = [(n, c.seeds * c.ppo.games // n) for _, _, c, n in over_devices(CONFIG)]
    assert work == [(1, 100), (2, 100), (4, 100), (2, 100), (4, 100)]


def test_wrong_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(Scaling, ["--rounds", "0"]) == 2
    assert "--rounds" in capsys.readouterr().err


def test_rate_of_runs_that_begin_and_end_apart() -> None:
    """Counted while all are at work: the first alone, and the second after it, are faster."""
    counts = {0.0: [1, 0], 1.0: [5, 1], 2.0: [7, 3], 4.0: [11, 7], 5.0: [12, 9], 6.0: [12, 12]}
    assert rate_of_all(list(counts.items()), 12) == (18 - 6) / 3
    with pytest.raises(RunError, match="more --steps"):
        rate_of_all([(0.0, [1, 0]), (1.0, [12, 1])], 12)
