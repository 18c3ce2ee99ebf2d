"""Robots in worlds of MuJoCo models: batched views."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.compiled import ArticulationLayout, BodyLayout, CompiledScene
from internutopia.core.scene.kinematics import KinematicChain
from internutopia.core.scene.model import Probe
from internutopia.core.util import did_you_mean
from internutopia.core.world.base import Array, ArticulationView, EnvIds
from internutopia.core.world.group import Index
from internutopia.core.world.mujoco_bodies import MujocoBodyView, body_velocities
from internutopia.core.world.mujoco_chains import chain_of
from internutopia.core.world.mujoco_rays import RayCaster
from internutopia.core.world.mujoco_view import Segment, View, cells

if TYPE_CHECKING:
    from internutopia.core.world.grouped import GroupedWorld


_FORCE_ON_TARGET = np.array([1.0, -1.0, -1.0, -1.0])  # signs of a contact probe's number of contacts and force


class MujocoArticulationView(View, ArticulationView):
    """A robot."""

    def __init__(self, world: GroupedWorld, layout: ArticulationLayout):
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

        return self._cached('effort', ((len(self.dof_names),),), fill)[0]

    def get_contact_forces(self) -> Array:
        """See `ArticulationView`."""

        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            forces = -segment.group.sensors[cells(segment.rows, segment.layout.contacts)]
            buffers[0][segment.envs] = forces.reshape(len(forces), len(self.contact_links), 3)

        return self._cached('contact', ((len(self.contact_links), 3),), fill)[0]

    def measure(self, probe: Probe) -> Array:
        """See `ArticulationView`."""
        if probe not in self._layout.probes:
            raise KeyError(f'the model of robot {self.name!r} has no such probe: {probe}')

        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            values = segment.group.measured()[cells(segment.rows, segment.probe(probe))]
            # the engine gives the force of what is asked for on what it touches
            buffers[0][segment.envs] = values * _FORCE_ON_TARGET + 0.0 if probe.kind == 'contact' else values

        return self._cached(probe, ((len(self._layout.probes[probe]),),), fill)[0]

    def cast_rays(
        self,
        env_ids: EnvIds,
        origins: Any,
        directions: Any,
        *,
        groups: Sequence[int],
        link: str,
        through_robot: bool = True,
    ) -> NDArray[np.float64]:
        """See `ArticulationView`."""
        distances = np.full(directions.shape[:-1], np.inf)

        def cast(segment: Segment, slots: Index, mine: Index) -> None:
            bodies: Mapping[str, BodyLayout] = segment.layout.bodies
            through = [body.body for body in bodies.values()] if through_robot else []
            slots = segment.group.ids(slots)
            order = np.argsort(slots)  # the batch wants them in order
            rows = np.arange(len(distances))[mine][order]
            caster = RayCaster(segment.group, slots[order], groups, bodies[link].body)
            distances[rows] = caster.cast(origins[rows], directions[rows], through)

        rows = self._rows(env_ids)
        self._world.share_out([(segment.group, functools.partial(cast, segment, *place)) for segment, *place in rows])
        return distances

    def get_root_poses(self) -> tuple[Array, Array]:
        """See `ArticulationView`."""
        return self._root.get_poses()

    def get_root_velocities(self) -> tuple[Array, Array]:
        """See `ArticulationView`."""
        return self._root.get_velocities()

    def get_link_poses(self, links: Sequence[str]) -> tuple[Array, Array]:
        """See `ArticulationView`."""
        names = self._checked_links(links)

        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            where = cells(segment.rows, segment.links(names))
            for buffer, name in zip(buffers, ('xpos', 'xquat'), strict=True):
                buffer[segment.envs] = segment.group.read(name)[where]

        return self._cached(('pose', names), ((len(names), 3), (len(names), 4)), fill)

    def get_link_velocities(self, links: Sequence[str]) -> tuple[Array, Array]:
        """See `ArticulationView`."""
        names = self._checked_links(links)

        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            velocities = body_velocities(segment.group, segment.rows, segment.links(names))
            for buffer, velocity in zip(buffers, velocities, strict=True):
                buffer[segment.envs] = velocity

        return self._cached(('velocity', names), ((len(names), 3), (len(names), 3)), fill)

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
                ctrl = segment.group.write('ctrl')
                ctrl[where] = np.where(keep, ctrl[where], new) if some_kept else new

    def get_gains(self) -> tuple[Array, Array]:
        """See `ArticulationView`."""

        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            gains = segment.group.values('actuator_gainprm')[..., 0]
            for buffer, kind in zip(buffers, ('position', 'velocity'), strict=True):
                buffer[segment.envs] = gains[cells(segment.rows, segment.layout.targets[kind])]

        self._require_drives()
        dof = len(self.dof_names)
        return self._cached('gains', ((dof,), (dof,)), fill)

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
            segment.group.write('ctrl')[cells(slots, segment.columns['controls'])] = values[mine]

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
        self._checked_links([name])
        if name not in self._bodies:
            find = self._find
            self._bodies[name] = MujocoBodyView(
                self._world, name, lambda scene: (robot := find(scene)) and robot.bodies[name]
            )
        return self._bodies[name]

    def chain(self, base: str, tip: str, env_id: int) -> KinematicChain:
        """See `ArticulationView`."""
        scene = self._world.scene(env_id)
        return chain_of(scene.model, scene.robots[self.name], base, tip)

    @property
    def _model(self) -> Any:
        return self.segments()[0].group.scene.model

    def _joint_values(self, field: str, address: str) -> Array:
        def fill(segment: Segment, buffers: tuple[Array, ...]) -> None:
            buffers[0][segment.envs] = segment.group.read(field)[cells(segment.rows, segment.columns[address])]

        return self._cached(field, ((len(self.dof_names),),), fill)[0]

    def _set_joints(self, field: str, address: str, env_ids: EnvIds, values: Any, joints: Any) -> None:
        for segment, slots, mine in self._rows(env_ids):
            columns = getattr(segment.layout, address)[joints]
            new = np.broadcast_to(np.asarray(values), (len(env_ids), len(columns)))[mine]
            segment.group.write(field)[cells(slots, columns)] = new
            self._changed(segment.group, slots)

    def _checked_links(self, links: Sequence[str]) -> tuple[str, ...]:
        for name in links:
            if name not in self._layout.bodies:
                raise KeyError(f'robot {self.name!r} has no link {name!r}; {did_you_mean(name, self.body_names)}')
        return tuple(links)

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
