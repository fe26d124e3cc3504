"""A person's trial at a board, step by step, and what the others think meanwhile."""

from collections.abc import Sequence
from functools import cached_property

import jax
import numpy as np

from hopplus.config import ConfigError
from hopplus.evaluation.replay.replays import (
    Plain,
    goals_among,
    plain_board,
    plain_episode,
    plain_replay,
    play_key,
    rounded,
)
from hopplus.evaluation.replay.watch import Watched, anyone, game_of, seated, sitting, watch_steps
from hopplus.games.game import Game
from hopplus.play.lineup import Lineup
from hopplus.play.rollout import Play, start
from hopplus.players.human import Human
from hopplus.recorded.played import Recording

PLAYED = "played"  # the label of an episode in which a person sat at the board


class Table:
    """A game with a seat for a person, and those in the other seats: what all sessions share."""

    def __init__(
        self, game: Game, lineup: Lineup, seed: int = 0, recording: Recording | None = None
    ) -> None:
        self.game, self.lineup, self.recording = game, lineup, recording
        self.seating, params = seated(lineup)
        self.params = jax.device_put(params)
        self.who = sitting(self.seating, params)
        self.goals = goals_among(self.who)
        self.person = next(seat for seat, p in enumerate(self.seating.players) if type(p) is Human)
        self.group = [type(player) is Human for player, _ in self.seating.groups].index(True)
        self._key = play_key(seed)
        self._start = jax.jit(jax.vmap(lambda key: start(game, self.seating, key)))

    def begin(self, number: int) -> Play:
        """The games [1] of a session of that number."""
        return self._start(jax.random.fold_in(self._key, number)[None])

    def step(self, plays: Play, action: int) -> tuple[Play, Watched]:
        """A step in which the person acts so, and the others as they do."""
        params = list(self.params)
        params[self.group] = np.array([action], np.int32)
        return watch_steps(self.game, self.seating, tuple(params), plays, 1)

    @cached_property
    def common(self) -> Plain:
        """What a page has to know before anything is played."""
        return plain_replay(self.game, self.lineup.seating.names, self.goals, [])


