"""Two Jetbots learn to play tag against one another: PPO in one file of plain torch, a network for each of them."""

import argparse

import numpy as np
import torch
from torch import nn

from internutopia.rl.multi_agent import MultiAgentEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import tag

STEPS = 160_000
ROLLOUT = 64  # steps between updates
EPOCHS, BATCHES = 4, 4
GAMMA, LAMBDA = 0.98, 0.95
CLIP, VALUE_WEIGHT, ENTROPY_WEIGHT, RATE = 0.2, 0.5, 0.002, 1e-3


class Learner(nn.Module):
    """A Gaussian policy, a value, and the optimizer of both."""

    def __init__(self, observation_size: int, action_size: int):
        super().__init__()
        self.mean = network(observation_size, action_size)
        self.log_std = nn.Parameter(torch.full((action_size,), -0.5))
        self.value = network(observation_size, 1)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=RATE, eps=1e-5)

    def distribution(self, obs: torch.Tensor) -> torch.distributions.Independent:
        return torch.distributions.Independent(torch.distributions.Normal(self.mean(obs), self.log_std.exp()), 1)

    def learn(self, rollout) -> None:
        """Update by a rollout: observations, actions, rewards, next values and ends `(t, n, ...)`."""
        obs, actions, rewards, next_values, ended = map(torch.stack, zip(*rollout, strict=True))
        with torch.no_grad():
            log_probs, values = self.distribution(obs).log_prob(actions), self.value(obs).squeeze(-1)
        advantages, last = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
        for t in reversed(range(len(rewards))):
            delta = rewards[t] + GAMMA * next_values[t] - values[t]
            advantages[t] = last = delta + GAMMA * LAMBDA * ~ended[t] * last
        flat = [x.flatten(0, 1) for x in (obs, actions, log_probs, advantages, advantages + values)]
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(flat[0])).chunk(BATCHES):
                seen, taken, old, gain, returns = (x[rows] for x in flat)
                distribution = self.distribution(seen)
                ratio = (distribution.log_prob(taken) - old).exp()
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                policy_loss = -torch.min(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
                value_loss = (self.value(seen).squeeze(-1) - returns).square().mean()
                loss = policy_loss + VALUE_WEIGHT * value_loss - ENTROPY_WEIGHT * distribution.entropy().mean()
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.parameters(), 0.5)
                self.optimizer.step()


def network(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


def train(steps: int, num_envs: int, seed: int) -> tuple[dict[str, Learner], list[float]]:
    """Train both for so many env steps, all envs together; returns them, and how many games end with a catch.

    The latter are shares, of each tenth of the training.
    """
    torch.manual_seed(seed)
    envs = MultiAgentEnv(tag.config(num_envs, seed), tag.agents())
    first, _ = envs.reset(seed=seed)
    learners = {
        agent: Learner(first[agent].shape[1], envs.single_action_spaces[agent].sample().size) for agent in envs.agents
    }
    obs = {agent: torch.from_numpy(array) for agent, array in first.items()}
    games: list[tuple[int, bool]] = []  # the step at which each ends, and whether by a catch
    rollouts = steps // (num_envs * ROLLOUT)
    for number in range(rollouts):
        rollout = {agent: [] for agent in learners}
        for _ in range(ROLLOUT):
            with torch.no_grad():
                actions = {agent: learner.distribution(obs[agent]).sample() for agent, learner in learners.items()}
            results = envs.step({agent: action.numpy() for agent, action in actions.items()})
            for agent, learner in learners.items():
                next_obs, reward, terminated, truncated, info = (result[agent] for result in results)
                ended = terminated | truncated
                # what a game that was cut would have brought is the value of its last observation
                last_obs = np.where(ended[:, None], info['final_obs'], next_obs) if ended.any() else next_obs
                with torch.no_grad():
                    next_value = learner.value(torch.from_numpy(last_obs)).squeeze(-1) * torch.from_numpy(~terminated)
                rewards = torch.from_numpy(reward.astype(np.float32))
                rollout[agent].append((obs[agent], actions[agent], rewards, next_value, torch.from_numpy(ended)))
                obs[agent] = torch.from_numpy(next_obs)
                if agent == tag.CHASER:  # a catch pays it 5
                    games.extend((number, gain > 4.0) for gain in reward[ended].tolist())
        for agent, learner in learners.items():
            learner.learn(rollout[agent])
    envs.close()
    tenths = [[caught for at, caught in games if at * 10 // rollouts == tenth] for tenth in range(10)]
    return learners, [float(np.mean(caught)) if caught else np.nan for caught in tenths]


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--steps', type=int, default=STEPS, help='env steps, all envs together')
    parser.add_argument('--envs', type=int, default=64)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--save', help='file for the networks, such as tag.pt')
    args = parser.parse_args()

    torch.set_num_threads(1)
    import_extensions()
    learners, caught = train(args.steps, args.envs, args.seed)
    print('share of games that end with a catch, by tenths:', ' '.join(f'{share:.2f}' for share in caught))
    if args.save:
        torch.save({agent: learner.state_dict() for agent, learner in learners.items()}, args.save)
    assert args.steps < STEPS or caught[-1] > caught[0]
