"""The PPO of rsl_rl learns to balance a pole on a cart, in 64 envs.

`pip install 'internutopia[rl]'` brings rsl_rl.
"""

import argparse

import torch
from rsl_rl.runners import OnPolicyRunner

from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.tasks import cart_pole
from internutopia_extension import import_extensions

MODEL = {'class_name': 'MLPModel', 'hidden_dims': [64, 64], 'activation': 'tanh'}
TRAINING = {
    'num_steps_per_env': 32,
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

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('--steps', type=int, default=80_000, help='env steps, all envs together')
parser.add_argument('--envs', type=int, default=64)
parser.add_argument('--seed', type=int, default=0)
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(args.seed)
import_extensions()
envs = RslRlVecEnv(cart_pole.config(args.envs, args.seed))
runner = OnPolicyRunner(envs, TRAINING)


def share_that_lasts(steps: int = 200) -> float:
    """Share of the envs whose first episode lasts longer than so many steps, without exploration."""
    policy = runner.get_inference_policy()
    obs, _ = envs.reset()
    alive = torch.ones(args.envs, dtype=torch.bool)
    with torch.inference_mode():
        for _ in range(steps):
            obs, _, dones, _ = envs.step(policy(obs))
            alive &= dones == 0
    return float(alive.float().mean())


before = share_that_lasts()
runner.learn(args.steps // (args.envs * 32))
after = share_that_lasts()
envs.close()

print(f'poles that stay up for 4 s: {before:.0%} before and {after:.0%} after training')
assert before < 0.5
assert args.steps < 80_000 or after > 0.9
