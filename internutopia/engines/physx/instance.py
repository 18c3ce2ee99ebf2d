"""Instance of PhysX with some slots of a batch: reads and writes states, drives and masses, for all slots at once.

Poses and velocities are those of MuJoCo: positions of joints are `qpos`, velocities of free bodies are those of their
frame's origin, angular ones in the body's axes. PhysX has the velocity of the centre of mass, in axes of the env.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.bodies import Floats, MassColumns, MassSums
from internutopia.engines.physx.force_sensors import ContactSensor, contact_sensors, joint_force_sensors, point_sensors
from internutopia.engines.physx.prims import BALL
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.physx.tensors import Columns, TensorAccess
from internutopia.util.arrays import ArrayMaker, HostArrays, namespace_of, to_host
from internutopia.util.rotations import cross, length, quat_rotate, quat_rotate_inverse

Rows = Any
"""Slots: their numbers, or on a device a mask `(slots,)`."""


class PhysxInstance:
    """Slots in one instance of PhysX, in which `stage` are copies of what a layout describes.

    States, drives and measurements are `arrays`, as the tensors of the stage; masses and frictions go by the host.
    """

    def __init__(self, layout: StageLayout, stage: TensorAccess, arrays: ArrayMaker | None = None):
        self._stage = stage
        self._arrays = arrays = arrays or HostArrays()
        movers = layout.movers
        self._trees = [_Tree(stage, layout, index, arrays) for index in range(len(movers.articulations))]
        bodies = [*movers.free, *movers.kinematic]
        self._parts = [*self._trees, *([_Standalone(stage, layout, bodies, arrays)] if bodies else [])]
        self._contacts = _Contacts(stage, layout, arrays)
        self._joint_forces = [sensor.on(arrays) for sensor in joint_force_sensors(movers)]
        self._masses: Floats | None = None  # that PhysX has

    def write_state(self, rows: Rows, state: Mapping[str, Floats]) -> None:
        """Write `qpos`, `qvel`, `mocap_pos` and `mocap_quat`, `(count, ...)` each, of some slots."""
        for part in self._parts:
            part.write_state(rows, state)

    def read_state(self, qpos: Floats, qvel: Floats) -> None:
        """Read positions and velocities into arrays `(count, ...)`."""
        for part in self._parts:
            part.read_state(qpos, qvel)

    def write_drives(self, dofs: Mapping[str, Any]) -> None:
        """Write properties of dofs, `(count, nv)` or `(count, nv, k)` each, by the ends of their tensors' names."""
        for tree in self._trees:
            tree.write_dofs(dofs)

    def write_masses(self, fields: Sequence[Floats]) -> None:
        """Write masses, from the fields of models `MASSES`, `(count, ...)` each.

        Slots whose masses have not changed are left out, as PhysX would move their bodies by the last digits.
        """
        values = [to_host(field) for field in fields]
        packed = np.concatenate([array.reshape(len(array), -1) for array in values], axis=1)
        rows = np.arange(len(packed))
        if self._masses is not None:
            rows = np.flatnonzero((packed != self._masses).any(axis=1))
        self._masses = packed
        if not len(rows):
            return
        for part in self._parts:
            part.write_masses(rows, values)

    def write_frictions(self, coefficients: Floats) -> None:
        """Write sliding frictions of the model's geoms, `(count, ngeom)`."""
        coefficients = to_host(coefficients)
        for part in self._parts:
            if part.shapes is not None:
                part.shapes.write(coefficients)

    def measured(self) -> Iterator[tuple[Rows, Floats]]:
        """Yield columns of `sensordata` and what sensors of contacts and joint forces measure there."""
        yield from self._contacts.read()
        for sensor in self._joint_forces:
            for tree in self._trees:
                if sensor.link in tree.movers:
                    yield self._arrays.index(sensor.columns), sensor.values(tree.joint_forces(sensor.link))


