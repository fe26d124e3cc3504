"""One episode as pictures, from the first position to the last."""

import equinox as eqx
import jax
import numpy as np

from hopplus.games.game import Game
from hopplus.games.render import Frame
from hopplus.learning.rollout import Play, rollout
from hopplus.players.seating import Seating
from hopplus.types import Params, State, Trajectory


@eqx.filter_jit
def _play(
    game: Game, seating: Seating, params: tuple[Params, ...], play: Play
) -> tuple[Trajectory, State]:
    """The steps of one game up to the horizon, and the state after each of them."""
    one = jax.tree.map(lambda leaf: leaf[None], play)
    trajectory = rollout(game, seating, params, one, game.horizon)[1]
    trajectory = jax.tree.map(lambda leaf: leaf[:, 0], trajectory)
    return trajectory, jax.vmap(game.step)(trajectory.state, trajectory.act.action)[0]


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
        )

    return [frame(step) for step in range(length + 1)]
