"""What a player got, step by step, in many trials; read by episode, or at the end."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Streams:
    """Rewards of one player in L trials among each of K lineups."""

    reward: np.ndarray  # [K, L, T]
    done: np.ndarray  # [K, L, T] bool, an episode ended with the step

    def by_episode(self, episodes: int) -> np.ndarray:
        """[K, L, episodes] returns of the first ones; there must be as many."""
        number = np.cumsum(self.done, axis=-1) - self.done
        if (self.done.sum(axis=-1) < episodes).any():
            raise ValueError(f"not all trials have {episodes} episodes that ended")
        return np.stack(
            [np.where(number == e, self.reward, 0.0).sum(axis=-1) for e in range(episodes)], axis=-1
        )

    def late(self, steps: int) -> np.ndarray:
        """[K] mean returns of the episodes that ended within the last so many steps."""
        total = np.cumsum(self.reward, axis=-1)
        found = np.zeros(len(total))
        for lineup, (sums, done) in enumerate(zip(total, self.done, strict=True)):
            returns = []
            for one, ended in zip(sums, done, strict=True):
                at = np.flatnonzero(ended)
                gained = np.diff(one[at], prepend=0.0)
                returns.append(gained[at >= len(one) - steps])
            found[lineup] = np.concatenate(returns).mean()
        return found


class Score(Protocol):
    """What is read from streams."""

    @property
    def steps_of(self) -> int | None:
        """Steps of a trial, if episodes do not say."""
        ...

    @property
    def columns(self) -> list[str]: ...

    def __call__(self, streams: Streams) -> np.ndarray:
        """[K, columns] mean returns."""
        ...


@dataclass(frozen=True)
class ByEpisode:
    """The return of each of the first episodes."""

    episodes: int

    @property
    def steps_of(self) -> int | None:
        return None

    @property
    def columns(self) -> list[str]:
        return [f"episode {number + 1}" for number in range(self.episodes)]

    def __call__(self, streams: Streams) -> np.ndarray:
        means: np.ndarray = streams.by_episode(self.episodes).mean(axis=1)
        return means


@dataclass(frozen=True)
class AtTheEnd:
    """The return after some time: HOP's protocol is 2,400 steps, of which the last 600 count (Huang
    et al. 2024)."""

    steps: int = 2400
    last: int = 600

    @property
    def steps_of(self) -> int | None:
        return self.steps

    @property
    def columns(self) -> list[str]:
        return [f"last {self.last} of {self.steps:,} steps"]

    def __call__(self, streams: Streams) -> np.ndarray:
        return streams.late(self.last)[:, None]
