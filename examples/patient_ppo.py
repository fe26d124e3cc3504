"""A preset of one's own: PPO on the coin game, with small steps and a long memory."""

from hopplus.config import MemoryConfig, PPOConfig, TrainConfig, make_config

PRESET = TrainConfig(
    game=make_config("coin-v1", size=4),
    memory=MemoryConfig(kind="episode"),
    ppo=PPOConfig(learning_rate=5e-4, gae_lambda=0.98),
    steps=2_000_000,
)
