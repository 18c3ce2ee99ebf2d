"""Robot views in worlds of MuJoCo models, batched."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.bodies import MujocoBodyView, body_velocities
from internutopia.engines.batched.env_batch import Sight
from internutopia.engines.batched.geometry import bodies_of, chain_of, footprint_of, geoms_of
from internutopia.engines.batched.view import Source, View, ViewContext, ViewSlice, WriteTarget, cells, joints_key
from internutopia.engines.setter_checks import NOT_NEGATIVE, SHARE, TargetCheck, check_numbers, check_velocities
from internutopia.engines.views import LARGEST_NUMBER, Array, ArticulationView, EnvIds
from internutopia.model.compiled import CompiledScene
from internutopia.model.kinematics import KinematicChain, joint_ranges
from internutopia.model.layouts import ArticulationLayout, BodyLayout
from internutopia.model.part_boxes import robot_box
from internutopia.model.spec import SCENE_PREFIX, Probe
from internutopia.util import did_you_mean
from internutopia.util.arrays import is_tensor, namespace_of, to_host

_FORCE_ON_TARGET = (1.0, -1.0, -1.0, -1.0)  # signs of a contact probe's number of contacts and force


class MujocoArticulationView(View, ArticulationView):
    """A robot, or jointed bodies of the scene."""

    def __init__(self, world: ViewContext, layout: ArticulationLayout):
        name, signature = layout.name, layout.signature

        def find(scene: CompiledScene) -> ArticulationLayout | None:
            robot = scene.articulation(name)
            return robot if robot is not None and robot.signature == signature else None

        super().__init__(world, find)
        self.name = name
        self.dof_names = layout.dof_names
        self.body_names = tuple(layout.bodies)
        self.contact_links = layout.contact_links
        self._layout = layout
        self._root = MujocoBodyView(world, name, lambda scene: (r := find(scene)) and r.root)
        self._bodies: dict[str, MujocoBodyView] = {}
        self.target_check = TargetCheck(self)
        self._per_joint = ((len(layout.dof_names),),)  # shapes of what there is one of for each joint

    @override
    def close(self) -> None:
        super().close()
        for body in (self._root, *self._bodies.values()):
            body.close()

    @override
    def get_joint_positions(self, env_ids: EnvIds | None = None) -> Array:
        return self._read('qpos', self._per_joint, self._positions, env_ids)[0]

    @override
    def get_joint_velocities(self) -> Array:
        return self._read('qvel', self._per_joint, self._velocities)[0]

    @override
    def get_joint_efforts(self) -> Array:
        return self._read('effort', self._per_joint, self._efforts)[0]

    @override
    def get_contact_forces(self) -> Array:
        shape = len(self.contact_links), 3

        def find(view_slice: ViewSlice) -> Source:
            forces = view_slice.cells(view_slice.batch.sensors, view_slice.index(view_slice.layout.contacts))
            return Source([forces], lambda forces: ((-forces).reshape(len(forces), *shape),))

        return self._read('contact', (shape,), find)[0]

    @override
    def measure(self, probe: Probe) -> Array:
        if probe not in self._layout.probes:
            raise KeyError(f'the model of robot {self.name!r} has no such probe: {probe}')

        def find(view_slice: ViewSlice) -> Source:
            addresses = view_slice.index(view_slice.layout.probes[probe])
            measured = [view_slice.cells(view_slice.batch.measured, addresses)]
            if probe.kind != 'contact':
                return Source(measured)
            # the engine gives the force of the target on what it touches
            signs = self._world.arrays.constant(_FORCE_ON_TARGET)
            return Source(measured, lambda values: (values * signs + 0.0,))

        return self._read(probe, ((len(self._layout.probes[probe]),),), find)[0]

    @override
    def cast_rays(
        self,
        env_ids: EnvIds,
        origins: Any,
        directions: Any,
        *,
        groups: Sequence[int],
        link: str,
        through_robot: bool = True,
    ) -> Any:
        xp = namespace_of(directions)
        distances = xp.full_like(directions[..., 0], xp.inf)

        def cast(target: WriteTarget) -> None:
            bodies: Mapping[str, BodyLayout] = target.view_slice.layout.bodies
            through = tuple(body.body for body in bodies.values()) if through_robot else (bodies[link].body,)
            sight = Sight(tuple(groups), through)
            rows = target.rows if is_tensor(directions) else to_host(target.rows)
            distances[rows] = target.batch.cast(target.slots, origins[rows], directions[rows], sight)

        self._world.run_batches(
            [(target.batch, functools.partial(cast, target)) for target in self._write_targets(env_ids)]
        )
        return distances

    @override
    def get_root_poses(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        return self._root.get_poses(env_ids)

    @override
    def get_root_velocities(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        return self._root.get_velocities(env_ids)

    @override
    def get_link_poses(self, links: Sequence[str]) -> tuple[Array, Array]:
        names = self._checked_links(links)

        def find(view_slice: ViewSlice) -> Source:
            bodies = view_slice.index(bodies_of(view_slice, names))
            return Source([view_slice.field('xpos', bodies), view_slice.field('xquat', bodies)])

        return self._read(('pose', names), ((len(names), 3), (len(names), 4)), find)

    @override
    def get_link_velocities(self, links: Sequence[str]) -> tuple[Array, Array]:
        names = self._checked_links(links)
        return self._read(
            ('velocity', names),
            ((len(names), 3), (len(names), 3)),
            lambda view_slice: body_velocities(view_slice, bodies_of(view_slice, names)),
        )

    @override
    def set_root_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        self._root.set_poses(env_ids, positions, orientations)

    @override
    def set_root_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        check_velocities(env_ids, self.name, linear, angular)
        if self._layout.root.dof >= 0:
            self._root.set_velocities(env_ids, linear, angular)

    @override
    def set_joint_positions(self, env_ids: EnvIds, positions: Any, joints: Any = slice(None)) -> None:
        check_numbers(env_ids, self.name, 'joint positions', positions)
        self._set_joints('qpos', 'qpos', env_ids, positions, joints)
        if self._layout.driven:
            self.set_targets(env_ids, positions=positions, joints=joints)

    @override
    def set_joint_velocities(self, env_ids: EnvIds, velocities: Any, joints: Any = slice(None)) -> None:
        check_numbers(env_ids, self.name, 'joint velocities', velocities)
        self._set_joints('qvel', 'dof', env_ids, velocities, joints)

    @override
    def set_targets(
        self,
        env_ids: EnvIds,
        positions: Any = None,
        velocities: Any = None,
        efforts: Any = None,
        joints: Any = slice(None),
    ) -> None:
        """ValueError if a joint of a robot with its own actuators takes no such target."""
        arrays, targets = self._world.arrays, self._write_targets(env_ids)
        if not targets:
            return
        for kind, given in (('position', positions), ('velocity', velocities), ('effort', efforts)):
            if given is None:
                continue
            shape = (len(env_ids), len(self._layout.targets[kind][joints]))
            values = arrays.xp.broadcast_to(arrays.asarray(given, arrays.double), shape)
            kept = None
            largest = self.target_check.bounds[joints] if kind == 'position' else LARGEST_NUMBER
            if arrays.on_device or not (np.abs(values) <= largest).all():  # values on a device are not read
                if kind == 'position':
                    self.target_check.check(env_ids, values, joints)
                kept = arrays.xp.isnan(values)
                values = values.clip(-LARGEST_NUMBER, LARGEST_NUMBER)
            for target in targets:
                ctrl, new = target.batch.write('ctrl'), values[target.rows]
                if not self._layout.driven or kept is not None:
                    own_kept = None if kept is None else kept[target.rows]
                    self._assign_targets(target, ctrl, kind, joints, new, own_kept)
                else:
                    ctrl[target.joints(kind, joints)] = new

    @override
    def get_gains(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        def find(view_slice: ViewSlice) -> Source:
            def gains() -> Any:
                return view_slice.batch.values('actuator_gainprm')[..., 0]

            return Source([view_slice.cells(gains, view_slice.joints(kind)) for kind in ('position', 'velocity')])

        self._require_drives()
        return self._read('gains', self._per_joint * 2, find, env_ids)

    @override
    def set_gains(self, env_ids: EnvIds, stiffness: Any = None, damping: Any = None, joints: Any = slice(None)) -> None:
        """ValueError for a robot with its own actuators."""
        self._require_drives()
        check_numbers(env_ids, self.name, 'stiffness', stiffness, allowed=NOT_NEGATIVE, optional=True)
        check_numbers(env_ids, self.name, 'damping', damping, allowed=NOT_NEGATIVE, optional=True)
        arrays, targets = self._world.arrays, self._write_targets(env_ids)
        for kind, values, bias in (('position', stiffness, 1), ('velocity', damping, 2)):
            if values is None:
                continue
            shape = (len(env_ids), len(self._layout.targets[kind][joints]))
            new = arrays.xp.broadcast_to(arrays.asarray(values, arrays.double), shape)
            for target in targets:
                where = target.joints(kind, joints)
                if not arrays.on_device:
                    now = target.batch.values('actuator_gainprm')[..., 0][where]
                    if np.array_equal(now, new[target.rows]):
                        continue  # what the model has already: keep the field shared
                target.assign(target.batch.expand('actuator_gainprm')[..., 0], where, new[target.rows])
                target.assign(target.batch.expand('actuator_biasprm')[..., bias], where, -new[target.rows])
        self._world.version += 1

    @override
    def set_frictions(self, env_ids: EnvIds, coefficients: Any) -> None:
        check_numbers(env_ids, self.name, 'friction', coefficients, (), NOT_NEGATIVE)
        arrays = self._world.arrays
        new = arrays.xp.broadcast_to(arrays.asarray(coefficients, arrays.double), (len(env_ids),))[:, None]
        for target in self._write_targets(env_ids):
            geoms = target.view_slice.once('geoms', lambda target=target: geoms_of(target.view_slice))
            where = cells(target.slots, geoms)
            target.assign(target.batch.expand('geom_friction')[..., 0], where, new[target.rows])

    @override
    def set_footprints(self, env_ids: EnvIds, links: Sequence[str], factors: Any) -> None:
        check_numbers(env_ids, self.name, 'factors of footprints', factors, allowed=SHARE)
        names, arrays = self._checked_links(links), self._world.arrays
        new = arrays.xp.broadcast_to(arrays.asarray(factors, arrays.double), (len(env_ids), 2))
        scale = arrays.xp.concat([new, arrays.xp.ones_like(new[:, :1])], axis=-1)[:, None]
        for target in self._write_targets(env_ids):
            geoms, middles, offsets, halves = self._footprint(target.view_slice, names)
            where = cells(target.slots, geoms)
            target.assign(target.batch.expand('geom_pos'), where, middles + scale[target.rows] * offsets)
            ends = arrays.xp.linalg.vector_norm(scale[target.rows] * halves, axis=-1)
            target.assign(target.batch.expand('geom_size')[..., 1], where, ends)
        self._world.version += 1

    @override
    def set_joint_dynamics(self, env_ids: EnvIds, armature: Any = None, damping: Any = None) -> None:
        check_numbers(env_ids, self.name, 'armature', armature, allowed=NOT_NEGATIVE, optional=True)
        check_numbers(env_ids, self.name, 'damping', damping, allowed=NOT_NEGATIVE, optional=True)
        arrays = self._world.arrays
        for name, values in (('dof_armature', armature), ('dof_damping', damping)):
            if values is None:
                continue
            new = arrays.xp.broadcast_to(arrays.asarray(values, arrays.double), (len(env_ids), len(self.dof_names)))
            for target in self._write_targets(env_ids):
                target.assign(target.batch.expand(name), target.joints('dof'), new[target.rows])
                if name == 'dof_armature':  # other constants follow from it
                    target.batch.set_constants(target.slots, target.mask)
        self._world.version += 1

    @override
    def set_self_collisions(self, env_ids: EnvIds, enabled: bool) -> None:
        if self.name.startswith(SCENE_PREFIX):
            raise ValueError(f'{self.name}: collisions within a scene are set in its file')
        self._world.set_self_collisions(self.name, env_ids, enabled)

    @override
    def set_controls(self, env_ids: EnvIds, controls: Any) -> None:
        check_numbers(env_ids, self.name, 'controls', controls)
        values = self._world.arrays.asarray(controls).clip(-LARGEST_NUMBER, LARGEST_NUMBER)
        for target in self._write_targets(env_ids):
            target.assign(target.batch.write('ctrl'), target.joints('controls'), values[target.rows])

    @property
    @override
    def control_names(self) -> tuple[str, ...]:
        return self._layout.control_names

    @property
    @override
    def control_ranges(self) -> NDArray[np.float64]:
        model, controls = self._somewhere('controls')
        limited = model.actuator_ctrllimited[controls].astype(bool)
        return np.where(limited[:, None], model.actuator_ctrlrange[controls], [-np.inf, np.inf])

    @property
    @override
    def joint_dynamics(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        model, dofs = self._somewhere('dof')
        return model.dof_armature[dofs], model.dof_damping[dofs]

    @property
    @override
    def joint_ranges(self) -> NDArray[np.float64]:
        model, joints = self._somewhere('joint_ids')
        return joint_ranges(model, joints)

    @override
    def body(self, name: str) -> MujocoBodyView:
        self._checked_links([name])
        if name not in self._bodies:
            find = self._find
            self._bodies[name] = MujocoBodyView(
                self._world, name, lambda scene: (robot := find(scene)) and robot.bodies[name]
            )
        return self._bodies[name]

    @override
    def box(self, env_id: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        poses = (to_host(values)[env_id] for values in self.get_link_poses(self.body_names))
        links = [body.body for body in self._layout_in(env_id).bodies.values()]
        return robot_box(self._world.scene(env_id).model, links, *poses)

    @override
    def chain(self, base: str, tip: str, env_id: int) -> KinematicChain:
        return chain_of(self._world.scene(env_id).model, self._layout_in(env_id), base, tip)

    def _layout_in(self, env_id: int) -> ArticulationLayout:
        layout = self._world.scene(env_id).articulation(self.name)
        assert layout is not None, f'env {env_id} is none of this view'
        return layout

    def _footprint(self, view_slice: ViewSlice, links: tuple[str, ...]) -> tuple[Any, ...]:
        """The arrays of `footprint_of`, of the kind that the world has."""

        def find() -> tuple[Any, ...]:
            arrays = self._world.arrays
            geoms, *places = footprint_of(view_slice.batch.scene.model, bodies_of(view_slice, links))
            return view_slice.index(geoms), *(arrays.asarray(part, arrays.double) for part in places)

        return view_slice.once(('footprint', links), find)

    def _somewhere(self, address: str) -> tuple[Any, NDArray[np.intp]]:
        """A model that the robot is in now, and what it calls some things of the robot."""
        view_slice = self.slices()[0]
        return view_slice.batch.scene.model, getattr(view_slice.layout, address)

    def _positions(self, view_slice: ViewSlice) -> Source:
        return Source([view_slice.field('qpos', view_slice.joints('qpos'))])

    def _velocities(self, view_slice: ViewSlice) -> Source:
        return Source([view_slice.field('qvel', view_slice.joints('dof'))])

    def _efforts(self, view_slice: ViewSlice) -> Source:
        return Source([view_slice.cells(view_slice.batch.efforts, view_slice.joints('dof'))])

    def _set_joints(self, field: str, address: str, env_ids: EnvIds, values: Any, joints: Any) -> None:
        arrays = self._world.arrays
        shape = (len(env_ids), len(getattr(self._layout, address)[joints]))
        new = arrays.xp.broadcast_to(arrays.asarray(values), shape)
        for target in self._write_targets(env_ids):
            target.assign(target.batch.write(field), target.joints(address, joints), new[target.rows])
            target.batch.mark_dirty(target.slots)
        self._world.version += 1

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

    def _assign_targets(self, target: WriteTarget, ctrl: Any, kind: str, joints: Any, new: Any, kept: Any) -> None:
        """Set targets except the ones to keep. ValueError if a joint takes none of that kind."""
        view_slice = target.view_slice
        if self._layout.driven:
            target.assign(ctrl, target.joints(kind, joints), new, kept)
            return
        columns = view_slice.layout.targets[kind][joints]
        has = columns >= 0
        missing = ~has if kept is None or self._world.arrays.on_device else ~has & ~kept.all(axis=0)
        if missing.any():
            names = ', '.join(np.array(self.dof_names)[joints][missing])
            raise ValueError(
                f'robot {self.name!r} keeps the actuators of its model, and none takes a {kind} target for: {names}'
            )
        if not has.all():
            new, kept = new[:, has], None if kept is None else kept[:, has]
        own = view_slice.once(('own', kind, joints_key(joints)), lambda: view_slice.index(columns[has]))
        target.assign(ctrl, cells(target.slots, own), new, kept)
