"""Where does an ordering of seats begin? Short runs with more and more taken away."""

from dataclasses import replace

from hopplus.config import DistilConfig, MemoryConfig, TrainConfig
from hopplus.diagnosis.faults import Fault
from hopplus.diagnosis.finding import Check
from hopplus.diagnosis.seats.ordering import (
    Ordering,
    compare_direction,
    compare_runs,
    compare_strength,
)
from hopplus.diagnosis.subject import OnStep, Subject, build_laboratory, late_returns, train_subject

AGAIN, PLAIN = "as it is, again", "plain PPO"
LEAST_RUNS = 5  # of each rung: one or two could not tell
SIGNIFICANT = 0.05  # p-value; there are few rungs, and the ordering itself is known to be real


def list_rungs(config: TrainConfig, fewer: bool) -> dict[str, TrainConfig]:
    """The configuration as it is, and with more and more taken away."""
    rungs = {AGAIN: config}
    bare = replace(config, search=replace(config.search, simulations=0), distil=DistilConfig())
    if config.search.simulations:
        rungs["without search"] = bare
    if "imagination" in config.parts:
        rungs["without imagination"] = bare.without("imagination", "world")
    plain = replace(bare.without(*config.parts), memory=MemoryConfig(), context=None)
    if config.parts or config.search.simulations or plain.memory != config.memory:
        rungs[PLAIN] = plain
    shared = config.ppo.parameters == "shared"
    other = replace(plain.ppo, parameters="independent" if shared else "shared")
    rungs[f"{PLAIN}, {other.parameters} parameters"] = replace(plain, ppo=other)
    return {name: rung for name, rung in rungs.items() if not fewer or name in (AGAIN, PLAIN)}


def run_ablation(
    subject: Subject, fault: Fault, steps: int, fewer: bool, on_step: OnStep
) -> dict[str, Ordering]:
    """Short runs of each rung, all with seeds of their own: in which do seats differ?"""
    ladder = {}
    replicas = max(subject.laboratory.replicas, len(late_returns(subject.records)), LEAST_RUNS)
    for number, (name, config) in enumerate(list_rungs(subject.config, fewer).items(), start=1):
        if fault.own and config.ppo.parameters == "shared":
            continue  # a fault of one seat's own parameters cannot be built in there
        short = replace(config, steps=steps, seeds=replicas)
        laboratory = build_laboratory(short, subject.laboratory.make, replicas)
        seed = (subject.config.seed + 1000 * number) % 2**31
        trained = train_subject(name, laboratory, seed, on_step)
        ladder[name] = compare_runs(late_returns(trained.records))
    return ladder


def check_ablation(returns: Ordering, ladder: dict[str, Ordering]) -> Check:
    """Where does the ordering begin? It must come again in other runs, and be gone in some."""
    ladder = {name: found for name, found in ladder.items() if len(found.samples)}
    if AGAIN not in ladder:
        return Check(
            "Ablation",
            "No episode ended in the last fifth of fresh short runs.",
            unknown="Look at a game with shorter episodes (--game.horizon).",
        )
    rows = "; ".join(
        f"{name}: gap {found.gap:.3f}, p-value {found.p_value:.3g}"
        for name, found in ladder.items()
    )
    again = ladder[AGAIN].samples
    repeated = compare_direction(returns.samples, again)
    figures = {"repeated": repeated}
    if repeated >= SIGNIFICANT:
        return Check(
            "Ablation",
            f"{rows}. Fresh short runs do not repeat the ordering (p-value {repeated:.3g}): it may"
            " have been chance, or come late in training.",
            figures=figures,
            unknown="Train with more --seeds.",
        )
    says = f"{rows}. Fresh runs repeat it, and it"
    for name, found in ladder.items():
        less = compare_strength(returns.samples, again, found.samples)
        if found.samples is not again and less < SIGNIFICANT:
            says = f"{says} is less {name} (p-value {less:.3g})."
            return Check("Ablation", says, "part-orders", figures | {"gone": name})
    says = f"{says} is there whatever is taken away, as far as one can tell."
    return Check("Ablation", says, figures=figures)
