"""Settings: frozen dataclasses that hold every default and check themselves when made."""

from typing import TypeAlias

from hopplus.config.auxiliary import (
    PARTS,
    AuxiliaryConfig,
    GoalLearnerConfig,
    ImagineConfig,
    OpponentLearnerConfig,
    PartName,
    WorldLearnerConfig,
)
from hopplus.config.belief import BeliefConfig
from hopplus.config.check import (
    LARGE,
    MANY,
    ConfigError,
    check,
    check_above,
    check_range,
    check_whole,
)
from hopplus.config.game import (
    DEFAULT_GAME,
    GAMES,
    GameConfig,
    GameRow,
    StagHuntConfig,
    default_game,
    find_game,
    make_config,
)
from hopplus.config.memory import MemoryConfig
from hopplus.config.models import (
    FitConfig,
    GoalConfig,
    OpponentConfig,
    PretrainConfig,
    PretrainGoal,
    PretrainOpponent,
    PretrainWorld,
    WorldConfig,
)
from hopplus.config.net import NetConfig
from hopplus.config.plain import differing, flat, from_json, to_json
from hopplus.config.search import SearchConfig
from hopplus.config.train import FOR_EVER, MIXED, PPOConfig, TrainConfig

RunConfig: TypeAlias = TrainConfig | PretrainConfig  # what a run folder may be of

__all__ = [
    "DEFAULT_GAME",
    "FOR_EVER",
    "GAMES",
    "LARGE",
    "MANY",
    "MIXED",
    "PARTS",
    "AuxiliaryConfig",
    "BeliefConfig",
    "ConfigError",
    "FitConfig",
    "GameConfig",
    "GameRow",
    "GoalConfig",
    "GoalLearnerConfig",
    "ImagineConfig",
    "MemoryConfig",
    "NetConfig",
    "OpponentConfig",
    "OpponentLearnerConfig",
    "PPOConfig",
    "PartName",
    "PretrainConfig",
    "PretrainGoal",
    "PretrainOpponent",
    "PretrainWorld",
    "RunConfig",
    "SearchConfig",
    "StagHuntConfig",
    "TrainConfig",
    "WorldConfig",
    "WorldLearnerConfig",
    "check",
    "check_above",
    "check_range",
    "check_whole",
    "default_game",
    "differing",
    "find_game",
    "flat",
    "from_json",
    "make_config",
    "to_json",
]
