"""Time to learn: Stable-Baselines3's PPO on batched envs next to the same PPO over gymnasium's `AsyncVectorEnv`.

Both sides have the same network, settings, seed and number of envs, and take turns of one rollout and update each on
the same cores. A side has learned where the mean return of its last 100 episodes has gone 90 % of the way from that of
its first ones to that of the last tenth of the training. Wall and CPU time are of its own turns, with its processes.
With `--apart`, `AsyncVectorEnv` makes so many steps only; what it would take for those of the other side is in
proportion, marked by `~`::

    python benchmarks/learning.py CartPole Franka-Reach
    python benchmarks/learning.py H1-Velocity --apart 200000   # few steps of the slower side
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
_LEGS: dict[str, Any] = _ARM | {
    'n_steps': 128,
    'batch_size': 512,
    'n_epochs': 5,
    'learning_rate': 5e-4,
    'gamma': 0.99,
    'target_kl': 0.03,
}
_CALM = {'curriculum': False, 'randomize': False}  # returns of equal episodes from start to end


class Case(NamedTuple):
    """Task: ids of the envs of both sides, env steps of all envs together, settings of PPO, options of our envs."""

    ours: str
    theirs: str
    steps: int
    settings: dict[str, Any]
    options: dict[str, Any] = {}


def _same(name: str, steps: int, settings: dict[str, Any], options: dict[str, Any] | None = None) -> Case:
    return Case(f'InternUtopia/{name}-v0', f'InternUtopia/{name}-v0', steps, settings, options or {})


CASES = {
    'CartPole': _same('CartPole', 80_000, _SMALL),
    'CartPole-v1': Case('InternUtopia/CartPole-Discrete-v0', 'CartPole-v1', 80_000, _SMALL),
    'Franka-Reach': _same('Franka-Reach', 300_000, _ARM),
    'Aliengo-Velocity': _same('Aliengo-Velocity', 1_000_000, _LEGS, _CALM),
    'H1-Velocity': _same('H1-Velocity', 3_000_000, _LEGS, _CALM),
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

    @property
    def final(self) -> float:
        """Mean return of the last tenth of the training."""
        return float(np.nanmean(self.returns[-max(1, len(self.returns) // 10) :]))

    @property
    def learned_after(self) -> int:
        """Number of turns until it has learned."""
        first = next(value for value in self.returns if not np.isnan(value))
        return 1 + next(i for i, value in enumerate(self.returns) if value - first >= 0.9 * (self.final - first))

    def report(self, turns: int) -> str:
        """One line of Markdown: steps, wall and CPU time of so many turns, final return, time of all steps.

        What is in proportion to fewer turns is marked by `~`.
        """
        made, all_times = len(self.times), self.times[-1] / 60
        mark, times = ('~', all_times * turns / made) if made < turns else ('', self.times[turns - 1] / 60)
        (wall, cpu), (all_wall, all_cpu) = times, all_times
        return (
            f'{turns * self.turn:,} | {mark}{wall:.2f} | {mark}{cpu:.2f} | {self.final:.2f} | '
            f'{made * self.turn:,} | {all_wall:.2f} | {all_cpu:.2f}'
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


def race(case: Case, steps: int, apart_steps: int) -> dict[str, Side]:
    """Train both sides by turns, for `steps` env steps, `AsyncVectorEnv` for `apart_steps` at most."""
    options = case.options | {'threads': 1} if case.theirs.startswith('Inter') else {}
    makers: list[Callable[[], Any]] = [partial(_one, case.theirs, options)] * ENVS
    apart = AsyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)  # first: its processes are forks of this one
    batched: Any = gymnasium.make_vec(case.ours, ENVS, seed=0, autoreset_mode='SameStep', **case.options).unwrapped
    sides = {
        f'batched, `{case.ours}`': Side(SB3VecEnv(batched), case.settings),
        f'`AsyncVectorEnv`, `{case.theirs}`': Side(_Gymnasium(apart), case.settings),
    }
    turn = ENVS * case.settings['n_steps']
    for start in range(0, steps, turn):
        for side, most in zip(sides.values(), (steps, apart_steps), strict=True):
            if start < most:
                side.learn()
    for side in sides.values():
        side.close()
    return sides


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cases', nargs='+', choices=CASES)
    parser.add_argument('--steps', type=int, help='env steps of each side, all envs together')
    parser.add_argument('--apart', type=int, help='env steps of AsyncVectorEnv, if fewer')
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    import_extensions()
    print('| task | side | steps to 90 % | wall [min] | CPU [min] | return | steps | wall [min] | CPU [min] |')
    print('|---|---|---|---|---|---|---|---|---|')
    for name in arguments.cases:
        steps = arguments.steps or CASES[name].steps
        sides = race(CASES[name], steps, arguments.apart or steps)
        whole = next(iter(sides.values()))
        for side, learner in sides.items():
            partly = len(learner.times) < len(whole.times)
            turns = (whole if partly else learner).learned_after
            print(f'| {name} | {side} | {learner.report(turns)} |', flush=True)
