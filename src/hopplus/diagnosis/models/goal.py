"""What do goals tell? The view, the actions, who is at work, and where the seat will be."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import GoalConfig
from hopplus.diagnosis.models.classes import mean_area
from hopplus.diagnosis.models.heldout import HeldOut
from hopplus.diagnosis.models.measures import Measures
from hopplus.diagnosis.models.observers import observe
from hopplus.diagnosis.probe import fit_probe, project
from hopplus.models.goal import GoalPart
from hopplus.models.nets import binary_loss
from hopplus.players.scripted import drawn_from
from hopplus.program_cache import kept_jit
from hopplus.recorded.models import Setting
from hopplus.recorded.samples import Sampler, Source
from hopplus.types import Params, Sample

SHOWN = 2000  # goals in the projection
RESAMPLES = 200  # of episodes, for intervals
AREAS = ("auc", "auc_low", "auc_high", "untrained_auc", "gain_low", "gain_high")
LEAST = 10  # players of a kind that a figure by time step needs


class GoalSamples(eqx.Module):
    """What is asked of the goal of each step, [M, ...]."""

    goal: Any  # [G] of the view
    later: Any  # [G] of the view some steps later
    divergence: Any  # [G] from the prior
    loss: Any  # [] its own: cross-entropy of the planes or of the action, nats
    right: Any  # [] share of the cells, or of the action, that is predicted right
    cell: Any  # [] int32 where the seat is
    visited: Any  # [H * W] bool, where the seat is within the next steps; nowhere if it leaves


@kept_jit
def _samples(
    part: GoalPart, sampler: Sampler, params: Params, source: Source, steps: np.ndarray
) -> GoalSamples:
    def one(now: tuple[jax.Array, jax.Array]) -> GoalSamples:
        step, number = now
        row, seat = step
        key = jax.random.fold_in(jax.random.key(0), number)
        sample = sampler(source, step, key, ())
        code = part.code(params, sample.view)
        goal, later = part.goal(params, sample.view), part.goal(params, sample.later)
        loss, right = _measure_loss(part, params, sample)
        last = source.last_seen[row, seat]
        ahead = row + 1 + jnp.arange(_within(sampler))
        places = jax.vmap(
            lambda r: sampler.view(source, jnp.minimum(r, last), seat).planes[..., 0].reshape(-1)
        )(ahead)
        return GoalSamples(
            goal=goal,
            later=later,
            divergence=part.divergence(code),
            loss=loss,
            right=right,
            cell=sample.view.planes[..., 0].reshape(-1).argmax(),
            visited=((places > 0) & (ahead <= last)[:, None]).any(axis=0),
        )

    return jax.lax.map(one, (steps, np.arange(len(steps))), batch_size=1024)


def _within(sampler: Sampler) -> int:
    """Steps in which a goal's place may be visited."""
    return sampler.ahead or GoalConfig().ahead


def _measure_loss(part: GoalPart, params: Params, sample: Sample) -> tuple[jax.Array, jax.Array]:
    """How well goals tell what their loss wants of them, without chance."""
    goal = part.goal(params, part.encoded(sample))
    if part.config.loss == "reconstruction":
        logits, truth = part.planes(params, goal), sample.view.planes
        return binary_loss(logits, truth).sum(), ((logits > 0) == truth).mean()
    log_probs, action = part.policy(params, sample.view, goal), sample.joint[0]
    return -log_probs[action], (log_probs.argmax() == action).astype(jnp.float32)


class GoalShown(NamedTuple):
    """What pictures of goals show besides figures."""

    points: np.ndarray  # [M, 2] goals along their two main directions
    kind: np.ndarray  # [M] of the player
    names: list[str]


