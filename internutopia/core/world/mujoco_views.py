"""Batched views of robots and bodies in the CPU world.

A view knows in which groups its robot or body lives (its segments) and where in `qpos`, `ctrl`, ... Reading gathers the
columns of every segment into one `(env_num, ...)` float32 buffer, once per state version; writing scatters rows. Where
addresses are contiguous they are slices, so that the common case, one group with every env in order, copies blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.compiled import ArticulationLayout, BodyLayout, CompiledScene
from internutopia.core.util import did_you_mean
from internutopia.core.util.rotations import quat_rotate, quat_rotate_inverse
from internutopia.core.world.base import Array, ArticulationView, BodyView, EnvIds
from internutopia.core.world.mujoco_group import Group, Index, as_index

if TYPE_CHECKING:
    from internutopia.core.world.mujoco import MujocoWorld


@dataclass(frozen=True)
class Segment:
    """The envs of one group that hold what a view shows; `rows` are slots of the group, `envs` rows of the view."""

    group: Group
    rows: Index
    envs: Index
    layout: Any
    _targets: dict[tuple[str, object], Index] = field(default_factory=dict)

    @cached_property
    def columns(self) -> dict[str, Index]:
        """Addresses of a robot's joints in `qpos` and among the dofs, and of its own actuators in `ctrl`."""
        return {address: as_index(getattr(self.layout, address)) for address in ('qpos', 'dof', 'controls')}

    def targets(self, kind: str, joints: Any) -> Index:
        """Addresses in `ctrl` of the actuators of some joints that take targets of a kind."""
        key = kind, joints.tobytes() if isinstance(joints, np.ndarray) else repr(joints)
        if key not in self._targets:
            self._targets[key] = as_index(self.layout.targets[kind][joints])
        return self._targets[key]


def cells(rows: Index, columns: Index) -> tuple[Any, Any]:
    """Index of a rectangle of cells."""
    if isinstance(rows, slice) or isinstance(columns, slice):
        return rows, columns
    return rows[:, None], columns


class _Buffers:
    """Arrays `(env_num, width)` that are filled again after every change of the world, and what others see of them."""

    def __init__(self, env_num: int, widths: tuple[int, ...]):
        self.version = -1
        self.arrays = tuple(np.zeros((env_num, width), np.float32) for width in widths)
        self.shown = tuple(array.view() for array in self.arrays)
        for array in self.shown:
            array.flags.writeable = False


class _View:
    """Segments and cached buffers, shared by both kinds of view."""

    def __init__(self, world: MujocoWorld, find: Callable[[CompiledScene], Any]):
        self._world = world
        self._find = find
        self._segments: list[Segment] = []
        self._places = b''  # the world's layout when the segments were found
        self._last_rows: list[tuple[Segment, Index, Index]] = []
        self._rows_key = (b'', b'')
        self._buffers: dict[str, _Buffers] = {}

    def segments(self) -> list[Segment]:
        """Where the view's rows live; recomputed after envs moved."""
        if self._places != self._world.layout:
            self._places = self._world.layout
            self._segments = []
            for group in self._world.groups:
                # a group's models have equal structure, names included: one layout serves all its envs
                layout = self._find(group.scene)
                if layout is not None and group.occupied is not None:
                    self._segments.append(Segment(group, *group.occupied, layout))
        return self._segments

    def _rows(self, env_ids: EnvIds) -> list[tuple[Segment, Index, Index]]:
        """For each segment that holds some of the envs: its slots and which rows of the caller's values they are.

        Envs that do not hold what the view shows (any more) are left out.
        """
        env_ids = np.asarray(env_ids, np.intp)
        key = self._world.layout, env_ids.tobytes()
        if key != self._rows_key:  # most callers ask for the same envs again and again
            self._rows_key, self._last_rows = key, list(self._find_rows(env_ids))
        return self._last_rows

    def _find_rows(self, env_ids: EnvIds) -> Iterator[tuple[Segment, Index, Index]]:
        groups = self._world.group_id[env_ids]
        for segment in self.segments():
            mine = groups == segment.group.id
            if mine.all():
                yield segment, as_index(self._world.slot[env_ids]), slice(None)
            elif mine.any():
                yield segment, as_index(self._world.slot[env_ids[mine]]), np.flatnonzero(mine)

    def _cached(self, key: str, widths: tuple[int, ...], fill: Callable[[Segment, tuple[Array, ...]], None]) -> Any:
        """Buffers `(env_num, width)` for `key`, filled from every segment once per state version."""
        buffers = self._buffers.get(key)
        if buffers is None:
            buffers = self._buffers[key] = _Buffers(self._world.env_num, widths)
        if buffers.version != self._world.version:
            for segment in self.segments():
                fill(segment, buffers.arrays)
            buffers.version = self._world.version
        return buffers.shown

    def _changed(self, group: Group, slots: Index) -> None:
        group.touched(slots)
        self._world.version += 1


