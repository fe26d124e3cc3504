"""What is looked at to know why the value loss is large: by source, by seat, over time, and with
parts of it switched off."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from hopplus.diagnosis.audit import target_audit
from hopplus.diagnosis.finding import Check, Found, all_finite, join
from hopplus.diagnosis.pipeline import DIVERGED, counter_checks, lesson_checks, mixing, target_check
from hopplus.diagnosis.subject import late_returns, learned_from
from hopplus.diagnosis.value_loss.courses import PPO
from hopplus.diagnosis.value_loss.evidence import ValueLossEvidence
from hopplus.diagnosis.value_loss.experiments import AS_IT_IS, REAL_ONLY
from hopplus.diagnosis.value_loss.sources import StepSource, describe_cuts
from hopplus.evaluation.statistics import apart
from hopplus.learning.social_rewards import shared_reward

LARGE = 10.0  # a value loss beyond what rewards of a few units can bring
FAR = 2.0  # so many times too large, or too small, is wrong
BLIND = 1.2  # cross-entropy, as a multiple of that of knowing nothing, above which models mislead
LOUD = 3.0  # so many times too large is wrong where young models are often twice too large
NOISY = 1.3  # times the error that GAE's returns would have: near a quarter of it is noise
OFF = 0.05  # of the range of rewards, that the usual one may be predicted wrongly by
USEFUL = 0.05  # explained variance below which values are of no use
ENOUGH = 15  # updates after which they should be
FLAT = 1e-9  # variance of returns below which there is nothing to explain
RIGHT = 0.7  # share of next views that a world model must predict; the gate by default asks for 0.8

NOT_IMAGINED = (
    "Nothing imagined is learned from yet: train past --imagine.warm-up and until the world model"
    " is right enough for --imagine.gate."
)
NOT_PLAYED = "Nothing of a seat's play is learned from: give it more games (--ppo.games)."
MORE_GAMES = "give it more games (--ppo.games)."


def check_time(evidence: ValueLossEvidence) -> Check:
    """How it went."""
    records = evidence.subject.records

    def span(name: str) -> str:
        values = [float(np.mean(record[name])) for record in records if name in record]
        tenth = max(1, len(values) // 10)
        first, last = np.mean(values[:tenth]), np.mean(values[-tenth:])
        return f"{first:.3g} at first, {last:.3g} at last, at most {max(values):.3g}"

    says = f"Over {len(records)} updates, value loss {span('value_loss')}; explained variance"
    return Check("Over time", f"{says} {span('explained')}.")


def check_sources(evidence: ValueLossEvidence) -> Check:
    """The sources side by side, by seat."""
    says = " ".join(_describe(name, found) for name, found in evidence.sources.items())
    unknown = "" if all(evidence.sources["real"]) else NOT_PLAYED
    known = all_finite([one.value_loss for one in evidence.real])
    return Check("By source", says, unknown=unknown if known else DIVERGED)


def _describe(name: str, by_set: list[StepSource | None]) -> str:
    known = [one for one in by_set if one]
    if not known:
        return f"Nothing {name} is learned from (the gate is closed, or it is too early)."
    least, most = min(one.reward[0] for one in known), max(one.reward[-1] for one in known)
    return (
        f"{name.capitalize()} steps, by seat: squared error"
        f" {join((one.value_loss for one in known), '.3g')}; explained"
        f" {join((one.explained for one in known), '.2f')}; mean return"
        f" {join((one.return_mean for one in known), '.2f')}; rewards from {least:.3g} to"
        f" {most:.3g}."
    )


def check_data(evidence: ValueLossEvidence) -> list[Check]:
    """Whose play it is."""
    subject = evidence.subject
    return lesson_checks(subject.learner, subject.learning, evidence.lesson)


def check_targets(evidence: ValueLossEvidence) -> Check:
    """Whose values and returns."""
    subject = evidence.subject
    found = target_audit(subject.learner, subject.learning, evidence.lesson, 0)
    return target_check(found, mixing(subject))


def check_counters(evidence: ValueLossEvidence) -> list[Check]:
    """What was counted as it was learned from."""
    return counter_checks(evidence.subject.records)


def check_critic(evidence: ValueLossEvidence) -> Check | None:
    """Which imagined steps values learn from."""
    batch = learned_from(evidence.lesson)
    if batch.imagined is None:
        return None
    imagined = np.asarray(batch.imagined & batch.present)
    valued = np.asarray(batch.imagined & batch.valued)
    wanted = evidence.subject.config.imagine.critic_on
    wrong = wanted == "real" and bool(valued.any())
    return Check(
        "The critic's steps",
        f"Values learn from {valued.sum():,} of {imagined.sum():,} imagined steps; configured:"
        f" critic on {wanted}.",
        "critic-on-imagined" if wrong else None,
        unknown="" if imagined.any() else NOT_IMAGINED,
    )


def check_world(evidence: ValueLossEvidence) -> Check | None:
    """The world that is imagined in, on real steps."""
    world = evidence.world
    if world is None:
        return None
    title, figures = "The imagined world", dict(vars(world))
    says = (
        f"On real steps the imagined world predicts {join(world.exact, '.1%')} of next boards"
        f" exactly, and rewards that grow {join(world.reward_slope, '.2f')} times as fast as the"
        f" true ones (true from {world.observed[0]:.3g} to {world.observed[1]:.3g}, predicted from"
        f" {world.predicted[0]:.3g} to {world.predicted[1]:.3g}, {world.outside:.2%} outside)."
    )
    if not any(evidence.sources.get("imagined", [])):  # a wrong world does no harm then
        says += " Nothing of it is learned from yet."
        return Check(title, says, figures=figures, unknown=NOT_IMAGINED)
    loud = any(slope > LOUD for slope in world.reward_slope)
    off = any(abs(offset) > OFF for offset in world.reward_offset)
    immature = any(exact < RIGHT for exact in world.exact)
    known = all_finite(world.reward_slope, world.exact)
    return Check(
        title,
        says,
        "world-rewards" if loud or off else "world-immature" if immature else None,
        figures,
        "" if known else f"Some seat was not there, or all its rewards were the same: {MORE_GAMES}",
    )


def check_imagined_returns(evidence: ValueLossEvidence) -> Check | None:
    """Returns that nobody has had convict the world, even where each of its steps looks right."""
    imagined = [one for one in evidence.sources.get("imagined", []) if one]
    if not imagined or not evidence.real:
        return None
    # Of nine tenths of the real ones too: single targets hang on the very values that are wrong.
    most = max(abs(end) for one in evidence.real for end in (one.returns[1], one.returns[3]))
    most = max(most, *(abs(one.reward[end]) for one in evidence.real for end in (0, -1)))
    usual = [max(-one.returns[1], one.returns[3]) for one in imagined]  # of nine tenths of steps
    return Check(
        "Imagined returns",
        f"Returns of nine tenths of the imagined steps reach {join(usual, '.3g')}, by seat; those"
        f" of real ones, or a single reward, {most:.3g}.",
        "imagined-returns" if max(usual) > LOUD * max(most, 1e-6) else None,
        {"imagined": usual, "real": most},
        "" if all_finite(usual, most) else DIVERGED,
    )


def check_hopes(evidence: ValueLossEvidence) -> Check | None:
    """Do values of real steps hope for what nobody gets? Their own loss hardly shows it where an
    unroll ends before the episode, and they stand for the rest of it."""
    subject, lesson = evidence.subject, evidence.lesson
    seats, begins = subject.learner.seats, np.asarray(lesson.trajectory.begins)
    batch = learned_from(lesson)
    if batch.imagined is None or not begins.any():
        return None
    hoped = np.asarray(lesson.trajectory.act.value)[begins][:, seats].mean(axis=0)
    returns = jnp.asarray(late_returns(subject.records))
    returns = shared_reward(returns, subject.config.ppo.prosociality)
    came = np.asarray(returns)[:, seats].mean(axis=0)
    largest = float(np.abs(subject.learning.auxiliary_state.observed[0]).max())
    # Discounted ones are nearer to zero; nobody should be further from it by a whole reward.
    off = bool((np.abs(hoped) > np.abs(came) + largest).any())
    taught = bool((batch.imagined & batch.valued).any())
    return Check(
        "What values hope for",
        f"When an episode begins values are {join(hoped, '.3g')}, by seat; over the last fifth"
        f" episodes came to {join(came, '.3g')}, and no reward was larger than {largest:.3g}.",
        "imagination" if off and taught else None,
        {"hoped": hoped, "came": came, "largest": largest},
        decides=False,  # values that are wrong for another reason are another check's business
    )


def check_goals(evidence: ValueLossEvidence) -> Check | None:
    """Goals in imagination against goals in play: at the same steps, and by their size."""
    apart, sources = evidence.goals_apart, evidence.sources
    if not apart:
        return None
    ratios = [
        imagined.goal_size / real.goal_size
        for real, imagined in zip(sources["real"], sources.get("imagined", []), strict=False)
        if real and imagined and real.goal_size > 1e-3
    ]
    wrong = [number for number, one in enumerate(apart) if one > 1e-3]
    off = bool(wrong) or any(ratio > FAR or ratio < 1 / FAR for ratio in ratios)
    says = f"From the same memory and view, inferred goals differ by at most {max(apart):.2g}."
    if 0 < len(wrong) < len(apart):
        named = evidence.subject.learner.auxiliary.seats[wrong]
        says += f" It is so of seat {join(named.reshape(-1), '')} alone."
    if ratios:
        says += f" In imagination they are {join(ratios, '.2f')} times as large, by seat."
    return Check(
        "Goals in imagination and in play",
        says,
        "goal-mismatch" if off else None,
        {"ratios": ratios, "apart": apart},
        "" if all_finite(apart, ratios) else DIVERGED,
    )


def check_opponents(evidence: ValueLossEvidence) -> Check | None:
    """Models of the others against knowing nothing."""
    found = evidence.opponents
    if found is None:
        return None
    pairs = zip(found.cross_entropy, found.uniform, strict=True)
    wrong = any(own > BLIND * even for own, even in pairs)
    return Check(
        "Models of the others",
        f"What the others did surprises their models by {join(found.cross_entropy, '.2f')} nats, by"
        f" seat; knowing nothing, by {join(found.uniform, '.2f')}.",
        "opponents-wrong" if wrong else None,
        unknown="" if all_finite(*vars(found).values()) else f"No other had a choice: {MORE_GAMES}",
    )


def check_scale(evidence: ValueLossEvidence) -> Check:
    """The loss that the scale of rewards alone would bring."""
    title = "Reward scale"
    if not evidence.real:
        return Check(title, "There are no real steps to learn from.", unknown=NOT_PLAYED)
    # Over many updates: in a single one, hardly anybody may have come by a large reward.
    loss, variance = evidence.late("value_loss"), evidence.late("real/return_variance")
    scaled = loss > LARGE and loss <= 1.5 * variance and evidence.late("explained") > USEFUL
    return Check(
        title,
        f"Over the last fifth the value loss is {loss:.3g}; predicting the mean alone would give"
        f" {variance:.3g}, the returns' own variance.",
        "reward-scale" if scaled else None,
        {"value_loss": loss, "variance": variance},
        "" if all_finite(loss, variance) else DIVERGED,
    )


def check_horizon(evidence: ValueLossEvidence) -> Check | None:
    """What Monte-Carlo returns add."""
    if not evidence.real:
        return None
    errors, gae_lambda = evidence.targets, evidence.subject.config.ppo.gae_lambda
    noisy = errors.monte_carlo > NOISY * errors.gae and evidence.loss > 0.5 * evidence.variance
    ended = all_finite(errors.monte_carlo, errors.gae)
    says = "No episode ended in what was learned from, so that its returns are not known."
    if ended:
        says = (
            f"Against Monte-Carlo returns the squared error is {errors.monte_carlo:.3g}, against"
            f" GAE's (0.95) {errors.gae:.3g}; the run learns with lambda {gae_lambda:g}."
        )
    return Check(
        "Monte-Carlo or GAE",
        f"{says} {describe_cuts(evidence.subject.learner, evidence.lesson)}",
        "horizon" if gae_lambda > 0.99 and noisy else None,
        dict(vars(errors)),
        "" if ended else "Give it more games (--ppo.games).",
        decides=gae_lambda > 0.99,  # else there is no noise of Monte-Carlo returns to look for
    )


def check_explained(evidence: ValueLossEvidence) -> Check | None:
    """Are values of any use?"""
    if not evidence.real:
        return None
    explained, updates = evidence.late("explained"), len(evidence.subject.records)
    useless, unknown = explained < USEFUL, ""
    if not all_finite(explained):
        unknown = DIVERGED
    elif evidence.variance < FLAT:
        unknown = "All returns are the same, so that there is nothing to explain: train longer."
    elif useless and updates < ENOUGH:
        unknown = f"It is too early to tell: train for {ENOUGH} updates or more."
    return Check(
        "Explained variance",
        f"Over the last fifth values explain {explained:.0%} of the returns' variance.",
        "value-behind" if useless and not unknown else None,
        {"explained": explained},
        unknown,
    )


def check_experiments(evidence: ValueLossEvidence) -> Check | None:
    """Does anything help?"""
    if not evidence.experiments:
        return None
    usual, *others = evidence.experiments
    rows = "; ".join(f"{one.name} {one.final:.3g}" for one in evidence.experiments)
    real = next(one for one in others if one.name == REAL_ONLY)
    closed = not any(one.imagines for one in evidence.experiments)
    known = all_finite([one.final for one in evidence.experiments])
    return Check(
        "Experiments from the same checkpoint",
        f"Value loss of real steps after {len(usual.value_loss)} updates: {rows}."
        + (" Nothing was imagined (gate closed)." if closed else ""),
        "imagination" if real.final < usual.final / LOUD else None,
        unknown=(NOT_IMAGINED if closed else "") if known else DIVERGED,
    )


def check_courses(evidence: ValueLossEvidence) -> Check | None:
    """What the value loss is from the first update on, with and without what is imagined."""
    by_name = {course.name: course for course in evidence.courses}
    if not by_name:
        return None
    rows = "; ".join(f"{name} {course.mean}" for name, course in by_name.items())
    usual, without = by_name[AS_IT_IS].mean, by_name[REAL_ONLY].mean
    blown = without.mean < usual.mean / LOUD and apart(without, usual)
    return Check(
        "Experiments from the first update on",
        f"Value loss over all updates, of {len(by_name[PPO].returns)} seeds ± 95%: {rows}. Returns"
        f" {by_name[AS_IT_IS].late_return} as it is, {by_name[PPO].late_return} of plain PPO.",
        "imagination" if blown else None,
        unknown="" if all_finite([one.mean.mean for one in evidence.courses]) else DIVERGED,
    )


CHECKS: tuple[Callable[[ValueLossEvidence], Found], ...] = (
    check_time,
    check_sources,
    check_data,
    check_targets,
    check_counters,
    check_critic,
    check_world,
    check_imagined_returns,
    check_hopes,
    check_goals,
    check_opponents,
    check_scale,
    check_horizon,
    check_explained,
    check_experiments,
    check_courses,
)