class _Contacts:
    """Contact sensors in all slots."""

    def __init__(self, stage: TensorAccess, layout: StageLayout, arrays: ArrayMaker):
        self._arrays = arrays
        sensors = contact_sensors(layout.movers.model, layout.colliders)
        self._plain = [sensor for sensor in sensors if not sensor.against]
        paths = list(dict.fromkeys(path for sensor in self._plain for path in sensor.paths))
        self._places = [arrays.index([paths.index(path) for path in sensor.paths]) for sensor in self._plain]
        self._forces = stage.contact_forces(paths) if paths else None
        self._filtered = [
            (sensor, stage.contact_forces(sensor.paths, sensor.against)) for sensor in sensors if sensor.against
        ]
        self._points = [
            (address, stage.contact_points(paths, most))
            for address, most, paths in point_sensors(layout.movers.model, layout.colliders)
        ]

    def read(self) -> Iterator[tuple[Rows, Floats]]:
        if self._forces is not None:
            forces = self._forces.read()
            for sensor, places in zip(self._plain, self._places, strict=True):
                yield self._measured(sensor, forces[:, places])
        for sensor, filtered in self._filtered:
            yield self._measured(sensor, filtered.read())
        for address, points in self._points:
            values = points.read()
            values = values.reshape(len(values), -1)
            yield self._arrays.index(address + np.arange(values.shape[1])), values

    def _measured(self, sensor: ContactSensor, forces: Floats) -> tuple[Rows, Floats]:
        """Return columns of a sensor and its values, from forces on its colliders; MuJoCo's are those on the others."""
        net, address = -forces.sum(axis=1), sensor.address
        if not sensor.counts:
            return self._arrays.index(address + np.arange(3)), net
        xp = self._arrays.xp
        touching = xp.astype((forces != 0).reshape(len(forces), -1).any(axis=1), net.dtype)[:, None]
        return self._arrays.index(address - 1 + np.arange(4)), xp.concat([touching, net], axis=1)


class _Tree:
    """An articulation in all slots."""

    def __init__(self, stage: TensorAccess, layout: StageLayout, index: int, arrays: ArrayMaker):
        self._stage, self._path, self._arrays = stage, layout.roots[index], arrays
        tree, model = layout.movers.articulations[index], layout.movers.model
        self._pose, self._velocity = self._bind('ROOT_POSE'), None
        self._position, self._speed = self._bind('DOF_POSITION'), self._bind('DOF_VELOCITY')
        names = [name[1:].split(':') for name in self._position.names()]  # `j3`, or of a ball joint `j3:0`
        joints = np.array([int(name[0]) for name in names], np.intp)
        axes = np.array([int(name[-1]) if len(name) > 1 else 0 for name in names], np.intp)
        self._qpos, self._dof = arrays.index(model.jnt_qposadr[joints]), arrays.index(model.jnt_dofadr[joints] + axes)
        self._reference = arrays.asarray(model.qpos0[model.jnt_qposadr[joints]], arrays.double)
        balls = np.flatnonzero((model.jnt_type[joints] == BALL) & (axes == 0))
        self._balls = _columns(arrays, balls, 3), _columns(arrays, model.jnt_qposadr[joints[balls]], 4)
        links = self._position.links()
        self._links = np.array([k for k, name in enumerate(links) if name[0] == 'b' and name != 'base'], np.intp)
        self.movers = movers = [int(links[k][1:]) for k in self._links]
        self._sums = MassSums(layout.movers, movers)
        self._root = movers.index(tree.root) if tree.root else -1
        self._free = slice(0) if tree.fixed else _slice(model.jnt_qposadr[model.body_jntadr[tree.root]], 7)
        self._free_dof = slice(0) if tree.fixed else _slice(model.jnt_dofadr[model.body_jntadr[tree.root]], 6)
        self._mocap = int(model.body_mocapid[tree.root]) if tree.fixed and tree.root else -1
        if not tree.fixed:
            self._velocity = self._bind('ROOT_VELOCITY')
        geoms = layout.geoms({tree.root, *tree.links})
        self.shapes = _Shapes(self._bind('SHAPE_FRICTION_AND_RESTITUTION'), model, [geoms]) if geoms else None
        self._centre = arrays.zeros((stage.slots, 3), arrays.double)
        self._properties: dict[str, Columns] = {}

    def _bind(self, kind: str) -> Columns:
        return self._stage.columns(f'ARTICULATION_{kind}', [self._path])

    def write_state(self, rows: Rows, state: Mapping[str, Floats]) -> None:
        qpos, qvel = state['qpos'], state['qvel']
        if self._velocity is not None:
            pose, velocity = _to_physx(qpos[:, self._free], qvel[:, self._free_dof], self._centre)
            self._pose.values[:, 0], self._velocity.values[:, 0] = pose, velocity
            self._pose.write(rows)
            self._velocity.write(rows)
        elif self._mocap >= 0:
            self._pose.values[:, 0, :3] = state['mocap_pos'][:, self._mocap]
            self._pose.values[:, 0, 3:] = _xyzw(state['mocap_quat'][:, self._mocap])
            self._pose.write(rows)
        self._position.values[:, 0] = qpos[:, self._qpos] - self._reference
        turns, quats = self._balls
        if len(turns):
            self._position.values[:, 0, turns] = _to_turn(qpos[:, quats])
        self._position.write(rows)
        self._speed.values[:, 0] = qvel[:, self._dof]
        self._speed.write(rows)

    def read_state(self, qpos: Floats, qvel: Floats) -> None:
        position = self._position.read()[:, 0]
        qpos[:, self._qpos] = position + self._reference
        turns, quats = self._balls
        if len(turns):
            qpos[:, quats] = _from_turn(position[:, turns])
        qvel[:, self._dof] = self._speed.read()[:, 0]
        if self._velocity is not None:
            pose, velocity = _from_physx(self._pose.read()[:, 0], self._velocity.read()[:, 0], self._centre)
            qpos[:, self._free], qvel[:, self._free_dof] = pose, velocity

    def write_dofs(self, dofs: Mapping[str, Any]) -> None:
        if not len(self._dof):
            return
        for name, values in dofs.items():
            columns = self._property(f'DOF_{name}')
            columns.values[:, 0] = values[:, self._dof]
            columns.write()

    def write_masses(self, rows: Rows, values: list[Floats]) -> None:
        sums = self._sums.columns(*values)
        mass, centre, inertia = (self._property(f'BODY_{name}') for name in ('MASS', 'COM_POSE', 'INERTIA'))
        for columns in (mass, centre, inertia):
            columns.read()  # of links that are none of the model's, too
        _fill_masses(sums, mass.values[:, 0], centre.values[:, 0], inertia.values[:, 0], self._links)
        for columns in (mass, inertia, centre):  # an inertia resets the axes of the centre
            columns.write(rows)
        if self._root >= 0:
            self._centre[:] = self._arrays.asarray(sums.frames[:, self._root, :3], self._arrays.double)

    def joint_forces(self, link: int) -> Floats:
        """Return force and torque that a link takes from its parent, in the frame of its joint, `(slots, 6)`."""
        forces = self._property('LINK_INCOMING_JOINT_FORCE').read()
        return forces[:, 0, self._links[self.movers.index(link)]]

    def _property(self, kind: str) -> Columns:
        if kind not in self._properties:
            self._properties[kind] = self._bind(kind)
        return self._properties[kind]


