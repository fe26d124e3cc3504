"""What do goals tell? The view, the actions, who is at work, and where the seat will be."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from hopplus.config import GoalConfig
from hopplus.diagnosis.classes import area_under_curve
from hopplus.diagnosis.heldout import HeldOut
from hopplus.diagnosis.measures import Measures
from hopplus.diagnosis.probe import Probe, fit_probe, projection
from hopplus.learning.parts import Setting
from hopplus.learning.samples import Sampler, Source
from hopplus.models.goal import GoalPart
from hopplus.models.nets import binary_loss
from hopplus.types import Params

SHOWN = 2000  # goals in the projection
RESAMPLES = 200  # of episodes, for intervals
LEAST = 10  # players of a kind that a figure by time step needs


class GoalSamples(eqx.Module):
    """What is asked of the goal of each step, [M, ...]."""

    goal: Any  # [G] of the view
    later: Any  # [G] of the view some steps later
    divergence: Any  # [G] from the prior
    told: Any  # [] the loss's own: cross-entropy of the planes or of the action, nats
    right: Any  # [] share of the cells, or of the action, that is told right
    cell: Any  # [] int32 where the seat is
    visited: Any  # [H * W] bool, where the seat is within the next steps


@eqx.filter_jit
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
        told, right = _told(part, params, sample, goal, later)
        ahead = jnp.minimum(row + 1 + jnp.arange(_within(sampler)), source.last_seen[row, seat])
        places = jax.vmap(lambda r: sampler.view(source, r, seat).planes[..., 0].reshape(-1))(ahead)
        return GoalSamples(
            goal=code.mean,
            later=part.code(params, sample.later).mean,
            divergence=part.divergence(code),
            told=told,
            right=right,
            cell=sample.view.planes[..., 0].reshape(-1).argmax(),
            visited=(places > 0).any(axis=0),
        )

    out: GoalSamples = jax.lax.map(one, (steps, np.arange(len(steps))), batch_size=1024)
    return out


def _within(sampler: Sampler) -> int:
    """Steps in which a goal's place may be visited."""
    return sampler.ahead or GoalConfig().ahead


