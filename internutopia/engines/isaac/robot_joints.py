"""Joints of a robot on Isaac Sim: positions, velocities, efforts, and the targets and gains of their drives.

Joints have the names and the order of the host's model of the robot; Isaac Sim's order is mapped to it by name. The
drives' targets are kept here: Isaac Sim drops them when joints are set, and takes efforts for one substep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.isaac.api import ArticulationHandle
from internutopia.engines.isaac.env_prims import InitialState
from internutopia.engines.isaac.usd_assets import host_name
from internutopia.engines.isaac.view import EnvHandle, IsaacContext, IsaacView, Paths
from internutopia.engines.views import Array, EnvIds
from internutopia.model.drives import DRIVE_KINDS
from internutopia.model.layouts import ArticulationLayout
from internutopia.model.spec import RobotSpec


class IsaacJoints(IsaacView):
    """All joints of a robot; `find` names the prim of the robot."""

    def __init__(self, world: IsaacContext, robot: RobotSpec, layout: ArticulationLayout, find: Paths):
        super().__init__(world)
        self._robot = robot
        self._names = layout.dof_names
        self.by_env: EnvHandle[ArticulationHandle] = EnvHandle(world, find, self._make)
        self._order: list[int] = []  # columns of the handle by joint
        shape = world.env_num, len(self._names)
        self._targets = {kind: np.zeros(shape, np.float32) for kind in DRIVE_KINDS}
        self._gains = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self._has_efforts = False  # whether there is any effort to be written before each substep

    def positions(self) -> Array:
        """Return the positions `(env_num, dof)` [rad or m]."""
        return self._read('position', lambda handle: handle.joint_positions())

    def velocities(self) -> Array:
        """Return the velocities `(env_num, dof)` [rad/s or m/s]."""
        return self._read('velocity', lambda handle: handle.joint_velocities())

    def efforts(self) -> Array:
        """Return the efforts that Isaac Sim measures along the joints' axes, `(env_num, dof)` [N·m or N]."""
        return self._read('effort', lambda handle: handle.joint_efforts())

    def set_positions(self, env_ids: EnvIds, positions: Any, joints: Any) -> None:
        """Set positions `(n, k)` of some joints; position targets follow."""
        self._set(env_ids, self.positions(), positions, joints, self.by_env.handle.set_joint_positions)
        # those of the other joints are written, too: Isaac Sim has set them all
        self.set_targets('position', env_ids, positions, joints)

    def set_velocities(self, env_ids: EnvIds, velocities: Any, joints: Any) -> None:
        """Set velocities `(n, k)` of some joints."""
        self._set(env_ids, self.velocities(), velocities, joints, self.by_env.handle.set_joint_velocities)
        self._write_targets('velocity', env_ids)  # which Isaac Sim has set to the velocities

    def set_targets(self, kind: str, env_ids: EnvIds, values: Any, joints: Any) -> None:
        """Set drive targets `(n, k)` of a kind; NaN entries keep what was set before."""
        env_ids = np.asarray(env_ids, np.intp)
        columns = np.arange(len(self._names))[joints]
        where = env_ids[:, None], columns
        targets = self._targets[kind]
        values = np.broadcast_to(np.asarray(values, np.float32), (len(env_ids), len(columns)))
        targets[where] = np.where(np.isnan(values), targets[where], values)
        self._write_targets(kind, env_ids)

    def gains(self) -> tuple[Array, Array]:
        """Return the stiffness and damping of the drives, `(env_num, dof)` each."""
        shown = self._gains[0].view(), self._gains[1].view()
        for array in shown:
            array.flags.writeable = False
        return shown

    def set_gains(self, env_ids: EnvIds, stiffness: Any = None, damping: Any = None, joints: Any = slice(None)) -> None:
        """Set gains `(n, k)`; None keeps what was set before."""
        env_ids = np.asarray(env_ids, np.intp)
        columns = np.arange(len(self._names))[joints]
        for gains, given in zip(self._gains, (stiffness, damping), strict=True):
            if given is not None:
                gains[env_ids[:, None], columns] = given
        self._write_gains(env_ids)
        self._world.version += 1

    def reset_drives(self, env_ids: EnvIds, initial: list[tuple[InitialState, ArticulationLayout]]) -> None:
        """Give drives the targets and gains that episodes begin with; targets are written with the positions."""
        for kind in DRIVE_KINDS:
            self._targets[kind][env_ids] = [state.fields['ctrl'][robot.targets[kind]] for state, robot in initial]
        for gains, kind in zip(self._gains, DRIVE_KINDS, strict=False):
            gains[env_ids] = [
                state.prims.compiled.model.actuator_gainprm[robot.targets[kind], 0] for state, robot in initial
            ]
        self._write_gains(env_ids)

    def get_state(self) -> dict[str, Array]:
        """Return the state of the joints and their drives, `(env_num, dof)` each."""
        return {
            **{'joints': self.positions(), 'speeds': self.velocities()},
            **{f'{kind} targets': self._targets[kind] for kind in DRIVE_KINDS},
            **{'stiffness': self._gains[0], 'damping': self._gains[1]},
        }

    def set_drives(self, env_ids: EnvIds, state: Mapping[str, NDArray[np.float32]]) -> None:
        """Give drives the targets and gains of a state; targets are written with the positions."""
        for kind in DRIVE_KINDS:
            self._targets[kind][env_ids] = state[f'{kind} targets']
        gains = state['stiffness'], state['damping']
        if not np.array_equal([own[env_ids] for own in self._gains], gains):
            self.set_gains(env_ids, *gains)

    def move(self, env_ids: EnvIds, positions: Any, velocities: Any) -> None:
        """Set all joints, leaving the targets as they are kept here."""
        _, rows = self.by_env.rows_of(env_ids)
        if self._names:
            self.by_env.handle.set_joint_positions(self._native(positions), rows[:, 0])
            self.by_env.handle.set_joint_velocities(self._native(velocities), rows[:, 0])
            for kind in DRIVE_KINDS:
                self._write_targets(kind, env_ids)
        self._mark_dirty(env_ids)

    def write_efforts(self) -> None:
        """Write the efforts, which count for one substep."""
        if self._has_efforts and self._anywhere():
            self._write_targets('effort', self.by_env.envs)
            self._has_efforts = bool(self._targets['effort'].any())

    def on_new_stage(self) -> None:
        """Write the gains to a new stage."""
        if self._anywhere():
            self._write_gains(self.by_env.envs)

    @override
    def _anywhere(self) -> bool:
        return bool(self.by_env.envs.size)

    def _make(self, paths: list[str]) -> ArticulationHandle:
        handle = self._world.sim.articulations(paths)
        named = [host_name(name, self._names, self._robot) for name in handle.joint_names]
        if sorted(named) != sorted(self._names):
            raise ValueError(
                f'robot {self._robot.name!r}: Isaac Sim finds the joints {", ".join(handle.joint_names)} in '
                f'{self._robot.asset}, expected {", ".join(self._names)}'
            )
        self._order = [named.index(name) for name in self._names]
        if self._robot.weightless:
            handle.disable_gravity()
        return handle

    def _read(self, key: str, read: Callable[[ArticulationHandle], NDArray[Any]]) -> Array:
        def fill(buffers: tuple[Array, ...]) -> None:
            values = read(self.by_env.handle)
            self.by_env.scatter(buffers[0][:, None], values[:, self._order])

        return self._cached(key, ((len(self._names),),), fill)[0]

    def _native(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of joints in Isaac Sim's order."""
        native = np.empty_like(values)
        native[:, self._order] = values
        return native

    def _set(self, env_ids: EnvIds, now: Array, values: Any, joints: Any, write: Callable[..., None]) -> None:
        env_ids = np.asarray(env_ids, np.intp)
        held, rows = self.by_env.rows_of(env_ids)
        new = now[env_ids]
        new[:, np.arange(len(self._names))[joints]] = values
        write(self._native(new[held]), rows[:, 0])
        self._mark_dirty(env_ids[held])

    def _write_targets(self, kind: str, env_ids: EnvIds) -> None:
        env_ids = np.asarray(env_ids, np.intp)
        held, rows = self.by_env.rows_of(env_ids)
        if held.any() and self._names:
            values = self._targets[kind][env_ids[held]]
            self._has_efforts |= kind == 'effort' and bool(values.any())
            self.by_env.handle.set_targets(kind, self._native(values), rows[:, 0])

    def _write_gains(self, env_ids: EnvIds) -> None:
        held, rows = self.by_env.rows_of(env_ids)
        if held.any() and self._names:
            stiffness, damping = (self._native(gains[env_ids[held]]) for gains in self._gains)
            self.by_env.handle.set_gains(stiffness, damping, rows[:, 0])