class _Standalone:
    """Standalone bodies, free ones first, in all slots."""

    def __init__(self, stage: TensorAccess, layout: StageLayout, bodies: list[int], arrays: ArrayMaker):
        model, free = layout.movers.model, len(layout.movers.free)
        self._arrays, self._free = arrays, free
        joints = model.body_jntadr[layout.movers.free]
        self._qpos = _columns(arrays, model.jnt_qposadr[joints], 7)
        self._dof = _columns(arrays, model.jnt_dofadr[joints], 6)
        self._mocap = arrays.index(model.body_mocapid[layout.movers.kinematic])
        self._paths = [f'r{body}' for body in bodies]
        self._pose = stage.columns('RIGID_BODY_POSE', self._paths)
        self._velocity = stage.columns('RIGID_BODY_VELOCITY', self._paths[:free]) if free else None
        self._sums = MassSums(layout.movers, layout.movers.free)
        self._centre = arrays.zeros((stage.slots, free, 3), arrays.double)
        geoms = [layout.geoms({body}) for body in bodies]
        kind = 'RIGID_BODY_SHAPE_FRICTION_AND_RESTITUTION'
        self.shapes = _Shapes(stage.columns(kind, self._paths), model, geoms) if any(geoms) else None
        self._properties = [
            stage.columns(f'RIGID_BODY_{name}', self._paths[:free]) for name in ('MASS', 'COM_POSE', 'INERTIA') if free
        ]

    def write_state(self, rows: Rows, state: Mapping[str, Floats]) -> None:
        free = self._free
        if self._velocity is not None:
            pose, velocity = _to_physx(state['qpos'][:, self._qpos], state['qvel'][:, self._dof], self._centre)
            self._pose.values[:, :free], self._velocity.values[...] = pose, velocity
        self._pose.values[:, free:, :3] = state['mocap_pos'][:, self._mocap]
        self._pose.values[:, free:, 3:] = _xyzw(state['mocap_quat'][:, self._mocap])
        self._pose.write(rows)
        if self._velocity is not None:
            self._velocity.write(rows)

    def read_state(self, qpos: Floats, qvel: Floats) -> None:
        if self._velocity is None:
            return
        pose, velocity = _from_physx(self._pose.read()[:, : self._free], self._velocity.read(), self._centre)
        qpos[:, self._qpos], qvel[:, self._dof] = pose, velocity

    def write_masses(self, rows: Rows, values: list[Floats]) -> None:
        if not self._free:
            return
        sums = self._sums.columns(*values)
        mass, centre, inertia = self._properties
        _fill_masses(sums, mass.values, centre.values, inertia.values, slice(None))
        for columns in (mass, inertia, centre):  # an inertia resets the axes of the centre
            columns.write(rows)
        self._centre[:] = self._arrays.asarray(sums.frames[..., :3], self._arrays.double)


