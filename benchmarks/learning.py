"""Time to learn: Stable-Baselines3's PPO on batched envs next to the same PPO over gymnasium's `AsyncVectorEnv`.

Both sides have the same network, settings, seed and number of envs, and take turns of one rollout and update each on
the same cores. A side has learned where the mean return of its last 100 episodes has gone 90 % of the way from that of
its first ones to that of the last tenth of the training. Wall and CPU time are of its own turns, with its processes::

    python benchmarks/learning.py CartPole Franka-Reach
    python benchmarks/learning.py H1-Velocity --steps 20000   # too long to learn here: time for equal steps
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import psutil
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.wrappers import RecordEpisodeStatistics
from numpy.typing import NDArray
from stable_baselines3 import PPO
from typing_extensions import override

from internutopia.rl.sb3 import SB3VecEnv
from internutopia_extension import import_extensions

ENVS = 16
_SMALL: dict[str, Any] = {'n_steps': 64, 'batch_size': 256, 'learning_rate': 2e-3, 'gamma': 0.98}
_ARM: dict[str, Any] = {
    'n_steps': 120,
    'batch_size': 480,
    'n_epochs': 4,
    'learning_rate': 1e-3,
    'gamma': 0.95,
    'policy_kwargs': {'net_arch': [128, 64], 'activation_fn': torch.nn.ELU, 'log_std_init': -0.9},
}
_LEGS: dict[str, Any] = _ARM | {'n_steps': 24, 'batch_size': 96, 'gamma': 0.99}


class Case(NamedTuple):
    """Task: ids of the envs of both sides, env steps of all envs together, settings of PPO."""

    ours: str
    theirs: str
    steps: int
    settings: dict[str, Any]


def _same(name: str, steps: int, settings: dict[str, Any]) -> Case:
    return Case(f'InternUtopia/{name}-v0', f'InternUtopia/{name}-v0', steps, settings)


CASES = {
    'CartPole': _same('CartPole', 80_000, _SMALL),
    'CartPole-v1': Case('InternUtopia/CartPole-Discrete-v0', 'CartPole-v1', 80_000, _SMALL),
    'Franka-Reach': _same('Franka-Reach', 300_000, _ARM),
    'Aliengo-Velocity': _same('Aliengo-Velocity', 20_000, _LEGS),
    'H1-Velocity': _same('H1-Velocity', 20_000, _LEGS),
}


class _Gymnasium(SB3VecEnv):
    """Any vector env of Gymnasium whose envs record their episodes, for Stable-Baselines3."""

    @override
    def reset(self) -> NDArray[np.float32]:
        return self.envs.reset(seed=self._seeds[0])[0]

    @override
    def step_wait(self) -> Any:
        obs, rewards, terminated, truncated, info = self.envs.step(self._actions)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(terminated | truncated).tolist():
            infos[i] = {
                'TimeLimit.truncated': bool(truncated[i] and not terminated[i]),
                'terminal_observation': info['final_obs'][i],
                'episode': {key: info['final_info']['episode'][key][i] for key in 'rl'},
            }
        return obs, rewards.astype(np.float32), terminated | truncated, infos


class Side:
    """A learner, which trains by turns, and what it has reached.

    Attributes:
        returns: mean return of the last 100 episodes at the end of each rollout.
        times: wall and CPU time until the end of each rollout `(turns, 2)` [s].
    """

    def __init__(self, envs: SB3VecEnv, settings: dict[str, Any]):
        self.returns: list[float] = []
        self.times: list[NDArray[np.float64]] = []
        self.turn = envs.num_envs * settings['n_steps']
        self._model = PPO('MlpPolicy', envs, seed=0, device='cpu', **settings)

    def learn(self) -> None:
        """Step all envs for a rollout, and update."""
        start = _clocks()
        self._model.learn(self.turn, reset_num_timesteps=not self.times)
        self.times.append(_clocks() - start + (self.times[-1] if self.times else 0.0))
        ended = self._model.ep_info_buffer or [{'r': np.nan}]
        self.returns.append(float(np.mean([episode['r'] for episode in ended])))

    def report(self) -> str:
        """One line of Markdown: steps, wall and CPU time until it has learned, final return, time of all steps."""
        final = np.nanmean(self.returns[-max(1, len(self.returns) // 10) :])
        first = next(value for value in self.returns if not np.isnan(value))
        at = next(i for i, value in enumerate(self.returns) if value - first >= 0.9 * (final - first))
        (wall, cpu), (all_wall, all_cpu) = self.times[at], self.times[-1]
        steps = len(self.times) * self.turn
        return (
            f'{(at + 1) * self.turn:,} | {wall / 60:.2f} | {cpu / 60:.2f} | {final:.2f} | {steps:,} | '
            f'{all_wall / 60:.2f} | {all_cpu / 60:.2f}'
        )

    def close(self) -> None:
        """Free its envs."""
        env = self._model.get_env()
        assert env is not None
        env.close()


def _clocks() -> NDArray[np.float64]:
    """Return wall time, and CPU time of this process and those that it started [s]."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return np.array([time.perf_counter(), sum(each.user + each.system for each in times)])


def _one(name: str, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    torch.set_num_threads(1)
    return RecordEpisodeStatistics(gymnasium.make(name, disable_env_checker=True, **options))


def race(case: Case, steps: int) -> dict[str, Side]:
    """Train both sides for so many env steps, by turns."""
    options = {'threads': 1} if case.theirs.startswith('Inter') else {}
    makers: list[Callable[[], Any]] = [partial(_one, case.theirs, options)] * ENVS
    apart = AsyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)  # first: its processes are forks of this one
    batched: Any = gymnasium.make_vec(case.ours, ENVS, seed=0, autoreset_mode='SameStep').unwrapped
    sides = {
        f'batched, `{case.ours}`': Side(SB3VecEnv(batched), case.settings),
        f'`AsyncVectorEnv`, `{case.theirs}`': Side(_Gymnasium(apart), case.settings),
    }
    for _ in range(-(-steps // (ENVS * case.settings['n_steps']))):
        for side in sides.values():
            side.learn()
    for side in sides.values():
        side.close()
    return sides


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cases', nargs='+', choices=CASES)
    parser.add_argument('--steps', type=int, help='env steps of each side, all envs together')
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    import_extensions()
    print('| task | side | steps to 90 % | wall [min] | CPU [min] | return | steps | wall [min] | CPU [min] |')
    print('|---|---|---|---|---|---|---|---|---|')
    for name in arguments.cases:
        for side, learner in race(CASES[name], arguments.steps or CASES[name].steps).items():
            print(f'| {name} | {side} | {learner.report()} |', flush=True)
