"""Robots on Isaac Sim: batched views.

Joints and links have the names and the order of the host's model of the robot; Isaac Sim's order is mapped to it by
name. The drives' targets live here: Isaac Sim forgets them when joints are set, and takes efforts for one substep.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.model.drives import DRIVE_KINDS
from internutopia.core.model.kinematics import KinematicChain
from internutopia.core.model.spec import Probe
from internutopia.core.util.rotations import quat_conjugate, quat_multiply, quat_rotate
from internutopia.core.world.base import Array, ArticulationView, BodyView, EnvIds
from internutopia.core.world.batched.chains import chain_of
from internutopia.core.world.isaac.api import ArticulationHandle
from internutopia.core.world.isaac.assets import called
from internutopia.core.world.isaac.links import IsaacLinks
from internutopia.core.world.isaac.rays import cast_rays
from internutopia.core.world.isaac.stage import EnvPrims
from internutopia.core.world.isaac.view import IsaacView, Placed, moved

if TYPE_CHECKING:
    from internutopia.core.world.isaac.world import IsaacWorld, Start


class IsaacArticulationView(IsaacView, ArticulationView):
    """A robot, with the structure that it has on `plot`."""

    def __init__(self, world: IsaacWorld, name: str, plot: EnvPrims):
        super().__init__(world)
        layout = plot.compiled.robots[name]
        self.name = name
        self.dof_names = layout.dof_names
        self.body_names = tuple(layout.bodies)
        self.contact_links = layout.contact_links
        self._plot = plot
        self._layout = layout
        self._model: mujoco.MjModel = plot.compiled.model
        self._robot = next(robot for robot in plot.model.robots if robot.name == name)
        self.fixed: bool = layout.root.qpos < 0
        self._root = layout.root.body  # of what has a fixed base, the link below what carries it
        if self.fixed:
            self._root = int(np.flatnonzero(self._model.body_parentid == self._root)[0])
        self._placed: Placed[ArticulationHandle] = Placed(world, self._find, self._make)
        self._order: list[int] = []  # columns of the handle by joint
        self.links = IsaacLinks(world, self, plot)
        shape = world.env_num, len(self.dof_names)
        self._targets = {kind: np.zeros(shape, np.float32) for kind in DRIVE_KINDS}
        self._gains = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._pushes = False  # whether there is any effort to be written before each substep

    @override
    def get_joint_positions(self) -> Array:
        return self._joints('position', lambda handle: handle.joint_positions())

    @override
    def get_joint_velocities(self) -> Array:
        return self._joints('velocity', lambda handle: handle.joint_velocities())

    @override
    def get_joint_efforts(self) -> Array:
        """What Isaac Sim measures along the joints' axes."""
        return self._joints('effort', lambda handle: handle.joint_efforts())

    @override
    def get_contact_forces(self) -> Array:
        return self.links.contact_forces()

    @override
    def measure(self, probe: Probe) -> Array:
        """Of probes, those of efforts and of nothing can be had."""
        if probe not in self._layout.probes:
            raise KeyError(f'the model of robot {self.name!r} has no such probe: {probe}')
        if probe.kind == 'frame':
            return np.zeros((self._world.env_num, 0), np.float32)
        if probe.kind != 'effort':
            raise NotImplementedError(f"backend 'isaac_sim' cannot measure the {probe.kind} of {probe.target!r}")
        efforts = self.get_joint_efforts()
        return efforts if not probe.target else efforts[:, [self.dof_names.index(probe.target.rpartition('/')[2])]]

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
    ) -> NDArray[np.float64]:
        distances = np.full(directions.shape[:-1], np.inf)
        for row, env_id in enumerate(np.asarray(env_ids).tolist()):
            bodies = self._world.plots[env_id].compiled.robots[self.name].bodies
            through = [body.body for body in bodies.values()] if through_robot else []
            data, body = self._world.host_data(env_id), bodies[link].body
            distances[row] = cast_rays(data, origins[row, 0], directions[row], groups, body, through)
        return distances

    @override
    def get_root_poses(self) -> tuple[Array, Array]:
        return self._cached('pose', ((3,), (4,)), self._fill_poses)

    @override
    def get_root_velocities(self) -> tuple[Array, Array]:
        return self._cached('velocities', ((3,), (3,)), self._fill_velocities)

    @override
    def get_link_poses(self, links: Sequence[str]) -> tuple[Array, Array]:
        return self.links.poses(tuple(links))

    @override
    def get_link_velocities(self, links: Sequence[str]) -> tuple[Array, Array]:
        return self.links.velocities(tuple(links))

    @override
    def set_joint_positions(self, env_ids: EnvIds, positions: Any, joints: Any = slice(None)) -> None:
        self._set_joints(env_ids, self.get_joint_positions(), positions, joints, 'position')
        # those of the other joints are written, too: Isaac Sim has set them all
        self.set_targets(env_ids, positions=positions, joints=joints)

    @override
    def set_joint_velocities(self, env_ids: EnvIds, velocities: Any, joints: Any = slice(None)) -> None:
        self._set_joints(env_ids, self.get_joint_velocities(), velocities, joints, 'velocity')
        self._write_targets('velocity', env_ids)  # which Isaac Sim has set to the velocities

    @override
    def set_root_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        env_ids = np.asarray(env_ids, np.intp)
        mine, rows = self._placed.of(env_ids)
        own = env_ids[mine]
        now = self.get_root_poses()
        position = now[0][own] if positions is None else np.asarray(positions)[mine]
        orientation = now[1][own] if orientations is None else np.asarray(orientations, np.float64)[mine]
        orientation = orientation / np.linalg.norm(orientation, axis=-1, keepdims=True)
        if self.fixed:
            arm, turn = self._model.body_pos[self._root], self._model.body_quat[self._root]
            position = position + quat_rotate(orientation, np.broadcast_to(arm, position.shape))
            orientation = quat_multiply(orientation, np.broadcast_to(turn, orientation.shape))
        self._handle.set_poses(position + self._world.offsets[own], orientation, rows[:, 0])
        self._touched(own)

    @override
    def set_root_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        if self.fixed:
            return
        env_ids = np.asarray(env_ids, np.intp)
        mine, rows = self._placed.of(env_ids)
        own = env_ids[mine]
        linear, angular = (
            before[own] if new is None else np.asarray(new)[mine]
            for new, before in zip((linear, angular), self.get_root_velocities(), strict=True)
        )
        linear = moved((linear, angular), self.get_root_poses()[1][own], self._model.body_ipos[self._root])
        self._handle.set_velocities(linear, angular, rows[:, 0])
        self._touched(own)

    @override
    def set_targets(
        self,
        env_ids: EnvIds,
        positions: Any = None,
        velocities: Any = None,
        efforts: Any = None,
        joints: Any = slice(None),
    ) -> None:
        env_ids = np.asarray(env_ids, np.intp)
        columns = np.arange(len(self.dof_names))[joints]
        where = env_ids[:, None], columns
        for kind, given in zip(DRIVE_KINDS, (positions, velocities, efforts), strict=True):
            if given is not None:
                targets = self._targets[kind]
                values = np.broadcast_to(np.asarray(given, np.float32), (len(env_ids), len(columns)))
                targets[where] = np.where(np.isnan(values), targets[where], values)
                self._write_targets(kind, env_ids)

    @override
    def get_gains(self) -> tuple[Array, Array]:
        shown = self._gains[0].view(), self._gains[1].view()
        for array in shown:
            array.flags.writeable = False
        return shown

    @override
    def set_gains(self, env_ids: EnvIds, stiffness: Any = None, damping: Any = None, joints: Any = slice(None)) -> None:
        env_ids = np.asarray(env_ids, np.intp)
        columns = np.arange(len(self.dof_names))[joints]
        for gains, given in zip(self._gains, (stiffness, damping), strict=True):
            if given is not None:
                gains[env_ids[:, None], columns] = given
        self._write_gains(env_ids)
        self._world.version += 1

    @override
    def set_frictions(self, env_ids: EnvIds, coefficients: Any) -> None:
        raise NotImplementedError("backend 'isaac_sim' cannot change friction at run time: it belongs to the materials")

    @override
    def set_self_collisions(self, env_ids: EnvIds, enabled: bool) -> None:
        """It lasts until the stage is another one."""
        self._handle.set_self_collisions(enabled, self._placed.of(env_ids)[1][:, 0])

    @override
    def set_controls(self, env_ids: EnvIds, controls: Any) -> None:
        raise NotImplementedError("backend 'isaac_sim' has joint drives only: there are no raw controls to set")

    @property
    @override
    def control_names(self) -> tuple[str, ...]:
        return ()

    @property
    @override
    def control_ranges(self) -> NDArray[np.float64]:
        return np.zeros((0, 2))

    @property
    @override
    def joint_ranges(self) -> NDArray[np.float64]:
        joints = self._layout.joint_ids
        return np.where(self._model.jnt_limited[joints, None] != 0, self._model.jnt_range[joints], [-np.inf, np.inf])

    @override
    def body(self, name: str) -> BodyView:
        return self.links.body(name)

    @override
    def chain(self, base: str, tip: str, env_id: int) -> KinematicChain:
        compiled = self._world.compiled(env_id)
        return chain_of(compiled.model, compiled.robots[self.name], base, tip)

    def holds(self, plot: EnvPrims) -> bool:
        """Whether an env with this on its plot has the robot."""
        robot = plot.compiled.robots.get(self.name)
        return robot is not None and robot.signature == self._layout.signature

    def start(self, env_ids: EnvIds, starts: list[Start]) -> None:
        """Start episodes: poses and joint positions of the scene models, targets and gains of their drives, at rest."""
        places = [(start, start.plot.compiled.robots[self.name]) for start in starts]
        models = [(start.plot.compiled.model, robot) for start, robot in places]
        self.links.masses.reset(env_ids)
        for kind in DRIVE_KINDS:
            self._targets[kind][env_ids] = [start.state['ctrl'][robot.targets[kind]] for start, robot in places]
        for gains, kind in zip(self._gains, DRIVE_KINDS, strict=False):
            gains[env_ids] = [model.actuator_gainprm[robot.targets[kind], 0] for model, robot in models]
        self._write_gains(env_ids)
        # the body at its root, which for a fixed base is what carries the robot
        roots = [robot.root.body for _, robot in places]
        position, orientation = (
            np.stack([getattr(start.data, name)[root] for (start, _), root in zip(places, roots, strict=True)])
            for name in ('xpos', 'xquat')
        )
        self.set_root_poses(env_ids, position, orientation)
        self.set_root_velocities(env_ids, np.zeros_like(position), np.zeros_like(position))
        joints = np.stack([start.state['qpos'][robot.qpos] for start, robot in places])
        self._set_state(env_ids, joints, np.zeros_like(joints))
        if self._robot.self_collisions is not None:
            self.set_self_collisions(env_ids, self._robot.self_collisions)

    def snapshot(self, env_ids: EnvIds) -> dict[str, NDArray[np.float32]]:
        """The state of some envs, which all hold the robot; a copy."""
        position, orientation = self.get_root_poses()
        linear, angular = self.get_root_velocities()
        arrays = {
            **{'position': position, 'orientation': orientation, 'linear': linear, 'angular': angular},
            **{'joints': self.get_joint_positions(), 'speeds': self.get_joint_velocities()},
            **{f'{kind} targets': self._targets[kind] for kind in DRIVE_KINDS},
            **{'stiffness': self._gains[0], 'damping': self._gains[1], 'masses': self.links.all_masses()},
        }
        return {name: array[env_ids] for name, array in arrays.items()}

    def put_back(self, env_ids: EnvIds, saved: dict[str, NDArray[np.float32]]) -> None:
        """Give some envs a state that was taken from them, or from others like them."""
        for kind in DRIVE_KINDS:
            self._targets[kind][env_ids] = saved[f'{kind} targets']
        gains = saved['stiffness'], saved['damping']
        if not np.array_equal([own[env_ids] for own in self._gains], gains):
            self.set_gains(env_ids, *gains)
        self.links.set_all_masses(env_ids, saved['masses'])
        self.set_root_poses(env_ids, saved['position'], saved['orientation'])
        self.set_root_velocities(env_ids, saved['linear'], saved['angular'])
        self._set_state(env_ids, saved['joints'], saved['speeds'])

    def push(self) -> None:
        """Write the efforts, which count for one substep."""
        if self._pushes and self._anywhere():
            self._write_targets('effort', self._placed.envs)
            self._pushes = bool(self._targets['effort'].any())

    def restaged(self) -> None:
        """The stage is another one: tell it the gains."""
        self.links.masses.forget()
        if self._anywhere():
            self._write_gains(self._placed.envs)

    def finite(self) -> NDArray[np.bool_]:
        """Which envs have a state without NaN, `(env_num,)`; those without the robot, too."""
        if not self._anywhere():
            return np.ones(self._world.env_num, bool)
        arrays = (*self.get_root_poses(), self.get_joint_positions(), self.get_joint_velocities())
        fine = np.logical_and.reduce([np.isfinite(array).all(axis=-1) for array in arrays])
        return fine | (self._placed.rows[:, 0] < 0)

    @override
    def _anywhere(self) -> bool:
        return bool(self._placed.envs.size)

    @property
    def _handle(self) -> ArticulationHandle:
        return self._placed.handle

    def _find(self, plot: EnvPrims) -> tuple[str, ...] | None:
        return (plot.robot(self.name),) if self.holds(plot) else None

    def _make(self, paths: list[str]) -> ArticulationHandle:
        handle = self._world.sim.articulations(paths)
        named = [called(name, self.dof_names, self._robot) for name in handle.joint_names]
        if sorted(named) != sorted(self.dof_names):
            raise ValueError(
                f'robot {self.name!r}: Isaac Sim finds the joints {", ".join(handle.joint_names)} in '
                f'{self._robot.asset}, expected {", ".join(self.dof_names)}'
            )
        self._order = [named.index(name) for name in self.dof_names]
        if self._robot.weightless:
            handle.lift_gravity()
        return handle

    def _joints(self, key: str, read: Any) -> Array:
        def fill(buffers: tuple[Array, ...]) -> None:
            values = read(self._handle)
            self._placed.put(buffers[0][:, None], values[:, self._order])

        return self._cached(key, ((len(self.dof_names),),), fill)[0]

    def _native(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of joints in Isaac Sim's order."""
        native = np.empty_like(values)
        native[:, self._order] = values
        return native

    def _set_joints(self, env_ids: EnvIds, now: Array, values: Any, joints: Any, kind: str) -> None:
        env_ids = np.asarray(env_ids, np.intp)
        mine, rows = self._placed.of(env_ids)
        new = now[env_ids]
        new[:, np.arange(len(self.dof_names))[joints]] = values
        write = self._handle.set_joint_positions if kind == 'position' else self._handle.set_joint_velocities
        write(self._native(new[mine]), rows[:, 0])
        self._touched(env_ids[mine])

    def _set_state(self, env_ids: EnvIds, positions: Any, velocities: Any) -> None:
        """Set all joints, leaving the targets as they are known here."""
        _, rows = self._placed.of(env_ids)
        if self.dof_names:
            self._handle.set_joint_positions(self._native(positions), rows[:, 0])
            self._handle.set_joint_velocities(self._native(velocities), rows[:, 0])
            for kind in DRIVE_KINDS:
                self._write_targets(kind, env_ids)
        self._touched(env_ids)

    def _write_targets(self, kind: str, env_ids: EnvIds) -> None:
        env_ids = np.asarray(env_ids, np.intp)
        mine, rows = self._placed.of(env_ids)
        if mine.any() and self.dof_names:
            values = self._targets[kind][env_ids[mine]]
            self._pushes |= kind == 'effort' and bool(values.any())
            self._handle.set_targets(kind, self._native(values), rows[:, 0])

    def _write_gains(self, env_ids: EnvIds) -> None:
        mine, rows = self._placed.of(env_ids)
        if mine.any() and self.dof_names:
            stiffness, damping = (self._native(gains[env_ids[mine]]) for gains in self._gains)
            self._handle.set_gains(stiffness, damping, rows[:, 0])

    def _touched(self, env_ids: EnvIds) -> None:
        self._world.moved[env_ids] = True
        self._world.version += 1

    def _fill_poses(self, buffers: tuple[Array, ...]) -> None:
        positions, orientations = self._handle.poses()
        if self.fixed:  # the pose of what carries the robot
            turn = quat_conjugate(np.broadcast_to(self._model.body_quat[self._root], orientations.shape))
            orientations = quat_multiply(orientations, turn)
            arm = np.broadcast_to(self._model.body_pos[self._root], positions.shape)
            positions = positions - quat_rotate(orientations, arm)
        for buffer, values in zip(buffers, (positions, orientations), strict=True):
            self._placed.put(buffer[:, None], values)
        envs = self._placed.envs
        buffers[0][envs] -= self._world.offsets[envs]

    def _fill_velocities(self, buffers: tuple[Array, ...]) -> None:
        if self.fixed:
            return
        for buffer, values in zip(buffers, self._handle.velocities(), strict=True):
            self._placed.put(buffer[:, None], values)
        envs = self._placed.envs
        now = buffers[0][envs], buffers[1][envs]
        buffers[0][envs] = moved(now, self.get_root_poses()[1][envs], -self._model.body_ipos[self._root])
