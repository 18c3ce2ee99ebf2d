"""Asynchronous send and receive, in the manner of EnvPool.

envs = AsyncEnvs(config, num_envs=64, batch_size=16)
envs.async_reset()
while True:
    obs, rewards, terminated, truncated, info = envs.recv()  # of the first 16 envs that are ready
    envs.send(policy(obs), info['env_id'])

The envs are `num_envs / batch_size` groups, each its own physics world that is stepped on a thread while the
learner thinks about another group. What an env goes through depends on its actions only, not on which group is fastest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray

from internutopia.config import Config, DistributedConfig
from internutopia.config.learning import LearningCfg
from internutopia.rl.checks import check_open
from internutopia.rl.vector_env import VectorEnv, check_endless
from internutopia.util.call_guard import CallGuard, closing, exclusive

Array = NDArray[np.float32]
Bools = NDArray[np.bool_]
Received = tuple[Array, NDArray[np.float64], Bools, Bools, dict[str, Any]]


class AsyncEnvs:
    """Envs in groups that do not wait for each other.

    An env that ended starts its next episode in its next step, whose action is ignored.

    Args:
        config: what to run; `env_num` does not count. Group i has `config.seed + i`, and if the config is distributed a
            worker process of its own.
        num_envs: number of envs.
        batch_size: number of envs per group, a divisor of `num_envs`; `recv` gives one group.
        learning: what is learned; None takes `TaskCfg.learning`.

    Raises:
        ValueError: `num_envs` is no multiple of `batch_size`, `episode_order` is `'once'`, or a distributed config has
            another number of workers than there are groups.
    """

    def __init__(self, config: Config, num_envs: int, batch_size: int, learning: LearningCfg | None = None):
        self._guard = CallGuard(self)
        if batch_size < 1 or num_envs < 1 or num_envs % batch_size:
            raise ValueError(f'num_envs must be a multiple of batch_size, got {num_envs} and {batch_size}')
        check_endless(config)
        self.num_envs, self.batch_size = num_envs, batch_size
        count = num_envs // batch_size
        threads = config.simulator.threads or os.cpu_count() or 1
        fields: dict[str, Any] = {
            'env_num': batch_size,
            'simulator': config.simulator.model_copy(update={'threads': max(1, threads // count)}),
        }
        distribution = config.distribution_config if isinstance(config, DistributedConfig) else None
        if distribution is not None:
            if distribution.proc_num != count:
                raise ValueError(
                    f'distribution_config: {count} groups need proc_num={count}, got {distribution.proc_num}'
                )
            fields['distribution_config'] = distribution.model_copy(update={'proc_num': 1})
        self.groups: list[VectorEnv] = []
        for group in range(count):
            seed = None if config.seed is None else config.seed + group
            own = config.model_copy(update={**fields, 'seed': seed})
            self.groups.append(VectorEnv(own, learning, autoreset_mode=AutoresetMode.NEXT_STEP))
        self.single_observation_space = self.groups[0].single_observation_space
        self.single_action_space = self.groups[0].single_action_space
        at_once = count if distribution is not None else min(count, threads)
        self._pool = ThreadPoolExecutor(at_once, 'internutopia-envs')
        self._ready: SimpleQueue[tuple[int, Received | Exception]] = SimpleQueue()
        self._format = self.groups[0].action_format
        self._actions = np.zeros((num_envs, *(self._format.space.shape or ())), self._format.space.dtype)
        self._waits: Bools = np.zeros(num_envs, bool)  # envs whose outcome was received and that have no action yet
        self._at_work = 0
        self._started = self._closed = False

    @exclusive
    def async_reset(self, seed: int | None = None) -> None:
        """Start new episodes everywhere; group i from `seed + i`. The first observations come with `recv`.

        RuntimeError if the envs are closed.
        """
        check_open(self._closed, 'async_reset')
        self._started = True
        while self._at_work:
            self._next()
        self._waits[:] = False
        for group, envs in enumerate(self.groups):
            self._start(group, _reset, envs, None if seed is None else seed + group)

    @exclusive
    def send(self, actions: ArrayLike, env_ids: ArrayLike) -> None:
        """Give envs their next actions `(m, k)`, or choices `(m,)`; a group starts when all its envs have theirs.

        Raises:
            ValueError: the actions have the wrong shape, are no real numbers, not finite, beyond 1e10 or none of the
                choices (naming the env), or an env is listed twice, does not exist or is not waiting for an action.
                Nothing was sent.
            RuntimeError: the envs were not reset yet, or are closed.
        """
        self._send(actions, env_ids)

    @exclusive
    def recv(self) -> Received:
        """Wait for the next group: observations, rewards, terminated, truncated, info; rows as in `info['env_id']`.

        What failed in a step is raised here, and its group stands still until `async_reset`. RuntimeError if no group
        is at work, or if the envs were not reset yet or are closed.
        """
        return self._recv()

    @exclusive
    def step(self, actions: ArrayLike, env_ids: ArrayLike) -> Received:
        """Call `send`, then `recv`: the results may be of other envs."""
        self._send(actions, env_ids)
        return self._recv()

    @closing
    def close(self) -> None:
        """Wait for the groups at work and free everything; twice is fine."""
        self._closed = True
        self._pool.shutdown()
        for envs in self.groups:
            envs.close()

    def _send(self, actions: ArrayLike, env_ids: ArrayLike) -> None:
        self._check_ready('send')
        ids = np.asarray(env_ids)
        if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
            raise ValueError(f'env_ids must be a list of integers, got {env_ids!r}')
        unknown = ids[(ids < 0) | (ids >= self.num_envs)]
        if len(unknown):
            raise ValueError(f'there are no envs {unknown.tolist()}, only 0 to {self.num_envs - 1}')
        if len(np.unique(ids)) < len(ids):
            raise ValueError(f'env_ids must be distinct, got {ids.tolist()}')
        if not self._waits[ids].all():
            busy = ids[~self._waits[ids]].tolist()
            raise ValueError(f'envs {busy} are stepping or already have actions: call recv first')
        values = self._format.array(actions, len(ids))
        self._format.check(values, ids)
        self._actions[ids] = values
        self._waits[ids] = False
        for group in np.unique(ids // self.batch_size).tolist():
            rows = self._rows(group)
            if not self._waits[rows].any():
                self._start(group, self.groups[group].step, self._actions[rows].copy())

    def _recv(self) -> Received:
        self._check_ready('recv')
        if not self._at_work:
            raise RuntimeError('recv: no group of envs is stepping; send actions to whole groups')
        group, outcome = self._next()
        if isinstance(outcome, Exception):
            raise outcome
        self._waits[self._rows(group)] = True
        obs, rewards, terminated, truncated, info = outcome
        env_ids = np.arange(self.num_envs)[self._rows(group)]
        return obs, rewards, terminated, truncated, {**info, 'env_id': env_ids}

    def _check_ready(self, call: str) -> None:
        check_open(self._closed, call)
        if not self._started:
            raise RuntimeError(f'{call}: call async_reset first')

    def _rows(self, group: int) -> slice:
        return slice(group * self.batch_size, (group + 1) * self.batch_size)

    def _start(self, group: int, work: Callable[..., Received], *args: Any) -> None:
        def run() -> None:
            try:
                self._ready.put((group, work(*args)))
            except Exception as error:  # it belongs to the thread that receives
                self._ready.put((group, error))

        self._at_work += 1
        self._pool.submit(run)

    def _next(self) -> tuple[int, Received | Exception]:
        result = self._ready.get()
        self._at_work -= 1
        return result


def _reset(envs: VectorEnv, seed: int | None) -> Received:
    obs, info = envs.reset(seed=seed)
    nothing = np.zeros(envs.num_envs, bool)
    return obs, np.zeros(envs.num_envs), nothing, nothing.copy(), info
