"""Joints between bodies of an env that are in no file, per run and env.

A joint belongs to the Env that was made or reset last in its thread. Requested between `Env(config)` and the first
reset of its env, it holds in all episodes of that env; requested while the env runs, until its episode ends. A joint of
the same path replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.scene import IScene
from internutopia.model.spec import JointSpec, Vec3

_current: ContextVar[EnvJoints | None] = ContextVar('env_joints', default=None)


class EnvJoints:
    """The joints of one run by env.

    Args:
        envs: what each env holds, None where nothing is loaded; read when a joint is requested.
        loaded: the scenes that are loaded, by env id; None if they are in other processes.
    """

    def __init__(self, envs: Sequence[object | None], loaded: Mapping[int, IScene] | None = None):
        self._envs = envs
        self._loaded = loaded
        self._joints: dict[int, dict[str, JointSpec]] = {}
        self.use()

    @staticmethod
    def current() -> EnvJoints | None:
        """Return the joints of the Env that was made or reset last, unless it is closed."""
        return _current.get()

    def use(self) -> None:
        """Make these the joints that `create_joint` adds to."""
        _current.set(self)

    def close(self) -> None:
        """Take no more joints."""
        if _current.get() is self:
            _current.set(None)

    def assign(self, env_id: int, path: str, joint: JointSpec | None) -> None:
        """Give an env a joint at a prim path, or take it back (None).

        Raises:
            ValueError: there is no such env; or it runs, and has no such body, or no joint to take back.
            NotImplementedError: it runs, and its engine cannot add joints then, or it runs in another process.
        """
        if env_id >= len(self._envs):
            raise ValueError(f'there is no env {env_id}; expected 0..{len(self._envs) - 1}')
        if self._loaded is not None and env_id in self._loaded:
            self._loaded[env_id].set_joint(path, joint)
            return
        if self._envs[env_id] is not None:
            raise NotImplementedError(
                f'env {env_id} runs in another process: create joints after Env(config) and before its first reset, or '
                'in code of its task or robots'
            )
        joints = self._joints.setdefault(env_id, {})
        joints.pop(path, None)
        if joint is not None:
            joints[path] = joint

    def of(self, env_id: int) -> tuple[JointSpec, ...]:
        """Return the joints of an env."""
        return tuple(self._joints.get(env_id, {}).values())


def in_env_frame(joint: JointSpec, offset: NDArray[np.float64]) -> JointSpec:
    """Return a joint whose position on the world, if any, is given in the frame of the env at `offset` `(3,)` [m]."""
    first, second = (
        _minus(position, offset) if body is None and position is not None else position
        for body, position in zip(joint.bodies, joint.positions, strict=True)
    )
    return replace(joint, positions=(first, second))


def _minus(position: Vec3, offset: NDArray[np.float64]) -> Vec3:
    x, y, z = (np.asarray(position) - offset).tolist()
    return x, y, z
