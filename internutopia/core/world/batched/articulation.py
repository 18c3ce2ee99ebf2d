"""Robots in worlds of MuJoCo models: batched views."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.model.compiled import ArticulationLayout, BodyLayout, CompiledScene
from internutopia.core.model.kinematics import KinematicChain
from internutopia.core.model.spec import Probe
from internutopia.core.util import did_you_mean
from internutopia.core.world.base import Array, ArticulationView, EnvIds
from internutopia.core.world.batched.bodies import MujocoBodyView, body_velocities
from internutopia.core.world.batched.chains import chain_of
from internutopia.core.world.batched.rays import RayCaster
from internutopia.core.world.batched.view import View, ViewSlice, WriteTarget, cells, joints_key

if TYPE_CHECKING:
    from internutopia.core.world.batched.world import BatchedWorld


_FORCE_ON_TARGET = (1.0, -1.0, -1.0, -1.0)  # signs of a contact probe's number of contacts and force


class MujocoArticulationView(View, ArticulationView):
    """A robot."""

    def __init__(self, world: BatchedWorld, layout: ArticulationLayout):
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

        def fill(segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
            buffers[0][segment.envs] = segment.group.efforts[cells(segment.rows, segment.columns['dof'])]

        return self._cached('effort', ((len(self.dof_names),),), fill)[0]

    def get_contact_forces(self) -> Array:
        """See `ArticulationView`."""

        def fill(segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
            contacts = segment.once('contacts', lambda: segment.layout.contacts)
            forces = -segment.group.sensors[cells(segment.rows, contacts)]
            buffers[0][segment.envs] = forces.reshape(len(forces), len(self.contact_links), 3)

        return self._cached('contact', ((len(self.contact_links), 3),), fill)[0]

    def measure(self, probe: Probe) -> Array:
        """See `ArticulationView`."""
        if probe not in self._layout.probes:
            raise KeyError(f'the model of robot {self.name!r} has no such probe: {probe}')

        def fill(segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
            values = segment.group.measured()[cells(segment.rows, segment.probe(probe))]
            # the engine gives the force of what is asked for on what it touches
            if probe.kind == 'contact':
                values = values * self._world.arrays.constant(_FORCE_ON_TARGET) + 0.0
            buffers[0][segment.envs] = values

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

        def cast(place: WriteTarget) -> None:
            bodies: Mapping[str, BodyLayout] = place.segment.layout.bodies
            through = [body.body for body in bodies.values()] if through_robot else []
            slots = place.group.ids(place.slots)
            order = np.argsort(slots)  # the batch wants them in order
            rows = np.arange(len(distances))[place.mine][order]
            caster = RayCaster(place.group, slots[order], groups, bodies[link].body)
            distances[rows] = caster.cast(origins[rows], directions[rows], through)

        self._world.run_batches([(place.group, functools.partial(cast, place)) for place in self._rows(env_ids)])
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

        def fill(segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
            where = cells(segment.rows, segment.links(names))
            for buffer, name in zip(buffers, ('xpos', 'xquat'), strict=True):
                buffer[segment.envs] = segment.group.read(name)[where]

        return self._cached(('pose', names), ((len(names), 3), (len(names), 4)), fill)

    def get_link_velocities(self, links: Sequence[str]) -> tuple[Array, Array]:
        """See `ArticulationView`."""
        names = self._checked_links(links)

        def fill(segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
            velocities = body_velocities(segment.group, segment.rows, segment.links(names), segment.roots(names))
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
        arrays = self._world.arrays
        for kind, given in (('position', positions), ('velocity', velocities), ('effort', efforts)):
            if given is None:
                continue
            shape = (len(env_ids), len(self._layout.targets[kind][joints]))
            values = arrays.xp.broadcast_to(arrays.asarray(given), shape)
            kept = arrays.xp.isnan(values)
            if not arrays.on_device and not kept.any():  # a device is not asked
                kept = None
            for place in self._rows(env_ids):
                ctrl = place.group.write('ctrl')
                if self._layout.driven:
                    place.put(ctrl, place.segment.targets(kind, joints), values, kept)
                else:
                    self._set_own_targets(place, ctrl, kind, joints, values, kept)

    def get_gains(self) -> tuple[Array, Array]:
        """See `ArticulationView`."""

        def fill(segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
            gains = segment.group.values('actuator_gainprm')[..., 0]
            for buffer, kind in zip(buffers, ('position', 'velocity'), strict=True):
                buffer[segment.envs] = gains[cells(segment.rows, segment.targets(kind, slice(None)))]

        self._require_drives()
        dof = len(self.dof_names)
        return self._cached('gains', ((dof,), (dof,)), fill)

    def set_gains(self, env_ids: EnvIds, stiffness: Any = None, damping: Any = None, joints: Any = slice(None)) -> None:
        """See `ArticulationView`. ValueError for a robot with its own actuators."""
        self._require_drives()
        arrays = self._world.arrays
        for kind, values, bias in (('position', stiffness, 1), ('velocity', damping, 2)):
            if values is None:
                continue
            shape = (len(env_ids), len(self._layout.targets[kind][joints]))
            new = arrays.xp.broadcast_to(arrays.asarray(values, arrays.double), shape)
            for place in self._rows(env_ids):
                columns = place.segment.targets(kind, joints)
                if not arrays.on_device:
                    now = place.group.values('actuator_gainprm')[..., 0][cells(place.slots, columns)]
                    if np.array_equal(now, new[place.mine]):
                        continue  # what the model has already: keep the field shared
                place.put(place.group.expand('actuator_gainprm')[..., 0], columns, new)
                place.put(place.group.expand('actuator_biasprm')[..., bias], columns, -new)
        self._world.version += 1

    def set_frictions(self, env_ids: EnvIds, coefficients: Any) -> None:
        """See `ArticulationView`."""
        arrays = self._world.arrays
        new = arrays.xp.broadcast_to(arrays.asarray(coefficients, arrays.double), (len(env_ids),))[:, None]
        for place in self._rows(env_ids):
            geoms = place.segment.once('geoms', lambda place=place: _geoms(place.segment))
            place.put(place.group.expand('geom_friction')[..., 0], geoms, new)

    def set_self_collisions(self, env_ids: EnvIds, enabled: bool) -> None:
        """See `ArticulationView`."""
        self._world.set_self_collisions(self.name, env_ids, enabled)

    def set_controls(self, env_ids: EnvIds, controls: Any) -> None:
        """See `ArticulationView`."""
        values = self._world.arrays.asarray(controls)
        for place in self._rows(env_ids):
            place.put(place.group.write('ctrl'), place.segment.columns['controls'], values)

    @property
    def control_names(self) -> tuple[str, ...]:
        """See `ArticulationView`."""
        return self._layout.control_names

    @property
    def control_ranges(self) -> NDArray[np.float64]:
        """See `ArticulationView`."""
        model, controls = self._somewhere('controls')
        limited = model.actuator_ctrllimited[controls].astype(bool)
        return np.where(limited[:, None], model.actuator_ctrlrange[controls], [-np.inf, np.inf])

    @property
    def joint_ranges(self) -> NDArray[np.float64]:
        """See `ArticulationView`."""
        model, joints = self._somewhere('joint_ids')
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

    def _somewhere(self, address: str) -> tuple[Any, NDArray[np.intp]]:
        """A model that the robot is in now, and what it calls some things of the robot."""
        segment = self.segments()[0]
        return segment.group.scene.model, getattr(segment.layout, address)

    def _joint_values(self, field: str, address: str) -> Array:
        def fill(segment: ViewSlice, buffers: tuple[Array, ...]) -> None:
            buffers[0][segment.envs] = segment.group.read(field)[cells(segment.rows, segment.columns[address])]

        return self._cached(field, ((len(self.dof_names),),), fill)[0]

    def _set_joints(self, field: str, address: str, env_ids: EnvIds, values: Any, joints: Any) -> None:
        arrays = self._world.arrays
        shape = (len(env_ids), len(getattr(self._layout, address)[joints]))
        new = arrays.xp.broadcast_to(arrays.asarray(values), shape)
        for place in self._rows(env_ids):
            place.put(place.group.write(field), place.segment.joints(address, joints), new)
            self._changed(place)

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

    def _set_own_targets(self, place: WriteTarget, ctrl: Any, kind: str, joints: Any, values: Any, kept: Any) -> None:
        """Set targets of a robot with its own actuators. ValueError if a joint takes none of that kind."""
        columns = place.segment.layout.targets[kind][joints]
        has = columns >= 0
        missing = ~has if kept is None or self._world.arrays.on_device else ~has & ~kept[place.mine].all(axis=0)
        if missing.any():
            names = ', '.join(np.array(self.dof_names)[joints][missing])
            raise ValueError(
                f'robot {self.name!r} keeps the actuators of its model, and none takes a {kind} target for: {names}'
            )
        if not has.all():
            values, kept = values[:, has], None if kept is None else kept[:, has]
        where = place.segment.once((kind, 'own', joints_key(joints)), lambda: columns[has])
        place.put(ctrl, where, values, kept)


def _geoms(segment: ViewSlice) -> NDArray[np.intp]:
    """The geoms of a robot."""
    bodies = [body.body for body in segment.layout.bodies.values()]
    return np.flatnonzero(np.isin(segment.group.scene.model.geom_bodyid, bodies))
