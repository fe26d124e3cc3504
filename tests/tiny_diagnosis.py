"""Tiny subjects of diagnoses: a PPO learner with some play, and what tests do with it."""

from dataclasses import replace
from functools import cache
from typing import Any

from hopplus.config import NetConfig, PPOConfig, StagHuntConfig, TrainConfig
from hopplus.diagnosis.faults import FAULTS, Fault, find_fault
from hopplus.diagnosis.seats.checks import SeatsDiagnosis, SeatsSettings, diagnose_seats
from hopplus.diagnosis.subject import Subject, make_laboratory, train_subject
from tiny_hop_plus import CONFIG as HOP_PLUS

GAME = StagHuntConfig(size=3, seats=3, hares=2, horizon=12)
_GAME = "--game.size 3 --game.seats 3 --game.hares 2 --game.horizon 12"
GAME_OPTIONS = _GAME.split()
PPO = PPOConfig(games=16, unroll=8, minibatches=2, epochs=1)
CONFIG = TrainConfig(game=GAME, net=NetConfig(hidden=8), ppo=PPO, steps=5 * PPO.steps)
MODELS = replace(HOP_PLUS, steps=5 * PPO.steps)  # of which a fault takes the parts that it needs
LANES = 4  # as many as a diagnosis of the value loss has
EPISODES = 300
SETTINGS = SeatsSettings(episodes=EPISODES, ablate=False)
NONE = Fault("none")


def silent(note: str) -> None:
    """Nobody watches."""


def trained(config: TrainConfig, fault: Fault = NONE, replicas: int = LANES) -> Subject:
    return train_subject("tiny", make_laboratory(config, fault, replicas), 0, silent)


@cache
def faulty(name: str | None) -> Subject:
    """Plain PPO with a fault of that name built in, and with the parts that the fault needs."""
    needs = FAULTS[name].needs if name else ()
    config = replace(MODELS, parts=needs) if needs else CONFIG
    return trained(config, find_fault(name, config))


@cache
def seats_diagnosis(name: str | None) -> SeatsDiagnosis:
    return diagnose_seats(faulty(name), NONE, SETTINGS, silent)


def with_ppo(**changes: Any) -> TrainConfig:
    return replace(CONFIG, ppo=replace(PPO, **changes))


def fault_of(checks: Any, title: str) -> str | None:
    """What the check of that title shows."""
    (found,) = [check for check in checks if check.title == title]
    fault: str | None = found.fault
    return fault
