"""Models that learn along with the policy: goals, opponents, the world, imagined rollouts."""
