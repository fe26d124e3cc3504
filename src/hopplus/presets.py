"""Named experiments: configurations, and nothing else."""

from collections.abc import Mapping
from types import MappingProxyType

from hopplus.config import PPOConfig, SearchConfig, TrainConfig

SEARCH = SearchConfig(simulations=50, noise=0.25)
FROM_SEARCH = PPOConfig(games=64, mix=1.0)
PRESETS: Mapping[str, TrainConfig] = MappingProxyType(
    {
        "ppo": TrainConfig(),
        "ppo-shared": TrainConfig(ppo=PPOConfig(parameters="shared")),
        "ppo-prosocial": TrainConfig(ppo=PPOConfig(prosociality=1.0)),
        "goal": TrainConfig(parts=("opponent", "goal")),
        # More than twice the steps to learn from carry larger and more gradient steps.
        "hop-plus": TrainConfig(
            parts=("opponent", "goal", "world", "imagination"),
            ppo=PPOConfig(epochs=2, minibatches=16, learning_rate=2e-3, clip=0.3),
            steps=500_000,
        ),
        "direct-om": TrainConfig(
            parts=("opponent",), ppo=FROM_SEARCH, search=SEARCH, steps=200_000
        ),
        "hop-plus-mcts": TrainConfig(
            parts=("opponent", "goal"), ppo=FROM_SEARCH, search=SEARCH, steps=200_000
        ),
    }
)
ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "ppo": "PPO self-play, every seat with parameters of its own",
        "ppo-shared": "PPO self-play, one set of parameters for all seats",
        "ppo-prosocial": "PPO self-play, every seat is rewarded with everyone's mean",
        "goal": "PPO with goals inferred and opponents modelled, without a world model",
        "hop-plus": "HOP+: goals, opponents, a world model and imagination beside PPO",
        "direct-om": "search with models of the others that know no goals, learned from",
        "hop-plus-mcts": "search with models of the others that are told inferred goals, learned from",
    }
)
