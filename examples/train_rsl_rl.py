"""The PPO of rsl_rl learns to balance a pole on a cart, in 64 envs.

`pip install -e '.[rl]'` brings rsl_rl.
"""

import argparse

import torch
from rsl_rl.runners import OnPolicyRunner

from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

STEPS = 80_000
ROLLOUT = 32  # steps between updates
MODEL = {'class_name': 'MLPModel', 'hidden_dims': [64, 64], 'activation': 'tanh'}
SETTINGS = {
    'num_steps_per_env': ROLLOUT,
    'save_interval': 1000,
    'obs_groups': {'actor': ['policy'], 'critic': ['critic']},
    'actor': {**MODEL, 'distribution_cfg': {'class_name': 'GaussianDistribution', 'init_std': 0.6}},
    'critic': MODEL,
    'algorithm': {
        'class_name': 'PPO',
        'learning_rate': 2e-3,
        'schedule': 'fixed',
        'entropy_coef': 0.0,
        'gamma': 0.98,
        'num_learning_epochs': 8,
        'num_mini_batches': 4,
    },
}


def train(steps: int = STEPS, env_num: int = 64, seed: int = 0) -> tuple[OnPolicyRunner, float, float]:
    """Train for so many env steps, all envs together.

    Returns:
        The runner, and how long its episodes last on average before and after training, without exploration [steps].
    """
    torch.set_num_threads(1)  # networks are small: leave the cores to physics
    torch.manual_seed(seed)
    import_extensions()
    envs = RslRlVecEnv(cart_pole.config(env_num, seed))
    runner = OnPolicyRunner(envs, SETTINGS)
    before = average_length(runner, envs)
    runner.learn(steps // (env_num * ROLLOUT))
    after = average_length(runner, envs)
    envs.close()
    return runner, before, after


def average_length(runner: OnPolicyRunner, envs: RslRlVecEnv) -> float:
    """Mean number of steps of an episode without exploration, one episode in each env."""
    policy = runner.get_inference_policy()
    obs, _ = envs.reset()
    lengths = torch.zeros(envs.num_envs)
    running = torch.ones(envs.num_envs, dtype=torch.bool)
    with torch.inference_mode():
        while running.any():
            obs, _, dones, _ = envs.step(policy(obs))
            lengths += running
            running &= dones == 0
    return float(lengths.mean())


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--steps', type=int, default=STEPS, help='env steps, all envs together')
    parser.add_argument('--envs', type=int, default=64)
    parser.add_argument('--seed', type=int, default=0)
    args = parser.parse_args()

    _, before, after = train(args.steps, args.envs, args.seed)
    print(f'the pole stays up for {before:.0f} steps before and {after:.0f} of 500 steps after training')
    assert before < 100
    assert args.steps < STEPS or after == 500