def _told(
    part: GoalPart, params: Params, sample: Any, goal: jax.Array, later: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """How well goals tell what their loss wants of them, without chance."""
    if part.config.loss == "reconstruction":
        logits, truth = part.planes(params, goal), sample.view.planes
        return binary_loss(logits, truth).sum(), ((logits > 0) == truth).mean()
    log_probs, action = part.policy(params, sample.view, later), sample.joint[0]
    return -log_probs[action], (log_probs.argmax() == action).astype(jnp.float32)


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
        judged: np.ndarray = self.held.episode % 2 == 1
        return judged

    @cached_property
    def kinds(self) -> tuple[list[str], np.ndarray]:
        """The kinds of players, and [M] which of them acts: for one that draws what it is after,
        what it drew."""
        held = self.held
        names = list(held.players)
        kind = held.who.copy()
        for number, name in enumerate(held.players):
            if "switch" in name:
                for target, called in enumerate(held.game.targets):
                    full = name.replace("switch", called)
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

    def measure(self, params: Params) -> Measures:
        held = self.held
        samples: GoalSamples = jax.device_get(
            _samples(self.part, self.setting.sampler, params, held.source, held.steps)
        )
        divergence = samples.divergence.mean(axis=0, dtype=np.float64)
        figures: dict[str, Any] = {
            "samples": len(held.steps),
            "loss": self.part.config.loss,
            self.part.config.loss: float(samples.told.mean(dtype=np.float64)),
            "told_right": float(samples.right.mean(dtype=np.float64)),
            "kl": float(divergence.sum()),
            "numbers_in_use": int((divergence > 0.01).sum()),
            "kl_by_number": divergence.tolist(),
            "hit_ratio": self._hits(samples),
        }
        tables: dict[str, list[dict[str, Any]]] = {}
        for about, (names, labels) in (("kind", self.kinds), ("prey", self.prey)):
            if len(names) < 2:
                continue
            figures[about] = self._probed(samples.goal, names, labels)
            tables[f"{about}_by_time"] = figures[about]["by_time"]
        points, shares = projection(samples.goal.astype(np.float64))
        shown = np.linspace(0, len(points) - 1, min(SHOWN, len(points))).astype(int)
        names, kind = self.kinds
        tables["projection"] = [
            {"x": points[i, 0], "y": points[i, 1], "kind": names[kind[i]]} for i in shown
        ]
        figures["projection_shares"] = shares.tolist()

        def draw() -> Any:
            from hopplus.diagnosis.pictures import goal_picture

            return goal_picture(figures, points[shown], kind[shown], names)

        return Measures("goal", figures, tables, {"goal": draw})

    def _probed(self, goals: np.ndarray, names: list[str], labels: np.ndarray) -> dict[str, Any]:
        """How well a linear probe reads the label: over all steps, by time step, and from half an
        episode on."""
        judged = self.judged
        probe = fit_probe(goals[~judged], labels[~judged], len(names))
        log_probs = probe.log_probs(goals)
        held, half = self.held, (self.held.shard.length[self.held.episode] - 1) / 2
        found = self._separation(log_probs, labels, judged)
        return {
            "classes": names,
            **found,
            "from_half_on": self._separation(log_probs, labels, judged & (held.time >= half)),
            "by_time": [
                {
                    "time": int(time),
                    **self._separation(log_probs, labels, judged & (held.time == time)),
                }
                for time in np.unique(held.time[judged])
            ],
        }

    def _separation(
        self, log_probs: np.ndarray, labels: np.ndarray, mask: np.ndarray
    ) -> dict[str, Any]:
        """Accuracy, the share of the commonest class, and the area under the curve with an interval
        over episodes.

        Areas compare steps of the same time only: who is still there late is told by the time
        alone, and that is no merit of the goal.
        """
        classes = log_probs.shape[1]
        scores, truth, time = log_probs[mask], labels[mask], self.held.time[mask]
        count = np.bincount(truth, minlength=classes)
        out: dict[str, Any] = {
            "count": len(truth),
            "accuracy": float((scores.argmax(axis=1) == truth).mean()) if len(truth) else None,
            "commonest": float(count.max() / len(truth)) if len(truth) else None,
        }
        area = mean_area(scores, truth, time)[0] if (count >= LEAST).sum() > 1 else np.nan
        if np.isnan(area):  # too few of a kind, or never two kinds at the same time
            return {**out, "auc": None, "auc_low": None, "auc_high": None}
        episodes, place = np.unique(self.held.episode[mask], return_inverse=True)
        dice = np.random.default_rng(0)
        even = np.full(len(episodes), 1 / len(episodes))
        drawn = dice.multinomial(len(episodes), even, RESAMPLES)[:, place]
        low, high = np.nanquantile(mean_area(scores, truth, time, drawn), [0.025, 0.975])
        return {**out, "auc": float(area), "auc_low": float(low), "auc_high": float(high)}

    def _hits(self, samples: GoalSamples) -> dict[str, Any]:
        """How often the seat comes to the place a goal stands for within the next steps.

        The place is what a linear probe reads from the goal of a view as the seat's own cell.
        `later` is the goal of a view the seat comes to (a perfect code hits always), `now` that of
        the view it has, `chance` that of another step of the data.
        """
        judged = self.judged
        cells = samples.visited.shape[1]
        probe = fit_probe(samples.goal[~judged], samples.cell[~judged].astype(int), cells)
        visited = samples.visited[judged]

        def ratio(goals: np.ndarray, probe: Probe = probe) -> float:
            places = probe.read(goals[judged])
            return float(visited[np.arange(len(visited)), places].mean())

        shuffled = np.random.default_rng(0).permutation(len(samples.later))
        return {
            "within": _within(self.setting.sampler),
            "later": ratio(samples.later),
            "now": ratio(samples.goal),
            "chance": ratio(samples.later[shuffled]),
        }


def mean_area(
    scores: np.ndarray,
    truth: np.ndarray,
    strata: np.ndarray,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """[R] the mean over classes of how likely one of the class has a higher score for it than one
    of another class in the same stratum [M]; from [M, K] log-probabilities, with `weights` as in
    `area_under_curve`."""
    weights = np.ones((1, len(truth))) if weights is None else weights
    by_class = []
    for number in np.unique(truth):
        score, positive = scores[:, number] - _rest(scores, number), truth == number
        won, pairs = np.zeros(len(weights)), np.zeros(len(weights))
        for stratum in np.unique(strata):
            here = strata == stratum
            own = weights[:, here]
            count = (own * positive[here]).sum(axis=1) * (own * ~positive[here]).sum(axis=1)
            area = area_under_curve(score[here], positive[here], own)
            won += np.where(count > 0, area * count, 0.0)
            pairs += count
        by_class.append(np.where(pairs > 0, won / np.maximum(pairs, 1e-30), np.nan))
    mean: np.ndarray = np.mean(by_class, axis=0)
    return mean


def _rest(scores: np.ndarray, number: int) -> np.ndarray:
    """[M] log-probability of any other class."""
    rest: np.ndarray = np.logaddexp.reduce(np.delete(scores, number, axis=1), axis=1)
    return rest
