"""Joints between bodies of a scene that is not loaded yet, per run and env.

A joint belongs to the Env that was made or reset last in its thread: it is requested between `Env(config)` and a reset.
It holds in all episodes of its env, from the next reset of that env on; a joint of the same path replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from internutopia.model.spec import JointSpec, Vec3

_current: ContextVar[EnvJoints | None] = ContextVar('env_joints', default=None)


class EnvJoints:
    """The joints of one run by env.

    Args:
        envs: what each env holds, None where nothing is loaded; read when a joint is requested.
    """

    def __init__(self, envs: Sequence[object | None]):
        self._envs = envs
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
            ValueError: there is no such env.
            NotImplementedError: the env is loaded.
        """
        if env_id >= len(self._envs):
            raise ValueError(f'there is no env {env_id}; expected 0..{len(self._envs) - 1}')
        if self._envs[env_id] is not None:
            raise NotImplementedError(
                f'env {env_id} is loaded, and a scene is compiled when it is loaded: create joints after Env(config) '
                'and before the first reset of their env; to fix a robot to the ground, give its class `fixed_base = '
                'True`, and put other joints into the file of the scene or robot'
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
