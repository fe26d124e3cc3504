"""Stag-hunt in a plain PettingZoo loop: everyone takes any legal action.

Run it with `python examples/pettingzoo_loop.py`.
"""

from hopplus.games.pettingzoo import parallel_env

env = parallel_env(size=4, render_mode="ansi")
for name in env.possible_agents:
    env.action_space(name).seed(1)  # to play the same episode every time
observations, infos = env.reset(seed=1)
returns = dict.fromkeys(env.possible_agents, 0.0)
print(env.render())

while env.agents:
    actions = {
        name: env.action_space(name).sample(mask=observations[name]["action_mask"])
        for name in env.agents
    }
    observations, rewards, terminations, truncations, infos = env.step(actions)
    for name, reward in rewards.items():
        returns[name] += reward

print(env.render())
print("returns:", returns)
