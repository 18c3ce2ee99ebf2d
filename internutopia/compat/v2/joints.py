"""Joints between bodies of a scene that is not loaded yet: the requests of `create_joint`, per run and env.

A joint belongs to the Env that was made or reset last in its thread: it is requested between `Env(config)` and a reset.
It holds in all episodes of its env, from the next reset of that env on; a joint of the same path takes its place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from internutopia.model.spec import JointSpec, Vec3
from internutopia.util import did_you_mean

_KINDS: MappingProxyType[str, Literal['fixed', 'hinge', 'ball', 'free'] | None] = MappingProxyType(
    {'FixedJoint': 'fixed', 'Joint': 'free', 'PrismaticJoint': None, 'RevoluteJoint': 'hinge', 'SphericalJoint': 'ball'}
)
_current: ContextVar[EnvJoints | None] = ContextVar('env_joints', default=None)
_IN_ENV = re.compile(r'/World/env_(\d+)(/.+)')


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


def create_joint(
    prim_path: str,
    joint_type: str,
    body0: str | None = None,
    body1: str | None = None,
    enabled: bool = True,
    joint_frame_in_parent_frame_pos: Sequence[float] | None = None,
    joint_frame_in_parent_frame_quat: Sequence[float] | None = None,
    joint_frame_in_child_frame_pos: Sequence[float] | None = None,
    joint_frame_in_child_frame_quat: Sequence[float] | None = None,
    break_force: float | None = None,
    break_torque: float | None = None,
) -> None:
    """Connect two bodies of an env by a joint, or a body and the world; called after `Env(config)`.

    The joint is part of the scene of its env in all episodes from the next reset on; of the Env that was made or reset
    last in this thread. Bodies that it connects do not collide. What is not given of its frame on one body is where
    the other one has it at the start; if nothing is given, the frame is that of the child (of the parent if the world
    is the child). A `RevoluteJoint` turns about the x axis of its frame.

    Args:
        prim_path: name of the joint; another one of the same path in the env takes its place.
        joint_type: `'FixedJoint'`, `'RevoluteJoint'`, `'SphericalJoint'`, or `'Joint'`, which holds nothing and only
            keeps its bodies from colliding.
        body0: prim path of the parent, a link, object or body of the scene: `/World/env_0/robots/h1/pelvis`. None is
            the world.
        body1: prim path of the child, in the same env. None is the world.
        enabled: False has no joint, and takes back the one of that path.
        joint_frame_in_parent_frame_pos: position of its frame on the parent [m, times the scale of the robot, object or
            scene; on the world: in the world frame].
        joint_frame_in_parent_frame_quat: its orientation there, `(x, y, z, w)`, as in 2.x.
        joint_frame_in_child_frame_pos: position of its frame on the child.
        joint_frame_in_child_frame_quat: its orientation there.
        break_force: None; joints do not break here.
        break_torque: likewise.

    Raises:
        ValueError: an argument is wrong, or the env does not exist. A body that is not there is a ValueError of the
            next reset.
        NotImplementedError: the env is loaded; or a `PrismaticJoint`, or one that breaks, is requested.
        RuntimeError: there is no Env.
    """
    call = f'create_joint({prim_path!r})'
    if joint_type not in _KINDS:
        raise ValueError(f'{call}: there is no joint_type {joint_type!r}; {did_you_mean(joint_type, _KINDS)}')
    kind = _KINDS[joint_type]
    if kind is None:
        raise NotImplementedError(f'{call}: a {joint_type} has to be in the file of the scene or robot')
    if any(limit is not None and limit != math.inf for limit in (break_force, break_torque)):
        raise NotImplementedError(f'{call}: joints do not break here; leave break_force and break_torque out')
    env_id, bodies = _bodies(call, body0, body1)
    parent, child = 'joint_frame_in_parent_frame', 'joint_frame_in_child_frame'
    joint = JointSpec(
        kind,
        bodies,
        (
            _numbers(call, f'{parent}_pos', joint_frame_in_parent_frame_pos, 3),
            _numbers(call, f'{child}_pos', joint_frame_in_child_frame_pos, 3),
        ),
        (
            _quaternion(call, f'{parent}_quat', joint_frame_in_parent_frame_quat),
            _quaternion(call, f'{child}_quat', joint_frame_in_child_frame_quat),
        ),
        prim_path,
    )
    joints = EnvJoints.current()
    if joints is None:
        raise RuntimeError(f'{call}: there is no Env whose scene could get it; call it after Env(config)')
    try:
        joints.assign(env_id, prim_path, joint if enabled else None)
    except (ValueError, NotImplementedError) as error:
        raise type(error)(f'{call}: {error}') from None


def in_env_frame(joint: JointSpec, offset: NDArray[np.float64]) -> JointSpec:
    """Return a joint whose position on the world, if any, is given in the frame of the env at `offset` `(3,)` [m]."""
    first, second = (
        _minus(position, offset) if body is None and position is not None else position
        for body, position in zip(joint.bodies, joint.positions, strict=True)
    )
    return replace(joint, positions=(first, second))


def _bodies(call: str, body0: str | None, body1: str | None) -> tuple[int, tuple[str | None, str | None]]:
    """Return the env of two bodies and their paths below it. ValueError if they are not in one env."""
    env_ids, paths = set[int](), list[str | None]()
    for name, path in (('body0', body0), ('body1', body1)):
        match = None if path is None else _IN_ENV.fullmatch(path)
        if path is not None and match is None:
            raise ValueError(f'{call}: {name} must be a prim path /World/env_<id>/..., got {path!r}')
        paths.append(None if match is None else match[2])
        if match is not None:
            env_ids.add(int(match[1]))
    if not env_ids:
        raise ValueError(f'{call}: body0 or body1 must name a body; None is the world')
    if len(env_ids) > 1:
        raise ValueError(f'{call}: {body0!r} and {body1!r} are in two envs, which know nothing of each other')
    return env_ids.pop(), (paths[0], paths[1])


def _numbers(call: str, name: str, values: Sequence[float] | None, count: int) -> Any:
    """Return so many finite numbers as a tuple. ValueError otherwise."""
    if values is None:
        return None
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ValueError(f'{call}: {name} must be {count} finite numbers, got {values!r}')
    return tuple(numbers.tolist())


def _quaternion(call: str, name: str, values: Sequence[float] | None) -> Any:
    """Convert `(x, y, z, w)` to a unit quaternion `(w, x, y, z)`. ValueError otherwise."""
    numbers = _numbers(call, name, values, 4)
    if numbers is None:
        return None
    length = math.hypot(*numbers)
    if not length:
        raise ValueError(f'{call}: {name} is a quaternion of length zero; (0, 0, 0, 1) means not rotated')
    x, y, z, w = (number / length for number in numbers)
    return w, x, y, z


def _minus(position: Vec3, offset: NDArray[np.float64]) -> Vec3:
    x, y, z = (np.asarray(position) - offset).tolist()
    return x, y, z
