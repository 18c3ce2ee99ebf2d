"""Rigid bodies in worlds of MuJoCo models: batched views."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from internutopia.core.model.compiled import BodyLayout, CompiledScene
from internutopia.core.util.arrays import namespace_of
from internutopia.core.util.rotations import quat_rotate, quat_rotate_inverse
from internutopia.core.world.base import Array, BodyView, EnvIds
from internutopia.core.world.batched.env_batch import BatchArrays, Index
from internutopia.core.world.batched.view import View, ViewSlice, cells

if TYPE_CHECKING:
    from internutopia.core.world.batched.world import BatchedWorld


class MujocoBodyView(View, BodyView):
    """A rigid body; `find` gives its layout in a compiled scene, or None."""

    def __init__(self, world: BatchedWorld, name: str, find: Callable[[CompiledScene], BodyLayout | None]):
        super().__init__(world, find)
        self.name = name

    def get_poses(self) -> tuple[Array, Array]:
        """See `BodyView`."""
        return self._cached('pose', ((3,), (4,)), self._fill_poses)

    def get_velocities(self) -> tuple[Array, Array]:
        """See `BodyView`."""
        return self._cached('velocity', ((3,), (3,)), self._fill_velocities)

    def get_masses(self) -> Array:
        """See `BodyView`."""

        def fill(segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
            values = segment.group.values('body_mass')
            buffers[0][segment.envs] = values[segment.rows, segment.layout.body]

        return self._cached('mass', ((),), fill)[0]

    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """See `BodyView`."""
        arrays = self._world.arrays
        for place in self._rows(env_ids):
            body: BodyLayout = place.segment.layout
            if body.qpos >= 0:
                qpos = place.group.write('qpos')
                position, orientation = qpos[:, body.qpos : body.qpos + 3], qpos[:, body.qpos + 3 : body.qpos + 7]
            elif body.mocap >= 0:
                position = place.group.write('mocap_pos')[:, body.mocap]
                orientation = place.group.write('mocap_quat')[:, body.mocap]
            else:
                raise ValueError(
                    f'body {self.name!r} hangs on other bodies: only free or fixed root bodies can be posed'
                )
            if positions is not None:
                place.put(position, slice(None), arrays.asarray(positions))
            if orientations is not None:
                quat = arrays.asarray(orientations, arrays.double)
                place.put(orientation, slice(None), quat / arrays.xp.linalg.vector_norm(quat, axis=-1, keepdims=True))
            self._changed(place)

    def set_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        """See `BodyView`."""
        arrays = self._world.arrays
        for place in self._rows(env_ids):
            body: BodyLayout = place.segment.layout
            if body.dof < 0:
                raise ValueError(f'body {self.name!r} does not move freely: its velocity cannot be set')
            qvel = place.group.write('qvel')
            if linear is not None:
                place.put(qvel, slice(body.dof, body.dof + 3), arrays.asarray(linear))
            if angular is not None:
                # a free joint's angular velocity is in the body frame
                quat = place.group.read('qpos')[place.slots, body.qpos + 3 : body.qpos + 7]
                value = arrays.asarray(angular, arrays.double)[place.mine]
                place.put_own(qvel, slice(body.dof + 3, body.dof + 6), quat_rotate_inverse(quat, value))
            self._changed(place)

    def set_masses(self, env_ids: EnvIds, masses: Any) -> None:
        """See `BodyView`."""
        arrays = self._world.arrays
        new = arrays.xp.broadcast_to(arrays.asarray(masses, arrays.double), (len(env_ids),))
        for place in self._rows(env_ids):
            mass, inertia = place.group.expand('body_mass'), place.group.expand('body_inertia')
            body = place.segment.layout.body
            factor = new[place.mine] / mass[place.slots, body]
            place.put_own(inertia, body, inertia[place.slots, body] * factor[:, None])
            place.put(mass, body, new)
            place.group.set_constants(place.slots, place.mask)
            self._world.version += 1

    def _fill_poses(self, segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
        body: BodyLayout = segment.layout
        position, orientation = buffers
        if body.qpos >= 0:
            qpos = segment.group.read('qpos')[segment.rows, body.qpos : body.qpos + 7]
            position[segment.envs], orientation[segment.envs] = qpos[:, :3], qpos[:, 3:]
        elif body.mocap >= 0:
            position[segment.envs] = segment.group.read('mocap_pos')[segment.rows, body.mocap]
            orientation[segment.envs] = segment.group.read('mocap_quat')[segment.rows, body.mocap]
        else:
            position[segment.envs] = segment.group.read('xpos')[segment.rows, body.body]
            orientation[segment.envs] = segment.group.read('xquat')[segment.rows, body.body]

    def _fill_velocities(self, segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
        body: BodyLayout = segment.layout
        linear, angular = buffers
        group, rows = segment.group, segment.rows
        if body.dof >= 0:
            qvel = group.read('qvel')[rows, body.dof : body.dof + 6]
            linear[segment.envs] = qvel[:, :3]
            angular[segment.envs] = quat_rotate(group.read('qpos')[rows, body.qpos + 3 : body.qpos + 7], qvel[:, 3:])
        elif body.mocap < 0:
            trees = segment.once('root', lambda: group.scene.model.body_rootid[[body.body]])
            velocities = body_velocities(group, rows, slice(body.body, body.body + 1), trees)
            linear[segment.envs], angular[segment.envs] = (velocity[:, 0] for velocity in velocities)


def body_velocities(group: BatchArrays, rows: Index, bodies: Index, roots: Index) -> tuple[Any, Any]:
    """Linear [m/s] and angular [rad/s] velocities of the frames of k bodies in n slots, `(n, k, 3)` each, env axes.

    `roots` are the bodies at the roots of their trees.
    """
    # cvel is (angular, linear) at the centre of mass of the whole tree: move it to the body's origin
    cvel = group.read('cvel')[cells(rows, bodies)]
    com = group.read('subtree_com')[cells(rows, roots)]
    arm = group.read('xpos')[cells(rows, bodies)] - com
    wx, wy, wz = (cvel[..., k] for k in range(3))  # by columns: np.cross takes much longer
    ax, ay, az = (arm[..., k] for k in range(3))
    spin = namespace_of(arm).stack([wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax], axis=-1)
    return cvel[..., 3:] + spin, cvel[..., :3]