class _Shapes:
    """Frictions of the shapes of some things. PhysX has shapes in no known order: they are known by their friction.

    Geoms of a thing that had the same friction in the beginning have the same one ever after.
    """

    def __init__(self, columns: Columns, model: mujoco.MjModel, geoms: Sequence[Sequence[int]]):
        self._columns = columns
        self._first = columns.read()[..., 0].copy()
        sliding = [[geom for geom in own if model.geom_condim[geom] > 1] for own in geoms]
        self._kinds = [{float(np.float32(model.geom_friction[geom, 0])): geom for geom in own} for own in sliding]

    def write(self, coefficients: Floats) -> None:
        """Write sliding frictions of geoms, `(slots, ngeom)`, if they changed."""
        frictions = self._columns.read()[..., 0]
        new = frictions.copy()
        for thing, kinds in enumerate(self._kinds):
            for friction, geom in kinds.items():
                own = self._first[:, thing] == np.float32(friction)
                new[:, thing] = np.where(own, coefficients[:, geom, None], new[:, thing])
        if not np.array_equal(new, frictions):
            self._columns.values[..., :2] = new[..., None]
            self._columns.write()


def _slice(start: int, count: int) -> slice:
    return slice(int(start), int(start) + count)


def _fill_masses(
    sums: MassColumns, mass: Floats, centre: Floats, inertia: Floats, links: NDArray[np.intp] | slice
) -> None:
    heavy = sums.masses > 0
    mass[:, links] = np.where(heavy, sums.masses, 1.0)
    centre[:, links] = sums.frames
    moments = np.where(heavy[..., None], sums.moments, 1.0)
    diagonal = np.zeros((*moments.shape, 3))
    diagonal[..., [0, 1, 2], [0, 1, 2]] = moments
    inertia[:, links] = diagonal.reshape(*moments.shape[:-1], 9)


def _to_physx(pose: Floats, velocity: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """Return pose and velocity of free bodies as PhysX has them, from `qpos` `(..., 7)` and `qvel` `(..., 6)`.

    Centres of mass `(..., 3)` are in the frames of the bodies.
    """
    quat, xp = pose[..., 3:], namespace_of(pose)
    angular = quat_rotate(quat, velocity[..., 3:])
    linear = velocity[..., :3] + cross(angular, quat_rotate(quat, centre))
    return xp.concat([pose[..., :3], _xyzw(quat)], axis=-1), xp.concat([linear, angular], axis=-1)


def _from_physx(pose: Floats, velocity: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """Return `qpos` and `qvel` of free bodies, from pose and velocity as PhysX has them."""
    xp = namespace_of(pose)
    pose, velocity = xp.astype(pose, centre.dtype), xp.astype(velocity, centre.dtype)
    quat = xp.concat([pose[..., 6:], pose[..., 3:6]], axis=-1)
    linear, angular = velocity[..., :3], velocity[..., 3:]
    linear = linear - cross(angular, quat_rotate(quat, centre))
    return (
        xp.concat([pose[..., :3], quat], axis=-1),
        xp.concat([linear, quat_rotate_inverse(quat, angular)], axis=-1),
    )


def _to_turn(quat: Floats) -> Floats:
    """Return rotation vectors `(..., 3)` [rad] of quaternions, the shorter way; PhysX has them of ball joints."""
    xp = namespace_of(quat)
    quat = xp.where(quat[..., :1] < 0, -quat, quat)
    size = length(quat[..., 1:])[..., None]
    return quat[..., 1:] * xp.where(size > 0, 2 * xp.atan2(size, quat[..., :1]) / xp.where(size > 0, size, 1.0), 2.0)


def _from_turn(turn: Floats) -> Floats:
    """Return quaternions of rotation vectors [rad]."""
    angle, xp = length(turn)[..., None], namespace_of(turn)
    share = xp.where(angle > 0, xp.sin(angle / 2) / xp.where(angle > 0, angle, 1.0), 0.5)
    return xp.concat([xp.cos(angle / 2), share * turn], axis=-1)


def _xyzw(quat: Floats) -> Floats:
    """Return quaternions with the scalar last."""
    return namespace_of(quat).concat([quat[..., 1:], quat[..., :1]], axis=-1)


def _columns(arrays: ArrayMaker, first: NDArray[np.integer], count: int) -> Any:
    """Return the columns, `(n, count)`, of n things whose first ones are given."""
    return arrays.index((first[:, None] + np.arange(count)).ravel()).reshape(-1, count)