class MujocoBodyView(_View, BodyView):
    """A rigid body; `find` gives its layout in a compiled scene, or None."""

    def __init__(self, world: MujocoWorld, name: str, find: Callable[[CompiledScene], BodyLayout | None]):
        super().__init__(world, find)
        self.name = name

    def get_poses(self) -> tuple[Array, Array]:
        """See `BodyView`."""
        return self._cached('pose', (3, 4), self._fill_poses)

    def get_velocities(self) -> tuple[Array, Array]:
        """See `BodyView`."""
        return self._cached('velocity', (3, 3), self._fill_velocities)

    def get_masses(self) -> Array:
        """See `BodyView`."""

        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            values = segment.group.values('body_mass')
            buffers[0][segment.envs, 0] = values[segment.rows, segment.layout.body]

        return self._cached('mass', (1,), fill)[0][:, 0]

    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """See `BodyView`."""
        for segment, slots, mine in self._rows(env_ids):
            body: BodyLayout = segment.layout
            if body.qpos >= 0:
                qpos = segment.group.read('qpos')
                position, orientation = qpos[:, body.qpos : body.qpos + 3], qpos[:, body.qpos + 3 : body.qpos + 7]
            elif body.mocap >= 0:
                position = segment.group.read('mocap_pos')[:, body.mocap]
                orientation = segment.group.read('mocap_quat')[:, body.mocap]
            else:
                raise ValueError(
                    f'body {self.name!r} hangs on other bodies: only free or fixed root bodies can be posed'
                )
            if positions is not None:
                position[slots] = np.asarray(positions)[mine]
            if orientations is not None:
                quat = np.asarray(orientations, np.float64)[mine]
                orientation[slots] = quat / np.linalg.norm(quat, axis=-1, keepdims=True)
            self._changed(segment.group, slots)

    def set_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        """See `BodyView`."""
        for segment, slots, mine in self._rows(env_ids):
            body: BodyLayout = segment.layout
            if body.dof < 0:
                raise ValueError(f'body {self.name!r} does not move freely: its velocity cannot be set')
            qvel = segment.group.read('qvel')
            if linear is not None:
                qvel[slots, body.dof : body.dof + 3] = np.asarray(linear)[mine]
            if angular is not None:
                # a free joint's angular velocity is in the body frame
                quat = segment.group.read('qpos')[slots, body.qpos + 3 : body.qpos + 7]
                value = np.asarray(angular, np.float64)[mine]
                qvel[slots, body.dof + 3 : body.dof + 6] = quat_rotate_inverse(quat, value)
            self._changed(segment.group, slots)

    def set_masses(self, env_ids: EnvIds, masses: Any) -> None:
        """See `BodyView`."""
        for segment, slots, mine in self._rows(env_ids):
            mass, inertia = segment.group.expand('body_mass'), segment.group.expand('body_inertia')
            new = np.broadcast_to(np.asarray(masses, np.float64), (len(env_ids),))[mine]
            inertia[slots, segment.layout.body] *= (new / mass[slots, segment.layout.body])[:, None]
            mass[slots, segment.layout.body] = new
            segment.group.set_constants(slots)
            self._world.version += 1

    def _fill_poses(self, segment: Segment, buffers: tuple[Array, ...]) -> None:
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

    def _fill_velocities(self, segment: Segment, buffers: tuple[Array, ...]) -> None:
        body: BodyLayout = segment.layout
        linear, angular = buffers
        group, rows = segment.group, segment.rows
        if body.dof >= 0:
            qvel = group.read('qvel')[rows, body.dof : body.dof + 6]
            linear[segment.envs] = qvel[:, :3]
            angular[segment.envs] = quat_rotate(group.read('qpos')[rows, body.qpos + 3 : body.qpos + 7], qvel[:, 3:])
        elif body.mocap < 0:
            # cvel is (angular, linear) at the centre of mass of the whole tree: move it to the body's origin
            cvel = group.read('cvel')[rows, body.body]
            root = group.scene.model.body_rootid[body.body]
            arm = group.read('xpos')[rows, body.body] - group.read('subtree_com')[rows, root]
            (wx, wy, wz), (ax, ay, az) = cvel[:, :3].T, arm.T  # by columns: np.cross takes much longer
            linear[segment.envs] = cvel[:, 3:] + np.stack(
                [wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax], axis=-1
            )
            angular[segment.envs] = cvel[:, :3]


