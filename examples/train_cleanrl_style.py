"""PPO in one file of plain torch, in the manner of CleanRL: 32 envs learn to balance a pole on a cart."""

import argparse

import numpy as np
import torch
from torch import nn

from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

ROLLOUT = 32  # steps between updates
EPOCHS, BATCHES = 6, 4
GAMMA, LAMBDA = 0.98, 0.95
CLIP, VALUE_WEIGHT, RATE = 0.2, 0.5, 2e-3

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--steps', type=int, default=60_000, help='env steps, all envs together')
parser.add_argument('--envs', type=int, default=32)
parser.add_argument('--seed', type=int, default=0)
args = parser.parse_args()


class Agent(nn.Module):
    """A Gaussian policy and a value, two small networks."""

    def __init__(self, observation_size: int, action_size: int):
        super().__init__()
        self.mean = network(observation_size, action_size)
        self.log_std = nn.Parameter(torch.full((action_size,), -0.5))
        self.value = network(observation_size, 1)

    def distribution(self, obs: torch.Tensor) -> torch.distributions.Independent:
        return torch.distributions.Independent(torch.distributions.Normal(self.mean(obs), self.log_std.exp()), 1)


def network(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


def advantages_of(rewards, values, next_values, ended):
    """Generalized advantage estimates `(t, n)`; `next_values` is zero where an episode terminated."""
    advantages = torch.zeros_like(rewards)
    last = torch.zeros(rewards.shape[1])
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + GAMMA * next_values[t] - values[t]
        advantages[t] = last = delta + GAMMA * LAMBDA * ~ended[t] * last
    return advantages


def update(agent, optimizer, obs, actions, log_probs, advantages, returns):
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(obs)).chunk(BATCHES):
            ratio = (agent.distribution(obs[rows]).log_prob(actions[rows]) - log_probs[rows]).exp()
            gain = (advantages[rows] - advantages[rows].mean()) / (advantages[rows].std() + 1e-8)
            policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
            value_loss = (agent.value(obs[rows]).squeeze(-1) - returns[rows]).square().mean()
            optimizer.zero_grad()
            (policy_loss + VALUE_WEIGHT * value_loss).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


torch.set_num_threads(1)
torch.manual_seed(args.seed)
import_extensions()
envs = VectorEnv(cart_pole.config(args.envs, args.seed), autoreset_mode='SameStep')
first_obs, _ = envs.reset(seed=args.seed)
obs = torch.from_numpy(first_obs)
agent = Agent(obs.shape[1], envs.action_space.sample().shape[1])
optimizer = torch.optim.Adam(agent.parameters(), lr=RATE, eps=1e-5)
lengths: list[int] = []

for _ in range(args.steps // (args.envs * ROLLOUT)):
    rollout = []
    for _ in range(ROLLOUT):
        with torch.no_grad():
            distribution = agent.distribution(obs)
            action = distribution.sample()
            log_prob, value = distribution.log_prob(action), agent.value(obs).squeeze(-1)
        next_obs, reward, terminated, truncated, info = envs.step(action.numpy())
        ended = terminated | truncated
        if ended.any():
            lengths.extend(info['final_info']['episode_length'][ended].tolist())
            # what an episode that was cut would have brought is the value of its last observation
            last_obs = torch.from_numpy(np.where(ended[:, None], info['final_obs'], next_obs))
        else:
            last_obs = torch.from_numpy(next_obs)
        with torch.no_grad():
            next_value = agent.value(last_obs).squeeze(-1) * torch.from_numpy(~terminated)
        rewards = torch.from_numpy(reward.astype(np.float32)) / 0.02  # 1 per step upright
        rollout.append((obs, action, log_prob, value, rewards, next_value, torch.from_numpy(ended)))
        obs = torch.from_numpy(next_obs)
    seen, actions, log_probs, values, rewards, next_values, ends = map(torch.stack, zip(*rollout, strict=True))
    advantages = advantages_of(rewards, values, next_values, ends)
    flat = [x.flatten(0, 1) for x in (seen, actions, log_probs, advantages, advantages + values)]
    update(agent, optimizer, *flat)
envs.close()

before, after = np.mean(lengths[:20]), np.mean(lengths[-20:])
print(f'the pole stays up for {before:.0f} steps in the first and {after:.0f} of 500 steps in the last 20 episodes')
assert before < 100
assert args.steps < 60_000 or after > 200
