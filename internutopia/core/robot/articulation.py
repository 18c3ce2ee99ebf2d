"""Handle to an articulated robot, or to jointed bodies of the scene."""

from __future__ import annotations

from collections.abc import Iterable
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import IScene
from internutopia.core.util.pose_mixin import Pose, PoseMixin
from internutopia.engines.base import World
from internutopia.engines.views import ArticulationView
from internutopia.model.asset_paths import resolve
from internutopia.model.spec import RobotSpec
from internutopia.util.arrays import to_host

__all__ = ['ArticulationAction', 'IArticulation']


class IArticulation(PoseMixin):
    """One robot's joints and root in one env, or (`env_id=...`) in all envs at once; or those of a part of the scene.

    Over all envs every array has a leading env axis, and setters take the `env_ids` that their rows are for. What a
    getter returns is the caller's own copy for one env, and a read-only buffer that is valid until the next step for
    all envs. Joint order is that of `dof_names`.
    """

    def __init__(self, view: ArticulationView, world: World, env_id: int | EllipsisType, name: str, prim_path: str):
        self.view = view
        self.env_id = env_id
        self.name = name
        self.prim_path = prim_path
        self._world = world

    @classmethod
    def create(
        cls,
        simulator_type: str = 'isaac_sim',
        usd_path: str | None = None,
        prim_path: str | None = None,
        name: str | None = None,
        position: Any = None,
        orientation: Any = None,
        scale: Any = None,
    ) -> IArticulation:
        """Return the robot at a prim path such as `/World/env_0/robots/h1`; the task's scene holds it already.

        Or `/World/env_0/scene/...`, a prim of the scene: all that hinges and slides move at or below it, such as the
        door of a microwave. The handle's pose is that of its first body, a body of the scene that joints hold cannot be
        teleported.

        Args:
            simulator_type: accepted for 2.x scripts.
            usd_path: the model; only that of its config (`BaseRobot.model`) is accepted.
            prim_path: where it is.
            name: accepted for 2.x scripts; the handle is called as the robot.
            position: where to put its root, env frame [m]; the config's, like None, leaves it where it starts.
            orientation: how to turn its root, likewise.
            scale: its size along x, y and z; that of its config is the only one that can be had.

        Raises:
            KeyError: no robot was loaded there, and the scene has no joints there.
            ValueError: no prim path is given, or another model, scale or pose than what the scene has there.
        """
        if prim_path is None:
            raise ValueError('IArticulation.create needs a prim_path')
        scene = IScene.at(prim_path)
        articulation = scene.articulation_at(prim_path)
        model = next((robot for robot in scene.model.robots if robot.name == articulation.name), None)
        if model is None:
            if usd_path is not None or scale is not None:
                raise ValueError(f'{prim_path} is part of the scene: omit usd_path and scale')
            if position is not None or orientation is not None:
                articulation.set_pose(position, orientation)
            return articulation
        _check_model(model, usd_path, scale)
        pose = [
            None if wanted is None or np.allclose(wanted, own, atol=1e-6) else wanted
            for wanted, own in ((position, model.position), (orientation, model.orientation))
        ]
        if any(value is not None for value in pose):
            articulation.set_pose(*pose)
        return articulation

    def initialize(self, physics_sim_view: Any = None) -> None:
        """Called by `BaseRobot.post_reset`; nothing to do, unless a subclass has something."""

    def post_reset(self) -> None:
        """Called by `BaseRobot.post_reset` after `initialize`; nothing to do, unless a subclass has something."""

    @property
    def offset(self) -> Any:
        """Origin of the env frame in the world [m]."""
        offsets = self._world.env_origins[self.env_id]
        return offsets.tolist() if isinstance(self.env_id, int) else offsets

    @property
    def handles_initialized(self) -> bool:
        """True if joints can be read: always, once the scene is loaded."""
        return True

    @property
    def num_dof(self) -> int:
        """Number of joints with a degree of freedom of their own."""
        return len(self.view.dof_names)

    @property
    def num_bodies(self) -> int:
        """Number of links."""
        return len(self.view.body_names)

    @property
    def dof_names(self) -> list[str]:
        """Joint names, in joint order."""
        return list(self.view.dof_names)

    def get_dof_index(self, dof_name: str) -> int:
        """Return the index of a joint. KeyError if there is none of that name."""
        if dof_name not in self.view.dof_names:
            raise KeyError(f'robot {self.name!r} has no joint {dof_name!r}; joints: {", ".join(self.view.dof_names)}')
        return self.view.dof_names.index(dof_name)

    def apply_action(self, action: ArticulationAction, env_ids: Any = ...) -> None:
        """Set drive targets; what the action leaves out keeps its target. Arrays `(k,)`, for all envs `(n, k)`."""
        if not hasattr(action, 'joint_positions'):
            raise TypeError(
                f'robot {self.name!r}: expected an ArticulationAction, got {type(action).__name__}: {action!r}'
            )
        targets = {
            'positions': action.joint_positions,
            'velocities': action.joint_velocities,
            'efforts': action.joint_efforts,
        }
        joints = self._joints(action.joint_indices, **targets)
        self.view.set_targets(self._ids(env_ids), **targets, joints=joints)

    def get_joint_positions(self, joint_indices: Any = None) -> NDArray[np.float32]:
        """Return joint positions `(dof,)` [rad or m], or those of some joints."""
        return self._own(self.view.get_joint_positions(), joint_indices)

    def get_joint_velocities(self, joint_indices: Any = None) -> NDArray[np.float32]:
        """Return joint velocities `(dof,)` [rad/s or m/s], or those of some joints."""
        return self._own(self.view.get_joint_velocities(), joint_indices)

    def get_joint_efforts(self, joint_indices: Any = None) -> NDArray[np.float32]:
        """Return the forces of the drives in the last substep `(dof,)` [N·m or N], or those of some joints."""
        return self._own(self.view.get_joint_efforts(), joint_indices)

    def set_joint_positions(self, positions: Any, joint_indices: Any = None, env_ids: Any = ...) -> None:
        """Move joints at once [rad or m]; their position targets follow."""
        joints = self._joints(joint_indices, positions=positions)
        self.view.set_joint_positions(self._ids(env_ids), positions, joints)

    def set_joint_velocities(self, velocities: Any, joint_indices: Any = None, env_ids: Any = ...) -> None:
        """Set joint velocities at once [rad/s or m/s]."""
        joints = self._joints(joint_indices, velocities=velocities)
        self.view.set_joint_velocities(self._ids(env_ids), velocities, joints)

    def set_joint_efforts(self, efforts: Any, joint_indices: Any = None, env_ids: Any = ...) -> None:
        """Set the efforts [N·m or N] that are added to the drives until replaced."""
        joints = self._joints(joint_indices, efforts=efforts)
        self.view.set_targets(self._ids(env_ids), efforts=efforts, joints=joints)

    def set_gains(self, kps: Any = None, kds: Any = None, joint_indices: Any = None, env_ids: Any = ...) -> None:
        """Change stiffness [N·m/rad] and damping [N·m·s/rad] of the drives, `(k,)` or `(n, k)`."""
        joints = self._joints(joint_indices, kps=kps, kds=kds)
        self.view.set_gains(self._ids(env_ids), kps, kds, joints)

    def get_gains(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the stiffness and damping of the drives, `(dof,)` each."""
        stiffness, damping = self.view.get_gains()
        return self._own(stiffness), self._own(damping)

    def get_pose(self) -> Pose:
        """Return the pose of the root body in the env frame."""
        position, orientation = self.view.get_root_poses()
        return self._own(position), self._own(orientation)

    def set_pose(self, position: Any = None, orientation: Any = None, env_ids: Any = ...) -> None:
        """Teleport the root (env frame); joints keep their positions."""
        if isinstance(self.env_id, int):
            position, orientation = (None if v is None else np.asarray(v)[None] for v in (position, orientation))
        self.view.set_root_poses(self._ids(env_ids), position, orientation)

    def get_linear_velocity(self) -> NDArray[np.float32]:
        """Return the velocity of the root's origin `(3,)` [m/s], env axes."""
        return self._own(self.view.get_root_velocities()[0])

    def set_linear_velocity(self, velocity: Any, env_ids: Any = ...) -> None:
        """Set the root's linear velocity `(3,)` [m/s]."""
        self.view.set_root_velocities(self._ids(env_ids), linear=_rows(velocity))

    def get_angular_velocity(self) -> NDArray[np.float32]:
        """Return the angular velocity of the root `(3,)` [rad/s], env axes."""
        return self._own(self.view.get_root_velocities()[1])

    def set_angular_velocity(self, velocity: Any, env_ids: Any = ...) -> None:
        """Set the root's angular velocity `(3,)` [rad/s]."""
        self.view.set_root_velocities(self._ids(env_ids), angular=_rows(velocity))

    def set_world_velocity(self, velocity: Any, env_ids: Any = ...) -> None:
        """Set linear and angular velocity of the root at once, `(6,)` [m/s, rad/s]."""
        velocity = _rows(velocity)
        self.view.set_root_velocities(self._ids(env_ids), velocity[..., :3], velocity[..., 3:])

    def set_enabled_self_collisions(self, flag: bool, env_ids: Any = ...) -> None:
        """Let links of the robot collide with each other, or not, until the episode ends.

        As `BaseRobot.self_collisions`, which costs nothing, whereas this moves the env into a batch of other envs that
        are like it, and compiles the scene if it is the first. ValueError where that cannot be done any more: with
        arrays on a device.
        """
        self.view.set_self_collisions(self._ids(env_ids), bool(flag))

    def set_solver_velocity_iteration_count(self, count: int) -> None:
        """Accepted for scripts written for Isaac Sim; MuJoCo's solver has no such count."""

    def set_solver_position_iteration_count(self, count: int) -> None:
        """Accepted for scripts written for Isaac Sim; MuJoCo's solver has no such count."""

    def in_all_envs(self) -> IArticulation:
        """This robot in all envs at once."""
        return IArticulation(self.view, self._world, ..., self.name, self.prim_path)

    def body(self, name: str) -> IRigidBody:
        """Return a link of the robot, by its name or its path on a stage. KeyError with close matches."""
        name = self.link_name(name)
        return IRigidBody(self.view.body(name), self._world, self.env_id, f'{self.prim_path}/{name}', self)

    def link_name(self, path: str) -> str:
        """Return the name of a link at a path below the robot or the world: names do not say where its prim lies."""
        return path if path in self.view.body_names else path.rsplit('/', 1)[-1]

    def links(self) -> Iterable[IRigidBody]:
        """Return all links; their names are prim paths."""
        return (self.body(name) for name in self.view.body_names)

    @property
    def _articulation(self) -> IArticulation:
        # extension packages reach for Isaac Sim's object under this name; this handle has the methods they call on it
        return self

    def _own(self, buffer: NDArray[np.float32], joints: Any = None) -> NDArray[np.float32]:
        if isinstance(self.env_id, int):
            row = to_host(buffer[self.env_id])
            return row.copy() if joints is None else row[..., self._checked(joints)]
        return buffer if joints is None else buffer[..., self._world.arrays.index(joints)]

    def _joints(self, joint_indices: Any, **values: Any) -> Any:
        """Dof indices, as an index of joint arrays. ValueError if there are not as many values as joints."""
        count = len(self.view.dof_names) if joint_indices is None else np.size(joint_indices)
        for name, array in values.items():
            shape = () if array is None else np.shape(array)
            if shape and shape[-1] not in (1, count):
                order = '' if joint_indices is not None else f', in this order: {", ".join(self.view.dof_names)}'
                raise ValueError(f'robot {self.name!r}: {shape[-1]} {name} for {count} joints{order}')
        return slice(None) if joint_indices is None else self._checked(joint_indices)

    def _checked(self, joint_indices: Any) -> NDArray[np.intp]:
        """Return dof indices. ValueError, with the joints, if they are none."""
        if isinstance(joint_indices, np.ndarray) and joint_indices.dtype == np.intp:
            return joint_indices  # those of each step; numpy refuses what is out of range
        indices = np.asarray(joint_indices)
        if indices.dtype.kind not in 'iu' and indices.size:
            fault = f'integers, got {joint_indices!r}'
        elif indices.size and not -self.num_dof <= indices.min() <= indices.max() < self.num_dof:
            fault = f'indices of {self.num_dof} joints, got {joint_indices!r}'
        else:
            return indices.astype(np.intp, copy=False)
        joints = ', '.join(self.view.dof_names)
        raise ValueError(
            f'robot {self.name!r}: joint_indices must be {fault}; get_dof_index(name) finds them: {joints}'
        )

    def _ids(self, env_ids: Any) -> Any:
        if isinstance(self.env_id, int):
            return np.array([self.env_id])
        return self._world.arrays.arange(self._world.env_num) if env_ids is ... else env_ids


def _check_model(model: RobotSpec, usd_path: str | None, scale: Any) -> None:
    """ValueError for a file or a scale that are not those of a robot's model."""
    if usd_path is not None and usd_path != model.asset and resolve(usd_path) != resolve(model.asset):
        raise ValueError(
            f'robot {model.name!r} was loaded from {model.asset}, not from {usd_path}: name the file in its config, or '
            'let `model` of its class say it'
        )
    if scale is not None and not np.allclose(scale, model.scale):
        raise ValueError(f'robot {model.name!r} was loaded at scale {model.scale:g}, not {scale}: give its config that')


def _rows(values: Any) -> Any:
    """Return the values of one env as those of several; of several as they are."""
    return values if getattr(values, 'ndim', 1) == 2 else np.atleast_2d(values)
