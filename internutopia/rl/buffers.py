"""Flat buffers in the manner of PufferLib's native envs: arrays made once and written in place in every step.

envs = FlatBuffers(config)
envs.async_reset(seed=0)
observations, rewards, terminals, truncations, infos, env_ids, masks = envs.recv()
envs.send(actions)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Dict, flatdim
from numpy.typing import NDArray

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.rl.vector_env import VectorEnv, same_step_envs
from internutopia.util import did_you_mean
from internutopia.util.call_guard import CallGuard, closing, exclusive

Received = tuple[
    NDArray[np.float32],
    NDArray[np.float32],
    NDArray[np.bool_],
    NDArray[np.bool_],
    list[dict[str, float]],
    NDArray[np.intp],
    NDArray[np.bool_],
]


class FlatBuffers:
    """Batched envs whose outcome is always in the same arrays, one row per env.

    An env that ends starts its next episode in the same step: `terminals` and `truncations` mark the end, and
    `observations` is the first of the new episode. What `recv`, `reset` and `step` return are the buffers themselves,
    valid until the next step.

    Attributes:
        observations: float32 `(n, dim)`.
        actions: float32 `(n, k)` or, of choices, int64 `(n,)`, those sent last.
        rewards: float32 `(n,)`.
        terminals: bool `(n,)`, ended by an outcome, or the env failed.
        truncations: bool `(n,)`, cut.
        masks: bool `(n,)`, rows that count.

    Args:
        envs: what to run, or a `VectorEnv` with `autoreset_mode='SameStep'`, which is closed with this object.
        learning: what is learned; None takes `TaskCfg.learning`.
        buffers: arrays to use, by name, for instance in shared memory or slices of larger ones; the others are made.

    Raises:
        ValueError: a buffer is unknown, read-only or of another shape or type; `episode_order` is `'once'`; or the
            `VectorEnv` resets in another step.
    """

    def __init__(
        self,
        envs: Config | VectorEnv,
        learning: LearningCfg | None = None,
        *,
        buffers: Mapping[str, NDArray[Any]] | None = None,
    ):
        self._guard = CallGuard(self)
        self.envs = same_step_envs(envs, learning)
        if isinstance(self.envs.single_observation_space, Dict):
            names = list(self.envs.single_observation_space)
            if self.envs is not envs:
                self.envs.close()
            raise ValueError(f'FlatBuffers has one array of observations, and these are groups: {names}')
        self.num_envs = self.num_agents = self.envs.num_envs
        self.single_observation_space = self.envs.single_observation_space
        self.single_action_space = self.envs.single_action_space
        self.env_ids = np.arange(self.num_envs)
        n = self.num_envs
        action_space = self.envs.action_format.space
        expected: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {
            'observations': ((n, flatdim(self.single_observation_space)), np.dtype(np.float32)),
            'actions': ((n, *(action_space.shape or ())), np.dtype(action_space.dtype)),
            'rewards': ((n,), np.dtype(np.float32)),
            'terminals': ((n,), np.dtype(np.bool_)),
            'truncations': ((n,), np.dtype(np.bool_)),
            'masks': ((n,), np.dtype(np.bool_)),
        }
        given = dict(buffers or {})
        for name, buffer in given.items():
            if name not in expected:
                raise ValueError(f'there is no buffer {name!r}; {did_you_mean(name, expected)}')
            shape, dtype = expected[name]
            if buffer.shape != shape or buffer.dtype != dtype or not buffer.flags.writeable:
                raise ValueError(
                    f'buffer {name!r} must be a writable {dtype.name} array of shape {shape}, got {buffer.dtype} '
                    f'of shape {buffer.shape}{"" if buffer.flags.writeable else ", read-only"}'
                )
        made = {name: given.get(name, np.zeros(*expected[name])) for name in expected}
        self.observations: NDArray[np.float32] = made['observations']
        self.actions: NDArray[Any] = made['actions']
        self.rewards: NDArray[np.float32] = made['rewards']
        self.terminals: NDArray[np.bool_] = made['terminals']
        self.truncations: NDArray[np.bool_] = made['truncations']
        self.masks: NDArray[np.bool_] = made['masks']
        self._infos: list[dict[str, float]] = []
        self._started = False

    @exclusive
    def async_reset(self, seed: int | None = None) -> None:
        """Start new episodes in all envs; `recv` gives the observations."""
        self.observations[:], info = self.envs.reset(seed=seed)
        self._started = True
        self.actions[:] = 0.0
        self.rewards[:] = 0.0
        self.terminals[:] = self.truncations[:] = False
        self.masks[:] = info['active']
        self._infos = []

    @exclusive
    def send(self, actions: NDArray[Any] | None = None) -> None:
        """Advance by actions `(n, k)` or choices `(n,)`; None takes the buffer `actions`.

        Raises:
            ValueError: the actions have the wrong shape, are no real numbers, not finite or none of the choices
                (naming the env). No env has moved and no buffer has changed.
            RuntimeError: the envs were not reset yet, or are closed.
        """
        chosen = self.actions if actions is None else actions
        obs, rewards, terminated, truncated, info = self.envs.step(chosen)
        self.actions[:] = chosen
        self.observations[:] = obs
        self.rewards[:] = rewards
        self.terminals[:] = terminated
        self.truncations[:] = truncated
        self.masks[:] = info['active']
        ended = terminated | truncated
        self._infos = []
        if ended.any():
            final = info['final_info']
            means = {name: float(final[name][ended].mean()) for name in ('episode_return', 'episode_length')}
            self._infos = [{**means, 'episodes': int(ended.sum()), 'failed': int(info['failed'].sum())}]

    @exclusive
    def recv(self) -> Received:
        """Return observations, rewards, terminals, truncations, infos, env ids and masks.

        Infos are a list with one dict, if episodes ended: their mean `episode_return` and `episode_length`, their
        number `episodes`, and how many of the envs `failed`. RuntimeError before the first `async_reset`.
        """
        if not self._started:
            raise RuntimeError('recv: call async_reset first')
        return (
            self.observations, self.rewards, self.terminals, self.truncations, self._infos, self.env_ids, self.masks
        )  # fmt: skip

    def reset(self, seed: int | None = None) -> tuple[NDArray[np.float32], list[dict[str, float]]]:
        """Call `async_reset`, and return the first observations."""
        self.async_reset(seed)
        return self.observations, self._infos

    def step(
        self, actions: NDArray[Any] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], list[dict[str, float]]]:
        """Call `send`, and return the first five of `recv`."""
        self.send(actions)
        return self.observations, self.rewards, self.terminals, self.truncations, self._infos

    @closing
    def close(self) -> None:
        """Free everything."""
        self.envs.close()
