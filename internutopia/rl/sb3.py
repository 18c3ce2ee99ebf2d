"""`VecEnv` of Stable-Baselines3.

from internutopia.rl.sb3 import SB3VecEnv

model = PPO('MlpPolicy', SB3VecEnv(config))
"""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import AlreadyPendingCallError
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.util.call_guard import CallGuard, closing, exclusive
from internutopia.util.imports import install_hint

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices
except ImportError as error:
    raise ImportError(f'SB3VecEnv needs Stable-Baselines3 ({error}): {install_hint("rl")}') from error

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.rl.observation_groups import each_group
from internutopia.rl.vector_env import same_step_envs

Array = NDArray[np.float32]


class SB3VecEnv(VecEnv):
    """Batched envs for Stable-Baselines3.

    An env that ends starts its next episode in the same step; its last observation is `terminal_observation` of its
    info, which also has `episode` (`r` return, `l` length in steps, `t` seconds since this object was made), so that no
    `Monitor` is needed, and `failed` and `error` (text) if the env failed, which is no time-out. Every info has
    `TimeLimit.truncated` and `episode_id`, and `stuck` if the robot stands still under a moving command.

    Args:
        envs: what to run, or a `VectorEnv` with `autoreset_mode='SameStep'`, local or remote, which is closed with this
            object.
        learning: what is learned; None takes `TaskCfg.learning`.

    Raises:
        ValueError: `episode_order` is `'once'`, or the `VectorEnv` resets in another step.
    """

    def __init__(self, envs: Config | GymnasiumVectorEnv[Any, Any, Any], learning: LearningCfg | None = None):
        self._guard = CallGuard(self)
        self.envs = same_step_envs(envs, learning)
        self._start = time.monotonic()
        self._actions: NDArray[Any] | None = None  # that wait for `step_wait`
        self._sender = 0  # the thread that gave them
        super().__init__(self.envs.num_envs, self.envs.single_observation_space, self.envs.single_action_space)

    @override
    @exclusive
    def reset(self) -> Array:
        """Start new episodes in all envs, from the seed that `seed()` was given last; observations `(n, dim)`."""
        # the base class counts seeds up from the one it got, which is the one a VectorEnv wants
        obs, info = self.envs.reset(seed=self._seeds[0])
        self._actions = None
        self.reset_infos = [{'episode_id': episode_id} for episode_id in info['episode_id'].tolist()]
        self._reset_seeds()
        self._reset_options()
        return obs

    @override
    @exclusive
    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions `(n, k)`, or choices `(n,)`, for `step_wait` in the same thread.

        AlreadyPendingCallError if another thread has not waited for its own yet; a reset forgets them.
        """
        self._check_sender('step_async')
        self._actions, self._sender = actions, threading.get_ident()

    @override
    @exclusive
    def step_wait(self) -> tuple[Array, Array, NDArray[np.bool_], list[dict[str, Any]]]:
        """Advance: observations `(n, dim)`, rewards `(n,)`, dones `(n,)` and one info per env.

        Raises:
            ValueError: the actions have the wrong shape, are no real numbers, not finite, beyond 1e10 or none of the
                choices (naming the env). No env has moved.
            RuntimeError: there are no actions of `step_async`, or the envs were not reset yet or are closed.
            AlreadyPendingCallError: the actions are another thread's.
        """
        self._check_sender('step_wait')
        if self._actions is None:
            raise RuntimeError('step_wait: call step_async with the actions first')
        actions, self._actions = self._actions, None
        obs, rewards, terminated, truncated, info = self.envs.step(actions)
        cut = (truncated & ~terminated).tolist()
        final = info.get('final_info', info)
        infos = [
            {'TimeLimit.truncated': time_out, 'episode_id': episode_id}
            for time_out, episode_id in zip(cut, final['episode_id'].tolist(), strict=True)
        ]
        for i in np.flatnonzero(final.get('stuck', ())).tolist():
            infos[i]['stuck'] = True
        dones = terminated | truncated
        for i in np.flatnonzero(dones).tolist():
            infos[i]['terminal_observation'] = each_group(operator.itemgetter(i), info['final_obs'])
            infos[i]['episode'] = {
                'r': float(final['episode_return'][i]),
                'l': int(final['episode_length'][i]),
                't': round(time.monotonic() - self._start, 6),
            }
            if final['failed'][i]:
                infos[i]['failed'] = True
            if '_error' in final and final['_error'][i]:
                infos[i]['error'] = final['error'][i]
        return obs, rewards.astype(np.float32), dones, infos

    @override
    @closing
    def close(self) -> None:
        """Free everything."""
        self.envs.close()

    @override
    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of the `VectorEnv`, repeated for every requested env. AttributeError if there is none."""
        value = getattr(self.envs, attr_name)
        return [value for _ in self._checked_indices(indices)]

    @override
    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the `VectorEnv`. ValueError for some envs only: they are one object."""
        if len(set(self._checked_indices(indices))) < self.num_envs:
            raise ValueError(f'set_attr: all envs are one object; {attr_name!r} cannot be set for envs {indices} only')
        setattr(self.envs, attr_name, value)

    @override
    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the `VectorEnv` once; the result is repeated for every requested env."""
        ids = self._checked_indices(indices)
        result = getattr(self.envs, method_name)(*method_args, **method_kwargs)
        return [result for _ in ids]

    @override
    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """Return False, except for `Monitor`: infos have the `episode` that it would write."""
        return [issubclass(wrapper_class, Monitor) for _ in self._checked_indices(indices)]

    @override
    def get_images(self) -> Sequence[NDArray[np.uint8] | None]:
        """Render each env; None for each if the `VectorEnv` was made without `render_mode`."""
        pictures: Any = self.envs.render() if self.envs.render_mode else [None] * self.num_envs
        return list(pictures)

    def _check_sender(self, call: str) -> None:
        if self._actions is not None and self._sender != threading.get_ident():
            raise AlreadyPendingCallError(f"{call}: another thread's actions wait for its step_wait", 'step_async')

    def _checked_indices(self, indices: VecEnvIndices) -> list[int]:
        ids = [int(index) for index in self._get_indices(indices)]
        wrong = [index for index in ids if not 0 <= index < self.num_envs]
        if wrong:
            raise IndexError(f'there are no envs {wrong}, only 0 to {self.num_envs - 1}')
        return ids
