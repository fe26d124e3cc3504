"""Why is the value loss large? By source, by seat, over time, and with parts of it switched off."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hopplus.diagnosis.audit import data_audit, target_audit
from hopplus.diagnosis.finding import Check, Illness, Verdict, verdict_of
from hopplus.diagnosis.laboratory import Record, lane_of, lanes_of
from hopplus.diagnosis.pipeline import DATA_ILLNESSES, DIVERGED, data_checks, mixing, target_check
from hopplus.diagnosis.sources import (
    OpponentCheck,
    Source,
    Targets,
    WorldCheck,
    goal_difference,
    opponent_check,
    sources,
    targets,
    world_check,
)
from hopplus.diagnosis.subject import OnStep, Subject
from hopplus.learning.learner import Lesson

LARGE = 10.0  # a value loss beyond what rewards of a few units can bring
FAR = 2.0  # so many times too large, or too small, is wrong
BLIND = 1.2  # cross-entropy, as a multiple of that of knowing nothing, above which models mislead
LOUD = 3.0  # so many times too large is wrong where young models are often twice too large
OFF = 0.05  # of the range of rewards, that the usual one may be foreseen wrongly by
USEFUL = 0.05  # explained variance below which values are of no use
ENOUGH = 15  # updates after which they should be
FLAT = 1e-9  # variance of returns below which there is nothing to explain
RIGHT = 0.7  # share of next views that a world model must foresee; the gate by default asks for 0.8

ILLNESSES = {
    **DATA_ILLNESSES,
    "critic-on-imagined": Illness(
        "configuration",
        "values learn from imagined steps, though they are configured not to",
        "Look where imagined steps are marked for the value (--imagine.critic-on real).",
    ),
    "world-rewards": Illness(
        "world model",
        "the world model's rewards are not those of the game, and imagined returns with them",
        "Keep the critic on real steps (--imagine.critic-on real), clip imagined rewards"
        " (--imagine.reward clipped), and look at how rewards are scaled on the way to the model.",
    ),
    "world-immature": Illness(
        "world model immature",
        "imagined steps are learned from before the world model is right",
        "Let the gate close earlier (--imagine.gate 0.2), warm up longer (--imagine.warm-up), or"
        " pretrain the world (hopplus pretrain world, --world.from).",
    ),
    "goal-mismatch": Illness(
        "goal mismatch",
        "goals in imagination are not like goals in play",
        "Infer goals in imagination exactly as in play, from the memory of the moment where it"
        " begins.",
    ),
    "opponents-wrong": Illness(
        "opponent models wrong",
        "models of the others are worse than knowing nothing",
        "Look at what they learn from (players that have left?) and measure them: hopplus diagnose"
        " models.",
    ),
    "reward-scale": Illness(
        "reward scale",
        "the loss is as large as the returns' own spread makes it, and no larger",
        "Nothing is broken: compare explained variances, or scale rewards down.",
    ),
    "horizon": Illness(
        "horizon",
        "most of the loss is chance far ahead, which Monte-Carlo returns carry into every step",
        "Take --ppo.mix 0.95, which is GAE, or more games at a time.",
    ),
    "imagination": Illness(
        "imagination",
        "imagined steps make the value of real ones worse, though no model shows why",
        "Keep the critic on real steps (--imagine.critic-on real), or imagine less"
        " (--imagine.real-ratio).",
    ),
    "value-behind": Illness(
        "horizon",
        "values explain next to nothing of the returns, and nothing else is wrong",
        "Train longer, give the value more weight (--ppo.value-weight), or look at the critic.",
    ),
}
NOT_IMAGINED = (
    "Nothing imagined is learned from yet: train past --imagine.warm-up and until the world model"
    " is right enough for --imagine.gate."
)
NOT_PLAYED = "Nothing of a seat's play is learned from: give it more games (--ppo.games)."
HEALTHY = Illness("healthy", "nothing is wrong with the value loss", "Nothing needs to be done.")
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "real steps only": {"imagine": False},
    "imagined rewards zero": {"reward": 0.0},
    "critic on real steps only": {"critic": False},
    "critic on both": {"critic": True},
}
LANES = 4  # experiments side by side


@dataclass(frozen=True)
class Trial:
    """One experiment: the same checkpoint, one thing changed, a few updates."""

    name: str
    value_loss: list[float]  # by update, of real steps, mean over seats
    imagined_loss: list[float]  # of imagined ones, where values learn from them; else 0
    explained: list[float]
    returns: list[float]  # mean real return that values learn from
    imagines: bool  # whether anything imagined was learned from

    @property
    def final(self) -> float:
        """Over the second half."""
        return float(np.mean(self.value_loss[len(self.value_loss) // 2 :]))

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "final": self.final}


@dataclass(frozen=True)
class ValueLossDiagnosis:
    """Everything that was seen, and what it means."""

    subject: str
    checks: list[Check]
    verdict: Verdict
    seats: list[list[int]]  # [sets] whose parameters they are
    records: list[Record]
    sources: dict[str, list[Source | None]]  # by source, [sets]
    targets: Targets
    trials: list[Trial]
    world: WorldCheck | None
    opponents: OpponentCheck | None

    def as_json(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            **self.verdict.as_json(),
            "seats": self.seats,
            "sources": {
                name: [one.as_json() if one else None for one in found]
                for name, found in self.sources.items()
            },
            "targets": self.targets.as_json(),
            "experiments": [trial.as_json() for trial in self.trials],
            "world": self.world.as_json() if self.world else None,
            "opponents": self.opponents.as_json() if self.opponents else None,
            "checks": [check.as_json() for check in self.checks],
        }


def diagnose_value_loss(subject: Subject, updates: int, on_step: OnStep) -> ValueLossDiagnosis:
    """Look into one more update, then run the experiments for so many updates."""
    learner, lab = subject.learner, subject.laboratory
    minds = lane_of(subject.learning.params[learner.learning], 0)
    _, _, shown = lab.update(subject.learning, lab.as_it_is())
    lesson = lane_of(shown, 0)
    found = sources(lesson)
    checks = [time_check(subject.records), source_check(found)]
    checks += data_checks(data_audit(learner, lesson.trajectory, lesson))
    targeted = target_audit(learner, subject.learning, lesson, 0)
    checks.append(target_check(targeted, mixing(subject)))
    if learner.beside.dreams:
        checks.append(critic_check(subject, lesson))
    on_step("looked at what values learn from")
    errors = targets(learner, lesson.trajectory)
    world = world_check(lab, minds, lesson.trajectory)
    opponents = opponent_check(lab, minds, lesson.trajectory) if world else None
    if world:
        checks.append(rewards_check(world, found))
    apart = goal_difference(lab, minds, lesson.trajectory)
    if apart:
        checks.append(goal_check(found, apart))
    if opponents:
        checks.append(others_check(opponents))
    on_step("looked at the models")
    checks += loss_checks(subject, found, errors)
    trials = experiments(subject, updates, on_step) if learner.beside.dreams else []
    if trials:
        checks.append(trial_check(trials))
    verdict = verdict_of(checks, ILLNESSES, HEALTHY)
    return ValueLossDiagnosis(
        subject.name,
        checks,
        verdict,
        learner.beside.seats.tolist(),
        # Without the update looked into: it has a row for each lane, the log one for each seed.
        subject.records,
        found,
        errors,
        trials,
        world,
        opponents,
    )


def time_check(records: list[Record]) -> Check:
    """How it went."""

    def span(name: str) -> str:
        values = [float(np.mean(record[name])) for record in records if name in record]
        tenth = max(1, len(values) // 10)
        first, last = np.mean(values[:tenth]), np.mean(values[-tenth:])
        return f"{first:.3g} at first, {last:.3g} at last, at most {max(values):.3g}"

    says = f"Over {len(records)} updates, value loss {span('value_loss')}; explained variance"
    return Check("Over time", f"{says} {span('explained')}.")


def source_check(found: dict[str, list[Source | None]]) -> Check:
    """The sources side by side, by seat."""
    lines = []
    for name, by_set in found.items():
        known = [one for one in by_set if one]
        if not known:
            lines.append(
                f"Nothing {name} is learned from (the gate is closed, or it is too early)."
            )
            continue
        loss = ", ".join(f"{one.value_loss:.3g}" for one in known)
        explained = ", ".join(f"{one.explained:.2f}" for one in known)
        means = ", ".join(f"{one.return_mean:.2f}" for one in known)
        least, most = min(one.reward[0] for one in known), max(one.reward[-1] for one in known)
        lines.append(
            f"{name.capitalize()} steps, by seat: squared error {loss}; explained {explained};"
            f" mean return {means}; rewards from {least:.3g} to {most:.3g}."
        )
    real = found["real"]
    losses = [one.value_loss for one in real if one]
    unknown = "" if all(real) else NOT_PLAYED
    return Check("By source", " ".join(lines), unknown=unknown if _finite(losses) else DIVERGED)


def critic_check(subject: Subject, lesson: Lesson) -> Check:
    """Which imagined steps values learn from."""
    batch = lesson.batch
    assert batch.imagined is not None
    imagined = np.asarray(batch.imagined & batch.present)
    valued = np.asarray(batch.imagined & batch.valued)
    wanted = subject.config.imagine.critic_on
    wrong = wanted == "real" and bool(valued.any())
    return Check(
        "The critic's steps",
        f"Values learn from {valued.sum():,} of {imagined.sum():,} imagined steps; configured:"
        f" critic on {wanted}.",
        "critic-on-imagined" if wrong else None,
        unknown="" if imagined.any() else NOT_IMAGINED,
    )


def rewards_check(world: WorldCheck, found: dict[str, list[Source | None]]) -> Check:
    """The world that is imagined in, on real steps."""
    used = any(found.get("imagined", []))
    loud = any(slope > LOUD for slope in world.reward_slope) or any(
        abs(offset) > OFF for offset in world.reward_offset
    )
    immature = any(exact < RIGHT for exact in world.exact)
    says = (
        f"On real steps the imagined world foresees {_list(world.exact, '.1%')} of next boards"
        f" exactly, and rewards that grow {_list(world.reward_slope, '.2f')} times as fast as the"
        f" true ones (true from {world.observed[0]:.3g} to {world.observed[1]:.3g}, foreseen from"
        f" {world.predicted[0]:.3g} to {world.predicted[1]:.3g}, {world.outside:.2%} outside)."
    )
    if not used:
        says += " Nothing of it is learned from yet."
    fault = "world-rewards" if loud else "world-immature" if immature else None
    fault = fault if used else None
    unknown = ""
    if not used:
        unknown = NOT_IMAGINED
    elif not _finite([*world.reward_slope, *world.exact]):
        unknown = (
            "Some seat was not there, or all its rewards were the same: give it more games"
            " (--ppo.games)."
        )
    return Check("The imagined world", says, fault, world.as_json(), unknown)


def goal_check(found: dict[str, list[Source | None]], apart: list[float]) -> Check:
    """Goals in imagination against goals in play: at the same moments, and by their size."""
    title = "Goals in imagination and in play"
    if not apart:
        return Check(title, "There are no goals, or nothing is imagined.")
    pairs = [
        (real, dreamt)
        for real, dreamt in zip(found["real"], found.get("imagined", []), strict=False)
        if real and dreamt and real.goal_size > 1e-3
    ]
    ratios = [dreamt.goal_size / real.goal_size for real, dreamt in pairs]
    off = any(one > 1e-3 for one in apart) or any(
        ratio > FAR or ratio < 1 / FAR for ratio in ratios
    )
    says = f"From the same memory and view, inferred goals differ by at most {max(apart):.2g}."
    if ratios:
        says += f" In imagination they are {_list(ratios, '.2f')} times as large, by seat."
    figures = {"ratios": ratios, "apart": apart}
    unknown = "" if _finite([*apart, *ratios]) else DIVERGED
    return Check(title, says, "goal-mismatch" if off else None, figures, unknown)


def others_check(opponents: OpponentCheck) -> Check:
    """Models of the others against knowing nothing."""
    pairs = list(zip(opponents.cross_entropy, opponents.uniform, strict=True))
    wrong = any(own > BLIND * even for own, even in pairs)
    says = (
        f"What the others did surprises their models by {_list(opponents.cross_entropy, '.2f')}"
        f" nats, by seat; knowing nothing, by {_list(opponents.uniform, '.2f')}."
    )
    known = _finite([*opponents.cross_entropy, *opponents.uniform])
    return Check(
        "Models of the others",
        says,
        "opponents-wrong" if wrong else None,
        unknown="" if known else "No other had a choice: give it more games (--ppo.games).",
    )


def loss_checks(
    subject: Subject, found: dict[str, list[Source | None]], errors: Targets
) -> list[Check]:
    """The loss that the scale of rewards alone would bring, and what Monte-Carlo returns add."""
    real = [one for one in found["real"] if one]
    if not real:
        return [Check("Reward scale", "There are no real steps to learn from.", unknown=NOT_PLAYED)]
    loss = float(np.mean([one.value_loss for one in real]))
    variance = float(np.mean([one.return_variance for one in real]))
    late = subject.records[-max(1, len(subject.records) // 5) :]
    explained = float(np.mean([record["explained"] for record in late]))
    scaled = loss > LARGE and loss <= 1.5 * variance and explained > USEFUL
    checks = [
        Check(
            "Reward scale",
            f"Squared error {loss:.3g}; predicting the mean alone would give {variance:.3g}, the"
            f" returns' own variance.",
            "reward-scale" if scaled else None,
            {"value_loss": loss, "variance": variance},
            "" if _finite([loss, variance]) else DIVERGED,
        )
    ]
    mix = subject.config.ppo.mix
    noisy = mix > 0.99 and errors.monte_carlo > FAR * errors.gae and loss > 0.5 * variance
    ended = _finite([errors.monte_carlo, errors.gae])
    says = "No episode ended in what was learned from, so that its returns are not known."
    if ended:
        says = (
            f"Against Monte-Carlo returns the squared error is {errors.monte_carlo:.3g}, against"
            f" GAE's (0.95) {errors.gae:.3g}; the run learns with lambda {mix:g}."
        )
    checks.append(
        Check(
            "Monte-Carlo or GAE",
            says,
            "horizon" if noisy else None,
            errors.as_json(),
            "" if ended else "Give it more games (--ppo.games).",
            decides=mix > 0.99,  # else there is no noise of Monte-Carlo returns to look for
        )
    )
    useless, unknown = explained < USEFUL, ""
    if not _finite([explained]):
        unknown = DIVERGED
    elif variance < FLAT:
        unknown = "All returns are the same, so that there is nothing to explain: train longer."
    elif useless and len(subject.records) < ENOUGH:
        unknown = f"It is too early to tell: train for {ENOUGH} updates or more."
    checks.append(
        Check(
            "Explained variance",
            f"Over the last fifth values explain {explained:.0%} of the returns' variance.",
            "value-behind" if useless and not unknown else None,
            {"explained": explained},
            unknown,
        )
    )
    return checks


def experiments(subject: Subject, updates: int, on_step: OnStep) -> list[Trial]:
    """From one checkpoint, side by side, with one thing changed in each."""
    lab = subject.laboratory
    critic = subject.config.imagine.critic_on == "both"
    names = [
        name
        for name, change in EXPERIMENTS.items()
        if change.get("critic", not critic) != critic  # what it is already needs no experiment
    ]
    switch = lab.switches([lab.usual(**EXPERIMENTS[name]) for name in names])
    now = lanes_of(subject.learning, [0] * len(names))
    records = []
    for number in range(updates):
        now, record, _ = lab.update(now, switch)
        records.append(record)
        on_step(f"experiments, update {number + 1} of {updates}")

    def series(name: str, lane: int) -> list[float]:
        return [float(np.mean(record[name][lane])) for record in records if name in record]

    return [
        Trial(
            name,
            series("value_loss", lane),
            series("imagined/value_loss", lane),
            series("explained", lane),
            series("real/return", lane),
            any(series("imagined/open", lane)) and name != "real steps only",
        )
        for lane, name in enumerate(names)
    ]


def trial_check(trials: list[Trial]) -> Check:
    """Does anything help?"""
    usual, *others = trials
    rows = "; ".join(f"{trial.name} {trial.final:.3g}" for trial in trials)
    real = next(trial for trial in others if trial.name == "real steps only")
    helps = real.final < usual.final / LOUD
    closed = (
        "" if any(trial.imagines for trial in trials) else " Nothing was imagined (gate closed)."
    )
    known = _finite([trial.final for trial in trials])
    return Check(
        "Experiments from the same checkpoint",
        f"Value loss of real steps after {len(usual.value_loss)} updates: {rows}.{closed}",
        "imagination" if helps else None,
        unknown=(NOT_IMAGINED if closed else "") if known else DIVERGED,
    )


def _finite(values: list[float]) -> bool:
    return bool(np.isfinite(values).all())


def _list(values: list[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)
