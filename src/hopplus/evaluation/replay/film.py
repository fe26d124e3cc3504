"""One episode as pictures, from the first position to the last."""

import jax
import numpy as np

from hopplus.evaluation.replay.replays import CHOSEN, Plain
from hopplus.games.game import Game, drawings_of
from hopplus.games.layout import write
from hopplus.games.render import Frame
from hopplus.play.rollout import Play, rollout, states_after
from hopplus.play.seating import Seating
from hopplus.program_cache import kept_jit
from hopplus.types import Params, State, Trajectory


@kept_jit
def _play(
    game: Game, seating: Seating, params: tuple[Params, ...], play: Play
) -> tuple[Trajectory, State]:
    """The steps of one game up to the horizon, and the state after each of them."""
    one = jax.tree.map(lambda leaf: leaf[None], play)
    trajectory = rollout(game, seating, params, one, game.horizon)[1]
    played = (trajectory, states_after(game, trajectory))
    of_one: tuple[Trajectory, State] = jax.tree.map(lambda leaf: leaf[:, 0], played)
    return of_one


def film(
    game: Game, seating: Seating, params: tuple[Params, ...], play: Play, note: str = ""
) -> list[Frame]:
    """The frames of one episode from where it stands to its end."""
    trajectory, after = jax.device_get(_play(game, seating, params, play))
    length = int(np.argmax(trajectory.outcome.done)) + 1
    returns = np.cumsum(trajectory.outcome.reward, axis=0)

    def frame(step: int) -> Frame:
        states = trajectory.state if step == 0 else after
        state = jax.tree.map(lambda leaf: leaf[max(step - 1, 0)], states)
        present = trajectory.present[max(step - 1, 0)]
        actions = trajectory.act.action[max(step - 1, 0)]
        doing = tuple(
            game.action_names[action] if step > 0 and here else ""
            for action, here in zip(actions, present, strict=True)
        )
        so_far = returns[step - 1] if step > 0 else np.zeros(game.seats)
        return Frame(
            layout=game.show(state),
            step=step,
            horizon=game.horizon,
            returns=tuple(so_far.tolist()),
            players=seating.names,
            doing=doing,
            note=note,
            drawings=drawings_of(game),
        )

    return [frame(step) for step in range(length + 1)]


def frames_of(replay: Plain, episode: Plain) -> list[Frame]:
    """The frames of a recorded episode."""
    label, number = episode["label"], episode["number"]
    note = f"episode {number}" if label == CHOSEN else f"{label} episode, number {number}"
    so_far = np.zeros(len(replay["players"]))
    frames = []
    for step, moment in enumerate(episode["steps"]):
        so_far = so_far + np.array(moment["rewards"])
        acts = episode["steps"][step - 1]["acts"] if step else [-1] * len(so_far)
        frames.append(
            Frame(
                layout=_layout(replay, episode, moment),
                step=step,
                horizon=replay["horizon"],
                returns=tuple(so_far.tolist()),
                players=tuple(episode["players"]),
                doing=tuple(replay["actions"][act] if act >= 0 else "" for act in acts),
                note=note,
                drawings=dict(zip(replay["letters"], replay["drawings"], strict=True)),
            )
        )
    return frames


def _layout(replay: Plain, episode: Plain, moment: Plain) -> str:
    """The board of a recorded step, as its game writes it."""
    columns = replay["columns"]
    cells = [""] * (replay["rows"] * columns)
    for row, column in episode["obstacles"]:
        cells[row * columns + column] = "#"
    for seat, cell in enumerate(moment["seats"]):
        if cell:
            cells[cell[0] * columns + cell[1]] += str(seat)
    for target in moment["targets"]:
        row, column = target["cell"]
        cells[row * columns + column] += replay["letters"][target["kind"]]
    return write([cell or "." for cell in cells], columns)