class Session:
    """One person's trials at a table, one after the other. Sessions do not touch each other."""

    def __init__(self, table: Table, number: int = 0) -> None:
        self.table = table
        self.consent: bool | None = None  # to be recorded; None before the person has been asked
        self.plays = table.begin(number)
        self.begin_trial()

    def begin_trial(self) -> None:
        self.returns: list[list[float]] = []  # [E][N] of the trial's episodes so far
        self.begin_episode()

    def begin_episode(self) -> None:
        state = jax.tree.map(lambda leaf: leaf[0], jax.device_get(self.plays.state))
        first = plain_board(self.table.game, state) | {"rewards": [0.0] * self.table.game.seats}
        self.moments: list[Plain] = [first]  # up to now, all but the last with acts and looks
        self.kept: list[Watched] = []  # steps that may be recorded
        self.over = False

    def agree(self, yes: bool) -> None:
        """Whether episodes may be recorded, from now on."""
        if self.table.recording is None:
            raise ConfigError("nothing is recorded here")
        self.consent = yes
        self.kept = []

    @property
    def episode(self) -> int:
        """Its number in the trial."""
        return len(self.returns) - self.over

    @property
    def trial_over(self) -> bool:
        return self.over and len(self.returns) == self.table.seating.trial

    @property
    def legal(self) -> list[bool]:
        """[A] what the person may do now."""
        legal = np.asarray(self.plays.view.legal[0, self.table.person])
        return [bool(may) and not self.over for may in legal]

    @property
    def totals(self) -> list[float]:
        """[N] the episode's returns so far."""
        return rounded(np.sum([moment["rewards"] for moment in self.moments], axis=0))

    def act(self, action: int) -> None:
        """Play a step."""
        if self.over:
            raise ConfigError("the episode is over: go on to the next")
        if action not in np.flatnonzero(self.legal).tolist():
            raise ConfigError("this action is not legal now")
        self.plays, seen = self.table.step(self.plays, action)
        one = game_of(seen, 0)
        self.choice = one.choice[0]
        chosen = [some[who] for some, who in zip(self.table.who, self.choice, strict=True)]
        # An episode of one step: the moment that was, with what everyone thought, and the next.
        played = plain_episode(self.table.game, chosen, one, self.table.goals)
        before, now = played["steps"]
        self.moments[-1] |= {name: before[name] for name in ("acts", "looks")}
        self.moments.append(now | {"obstacles": played["obstacles"]})
        self.kept += [one] * (self.consent is True)
        if one.trajectory.outcome.done[0]:
            self.returns.append(self.totals)
            self.over = True
            if self.table.recording and len(self.kept) == len(self.moments) - 1:  # all of it
                self.table.recording.add([(one.trajectory, one.after) for one in self.kept])

    def go_on(self) -> None:
        """The trial's next episode, or the next trial."""
        if not self.over:
            raise ConfigError("the episode is not over yet")
        if self.trial_over:
            self.begin_trial()
        else:
            self.begin_episode()

    def shown(self) -> Plain:
        """Where the session stands, for a page. Of this episode nothing that the person could not
        know is in it before its end."""
        person, seats = self.table.person, range(self.table.game.seats)
        *played, now = self.moments
        # What is thought of somebody who has left the board says nothing.
        acted = [moment for moment in played if moment["acts"][person] >= 0]
        return {
            "episode": self.episode,
            "step": len(self.moments) - 1,
            "over": self.over,
            "consent": self.consent,
            "trial_over": self.trial_over,
            "legal": self.legal,
            "now": now if self.over else self._in_sight(now),
            "acts": played[-1]["acts"] if played else [-1 for _ in seats],
            "acted": acted[-1]["acts"][person] if acted else -1,
            "opinions": [self._opinion(acted, seat) for seat in seats],
            "totals": self.totals,
            "returns": self.returns,
            "replay": self._replay() if self.over else None,
        }

    def _opinion(self, moments: Sequence[Plain], seat: int) -> Plain | None:
        """What a seat thought of the person before its last act, if it could tell; at an episode's
        end before the last that it was there for."""
        person = self.table.person
        told = [one for one in moments[None if self.over else -1 :] if one["looks"][seat]]
        if not told or seat == person:
            return None
        look = told[-1]["looks"][seat]
        place = person - (person > seat)  # among those who are not this seat
        about, predicted, after = look["about"], look["predicted"], look["after"]
        target = after[place] if after else None
        if target and not (self.over or self.table.game.sees_all):
            target = target | {"cell": None}  # it may be out of the person's sight
        return {
            "value": look["value"],
            "about": about[place] if about else None,
            "predicted": predicted[place] if predicted else None,
            "after": target,
            "acted": told[-1]["acts"][person],
        }

    def _in_sight(self, moment: Plain) -> Plain:
        """The moment as the person sees it."""
        game, person = self.table.game, self.table.person
        if game.sees_all:
            return moment
        planes = np.asarray(self.plays.view.planes[0, person])

        def seen(cell: Sequence[int] | None, plane: int) -> bool:
            return cell is not None and bool(planes[cell[0], cell[1], plane])

        kinds = list(game.targets.values())
        return moment | {
            "obstacles": [cell for cell in moment["obstacles"] if seen(cell, game.seats)],
            "seats": [
                cell if seen(cell, (seat - person) % game.seats) else None
                for seat, cell in enumerate(moment["seats"])
            ],
            "targets": [
                one for one in moment["targets"] if seen(one["cell"], kinds[one["kind"]].plane)
            ],
        }

    def _replay(self) -> Plain:
        """The episode, to be looked at through anyone's eyes. Who was drawn from a mixture is told
        when the trial is over."""
        table = self.table
        names = list(table.lineup.seating.names)
        if self.trial_over:
            sitters = zip(table.lineup.seating.players, self.choice, strict=True)
            names = [anyone(player)[number].name for player, number in sitters]
        episode = {
            "label": PLAYED,
            "number": self.episode,
            "surprise": None,
            "players": names,
            "obstacles": self.moments[0]["obstacles"],
            "returns": self.totals,
            "steps": self.moments,
        }
        return plain_replay(table.game, names, table.goals, [episode])
