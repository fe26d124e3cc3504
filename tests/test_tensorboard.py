"""What TensorBoard is shown of a run, read back from its files."""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event, SessionLog

from conftest import share_programs
from hopplus.cli import main
from hopplus.config import NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.learning.from_run import learning_seats, new_run
from hopplus.learning.train import Moment, train
from hopplus.learning.training_curves import Pace, training_curves
from hopplus.runs.folder import RunFolder, open_run
from hopplus.runs.tensorboard import tensorboard

UPDATES, STEPS = 12, 128
CONFIG = TrainConfig(
    game=StagHuntConfig(size=3, seats=2, hares=2),
    net=NetConfig(hidden=16),
    ppo=PPOConfig(games=16, unroll=8, minibatches=2, epochs=1),
    seats="learn,stag",
    steps=UPDATES * STEPS,
    seeds=2,
    seed=5,
    checkpoint_every=4,
)


def events_of(file: Path) -> list[Event]:
    """The records of a file: a length, its checksum, the event, its checksum."""
    content, place, found = file.read_bytes(), 0, []
    while place < len(content):
        (length,) = struct.unpack("<Q", content[place : place + 8])
        found.append(Event.FromString(content[place + 12 : place + 12 + length]))
        place += length + 16
    return found


def shown(run: Path) -> dict[str, list[tuple[int, Any]]]:
    """What TensorBoard shows of a folder, by tag: what a later session writes again is dropped."""
    kept: dict[str, list[tuple[int, Any]]] = {}
    for file in sorted((run / "tensorboard").iterdir()):
        for event in events_of(file):
            if event.session_log.status == SessionLog.START:
                for tag, points in kept.items():
                    kept[tag] = [point for point in points if point[0] < event.step]
            for value in event.summary.value:
                points = kept.setdefault(value.tag, [])
                points.append((event.step, value.tensor if value.HasField("tensor") else value))
    return kept


def numbers(points: list[tuple[int, Any]]) -> list[float]:
    return [value.simple_value for _, value in points]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Stopped after update 7, of which it had saved four, and resumed."""
    made = new_run(tmp_path_factory.mktemp("runs") / "a", CONFIG)

    def stop(moment: Moment) -> None:
        if moment.update == 7:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        share_programs(patch)
        with pytest.raises(KeyboardInterrupt):
            train(made, stop)
        train(made)
    return made


def test_every_update_once_by_known_names(run: RunFolder) -> None:
    tags = shown(run.path)
    whole = [update * STEPS for update in range(1, UPDATES + 1)]
    losses = ["policy_loss", "value_loss", "entropy", "approx_kl", "clipfrac"]
    losses += ["explained_variance", "gradient_norm"]
    for tag in ("charts/learning_rate", *(f"losses/{name}" for name in losses)):
        assert [step for step, _ in tags[tag]] == whole, tag
    # An update that compiled something has no rate: the first, and the first after resuming.
    assert [step for step, _ in tags["charts/SPS"]] == [
        step for step in whole if step not in (STEPS, 5 * STEPS)
    ]
    assert all(rate > 0 for rate in numbers(tags["charts/SPS"]))
    groups = {"charts", "losses", "by_seed", "by_seat", "by_seed_and_seat", "real"}
    groups |= {"config", "_hparams_"}
    assert {tag.split("/")[0] for tag in tags} == groups


def test_figures_are_those_logged(run: RunFolder) -> None:
    tags, records = shown(run.path), run.metrics()
    ended = [record for record in records if np.sum(record["episodes"])]
    assert ended
    returns = np.array([np.sum(r["return_sum"], axis=0) / np.sum(r["episodes"]) for r in ended])
    # The mean is that of the seat that learns.
    np.testing.assert_allclose(numbers(tags["charts/episodic_return"]), returns[:, 0], rtol=1e-5)
    for seat in (0, 1):
        tag = f"by_seat/episodic_return/seat_{seat}"
        np.testing.assert_allclose(numbers(tags[tag]), returns[:, seat], rtol=1e-5, atol=1e-6)
    own = [(r["return_sum"][1], r["episodes"][1]) for r in records if r["episodes"][1]]
    alone = [total[0] / count for total, count in own]
    np.testing.assert_allclose(numbers(tags["by_seed/episodic_return/seed_6"]), alone, rtol=1e-5)
    others = [total[1] / count for total, count in own]
    tag = "by_seed_and_seat/episodic_return/seed_6_seat_1"
    np.testing.assert_allclose(numbers(tags[tag]), others, rtol=1e-5, atol=1e-6)
    value_loss = np.array([r["value_loss"] for r in records])  # [U, S, sets]
    np.testing.assert_allclose(
        numbers(tags["losses/value_loss"]), value_loss.mean(axis=(1, 2)), rtol=1e-5
    )
    np.testing.assert_allclose(
        numbers(tags["by_seed/value_loss/seed_5"]), value_loss[:, 0].mean(axis=1), rtol=1e-5
    )
    rates = CONFIG.ppo.learning_rate * (1 - np.arange(UPDATES) / UPDATES)
    np.testing.assert_allclose(numbers(tags["charts/learning_rate"]), rates, rtol=1e-5)


def test_settings_are_there_once(run: RunFolder) -> None:
    tags = shown(run.path)
    ((step, table),) = tags["config/text_summary"]
    assert step == 0
    (text,) = table.string_val
    for row in (b"|ppo.learning_rate|0.001|", b"|seats|learn,stag|", b"|game.size|3|"):
        assert row in text
    assert len(tags["_hparams_/session_start_info"]) == 1


def test_a_run_that_begins_again_shows_nothing_twice(tmp_path: Path) -> None:
    """No checkpoint was made before it stopped, so all that was shown is shown again."""
    for steps in (2, 3):
        with tensorboard(tmp_path, CONFIG, 0) as show:
            for step in range(1, steps + 1):
                show({"losses/entropy": 0.5}, step)
    tags = shown(tmp_path)
    assert [step for step, _ in tags["losses/entropy"]] == [1, 2, 3]
    assert len(tags["config/text_summary"]) == 1


def test_sessions_of_one_second_keep_their_curves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Event files are named by the second: a run resumed at once must not write over itself."""
    monkeypatch.setattr("time.time", lambda: 1_700_000_000.0)
    for after in range(12):
        with tensorboard(tmp_path, CONFIG, after) as show:
            show({"losses/entropy": 0.5}, after + 1)
    assert len(list((tmp_path / "tensorboard").iterdir())) == 12
    assert [step for step, _ in shown(tmp_path)["losses/entropy"]] == list(range(1, 13))


