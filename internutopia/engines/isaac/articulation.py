"""Robot views on Isaac Sim, batched.

Joints and links have the names and the order of the host's model of the robot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.batched.geometry import chain_of
from internutopia.engines.isaac.api import ArticulationHandle
from internutopia.engines.isaac.env_prims import EnvPrims, InitialState
from internutopia.engines.isaac.links import IsaacLinks
from internutopia.engines.isaac.robot_joints import IsaacJoints
from internutopia.engines.isaac.view import IsaacContext, IsaacView, velocity_at
from internutopia.engines.setter_checks import TargetCheck, check_finite, check_orientations
from internutopia.engines.views import Array, ArticulationView, BodyView, EnvIds
from internutopia.model.drives import DRIVE_KINDS
from internutopia.model.kinematics import KinematicChain, joint_ranges
from internutopia.model.part_boxes import robot_box
from internutopia.model.spec import Probe
from internutopia.util.rotations import quat_conjugate, quat_multiply, quat_rotate

_BEHIND = 1e-6  # [m], how far behind a hit a ray goes on that passes through it


class IsaacArticulationView(IsaacView, ArticulationView):
    """A robot, with the structure that it has on `prims`."""

    def __init__(self, world: IsaacContext, name: str, prims: EnvPrims):
        super().__init__(world)
        layout = prims.compiled.robots[name]
        self.name = name
        self.dof_names = layout.dof_names
        self.body_names = tuple(layout.bodies)
        self.contact_links = layout.contact_links
        self._layout = layout
        self._model: mujoco.MjModel = prims.compiled.model
        self._robot = next(robot for robot in prims.spec.robots if robot.name == name)
        self.fixed: bool = layout.root.qpos < 0
        self._root = layout.root.body  # of what has a fixed base, the link below what carries it
        if self.fixed:
            self._root = int(np.flatnonzero(self._model.body_parentid == self._root)[0])
        self.joints = IsaacJoints(world, self._robot, layout, self._find)
        self._by_env = self.joints.by_env
        self.links = IsaacLinks(world, self, prims)
        self._target_check = TargetCheck(self)

    @override
    def get_joint_positions(self) -> Array:
        return self.joints.positions()

    @override
    def get_joint_velocities(self) -> Array:
        return self.joints.velocities()

    @override
    def get_joint_efforts(self) -> Array:
        """Return the efforts that Isaac Sim measures along the joints' axes."""
        return self.joints.efforts()

    @override
    def get_contact_forces(self) -> Array:
        return self.links.contact_forces()

    @override
    def measure(self, probe: Probe) -> Array:
        """Return the measurements of a probe; only those of efforts and of nothing are supported."""
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
            bodies = self._world.env_prims[env_id].compiled.robots[self.name].bodies
            through = [body.body for body in bodies.values()] if through_robot else []
            data, body = self._world.host_data(env_id), bodies[link].body
            distances[row] = _cast_rays(data, origins[row, 0], directions[row], groups, body, through)
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
        check_finite(env_ids, self.name, 'joint positions', positions)
        self.joints.set_positions(env_ids, positions, joints)

    @override
    def set_joint_velocities(self, env_ids: EnvIds, velocities: Any, joints: Any = slice(None)) -> None:
        check_finite(env_ids, self.name, 'joint velocities', velocities)
        self.joints.set_velocities(env_ids, velocities, joints)

    @override
    def set_root_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        check_finite(env_ids, self.name, 'position', positions)
        check_orientations(env_ids, self.name, orientations)
        env_ids = np.asarray(env_ids, np.intp)
        held, rows = self._by_env.rows_of(env_ids)
        own = env_ids[held]
        now = self.get_root_poses()
        position = now[0][own] if positions is None else np.asarray(positions)[held]
        orientation = now[1][own] if orientations is None else np.asarray(orientations, np.float64)[held]
        orientation = orientation / np.linalg.norm(orientation, axis=-1, keepdims=True)
        if self.fixed:
            arm, turn = self._model.body_pos[self._root], self._model.body_quat[self._root]
            position = position + quat_rotate(orientation, np.broadcast_to(arm, position.shape))
            orientation = quat_multiply(orientation, np.broadcast_to(turn, orientation.shape))
        self._handle.set_poses(position + self._world.env_origins[own], orientation, rows[:, 0])
        self._mark_dirty(own)

    @override
    def set_root_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        check_finite(env_ids, self.name, 'linear velocity', linear)
        check_finite(env_ids, self.name, 'angular velocity', angular)
        if self.fixed:
            return
        env_ids = np.asarray(env_ids, np.intp)
        held, rows = self._by_env.rows_of(env_ids)
        own = env_ids[held]
        linear, angular = (
            before[own] if new is None else np.asarray(new)[held]
            for new, before in zip((linear, angular), self.get_root_velocities(), strict=True)
        )
        linear = velocity_at((linear, angular), self.get_root_poses()[1][own], self._model.body_ipos[self._root])
        self._handle.set_velocities(linear, angular, rows[:, 0])
        self._mark_dirty(own)

    @override
    def set_targets(
        self,
        env_ids: EnvIds,
        positions: Any = None,
        velocities: Any = None,
        efforts: Any = None,
        joints: Any = slice(None),
    ) -> None:
        if positions is not None:
            self._target_check.check(env_ids, positions, joints)
        for kind, given in zip(DRIVE_KINDS, (positions, velocities, efforts), strict=True):
            if given is not None:
                self.joints.set_targets(kind, env_ids, given, joints)

    @override
    def get_gains(self) -> tuple[Array, Array]:
        return self.joints.gains()

    @override
    def set_gains(self, env_ids: EnvIds, stiffness: Any = None, damping: Any = None, joints: Any = slice(None)) -> None:
        check_finite(env_ids, self.name, 'stiffness', stiffness)
        check_finite(env_ids, self.name, 'damping', damping)
        self.joints.set_gains(env_ids, stiffness, damping, joints)

    @override
    def set_frictions(self, env_ids: EnvIds, coefficients: Any) -> None:
        raise NotImplementedError("backend 'isaac_sim' cannot change friction at run time: it belongs to the materials")

    @override
    def set_footprints(self, env_ids: EnvIds, links: Sequence[str], factors: Any) -> None:
        raise NotImplementedError("backend 'isaac_sim' cannot change colliders at run time")

    @override
    def set_joint_dynamics(self, env_ids: EnvIds, armature: Any = None, damping: Any = None) -> None:
        raise NotImplementedError(
            "backend 'isaac_sim' cannot change armature and damping beside the drives at run time"
        )

    @override
    def set_self_collisions(self, env_ids: EnvIds, enabled: bool) -> None:
        """Set whether links collide with each other, until the stage is rebuilt."""
        self._handle.set_self_collisions(enabled, self._by_env.rows_of(env_ids)[1][:, 0])

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
    def joint_dynamics(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        dofs = self._model.jnt_dofadr[self._layout.joint_ids]
        return self._model.dof_armature[dofs], self._model.dof_damping[dofs]

    @property
    @override
    def joint_ranges(self) -> NDArray[np.float64]:
        return joint_ranges(self._model, self._layout.joint_ids)

    @override
    def body(self, name: str) -> BodyView:
        return self.links.body(name)

    @override
    def box(self, env_id: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        compiled = self._world.compiled(env_id)
        poses = (values[env_id] for values in self.get_link_poses(self.body_names))
        links = [body.body for body in compiled.robots[self.name].bodies.values()]
        return robot_box(compiled.model, links, *poses)

    @override
    def chain(self, base: str, tip: str, env_id: int) -> KinematicChain:
        compiled = self._world.compiled(env_id)
        return chain_of(compiled.model, compiled.robots[self.name], base, tip)

    def holds(self, prims: EnvPrims) -> bool:
        """Return whether an env with these prims has the robot."""
        robot = prims.compiled.robots.get(self.name)
        return robot is not None and robot.signature == self._layout.signature

    def reset(self, env_ids: EnvIds, initial_states: list[InitialState]) -> None:
        """Start episodes: poses and joint positions of the scene specs, targets and gains of their drives, at rest."""
        initial = [(state, state.prims.compiled.robots[self.name]) for state in initial_states]
        self.links.masses.reset(env_ids)
        self.joints.reset_drives(env_ids, initial)
        # the body at its root, which for a fixed base is what carries the robot
        position, orientation = (
            np.stack([getattr(state.data, name)[robot.root.body] for state, robot in initial])
            for name in ('xpos', 'xquat')
        )
        self.set_root_poses(env_ids, position, orientation)
        self.set_root_velocities(env_ids, np.zeros_like(position), np.zeros_like(position))
        joints = np.stack([state.fields['qpos'][robot.qpos] for state, robot in initial])
        self.joints.move(env_ids, joints, np.zeros_like(joints))
        if self._robot.self_collisions is not None:
            self.set_self_collisions(env_ids, self._robot.self_collisions)

    def get_state(self, env_ids: EnvIds) -> dict[str, NDArray[np.float32]]:
        """Return the state of some envs, which all hold the robot; a copy."""
        position, orientation = self.get_root_poses()
        linear, angular = self.get_root_velocities()
        arrays = {
            **{'position': position, 'orientation': orientation, 'linear': linear, 'angular': angular},
            **self.joints.get_state(),
            'masses': self.links.all_masses(),
        }
        return {name: array[env_ids] for name, array in arrays.items()}

    def set_state(self, env_ids: EnvIds, state: dict[str, NDArray[np.float32]]) -> None:
        """Give envs a state that `get_state` returned for them or others like them; what has diverged stays."""
        fine = np.logical_and.reduce(
            [np.isfinite(array).reshape(len(array), -1).all(axis=1) for array in state.values()]
        )
        env_ids, state = np.asarray(env_ids)[fine], {name: array[fine] for name, array in state.items()}
        self.joints.set_drives(env_ids, state)
        self.links.set_all_masses(env_ids, state['masses'])
        self.set_root_poses(env_ids, state['position'], state['orientation'])
        self.set_root_velocities(env_ids, state['linear'], state['angular'])
        self.joints.move(env_ids, state['joints'], state['speeds'])

    def on_new_stage(self) -> None:
        """Write the robot's settings to a new stage."""
        self.links.masses.drop()
        self.joints.on_new_stage()

    def finite(self) -> NDArray[np.bool_]:
        """Return whether the state of each env is finite, `(env_num,)`; True for those without the robot."""
        if not self._anywhere():
            return np.ones(self._world.env_num, bool)
        arrays = (*self.get_root_poses(), self.get_joint_positions(), self.get_joint_velocities())
        fine = np.logical_and.reduce([np.isfinite(array).all(axis=-1) for array in arrays])
        return fine | (self._by_env.rows[:, 0] < 0)

    @override
    def _anywhere(self) -> bool:
        return bool(self._by_env.envs.size)

    @property
    def _handle(self) -> ArticulationHandle:
        return self._by_env.handle

    def _find(self, prims: EnvPrims) -> tuple[str, ...] | None:
        return (prims.robot(self.name),) if self.holds(prims) else None

    def _fill_poses(self, buffers: tuple[Array, ...]) -> None:
        positions, orientations = self._handle.poses()
        if self.fixed:  # the pose of what carries the robot
            turn = quat_conjugate(np.broadcast_to(self._model.body_quat[self._root], orientations.shape))
            orientations = quat_multiply(orientations, turn)
            arm = np.broadcast_to(self._model.body_pos[self._root], positions.shape)
            positions = positions - quat_rotate(orientations, arm)
        for buffer, values in zip(buffers, (positions, orientations), strict=True):
            self._by_env.scatter(buffer[:, None], values)
        envs = self._by_env.envs
        buffers[0][envs] -= self._world.env_origins[envs]

    def _fill_velocities(self, buffers: tuple[Array, ...]) -> None:
        if self.fixed:
            return
        for buffer, values in zip(buffers, self._handle.velocities(), strict=True):
            self._by_env.scatter(buffer[:, None], values)
        envs = self._by_env.envs
        now = buffers[0][envs], buffers[1][envs]
        buffers[0][envs] = velocity_at(now, self.get_root_poses()[1][envs], -self._model.body_ipos[self._root])


def _cast_rays(
    data: mujoco.MjData,
    origin: NDArray[np.float64],
    directions: NDArray[np.float64],
    groups: Sequence[int],
    body: int,
    through: Sequence[int],
) -> NDArray[np.float64]:
    """Return the distances `(rays,)` [m] to the first geom of some geom groups in an env, infinite for a miss.

    Rays begin at `origin` `(3,)` and have unit vectors `(rays, 3)`; they do not see the body `body`, and pass through
    the bodies `through`.
    """
    model = data.model
    seen = np.isin(np.arange(mujoco.mjNGROUP), groups).astype(np.uint8)
    count = len(directions)
    distances, geoms = np.zeros(count), np.zeros(count, np.int32)
    vectors = np.ascontiguousarray(directions, np.float64).reshape(-1)
    mujoco.mj_multiRay(model, data, origin, vectors, seen, True, body, geoms, distances, None, count, mujoco.mjMAXVAL)
    passes = np.append(np.isin(model.geom_bodyid, through), False)  # the last one is for geom -1, a miss
    geom = np.zeros(1, np.int32)
    for ray in np.flatnonzero(passes[geoms]).tolist():
        geom[0], direction = geoms[ray], directions[ray]
        while passes[geom[0]]:
            distances[ray] += _BEHIND
            begin = origin + distances[ray] * direction
            distances[ray] += mujoco.mj_ray(model, data, begin, direction, seen, True, body, geom)
        geoms[ray] = geom[0]
    distances[geoms < 0] = np.inf
    return distances
