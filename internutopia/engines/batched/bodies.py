"""Rigid body views in worlds of MuJoCo models, batched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.engines.batched.view import Source, View, ViewContext, ViewSlice, cells
from internutopia.engines.setter_checks import POSITIVE, check_numbers, check_poses, check_velocities
from internutopia.engines.views import Array, BodyView, EnvIds
from internutopia.model.compiled import CompiledScene
from internutopia.model.layouts import BodyLayout
from internutopia.util.errors import EnvValueError
from internutopia.util.rotations import cross, quat_rotate, quat_rotate_inverse


class MujocoBodyView(View, BodyView):
    """A rigid body; `find` gives its layout in a compiled scene, or None."""

    def __init__(self, world: ViewContext, name: str, find: Callable[[CompiledScene], BodyLayout | None]):
        super().__init__(world, find)
        self.name = name

    @override
    def get_poses(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        return self._read('pose', ((3,), (4,)), self._poses, env_ids)

    @override
    def get_velocities(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        return self._read('velocity', ((3,), (3,)), self._velocities, env_ids)

    @override
    def get_masses(self) -> Array:
        def find(part: ViewSlice) -> Source:
            return Source([part.values('body_mass', part.index(part.layout.parts))], lambda masses: (masses.sum(-1),))

        return self._read('mass', ((),), find)[0]

    @override
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        check_poses(env_ids, self.name, positions, orientations)
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
                    f'body {self.name!r} is attached to other bodies: only free or fixed root bodies can be posed'
                )
            whole = target.slots, slice(None)
            if positions is not None:
                target.assign(position, whole, arrays.asarray(positions)[target.rows])
            if orientations is not None:
                quat = arrays.asarray(orientations, arrays.double)[target.rows]
                unit = quat / arrays.xp.linalg.vector_norm(quat, axis=-1, keepdims=True)
                target.assign(orientation, whole, unit)
            target.batch.mark_dirty(target.slots)
            self._world.version += 1

    @override
    def set_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        check_velocities(env_ids, self.name, linear, angular)
        arrays = self._world.arrays
        for target in self._write_targets(env_ids):
            body: BodyLayout = target.view_slice.layout
            if body.dof < 0:
                raise ValueError(f'body {self.name!r} does not move freely: its velocity cannot be set')
            qvel = target.batch.write('qvel')
            if linear is not None:
                where = target.slots, slice(body.dof, body.dof + 3)
                target.assign(qvel, where, arrays.asarray(linear)[target.rows])
            if angular is not None:
                # a free joint's angular velocity is in the body frame
                quat = target.batch.read('qpos')[target.slots, body.qpos + 3 : body.qpos + 7]
                value = arrays.asarray(angular, arrays.double)[target.rows]
                where = target.slots, slice(body.dof + 3, body.dof + 6)
                target.assign(qvel, where, quat_rotate_inverse(quat, value))
            target.batch.mark_dirty(target.slots)
            self._world.version += 1

    @override
    def set_masses(self, env_ids: EnvIds, masses: Any) -> None:
        """ValueError for a body without a mass, whose inertia could not be scaled."""
        check_numbers(env_ids, self.name, 'mass', masses, (), POSITIVE)
        arrays = self._world.arrays
        for target in () if arrays.on_device else self._write_targets(env_ids):
            layout = target.view_slice.layout
            if not target.batch.values('body_mass')[cells(target.slots, layout.parts)].any(axis=-1).all():
                env_id = int(env_ids[target.rows][0])
                raise EnvValueError(env_id, f'env {env_id}: body {self.name!r} has no mass to change')
        new = arrays.xp.broadcast_to(arrays.asarray(masses, arrays.double), (len(env_ids),))
        for target in self._write_targets(env_ids):
            mass, inertia = target.batch.expand('body_mass'), target.batch.expand('body_inertia')
            parts = target.view_slice.index(target.view_slice.layout.parts)
            where = cells(target.slots, parts)
            old = mass[where]
            share = old / old.sum(-1)[:, None]  # exactly 1 of a body of one part
            target.assign(inertia, where, inertia[where] / old[..., None] * (share * new[target.rows, None])[..., None])
            target.assign(mass, where, share * new[target.rows, None])
            target.batch.set_constants(target.slots, target.mask)
            self._world.version += 1

    def _poses(self, view_slice: ViewSlice) -> Source:
        body: BodyLayout = view_slice.layout
        if body.qpos >= 0:
            position, orientation = slice(body.qpos, body.qpos + 3), slice(body.qpos + 3, body.qpos + 7)
            return Source([view_slice.field('qpos', position), view_slice.field('qpos', orientation)])
        if body.mocap >= 0:
            return Source([view_slice.field(name, body.mocap) for name in ('mocap_pos', 'mocap_quat')])
        return Source([view_slice.field(name, body.body) for name in ('xpos', 'xquat')])

    def _velocities(self, view_slice: ViewSlice) -> Source:
        body: BodyLayout = view_slice.layout
        if body.dof >= 0:
            velocity, orientation = slice(body.dof, body.dof + 6), slice(body.qpos + 3, body.qpos + 7)
            return Source(
                [view_slice.field('qvel', velocity), view_slice.field('qpos', orientation)],
                lambda qvel, quat: (qvel[:, :3], quat_rotate(quat, qvel[:, 3:])),
            )
        return Source([]) if body.mocap >= 0 else body_velocities(view_slice, body.body)


def body_velocities(view_slice: ViewSlice, bodies: Any) -> Source:
    """Return the origin of linear [m/s] and angular [rad/s] velocities of bodies' frames, env axes.

    `bodies` are one body of the model or k of them: velocities are `(n, 3)` or `(n, k, 3)` in n slots.
    """
    roots = view_slice.batch.scene.model.body_rootid[bodies]  # of the trees that they belong to
    if isinstance(bodies, np.ndarray):
        bodies, roots = view_slice.index(bodies), view_slice.index(roots)

    def compute(velocity: Any, centre: Any, position: Any) -> tuple[Any, Any]:
        # `cvel` is (angular, linear) at the centre of mass of the whole tree: move it to the body's origin
        angular = velocity[..., :3]
        return velocity[..., 3:] + cross(angular, position - centre), angular

    return Source(
        [view_slice.field('cvel', bodies), view_slice.field('subtree_com', roots), view_slice.field('xpos', bodies)],
        compute,
    )
