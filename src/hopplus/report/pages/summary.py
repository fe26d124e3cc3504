"""A run in a few words and figures: what was run, how it ended, and what to be wary of."""

import hashlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hopplus.config import MIXED, TrainConfig
from hopplus.diagnosis.seats.checks import REAL
from hopplus.evaluation.statistics import ENOUGH, Estimate, estimate, seat_order_test
from hopplus.games import make_game
from hopplus.learning.from_run import learning_seats, learns_everywhere, seat_names
from hopplus.learning.train import FINAL
from hopplus.play.names import is_inside
from hopplus.play.seating import options
from hopplus.report.pages.curves import Curved
from hopplus.report.pages.logged import Logged, read_logged
from hopplus.report.translations import Sentence, Translations
from hopplus.runs.checkpoint import DamagedError, read_manifest, steps_of
from hopplus.runs.folder import RunFolder

# What is said of a gate that never opened, by its metric.
GATES = {
    "imagined/open": "the gate of imagination never opened for {shut} of {all} seats (all seeds"
    " counted): nothing was learned from imagined play there",
    "search/open": "the gate of the search never opened for {shut} of {all} seats (all seeds"
    " counted): they never searched, and their policies stayed as they began",
}


@dataclass(frozen=True)
class Summary:
    """A run of training, or of one model, whose `config` is then None."""

    name: str
    run: RunFolder
    facts: dict[str, Any]
    config: TrainConfig | None
    result: dict[str, Any] | None
    logged: Logged

    @cached_property
    def returns(self) -> np.ndarray | None:
        """[S, N] mean returns over the last tenth, if episodes ended in it for every seed."""
        if self.logged.episodes is None:
            return None
        totals, episodes = self.logged.episodes
        late = slice(-max(1, round(FINAL * len(totals))), None)
        ended = np.nansum(episodes[late], axis=0)  # [S]
        if not ended.all():
            return None
        return np.asarray(np.nansum(totals[late], axis=0) / ended[:, None])

    @cached_property
    def learning(self) -> list[int]:
        """The seats that learn, which the run is about."""
        return learning_seats(self.config) if self.config else []

    @property
    def partly(self) -> bool:
        """Whether some seats learn and others do not."""
        return self.config is not None and len(self.learning) < self.config.game.seats

    @cached_property
    def by_seed(self) -> np.ndarray | None:
        """[S] mean returns of the learning seats."""
        return None if self.returns is None else self.returns[:, self.learning].mean(axis=1)

    @property
    def mean_return(self) -> Estimate | None:
        """Over the learning seats, with the interval over seeds."""
        return None if self.by_seed is None else estimate(self.by_seed)

    @cached_property
    def co_players(self) -> tuple[str, ...]:
        """Who sits where, so that equal ones are equal co-players: players that a run keeps go by
        what they have learned, as their names are the run's own."""
        if self.config is None:
            return ()

        def one(name: str) -> str:
            if not is_inside(name):
                return name
            file = self.run.path / name
            return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else str(file)

        names = seat_names(self.config)
        return tuple(MIXED.join(one(part) for part in options(name)) for name in names)

    @cached_property
    def best(self) -> float | None:
        """The mean return of a seat if everyone did the best that can be done together; of some of
        them nobody knows it."""
        if self.config is None or self.partly:
            return None
        game = make_game(self.config.game)
        best = game.best_joint_return
        return None if best is None else best / game.seats

    @property
    def seeds(self) -> int:
        known = self.facts.get("seeds")
        return len(known) if isinstance(known, list) else 1

    @property
    def steps(self) -> int:
        """Of each seed, as far as it has come."""
        return int(self.logged.steps[-1]) if len(self.logged.steps) else 0

    @property
    def share(self) -> float:
        """How much of a training run is done."""
        config = self.config
        return self.steps / (config.updates * config.ppo.steps) if config else 1.0

    @cached_property
    def seconds(self) -> float | None:
        """Spent on it so far, as its result or its last checkpoint says."""
        said = self.result
        if said is None:
            try:
                last = steps_of(self.run.checkpoints)[-1]
                said = read_manifest(self.run.checkpoints / str(last))
            except (IndexError, DamagedError):
                return None
        spent = said.get("seconds")
        return float(spent) if isinstance(spent, int | float) else None

    def figure(self, name: str) -> float | None:
        """A number of its result, if it is there."""
        value = (self.result or {}).get(name)
        return value if isinstance(value, float) else None

    @property
    def command(self) -> str:
        """To repeat it."""
        words = self.facts.get("command")
        if not isinstance(words, list):
            return ""
        first = shlex.join(["hopplus", *map(str, words[1:])])
        if not self.facts.get("steps_before") or self.config is None:
            return first
        return f"{first}; hopplus resume {self.run.path} --steps {self.config.steps}"

    @property
    def curved(self) -> Curved:
        """The run as far as curves go."""
        if self.config is None:
            return Curved(self.name, self.logged)
        gate = self.config.distil.gate if self.config.distil.gate < 1 else None
        gate = self.config.imagine.gate if "imagination" in self.config.parts else gate
        actions = make_game(self.config.game).action_names
        learning = self.learning if self.partly else None
        return Curved(self.name, self.logged, self.best, gate, actions, learning)

    def warnings(self) -> Iterator[Sentence]:
        """What a reader should know before believing the figures."""
        path = shlex.quote(str(self.run.path))
        if self.result is None:
            yield Sentence(
                "not finished, at {share} of its steps; go on with hopplus resume {run}",
                {"share": f"{self.share:.0%}", "run": path},
            )
        before = self.facts.get("steps_before")
        if isinstance(before, list) and before:
            yield Sentence(
                "made longer: it had {before} steps before, and what falls over a run (learning"
                " rate, entropy bonus) rose again there",
                {"before": ", ".join(f"{steps:,}" for steps in before)},
            )
        if self.seeds == 1:
            yield Sentence("few seeds (1): of a single one there is no interval", {})
        elif self.seeds < ENOUGH:
            yield Sentence(
                "few seeds ({seeds}): below {enough}, intervals say little",
                {"seeds": self.seeds, "enough": ENOUGH},
            )
        returns, config = self.returns, self.config
        p_value = None if returns is None else order_p_value(config, returns)
        if returns is not None and p_value is not None and p_value < REAL:
            means = returns.mean(axis=0)
            yield Sentence(
                "seats differ: seat {most} gets {high}, seat {least} only {low} (permutation"
                " test, p = {chance}); see hopplus diagnose seats {run}",
                {
                    "most": int(means.argmax()),
                    "high": f"{means.max():.2f}",
                    "least": int(means.argmin()),
                    "low": f"{means.min():.2f}",
                    "chance": f"{p_value:.2g}",
                    "run": path,
                },
            )
        for name, says in GATES.items():
            gate = self.logged.values.get(name)
            shut = np.zeros(0) if gate is None or not len(gate) else ~(gate > 0).any(axis=0)
            if shut.any():  # of [S, N]
                yield Sentence(says, {"shut": int(shut.sum()), "all": shut.size})
        if self.logged.spoilt:
            yield Sentence(
                "{count} updates have numbers that are not finite; those are left out",
                {"count": self.logged.spoilt},
            )

    def as_json(self) -> dict[str, Any]:
        return {
            "run": str(self.run.path),
            "kind": self.run.kind,
            "finished": self.result is not None,
            "steps": self.steps,
            "seeds": self.seeds,
            "seconds": self.seconds,
            "learning_seats": self.learning,
            "mean_return": self.mean_return,
            "returns": self.returns,
            "best_return": self.best,
            "warnings": [Translations()(one) for one in self.warnings()],
        }


def order_p_value(config: TrainConfig | None, returns: np.ndarray) -> float | None:
    """How likely seats that are alike differ as much as in returns [S, N]; None where that cannot
    be asked, of a single seed or of players that differ."""
    if config is None or len(returns) < 2 or not learns_everywhere(config):
        return None
    return seat_order_test(returns)


def summarise(runs: Sequence[RunFolder]) -> list[Summary]:
    """Read runs; those of the same name are told apart by their paths."""
    short = [run.path.resolve().name for run in runs]
    names = [
        str(run.path) if short.count(name) > 1 else name
        for run, name in zip(runs, short, strict=True)
    ]
    return [
        Summary(
            name,
            run,
            run.facts(),
            run.config() if run.kind == TrainConfig.kind else None,
            run.result(),
            read_logged(run),
        )
        for name, run in zip(names, runs, strict=True)
    ]
