"""Models that learn beside the policy: goals, opponents, the world, imagined rollouts."""