@dataclass(frozen=True)
class GoalDiagnosis:
    """Measures goal priors on held-out play.

    Probes are fitted to one half of the episodes and judged by the other.
    """

    setting: Setting
    held: HeldOut

    @property
    def part(self) -> GoalPart:
        assert isinstance(self.setting.part, GoalPart)
        return self.setting.part

    @cached_property
    def judged(self) -> np.ndarray:
        """[M] bool, whether a step is of the episodes that judge."""
        return self.held.episode % 2 == 1

    @cached_property
    def kinds(self) -> tuple[list[str], np.ndarray]:
        """The kinds of players, and [M] which of them acts: for one that draws what it is after,
        what it drew."""
        held = self.held
        names = list(held.players)
        kind = held.who.copy()
        for number, name in enumerate(held.players):
            drawn = drawn_from(name, held.game)
            for target, full in enumerate(drawn if len(drawn) > 1 else []):
                names += [full] * (full not in names)
                kind[(held.who == number) & (held.aim == target)] = names.index(full)
        seen = np.unique(kind)
        return [names[number] for number in seen], np.searchsorted(seen, kind)

    @cached_property
    def prey(self) -> tuple[list[str], np.ndarray]:
        """The kinds of things, and nothing, and [M] which of them the seat takes in the end."""
        caught = self.held.caught
        names = [*self.held.game.targets, "nothing"]
        seen = np.unique(caught)
        return [names[number] for number in seen], np.searchsorted(seen, caught)

    @cached_property
    def best(self) -> dict[str, Any]:
        """What the joint loss can fall to: that of the best predictions from the same views, if
        anybody knows them. Goals of later views are no predictions."""
        observers = observe(self.held) if self.part.config.loss == "joint" else {}
        return {name: observer.figures() for name, observer in observers.items()}

    def measure(self, params: Params) -> Measures:
        held = self.held
        samples = self.samples(params)
        divergence = samples.divergence.mean(axis=0, dtype=np.float64)
        figures: dict[str, Any] = {
            "samples": len(held.steps),
            "loss": self.part.config.loss,
            self.part.config.loss: float(samples.loss.mean(dtype=np.float64)),
            "told_right": float(samples.right.mean(dtype=np.float64)),
            "kl": float(divergence.sum()),
            "numbers_in_use": self._in_use(samples, divergence),
            "kl_by_number": divergence.tolist(),
            "best": self.best,
            "hit_ratio": self.hits(samples) | {"untrained": self.hits(self.untrained)["later"]},
        }
        if "reconstruction" in figures:
            figures["per_cell"] = figures["reconstruction"] / math.prod(self.part.shape)
        tables: dict[str, list[dict[str, Any]]] = {}
        for about, (names, labels) in (("kind", self.kinds), ("prey", self.prey)):
            if len(names) > 1:
                figures[about] = self.probed(samples.goal, names, labels)
                tables[f"{about}_by_time"] = figures[about]["by_time"]
        points, shares = project(samples.goal.astype(np.float64))
        shown = np.linspace(0, len(points) - 1, min(SHOWN, len(points))).astype(int)
        names, kind = self.kinds
        tables["projection"] = [
            {"x": points[i, 0], "y": points[i, 1], "kind": names[kind[i]]} for i in shown
        ]
        figures["projection_shares"] = shares.tolist()
        return Measures("goal", figures, tables, GoalShown(points[shown], kind[shown], names))

    def samples(self, params: Params) -> GoalSamples:
        """What the goals of all held-out steps tell, on the host."""
        return jax.device_get(
            _samples(self.part, self.setting.sampler, params, self.held.source, self.held.steps)
        )

    @cached_property
    def untrained(self) -> GoalSamples:
        """The same of a prior that has learned nothing: what any code of a view tells."""
        return self.samples(jax.jit(self.part.init)(jax.random.key(0)))

    def _in_use(self, samples: GoalSamples, divergence: np.ndarray) -> int:
        """Numbers that differ from the prior, or categories that are ever the likeliest."""
        if self.part.config.kind == "discrete":
            return int(samples.goal.any(axis=0).sum())
        return int((divergence > 0.01).sum())

    def probed(self, goals: np.ndarray, names: list[str], labels: np.ndarray) -> dict[str, Any]:
        """How well a linear probe reads the label: over all steps, by time step, and from half an
        episode on (half of the steps it had in the end)."""
        held, half = self.held, (self.held.shard.length[self.held.episode] - 1) / 2
        learned, blank = (
            self._read(codes, labels, len(names)) for codes in (goals, self.untrained.goal)
        )
        times = np.unique(held.time[self.judged])

        def of(mask: np.ndarray) -> dict[str, Any]:
            return self._separation(learned, blank, labels, mask & self.judged)

        return {
            "classes": names,
            **of(np.ones(len(labels), bool)),
            "from_half_on": of(held.time >= half),
            "by_time": [{"time": int(time), **of(held.time == time)} for time in times],
        }

    def _read(self, goals: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
        """[M, K] log-probabilities of a probe fitted to the episodes that do not judge."""
        probe = fit_probe(goals[~self.judged], labels[~self.judged], classes)
        return probe.log_probs(goals)

    def _separation(
        self, learned: np.ndarray, blank: np.ndarray, labels: np.ndarray, mask: np.ndarray
    ) -> dict[str, Any]:
        """Accuracy, the share of the commonest class, and the area under the curve of [M, K]
        log-probabilities, also of an untrained prior's, with intervals over episodes.

        Areas compare steps of the same time only: who is still there late is told by the time
        alone, and that is no merit of the goal. Classes of fewer than LEAST steps are left out.
        """
        count = np.bincount(labels[mask], minlength=learned.shape[1])
        out: dict[str, Any] = {
            "count": int(mask.sum()),
            "accuracy": _mean(learned[mask].argmax(axis=1) == labels[mask]),
            "commonest": float(count.max() / count.sum()) if count.sum() else None,
        }
        mask = mask & (count[labels] >= LEAST)
        truth, time = labels[mask], self.held.time[mask]
        episodes, place = np.unique(self.held.episode[mask], return_inverse=True)
        once = np.ones((1, len(truth)))
        area, plain = (mean_area(s[mask], truth, time, once)[0] for s in (learned, blank))
        if np.isnan(area):  # too few of a kind, or never two kinds at the same time
            return out | dict.fromkeys(AREAS)
        even = np.full(len(episodes), 1 / len(episodes))
        drawn = np.random.default_rng(0).multinomial(len(episodes), even, RESAMPLES)[:, place]
        areas, blanks = (mean_area(s[mask], truth, time, drawn) for s in (learned, blank))
        ends, gains = (np.nanquantile(one, [0.025, 0.975]) for one in (areas, areas - blanks))
        found = zip(AREAS, (area, *ends, plain, *gains), strict=True)
        return out | {name: float(value) for name, value in found}

    def hits(self, samples: GoalSamples) -> dict[str, Any]:
        """How often the seat comes to the place a goal stands for within the next steps.

        The place is what a linear probe reads from the goal of a view as the seat's own cell.
        `later` is the goal of a view the seat comes to (a code that tells the place hits always),
        `now` that of the view it has, `chance` that of another step of the data. Steps with which a
        seat leaves have no next ones and are left out.
        """
        cells = samples.visited.shape[1]
        goes_on = samples.visited.any(axis=1)
        judged, fitted = self.judged & goes_on, ~self.judged
        probe = fit_probe(samples.goal[fitted], samples.cell[fitted].astype(int), cells)
        visited = samples.visited[judged]

        def ratio(goals: np.ndarray) -> float | None:
            places = probe.read(goals)
            return _mean(visited[np.arange(len(visited)), places])

        later = samples.later[judged]
        shuffled = np.random.default_rng(0).permutation(len(later))
        return {
            "within": _within(self.setting.sampler),
            "later": ratio(later),
            "now": ratio(samples.goal[judged]),
            "chance": ratio(later[shuffled]),
        }


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
