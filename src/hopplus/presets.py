"""Named experiments: configurations, and nothing else."""

from collections.abc import Mapping
from types import MappingProxyType

from hopplus.config import PPOConfig, TrainConfig

PRESETS: Mapping[str, TrainConfig] = MappingProxyType(
    {
        "ppo": TrainConfig(),
        "ppo-shared": TrainConfig(ppo=PPOConfig(parameters="shared")),
        "ppo-prosocial": TrainConfig(ppo=PPOConfig(prosociality=1.0)),
    }
)
ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "ppo": "PPO self-play, every seat with parameters of its own",
        "ppo-shared": "PPO self-play, one set of parameters for all seats",
        "ppo-prosocial": "PPO self-play, every seat is rewarded with everyone's mean",
    }
)