class MujocoArticulationView(_View, ArticulationView):
    """A robot."""

    def __init__(self, world: MujocoWorld, layout: ArticulationLayout):
        name, signature = layout.name, layout.signature

        def find(scene: CompiledScene) -> ArticulationLayout | None:
            robot = scene.robots.get(name)
            return robot if robot is not None and robot.signature == signature else None

        super().__init__(world, find)
        self.name = name
        self.dof_names = layout.dof_names
        self.body_names = tuple(layout.bodies)
        self.contact_links = layout.contact_links
        self._layout = layout
        self._root = MujocoBodyView(world, name, lambda scene: (r := find(scene)) and r.root)
        self._bodies: dict[str, MujocoBodyView] = {}

    def get_joint_positions(self) -> Array:
        """See `ArticulationView`."""
        return self._joint_values('qpos', 'qpos')

    def get_joint_velocities(self) -> Array:
        """See `ArticulationView`."""
        return self._joint_values('qvel', 'dof')

    def get_joint_efforts(self) -> Array:
        """See `ArticulationView`."""

        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            buffers[0][segment.envs] = segment.group.efforts[cells(segment.rows, segment.columns['dof'])]

        return self._cached('effort', (len(self.dof_names),), fill)[0]

    def get_contact_forces(self) -> Array:
        """See `ArticulationView`."""

        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            buffers[0][segment.envs] = -segment.group.sensors[cells(segment.rows, segment.layout.contacts)]

        width = len(self._layout.contacts)
        return self._cached('contact', (width,), fill)[0].reshape(self._world.env_num, width // 3, 3)

    def get_root_poses(self) -> tuple[Array, Array]:
        """See `ArticulationView`."""
        return self._root.get_poses()

    def get_root_velocities(self) -> tuple[Array, Array]:
        """See `ArticulationView`."""
        return self._root.get_velocities()

    def set_root_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """See `ArticulationView`."""
        self._root.set_poses(env_ids, positions, orientations)

    def set_root_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        """See `ArticulationView`."""
        if self._layout.root.dof >= 0:
            self._root.set_velocities(env_ids, linear, angular)

    def set_joint_positions(self, env_ids: EnvIds, positions: Any, joints: Any = slice(None)) -> None:
        """See `ArticulationView`."""
        self._set_joints('qpos', 'qpos', env_ids, positions, joints)
        if self._layout.driven:
            self.set_targets(env_ids, positions=positions, joints=joints)

    def set_joint_velocities(self, env_ids: EnvIds, velocities: Any, joints: Any = slice(None)) -> None:
        """See `ArticulationView`."""
        self._set_joints('qvel', 'dof', env_ids, velocities, joints)

    def set_targets(
        self,
        env_ids: EnvIds,
        positions: Any = None,
        velocities: Any = None,
        efforts: Any = None,
        joints: Any = slice(None),
    ) -> None:
        """See `ArticulationView`. ValueError if a joint of a robot with its own actuators takes no such target."""
        for kind, values in (('position', positions), ('velocity', velocities), ('effort', efforts)):
            if values is None:
                continue
            values = np.broadcast_to(np.asarray(values), (len(env_ids), len(self._layout.targets[kind][joints])))
            kept = np.isnan(values)
            some_kept = kept.any()
            for segment, slots, mine in self._rows(env_ids):
                new, keep = values[mine], kept[mine]
                if self._layout.driven:
                    where = cells(slots, segment.targets(kind, joints))
                else:
                    columns = segment.layout.targets[kind][joints]
                    self._check_targets(kind, columns, keep, joints)
                    has = columns >= 0
                    where, new, keep = cells(slots, columns[has]), new[:, has], keep[:, has]
                ctrl = segment.group.read('ctrl')
                ctrl[where] = np.where(keep, ctrl[where], new) if some_kept else new

    def get_gains(self) -> tuple[Array, Array]:
        """See `ArticulationView`."""

        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            gains = segment.group.values('actuator_gainprm')[..., 0]
            for buffer, kind in zip(buffers, ('position', 'velocity'), strict=True):
                buffer[segment.envs] = gains[cells(segment.rows, segment.layout.targets[kind])]

        self._require_drives()
        dof = len(self.dof_names)
        return self._cached('gains', (dof, dof), fill)

    def set_gains(self, env_ids: EnvIds, stiffness: Any = None, damping: Any = None, joints: Any = slice(None)) -> None:
        """See `ArticulationView`. ValueError for a robot with its own actuators."""
        self._require_drives()
        for segment, slots, mine in self._rows(env_ids):
            for kind, values, bias in (('position', stiffness, 1), ('velocity', damping, 2)):
                if values is None:
                    continue
                columns = segment.layout.targets[kind][joints]
                new = np.broadcast_to(np.asarray(values, np.float64), (len(env_ids), len(columns)))[mine]
                where = cells(slots, columns)
                if np.array_equal(segment.group.values('actuator_gainprm')[..., 0][where], new):
                    continue  # what the model has already: keep the field shared
                segment.group.expand('actuator_gainprm')[..., 0][where] = new
                segment.group.expand('actuator_biasprm')[..., bias][where] = -new
            self._world.version += 1

    def set_frictions(self, env_ids: EnvIds, coefficients: Any) -> None:
        """See `ArticulationView`."""
        for segment, slots, mine in self._rows(env_ids):
            bodies = [body.body for body in segment.layout.bodies.values()]
            geoms = np.flatnonzero(np.isin(segment.group.scene.model.geom_bodyid, bodies))
            new = np.broadcast_to(np.asarray(coefficients, np.float64), (len(env_ids),))[mine]
            segment.group.expand('geom_friction')[..., 0][cells(slots, geoms)] = new[:, None]

    def set_controls(self, env_ids: EnvIds, controls: Any) -> None:
        """See `ArticulationView`."""
        values = np.asarray(controls)
        for segment, slots, mine in self._rows(env_ids):
            segment.group.read('ctrl')[cells(slots, segment.columns['controls'])] = values[mine]

    @property
    def control_names(self) -> tuple[str, ...]:
        """See `ArticulationView`."""
        return self._layout.control_names

    @property
    def control_ranges(self) -> NDArray[np.float64]:
        """See `ArticulationView`."""
        model = self._model
        limited = model.actuator_ctrllimited[self._layout.controls].astype(bool)
        return np.where(limited[:, None], model.actuator_ctrlrange[self._layout.controls], [-np.inf, np.inf])

    @property
    def joint_ranges(self) -> NDArray[np.float64]:
        """See `ArticulationView`."""
        model, joints = self._model, self._layout.joint_ids
        return np.where(model.jnt_limited[joints].astype(bool)[:, None], model.jnt_range[joints], [-np.inf, np.inf])

    def body(self, name: str) -> MujocoBodyView:
        """See `ArticulationView`."""
        if name not in self._layout.bodies:
            raise KeyError(f'robot {self.name!r} has no link {name!r}; {did_you_mean(name, self.body_names)}')
        if name not in self._bodies:
            find = self._find
            self._bodies[name] = MujocoBodyView(
                self._world, name, lambda scene: (robot := find(scene)) and robot.bodies[name]
            )
        return self._bodies[name]

    @property
    def _model(self) -> Any:
        return self.segments()[0].group.scene.model

    def _joint_values(self, field: str, address: str) -> Array:
        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            buffers[0][segment.envs] = segment.group.read(field)[cells(segment.rows, segment.columns[address])]

        return self._cached(field, (len(self.dof_names),), fill)[0]

    def _set_joints(self, field: str, address: str, env_ids: EnvIds, values: Any, joints: Any) -> None:
        for segment, slots, mine in self._rows(env_ids):
            columns = getattr(segment.layout, address)[joints]
            new = np.broadcast_to(np.asarray(values), (len(env_ids), len(columns)))[mine]
            segment.group.read(field)[cells(slots, columns)] = new
            self._changed(segment.group, slots)

    def _require_drives(self) -> None:
        if not self._layout.driven:
            raise ValueError(
                f'robot {self.name!r} has actuators of its own and no joint drives: their gains belong to its model'
            )

    def _check_targets(self, kind: str, columns: NDArray[np.intp], keep: NDArray[np.bool_], joints: Any) -> None:
        missing = (columns < 0) & ~keep.all(axis=0)
        if missing.any():
            names = ', '.join(np.array(self.dof_names)[joints][missing])
            raise ValueError(
                f'robot {self.name!r} keeps the actuators of its model, and none takes a {kind} target for: {names}'
            )
