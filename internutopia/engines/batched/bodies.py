"""Rigid body views in worlds of MuJoCo models, batched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typing_extensions import override

from internutopia.engines.batched.env_batch import BatchArrays, Index
from internutopia.engines.batched.view import View, ViewContext, ViewSlice, cells
from internutopia.engines.finite import check_finite, check_orientations
from internutopia.engines.views import Array, BodyView, EnvIds
from internutopia.model.compiled import CompiledScene
from internutopia.model.layouts import BodyLayout
from internutopia.util.rotations import quat_rotate, quat_rotate_inverse
from internutopia.util.vectors import cross


class MujocoBodyView(View, BodyView):
    """A rigid body; `find` gives its layout in a compiled scene, or None."""

    def __init__(self, world: ViewContext, name: str, find: Callable[[CompiledScene], BodyLayout | None]):
        super().__init__(world, find)
        self.name = name

    @override
    def get_poses(self) -> tuple[Array, Array]:
        return self._cached('pose', ((3,), (4,)), self._fill_poses)

    @override
    def get_velocities(self) -> tuple[Array, Array]:
        return self._cached('velocity', ((3,), (3,)), self._fill_velocities)

    @override
    def get_masses(self) -> Array:
        def fill(view_slice: ViewSlice, buffers: tuple[Array, ...]) -> None:
            values = view_slice.batch.values('body_mass')
            buffers[0][view_slice.envs] = values[view_slice.slots, view_slice.layout.body]

        return self._cached('mass', ((),), fill)[0]

    @override
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        check_finite(env_ids, self.name, 'position', positions)
        check_orientations(env_ids, self.name, orientations)
        arrays = self._world.arrays
        for target in self._write_targets(env_ids):
            body: BodyLayout = target.view_slice.layout
            if body.qpos >= 0:
                qpos = target.batch.write('qpos')
                position, orientation = qpos[:, body.qpos : body.qpos + 3], qpos[:, body.qpos + 3 : body.qpos + 7]
            elif body.mocap >= 0:
                position = target.batch.write('mocap_pos')[:, body.mocap]
                orientation = target.batch.write('mocap_quat')[:, body.mocap]
            else:
                raise ValueError(
                    f'body {self.name!r} hangs on other bodies: only free or fixed root bodies can be posed'
                )
            if positions is not None:
                target.assign(position, slice(None), arrays.asarray(positions))
            if orientations is not None:
                quat = arrays.asarray(orientations, arrays.double)
                target.assign(
                    orientation, slice(None), quat / arrays.xp.linalg.vector_norm(quat, axis=-1, keepdims=True)
                )
            self._mark_dirty(target)

    @override
    def set_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        check_finite(env_ids, self.name, 'linear velocity', linear)
        check_finite(env_ids, self.name, 'angular velocity', angular)
        arrays = self._world.arrays
        for target in self._write_targets(env_ids):
            body: BodyLayout = target.view_slice.layout
            if body.dof < 0:
                raise ValueError(f'body {self.name!r} does not move freely: its velocity cannot be set')
            qvel = target.batch.write('qvel')
            if linear is not None:
                target.assign(qvel, slice(body.dof, body.dof + 3), arrays.asarray(linear))
            if angular is not None:
                # a free joint's angular velocity is in the body frame
                quat = target.batch.read('qpos')[target.slots, body.qpos + 3 : body.qpos + 7]
                value = arrays.asarray(angular, arrays.double)[target.value_rows]
                target.assign_own(qvel, slice(body.dof + 3, body.dof + 6), quat_rotate_inverse(quat, value))
            self._mark_dirty(target)

    @override
    def set_masses(self, env_ids: EnvIds, masses: Any) -> None:
        arrays = self._world.arrays
        new = arrays.xp.broadcast_to(arrays.asarray(masses, arrays.double), (len(env_ids),))
        for target in self._write_targets(env_ids):
            mass, inertia = target.batch.expand('body_mass'), target.batch.expand('body_inertia')
            body = target.view_slice.layout.body
            factor = new[target.value_rows] / mass[target.slots, body]
            target.assign_own(inertia, body, inertia[target.slots, body] * factor[:, None])
            target.assign(mass, body, new)
            target.batch.set_constants(target.slots, target.mask)
            self._world.version += 1

    def _fill_poses(self, view_slice: ViewSlice, buffers: tuple[Array, ...]) -> None:
        body: BodyLayout = view_slice.layout
        position, orientation = buffers
        if body.qpos >= 0:
            qpos = view_slice.batch.read('qpos')[view_slice.slots, body.qpos : body.qpos + 7]
            position[view_slice.envs], orientation[view_slice.envs] = qpos[:, :3], qpos[:, 3:]
        elif body.mocap >= 0:
            position[view_slice.envs] = view_slice.batch.read('mocap_pos')[view_slice.slots, body.mocap]
            orientation[view_slice.envs] = view_slice.batch.read('mocap_quat')[view_slice.slots, body.mocap]
        else:
            position[view_slice.envs] = view_slice.batch.read('xpos')[view_slice.slots, body.body]
            orientation[view_slice.envs] = view_slice.batch.read('xquat')[view_slice.slots, body.body]

    def _fill_velocities(self, view_slice: ViewSlice, buffers: tuple[Array, ...]) -> None:
        body: BodyLayout = view_slice.layout
        linear, angular = buffers
        batch, slots = view_slice.batch, view_slice.slots
        if body.dof >= 0:
            qvel = batch.read('qvel')[slots, body.dof : body.dof + 6]
            linear[view_slice.envs] = qvel[:, :3]
            angular[view_slice.envs] = quat_rotate(
                batch.read('qpos')[slots, body.qpos + 3 : body.qpos + 7], qvel[:, 3:]
            )
        elif body.mocap < 0:
            trees = view_slice.once('root', lambda: batch.scene.model.body_rootid[[body.body]])
            velocities = body_velocities(batch, slots, slice(body.body, body.body + 1), trees)
            linear[view_slice.envs], angular[view_slice.envs] = (velocity[:, 0] for velocity in velocities)


def body_velocities(batch: BatchArrays, slots: Index, bodies: Index, roots: Index) -> tuple[Any, Any]:
    """Return linear [m/s] and angular [rad/s] velocities of k bodies' frames in n slots, `(n, k, 3)` each, env axes.

    `roots` are the bodies at the roots of their trees.
    """
    # cvel is (angular, linear) at the centre of mass of the whole tree: move it to the body's origin
    cvel = batch.read('cvel')[cells(slots, bodies)]
    com = batch.read('subtree_com')[cells(slots, roots)]
    arm = batch.read('xpos')[cells(slots, bodies)] - com
    angular = cvel[..., :3]
    return cvel[..., 3:] + cross(angular, arm), angular
