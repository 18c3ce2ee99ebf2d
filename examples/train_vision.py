"""A Franka learns to reach a red block that it sees in 84 x 84 images, from an expert that knows its position.

The expert solves inverse kinematics for where the block is, which the observation group `critic` has. The learner, a
policy of Stable-Baselines3 with a convolutional network, has joints and the image. It acts, and learns what the
expert would have done where it got to (DAgger, Ross et al. 2011): that takes some thousand images, which cost time.

`pip install -e '.[rl]'` brings Stable-Baselines3.
"""

import argparse
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import PPO

from internutopia.rl import VectorEnv
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.sb3_model import save_model
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import reach_block

ROUNDS = 10  # of acting for an episode's length, and learning from all there is
SCALE = 1.25  # rad for an action of 1
STRIDE = 0.2  # m, how far ahead of the gripper the expert's target is, at most
BATCH = 128
SETTINGS: dict[str, Any] = {  # of the policy
    'log_std_init': -2.0,
    'net_arch': [128, 64],
    'features_extractor_kwargs': {'cnn_output_dim': 64},
}
Array = NDArray[np.float32]
Observations = dict[str, NDArray[Any]]  # by group


def expert(envs: VectorEnv) -> Array:
    """Return the actions `(n, 7)` that bring the gripper to the block, by damped least squares."""
    told: Any = envs.critic_observations()
    chain, home = envs.core.state.chain(reach_block.TIP), envs.core.state.home[:7]
    joints, way = told['joints'][:, :7], told['critic']
    way = way * np.minimum(1.0, STRIDE / np.linalg.norm(way, axis=1, keepdims=True))
    jacobian = chain.jacobian(chain.poses(home + joints))[:, :3]
    transposed = jacobian.swapaxes(1, 2)
    change = transposed @ np.linalg.solve(jacobian @ transposed + 0.01 * np.eye(3), way[..., None])
    return np.clip((joints + change[..., 0]) / SCALE, -1.0, 1.0).astype(np.float32)


def act(model: PPO, envs: VectorEnv, *, follow: bool = False, explore: bool = False) -> tuple[Any, Array, float]:
    """Act for the length of an episode, starting over, and ask the expert all the while.

    Args:
        model: whose policy acts.
        envs: where it acts.
        follow: let the expert act instead.
        explore: sample actions.

    Returns:
        Observations `(steps * n, ...)` by group, the expert's actions `(steps * n, 7)`, and the share of envs whose
        first episode reached the block.
    """
    obs: Any = envs.reset()[0]
    seen, advice = [], []
    ended, reached = np.zeros((2, envs.num_envs), bool)
    while not ended.all():
        right = expert(envs)
        seen.append(obs)
        advice.append(right)
        obs, _, terminated, truncated, _ = envs.step(
            right if follow else model.predict(obs, deterministic=not explore)[0]
        )
        reached |= terminated & ~ended
        ended |= terminated | truncated
    return {name: np.concatenate([each[name] for each in seen]) for name in obs}, np.concatenate(advice), reached.mean()


def fit(model: PPO, seen: Observations, advice: Array, updates: int, rng: np.random.Generator) -> float:
    """Fit the policy's mean actions to the expert's; returns the mean loss."""
    policy: Any = model.policy
    losses = []
    for _ in range(updates):
        rows = rng.integers(len(advice), size=BATCH)
        tensors, _ = policy.obs_to_tensor({name: values[rows] for name, values in seen.items()})
        means = policy.get_distribution(tensors).distribution.mean
        loss = torch.nn.functional.mse_loss(means, torch.from_numpy(advice[rows]))
        policy.optimizer.zero_grad()
        loss.backward()
        policy.optimizer.step()
        losses.append(loss.item())
    return float(np.mean(losses))


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=ROUNDS)
    parser.add_argument('--updates', type=int, default=60, help='of the network in a round')
    parser.add_argument('--envs', type=int, default=24)
    parser.add_argument('--episodes', type=int, default=100, help='to measure the success of')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--save', help='file for the policy, such as reach.zip')
    args = parser.parse_args()

    start = time.process_time()
    torch.set_num_threads(1)  # leave the cores to physics and images
    rng = np.random.default_rng(args.seed)
    import_extensions()
    sb3_envs = SB3VecEnv(reach_block.config(args.envs, args.seed))
    envs: Any = sb3_envs.envs
    model = PPO('MultiInputPolicy', sb3_envs, learning_rate=1e-3, policy_kwargs=SETTINGS, device='cpu', seed=args.seed)
    seen: Observations = {}
    advice = np.zeros((0, 7), np.float32)
    share = 0.0
    for number in range(args.rounds + 1):
        new, right, share = act(model, envs, follow=number == 0, explore=True)
        seen = {name: np.concatenate([seen[name], new[name]]) if seen else new[name] for name in new}
        advice = np.concatenate([advice, right])
        loss = fit(model, seen, advice, args.updates, rng)
        print(
            f'round {number}: {share:.0%} of {args.envs} episodes reach the block; {len(advice)} pictures, '
            f'loss {loss:.4f}, {time.process_time() - start:.0f} s of CPU time',
            flush=True,
        )
    sb3_envs.close()
    others = VectorEnv(reach_block.config(args.episodes, args.seed + 1000), autoreset_mode='SameStep')
    _, _, share = act(model, others)
    others.close()
    print(f'without exploration {share:.0%} of {args.episodes} episodes with other places reach the block')
    if args.save:
        save_model(model, args.save, 'InternUtopia/Franka-ReachBlock-v0')
    assert args.rounds < ROUNDS or share > 0.7