def test_models_beside_the_policy() -> None:
    record = {
        "episodes": [0, 0],
        "return_sum": [[0.0, 0.0], [0.0, 0.0]],
        "opponent/loss/cross_entropy": [[1.0], [2.0]],
        # [seeds, sets, N - 1, A]
        "opponent/count": [[[[2, 0, 3]], [[0, 0, 3]]], [[[2, 0, 2]], [[0, 0, 0]]]],
        "opponent/hit": [[[[1, 0, 1]], [[0, 0, 3]]], [[[0, 0, 2]], [[0, 0, 0]]]],
        "opponent/hit_top3": [[[[2, 0, 3]], [[0, 0, 3]]], [[[1, 0, 0]], [[0, 0, 0]]]],
        "opponent/top3": [[1.0, 1.0], [0.25, 0.0]],
        "world/error": [[0.25], [0.75]],
        "imagined/open": [[1.0], [0.0]],
        "imagined/kl": [[0.5], [0.0]],
        "imagined/return": [[3.0], [0.0]],
    }
    assert training_curves(record, replace(CONFIG, seats=None), 0.001, None) == {
        "charts/learning_rate": 0.001,
        "losses/opponent/cross_entropy": 1.5,
        "opponent/recall/action_0": 0.25,
        "opponent/recall/action_2": 0.75,
        "opponent/accuracy/seat_0_of_1": 4 / 9,
        "opponent/accuracy/seat_1_of_0": 1.0,
        "opponent/top3": 0.5625,
        "opponent/top3/seat_0_of_1": 6 / 9,
        "opponent/top3/seat_1_of_0": 1.0,
        "world/error": 0.5,
        "imagined/open": 0.5,
        "losses/imagined/approx_kl": 0.5,  # only where something was imagined
        "imagined/return": 3.0,
    }
    shut = training_curves(record | {"imagined/open": [[0.0], [0.0]]}, CONFIG, 0.001, None)
    assert "imagined/return" not in shut


def test_pace() -> None:
    ticks = iter((100.0, 102.0, 102.5))
    pace = Pace(256, lambda: next(ticks))
    assert [pace.lap() for _ in range(3)] == [None, 128.0, 512.0]


def test_seats_that_learn() -> None:
    assert learning_seats(CONFIG) == [0]
    assert learning_seats(replace(CONFIG, seats=None)) == [0, 1]
    assert learning_seats(replace(CONFIG, seats=None, train_against="all")) == [0]
    assert learning_seats(replace(CONFIG, seats="stag|hare,learn")) == [1]


def test_fits_of_models(recorded: Path, tmp_path: Path) -> None:
    fit = ["--fit.epochs", "2", "--fit.batch", "128", "--seeds", "2", "--measure-every", "99"]
    net = ["--opponent.net.hidden", "16", "--opponent.net.kind", "mlp"]
    where = ["--runs", str(tmp_path), "--name", "fit", "--data", str(recorded)]
    assert main(["pretrain", "opponent", *where, *fit, *net]) == 0
    tags, records = shown(tmp_path / "fit"), open_run(tmp_path / "fit").metrics()
    for name, tag in (("fitted_loss", "fitted"), ("held_out_loss", "held_out")):
        known = np.array([record[name] for record in records])  # [epochs, S]
        assert [step for step, _ in tags[f"losses/{tag}"]] == [1, 2]
        np.testing.assert_allclose(numbers(tags[f"losses/{tag}"]), known.mean(axis=1), rtol=1e-5)
        np.testing.assert_allclose(numbers(tags[f"by_seed/{tag}/seed_1"]), known[:, 1], rtol=1e-5)
    assert "losses/held_out/cross_entropy" in tags
    assert b"|fit.epochs|2|" in tags["config/text_summary"][0][1].string_val[0]
