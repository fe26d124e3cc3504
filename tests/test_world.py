"""World models: what they can say, what they learn, and how they are judged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hopplus.config import PretrainWorld, StagHuntConfig, WorldConfig
from hopplus.diagnosis.models.heldout import HeldOut, held_out
from hopplus.diagnosis.models.world import WorldDiagnosis, consistent
from hopplus.games import make_game
from hopplus.games.game import Game
from hopplus.games.grid import STAY, moved
from hopplus.games.stag_hunt import StagHuntState
from hopplus.models import structured_world
from hopplus.models.structured_world import _standing
from hopplus.models.world import Prediction, stepped
from hopplus.recorded.dataset import open_data
from hopplus.recorded.models import Setting, make_setting
from hopplus.types import View

GAME = StagHuntConfig(size=3, seats=3, hares=3, horizon=12)
PLANES = 6  # three seats, obstacles, stags, hares


@pytest.fixture(scope="module")
def held(recorded: Path) -> HeldOut:
    return held_out(open_data(recorded), 0.5, 2000)


def setting_of(head: Any = "structured", **more: Any) -> Setting:
    return make_setting(PretrainWorld("", world=WorldConfig(head, hidden=16, **more)), GAME)


class TrueWorld(eqx.Module):
    """The rules themselves as a world, from nothing but the view: what a perfect model says."""

    game: Game = eqx.field(static=True)

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        flat = view.planes.reshape(-1, view.planes.shape[-1])
        seats = self.game.seats
        prey = [
            jnp.nonzero(flat[:, plane], size=size, fill_value=0)[0]
            for plane, size in ((seats + 1, 1), (seats + 2, 3))
        ]
        counts = [flat[:, plane].sum() for plane in (seats + 1, seats + 2)]
        state = StagHuntState(
            walls=flat[:, seats] > 0,
            seats=flat[:, :seats].argmax(axis=0).astype(jnp.int32),
            present=flat[:, :seats].any(axis=0),
            prey=jnp.concatenate(prey).astype(jnp.int32),
            alive=jnp.concatenate([jnp.arange(1) < counts[0], jnp.arange(3) < counts[1]]),
            steps=jnp.rint(view.time * self.game.horizon).astype(jnp.int32),
            last_actions=view.last_actions,
            first_catch=jnp.int32(-1),
        )
        after, outcome = self.game.step(state, joint, jax.random.key(0))
        legal = jnp.stack([self.game.view(after, seat).legal for seat in range(seats)])
        return Prediction(
            planes=self.game.view(after, 0).planes,
            reward=outcome.reward,
            gone=1.0 - after.present,
            legal=legal.astype(jnp.float32),
            done=outcome.done.astype(jnp.float32),
        )

    def bring_back(self, before: jax.Array, after: jax.Array, key: jax.Array) -> jax.Array:
        return after

    def settled(self, prediction: Prediction) -> tuple[jax.Array, jax.Array]:
        return prediction.planes, prediction.gone > 0.5


def test_the_true_rules_are_judged_perfect(held: HeldOut) -> None:
    figures = WorldDiagnosis(setting_of(), held).measure(TrueWorld(make_game(GAME))).figures
    for name in ("exact_next_state", "exact_everything", "legality_accuracy"):
        assert figures[name] == 1
    assert figures["consistency"] == dict.fromkeys(figures["consistency"], 1.0)
    assert figures["psnr"] == pytest.approx(120)
    assert figures["reward_mse"] < 1e-12
    for row in figures["open_loop"]:
        assert row["windows"] == 0 or row["exact"] == 1
    windows = [row["windows"] for row in figures["open_loop"]]
    assert windows[0] == len(held.steps)
    assert windows == sorted(windows, reverse=True)
    # Nobody plays longer than the horizon, and someone waits for it to the end.
    assert windows[11] > 0
    assert windows[12:] == [0, 0, 0]
    for row in figures["channels"]:
        assert row["mean_where_1"] in (1.0, None)  # there are no obstacles
        assert row["mean_where_0"] == 0
    said = {(row["predicted"], row["happened"]) for row in figures["calibration"]}
    assert said == {(0.0, 0.0), (1.0, 1.0)}


class StandStill(TrueWorld):
    """Says that nothing ever changes and nobody gets anything."""

    def __call__(self, view: View, joint: jax.Array) -> Prediction:
        there = view.planes[..., : self.game.seats].any(axis=(0, 1))
        legal = jnp.broadcast_to(view.legal, (self.game.seats, 7)).astype(jnp.float32)
        return Prediction(view.planes, jnp.zeros(3), 1.0 - there, legal, jnp.float32(0))


def test_a_wrong_world_is_judged_by_what_it_gets_wrong(held: HeldOut) -> None:
    """Worked out from the data: how often nothing changes, what is gained, how often it ends."""
    figures = WorldDiagnosis(setting_of(), held).measure(StandStill(make_game(GAME))).figures
    rows = held.shard.rows
    planes = np.asarray(rows.planes)
    same = (planes[held.row, held.seat] == planes[held.row + 1, held.seat]).all(axis=1)
    assert figures["exact_next_state"] == pytest.approx(same.mean())
    reward = np.asarray(rows.reward)[held.row, held.seat]
    assert figures["reward_mse"] == pytest.approx((reward**2).mean(), rel=1e-5)
    done = np.asarray(rows.done)[held.row]
    assert figures["episode_end_accuracy"] == pytest.approx(1 - done.mean())
    stays = np.asarray(rows.present)[held.row + 1, held.seat]
    assert figures["seat_end_accuracy"] == pytest.approx(stays.mean())
    assert figures["consistency"]["all"] == 1
    assert figures["open_loop"][0]["exact"] == pytest.approx(same.mean())
    acting = np.asarray(rows.present) & (np.asarray(rows.joint)[:, :1] >= 0)
    row, seat = held.steps[held.row + 2 <= held.shard.last_seen[held.row, held.seat]].T
    row, seat = row[acting[row + 2, seat]], seat[acting[row + 2, seat]]
    later = (planes[row, seat] == planes[row + 3, seat]).all(axis=1)
    assert figures["open_loop"][2]["windows"] == len(later)
    assert figures["open_loop"][2]["exact"] == pytest.approx(later.mean())


def board(*cells: tuple[int, int, int]) -> jax.Array:
    planes = np.zeros((3, 3, 5), np.float32)  # two seats
    for row, column, plane in cells:
        planes[row, column, plane] = 1
    return jnp.asarray(planes)


@pytest.mark.parametrize(
    ("after", "gone", "broken"),
    [
        (board((0, 1, 0), (2, 2, 1), (1, 1, 3)), (0, 0), None),
        (board((0, 1, 0), (1, 1, 3)), (0, 1), None),
        (board((0, 0, 0), (0, 1, 0), (2, 2, 1), (1, 1, 3)), (0, 0), "one_cell"),  # splits
        (board((2, 2, 1), (1, 1, 3)), (0, 0), "one_cell"),  # vanishes
        (board((0, 0, 0), (2, 2, 1), (1, 1, 3)), (1, 0), "one_cell"),  # gone and there
        (board((1, 1, 0), (2, 2, 1), (1, 1, 3)), (0, 0), "one_step"),  # jumps
        (board((1, 0, 0), (2, 2, 1), (1, 1, 3)), (0, 0), "off_walls"),
        (board((0, 1, 0), (2, 2, 1), (1, 2, 3)), (0, 0), "things_stay"),  # a stag walks
        (board((0, 1, 0), (2, 2, 1), (1, 1, 3), (0, 0, 2)), (0, 0), "things_stay"),  # a wall grows
    ],
)
def test_what_is_physically_possible(
    after: jax.Array, gone: tuple[int, int], broken: str | None
) -> None:
    before = board((0, 0, 0), (2, 2, 1), (1, 1, 3), (1, 0, 2))
    laws = consistent(before, after, jnp.array(gone) > 0)
    assert {name: bool(held) for name, held in laws.items()} == {n: n != broken for n in laws}


def test_nobody_returns() -> None:
    before, after = board((0, 0, 0)), board((0, 0, 0), (2, 2, 1))
    assert not consistent(before, after, jnp.array([False, False]))["nobody_returns"]


def test_moves_are_those_of_the_rules() -> None:
    for cell in range(6):
        planes = jnp.zeros((2, 3, 1)).reshape(-1).at[cell].set(1.0).reshape(2, 3, 1)
        for move, plane in enumerate(stepped(planes).reshape(5, 6)):
            target = int(moved(jnp.int32(cell), jnp.int32(move), jnp.zeros(6, bool), 3))
            off_board = target == cell and move != STAY
            assert plane.sum() == (0 if off_board else 1)
            assert off_board or plane[target] == 1


def random_views(count: int) -> tuple[Any, jax.Array]:
    """Views of seat 1 of games in all stages, and joint actions, legal or not."""
    game = make_game(GAME)
    keys = jax.random.split(jax.random.key(0), count)
    state = jax.jit(jax.vmap(game.init))(keys)
    state = eqx.tree_at(
        lambda s: (s.present, s.alive),
        state,
        (
            jax.random.bernoulli(keys[0], 0.8, (count, 3)).at[:, 1].set(True),
            jax.random.bernoulli(keys[1], 0.7, (count, 4)),
        ),
    )
    view = jax.jit(jax.vmap(lambda s: game.view(s, 1)))(state)
    walls = jax.random.bernoulli(keys[3], 0.3, (count, 3, 3)).astype(jnp.float32)
    view = eqx.tree_at(
        lambda v: v.planes,
        view,
        view.planes.at[..., 3].set(walls * (1 - view.planes[..., :3].max(axis=-1))),
    )
    return view, jax.random.randint(keys[2], (count, 3), 0, 7)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_structured_world_cannot_say_what_is_impossible(seed: int) -> None:
    """Whatever its parameters are; the comparison with a head per cell can and does."""
    views, joints = random_views(200)

    def lawful(world: Any) -> np.ndarray:
        def one(view: View, joint: jax.Array) -> jax.Array:
            prediction = world(view, joint)
            total = prediction.planes[..., :3].sum(axis=(0, 1)) + prediction.gone
            laws = consistent(view.planes, *world.settled(prediction))
            return jnp.array([*laws.values(), jnp.allclose(total, 1, atol=1e-5)])

        return np.asarray(jax.jit(jax.vmap(one))(views, joints))

    key = jax.random.key(seed)
    wild = jax.tree.map(lambda leaf: leaf * 5, setting_of().part.init(key))
    assert lawful(wild).all()
    assert not lawful(jax.jit(setting_of("cells").part.init)(key)).all(axis=0).any()


def test_settling_takes_the_likeliest() -> None:
    world: Any = jax.jit(setting_of().part.init)(jax.random.key(0))
    planes = jnp.zeros((3, 3, PLANES)).at[0, 0, 0].set(0.4).at[0, 1, 0].set(0.35)
    for gone, there in ((0.25, 1), (0.45, 0)):  # 0.45 beats every single cell
        prediction = Prediction(
            planes, jnp.zeros(3), jnp.array([gone, 1.0, 1.0]), jnp.zeros((3, 7)), jnp.float32(0)
        )
        settled, who = world.settled(prediction)
        assert who.tolist() == [not there, True, True]
        assert settled[..., 0].sum() == there
        assert settled[0, 0, 0] == there
        assert settled[..., 1].sum() == 0


def test_settling_takes_the_first_of_the_likeliest() -> None:
    """Nobody is in two cells, however alike their chances are."""
    world: Any = jax.jit(setting_of().part.init)(jax.random.key(0))
    planes = jnp.zeros((3, 3, PLANES)).at[1:, :, 0].set(0.15).at[2, 2, 1].set(1.0)
    gone = jnp.array([0.1, 0.0, 1.0])
    prediction = Prediction(planes, jnp.zeros(3), gone, jnp.zeros((3, 7)), jnp.float32(0))
    settled, who = world.settled(prediction)
    assert np.argwhere(settled[..., :3]).tolist() == [[1, 0, 0], [2, 2, 1]]
    assert who.tolist() == [False, False, True]


def test_where_seats_stand_by_hand() -> None:
    """Each in its cell, the first one if it is in several, and one that has gone in none."""
    planes = jnp.zeros((4, 9)).at[0, 7].set(1.0).at[2, 0].set(1.0).at[3, 5:7].set(1.0)
    standing = _standing(planes)
    assert standing.cell.tolist() == [7, 0, 0, 5]  # any that is there, for the one that has gone
    assert standing.there.tolist() == [1, 0, 1, 1]


def test_only_cells_on_the_board_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also around a seat that has gone, of which nothing is known."""
    world: Any = jax.tree.map(lambda leaf: leaf * 5, setting_of().part.init(jax.random.key(0)))
    views, joints = random_views(30)
    assert (views.planes[..., :3].sum(axis=(1, 2)) == 0).any()  # somebody has gone

    def read(table: jax.Array, where: jax.Array) -> jax.Array:
        assert int(where.min()) >= 0
        assert int(where.max()) < len(table)
        return table[where]

    monkeypatch.setattr(structured_world, "at", read)
    with jax.disable_jit():
        for number in range(30):
            world(jax.tree.map(lambda leaf: leaf[number], views), joints[number])  # noqa: B023


