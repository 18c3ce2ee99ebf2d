"""Handle to a rigid body: a link of a robot, an object, or a movable body of the scene."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.scene import IScene
from internutopia.core.util.pose_mixin import Pose, PoseMixin
from internutopia.engines.base import World
from internutopia.engines.views import BodyView
from internutopia.model.spec import NO_SCALE, ObjectSpec


class IRigidBody(PoseMixin):
    """One rigid body in one env, or (`env_id=...`) in all envs at once with a leading env axis on every array.

    What a getter returns is the caller's own copy for one env, and a read-only buffer that is valid until the next step
    for all envs. Velocities are in env axes, which are the world's.
    """

    __slots__ = ('_parent', '_view', '_world', 'env_id', 'name', 'prim_path')

    def __init__(
        self,
        view: BodyView,
        world: World,
        env_id: int | EllipsisType,
        name: str,
        parent: PoseMixin | None = None,
        prim_path: str | None = None,
    ):
        self._view = view
        self._world = world
        self._parent = parent
        self.env_id = env_id
        self.name = name
        self.prim_path = name if prim_path is None else prim_path

    @classmethod
    def create(
        cls,
        simulator_type: str = 'isaac_sim',
        prim_path: str | None = None,
        usd_path: str | None = None,
        name: str | None = None,
        position: Any = None,
        translation: Any = None,
        orientation: Any = None,
        scale: Any = None,
        visible: bool | None = None,
        mass: float | None = None,
        linear_velocity: Any = None,
        angular_velocity: Any = None,
        owner_articulation: Any = None,
    ) -> IRigidBody:
        """Return the body at a prim path such as `/World/env_0/robots/h1/pelvis`; or add one of a file.

        What is there has its model and appearance from the configs of the task: `usd_path`, `scale` and `visible` are
        accepted for 2.x scripts then, and so are `simulator_type` and `owner_articulation`.

        Args:
            simulator_type: accepted.
            prim_path: where it is, or is put.
            usd_path: the file of an object that is added if nothing is at that path, see `IScene.add_object`.
            name: name of an object that is added, by default the last of its path; else accepted: the handle is called
                as its prim path (links) or as the object.
            position: where to put it, env frame [m]; world frame with `Conventions.handles_in_world`.
            translation: the same relative to its parent prim.
            orientation: how to turn it, in the frame of `position` or else `translation`.
            scale: that of an object that is added.
            visible: accepted.
            mass: its mass from now on [kg].
            linear_velocity: its velocity [m/s], env axes.
            angular_velocity: likewise [rad/s].
            owner_articulation: accepted.

        Raises:
            KeyError: no such body was loaded.
            ValueError: no prim path is given, both `position` and `translation` are, or the body cannot be moved.
        """
        if prim_path is None:
            raise ValueError('IRigidBody.create needs a prim_path')
        if position is not None and translation is not None:
            raise ValueError(f'{prim_path}: give position (env frame) or translation (frame of its parent), not both')
        scene = IScene.at(prim_path)
        if usd_path is not None and not scene.has_body_at(prim_path):
            below = prim_path.removeprefix(scene.root_path)
            size = NO_SCALE if scale is None else tuple(np.broadcast_to(np.asarray(scale, float), (3,)).tolist())
            name = name or prim_path.rsplit('/', 1)[-1]
            scene.add_object(ObjectSpec(name, usd_path, scale=size, mass=mass, prim_path=below))
        body = scene.rigid_body_at(prim_path)
        if translation is not None:
            body.set_local_pose(translation, orientation)
        elif position is not None or orientation is not None:
            in_world = scene.handles_in_world and not scene.adds_by_config
            (body.set_world_pose if in_world else body.set_pose)(position, orientation)
        if mass is not None:
            body.set_mass(mass)
        if linear_velocity is not None:
            body.set_linear_velocity(linear_velocity)
        if angular_velocity is not None:
            body.set_angular_velocity(angular_velocity)
        return body

    @property
    def offset(self) -> Any:
        """Origin of the env frame in the world [m]."""
        offsets = self._world.env_origins[self.env_id]
        return offsets.tolist() if isinstance(self.env_id, int) else offsets

    def get_pose(self) -> Pose:
        """Return position `(3,)` [m] and orientation `(4,)` in the env frame."""
        return self._own(*self._view.get_poses())

    def set_pose(self, position: Any = None, orientation: Any = None) -> None:
        """Move the body (env frame); ValueError for a link that hangs on others."""
        self._view.set_poses(*self._rows(position, orientation))

    def get_linear_velocity(self) -> NDArray[np.float32]:
        """Return the velocity of the body frame's origin `(3,)` [m/s]."""
        return self._own(*self._view.get_velocities())[0]

    def set_linear_velocity(self, velocity: Any) -> None:
        """Set the linear velocity `(3,)` [m/s]."""
        self._view.set_velocities(*self._rows(velocity, None))

    def get_angular_velocity(self) -> NDArray[np.float32]:
        """Return the angular velocity `(3,)` [rad/s]."""
        return self._own(*self._view.get_velocities())[1]

    def set_angular_velocity(self, velocity: Any) -> None:
        """Set the angular velocity `(3,)` [rad/s]."""
        self._view.set_velocities(*self._rows(None, velocity))

    def get_mass(self) -> Any:
        """Mass [kg], a float (`(n,)` for all envs)."""
        masses = self._view.get_masses()
        return float(masses[self.env_id]) if isinstance(self.env_id, int) else masses

    def set_mass(self, mass: Any) -> None:
        """Set the mass [kg] of this env's body; its inertia scales along. ValueError if it is not positive."""
        self._view.set_masses(*self._rows(mass))

    def is_valid(self) -> bool:
        """Return True if the body still exists in its env."""
        return self._parent is not None or self.name in self._world.body_names(self.env_id)

    def _own(self, first: NDArray[np.float32], second: NDArray[np.float32]) -> Pose:
        row = self.env_id
        return (first[row].copy(), second[row].copy()) if isinstance(row, int) else (first, second)

    def _rows(self, *values: Any) -> tuple[Any, ...]:
        """Return the env ids and, for one env, the values with a leading axis of one."""
        if isinstance(self.env_id, int):
            rows = (None if value is None else np.asarray(value)[None] for value in values)
            return (np.array([self.env_id]), *rows)
        return (np.arange(self._world.env_num), *values)

    def _parent_pose(self) -> Pose:
        return super()._parent_pose() if self._parent is None else self._parent.get_pose()