@pytest.mark.parametrize("head", ["structured", "cells"])
def test_channel_weights_weigh_their_planes(head: str, held: HeldOut) -> None:
    """The loss of the planes is that of each plane alone, added up; nothing else changes."""
    setting, source = setting_of(head), held.source
    params = jax.jit(setting.part.init)(jax.random.key(0))
    step, key = jnp.asarray(held.steps[3]), jax.random.key(0)

    @jax.jit
    def losses(weights: jax.Array) -> Any:
        return params.losses(setting.sampler(source, step, key, ()), weights)

    planes = ("players", "things") if head == "structured" else ("planes",)
    whole, none = losses(jnp.ones(PLANES)), losses(jnp.zeros(PLANES))
    alone = [losses(weights) for weights in jnp.eye(PLANES)]
    for name in whole:
        if name in planes:
            assert float(none[name]) == 0
            total = sum(float(one[name]) for one in alone)
            assert total == pytest.approx(float(whole[name]), rel=1e-5)
            assert total > 0
        else:
            assert float(none[name]) == float(whole[name])


@pytest.mark.parametrize("head", ["structured", "cells"])
def test_every_seat_counts(head: str, held: HeldOut) -> None:
    """What another seat gets, may do next, and whether it leaves, is part of the loss."""
    setting, source = setting_of(head), held.source
    params = jax.jit(setting.part.init)(jax.random.key(0))
    present = np.asarray(held.shard.rows.present)[held.row].all(axis=1)
    step = jnp.asarray(held.steps[present][0])

    @jax.jit
    def losses(seat: jax.Array) -> Any:
        sample = setting.sampler(source, step, jax.random.key(0), ())
        here = jnp.arange(3) == seat
        changed = replace(
            sample,
            reward=sample.reward + 3.0 * here,
            legal_after=sample.legal_after ^ here[:, None],
            present_after=sample.present_after ^ here,
        )
        return params.losses(changed, jnp.ones(PLANES))

    plain = losses(jnp.int32(-1))
    for seat in range(3):
        other = losses(jnp.int32(seat))
        names = ("reward", "legal", "gone") if head == "cells" else ("reward", "legal")
        assert all(float(other[name]) != float(plain[name]) for name in names)
