"""Rows of views: prims at several env roots, read and written in world coordinates.

Both generations of view classes are thin layers over these. Values are float32 `(rows, ...)`; `rows` picks some of
them, None means all. Linear velocities are those of centres of mass, as PhysX has them; joints are in its order, those
nearer to the root first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import quat_conjugate, quat_multiply, quat_rotate
from isaac_sim import stage as stages
from isaac_sim.physics import Floats, Physics
from isaac_sim.simulator import Simulator

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
FLT_MAX = float(np.finfo(np.float32).max)  # what PhysX has for a drive without a limit


class Rows:
    """Rows that are valid as long as physics does not start anew and the stage stays what it is."""

    coms: NDArray[np.float64]  # (rows, 3) [m], centres of mass in the frames of the bodies

    def __init__(self, simulator: Simulator, paths: list[str]):
        self.simulator = simulator
        self.paths = paths
        self.physics: Physics = simulator.running_physics()
        if self.physics.stale:
            self.physics.read_stage()
        self._generation = self.physics.generation
        self.envs: NDArray[np.intp] = np.array([self.physics.roots[stages.env_root(path)] for path in paths], np.intp)
        self.offsets = self.physics.offsets[self.envs]

    def _com(self, env: int, body: int) -> NDArray[np.float64]:
        return self.physics.world.model(env).body_ipos[body].copy()

    @property
    def valid(self) -> bool:
        """Whether what is behind the rows is still there."""
        physics = self.physics
        return self.simulator.physics is physics and not physics.stale and physics.generation == self._generation

    def picked(self, rows: Any) -> NDArray[np.intp]:
        """Indices of rows, checked."""
        if not self.valid:
            raise RuntimeError('Simulation view object is invalidated and cannot be used again to call getters/setters')
        if rows is None:
            return np.arange(len(self.paths))
        picked = np.atleast_1d(np.asarray(rows))
        if picked.dtype.kind not in 'iu' or (
            picked.size and not (0 <= picked.min() and picked.max() < len(self.paths))
        ):
            raise IndexError(f'indices {rows!r} are not rows of a view of {len(self.paths)} prims')
        return picked.astype(np.intp)

    def read(self, get: Callable[[], Any], rows: Any) -> Floats:
        """Some rows of what a view of the world has, NaN where physics diverged."""
        picked = self.picked(rows)
        values = np.asarray(get(), np.float32)[self.envs[picked]]
        values[np.isin(self.envs[picked], list(self.physics.broken))] = np.nan
        return values

    def write(self, put: Callable[..., None], rows: Any, **values: Any) -> None:
        """Give values `(len(rows), ...)` to a setter of the world; None values are left out."""
        picked = self.picked(rows)
        given = {name: _sized(name, value, len(picked)) for name, value in values.items() if value is not None}
        if given:
            self.physics.revive(self.envs[picked])
            put(self.envs[picked], **given)

    def at_com(self, linear: Floats, angular: Floats, orientations: Floats, rows: Any, sign: int = 1) -> Floats:
        """Velocities of origins of frames as those of centres of mass, or with `sign` -1 the other way round."""
        arms = quat_rotate(orientations.astype(np.float64), self.coms[self.picked(rows)])
        return (linear + sign * np.cross(angular, arms)).astype(np.float32)

    def local(self, positions: Any, rows: Any) -> Any:
        """World positions in the frames of the envs."""
        if positions is None:
            return None
        return np.asarray(positions, np.float32) - self.offsets[self.picked(rows)].astype(np.float32)

    def world(self, positions: Floats, rows: Any) -> Floats:
        """Positions in the frames of the envs in that of the world."""
        return positions + self.offsets[self.picked(rows)].astype(np.float32)


class ArticulationRows(Rows):
    """Rows of one robot; `paths` are its root links."""

    def __init__(self, simulator: Simulator, paths: list[str]):
        super().__init__(simulator, paths)
        self.view = self.physics.articulation(paths)
        world = self.physics.world
        env = int(self.envs[0])
        model, layout = world.model(env), world.scene(env).robots[self.view.name]
        depths = [_depth(model, int(model.jnt_bodyid[joint])) for joint in layout.joint_ids]
        self.order = np.argsort(depths, kind='stable')
        self.joint_names = [self.view.dof_names[k] for k in self.order]
        self.joint_ranges = np.asarray(self.view.joint_ranges, np.float32)[self.order]
        self.root_link = next(name for name, body in layout.bodies.items() if body.body > 0)
        roots = [world.scene(int(env)).robots[self.view.name].bodies[self.root_link].body for env in self.envs]
        self.coms = np.array([self._com(int(env), body) for env, body in zip(self.envs, roots, strict=True)])
        # where the root link is in the frame that the world moves: what a fixed one hangs on
        fixed = layout.root.qpos < 0
        link = roots[0]
        self._on_root = model.body_pos[link] if fixed else np.zeros(3), model.body_quat[link] if fixed else IDENTITY

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.order)

    def get_poses(self, rows: Any) -> tuple[Floats, Floats]:
        """Of the root links."""
        link = [self.root_link]
        position, orientation = (self.read(lambda k=k: self.view.get_link_poses(link)[k][:, 0], rows) for k in (0, 1))
        return self.world(position, rows), orientation

    def set_poses(self, positions: Any, orientations: Any, rows: Any) -> None:
        """Of the root links; the joints keep their positions. None keeps what is there."""
        self._hold_links()
        positions, orientations = _kept(positions, orientations, self.get_poses(rows))
        position, orientation = self._on_root
        turned = quat_multiply(orientations.astype(np.float64), quat_conjugate(orientation))
        moved = self.local(positions, rows) - quat_rotate(turned, np.broadcast_to(position, (len(turned), 3)))
        self.write(self.view.set_root_poses, rows, positions=moved, orientations=turned)

    def get_velocities(self, rows: Any) -> tuple[Floats, Floats]:
        """Linear and angular, of the root links."""
        linear, angular = (self.read(lambda k=k: self.view.get_root_velocities()[k], rows) for k in (0, 1))
        return self.at_com(linear, angular, self.get_poses(rows)[1], rows), angular

    def set_velocities(self, linear: Any, angular: Any, rows: Any) -> None:
        """Linear and angular, of the root links; None keeps what is there."""
        self._hold_links()
        linear, angular = _kept(linear, angular, self.get_velocities(rows))
        origin = self.at_com(linear, angular, self.get_poses(rows)[1], rows, -1)
        self.write(self.view.set_root_velocities, rows, linear=origin, angular=angular)

    def _hold_links(self) -> None:
        for rows in list(self.physics.link_rows):
            rows.hold()

    def get_joints(self, get: Callable[[], Any], rows: Any, joints: Any) -> Floats:
        """Values `(rows, joints)` of a getter of the world."""
        return self.read(get, rows)[:, self.joints(joints)]

    def joints(self, joints: Any) -> NDArray[np.intp]:
        """What the world calls some joints; indices are checked."""
        if joints is None:
            return self.order
        picked = np.atleast_1d(np.asarray(joints))
        if picked.dtype.kind not in 'iu' or (picked.size and not (0 <= picked.min() <= picked.max() < self.dof)):
            raise IndexError(f'joint_indices {joints!r} are not those of {self.dof} joints')
        return self.order[picked]

    def set_joints(self, put: Callable[..., None], rows: Any, joints: Any, **values: Any) -> None:
        """Give values `(rows, joints)` to a setter of the world."""
        columns = self.joints(joints)
        expected = len(self.picked(rows)), len(columns)
        for name, value in values.items():
            if value is not None and np.shape(value) != expected:
                raise ValueError(f'{name} have shape {np.shape(value)}, expected {expected}')
        self.write(lambda envs, **given: put(envs, joints=columns, **given), rows, **values)

    def set_joint_state(self, kind: Literal['positions', 'velocities'], values: Any, rows: Any, joints: Any) -> None:
        """Set joint positions or velocities; the targets of their kind follow."""
        self._hold_links()
        put = {'positions': self.view.set_joint_positions, 'velocities': self.view.set_joint_velocities}[kind]
        self.set_joints(put, rows, joints, **{kind: values})
        self.set_joints(self.view.set_targets, rows, joints, **{kind: values})

    def get_gains(self, rows: Any, joints: Any) -> tuple[Floats, Floats]:
        """Stiffness and damping of the drives."""
        stiffness, damping = (self.get_joints(lambda k=k: self.view.get_gains()[k], rows, joints) for k in (0, 1))
        return stiffness, damping

    def get_max_efforts(self, rows: Any, joints: Any) -> Floats:
        """Largest forces of the drives; those that are not limited have a large number."""
        picked = self.picked(rows)
        values = np.zeros((len(picked), self.dof), np.float32)
        for row, env in enumerate(self.envs[picked]):
            model, scene = self.physics.world.model(int(env)), self.physics.world.scene(int(env))
            ids = scene.robots[self.view.name].joint_ids
            values[row] = np.where(model.jnt_actfrclimited[ids], model.jnt_actfrcrange[ids, 1], FLT_MAX)
        return values[:, self.joints(joints)]

    def get_link_masses(self, rows: Any, links: Any) -> Floats:
        """`(rows, links)`."""
        names = np.array(self.view.body_names)[slice(None) if links is None else np.asarray(links)]
        return np.stack([self.read(self.view.body(str(name)).get_masses, rows) for name in names], axis=1)

    def set_link_masses(self, masses: Any, rows: Any, links: Any) -> None:
        """`(rows, links)`."""
        names = np.array(self.view.body_names)[slice(None) if links is None else np.asarray(links)]
        for k, name in enumerate(names):
            self.write(self.view.body(str(name)).set_masses, rows, masses=np.asarray(masses)[:, k])

    def targets(self, kind: str, rows: Any, joints: Any) -> Floats:
        """Drive targets of a kind `(rows, joints)`."""
        picked, world = self.picked(rows), self.physics.world
        values = np.zeros((len(picked), self.dof), np.float32)
        for row, env in enumerate(self.envs[picked]):
            batch, slot = world.batch(int(env))
            layout = world.scene(int(env)).robots[self.view.name]
            values[row] = batch.ctrl[slot, layout.targets[kind]]
        return values[:, self.joints(joints)]

    def set_self_collisions(self, flags: Any, rows: Any) -> None:
        """Whether links collide with each other, `(rows,)`."""
        for row, flag in zip(self.picked(rows), np.asarray(flags), strict=True):
            self.view.set_self_collisions(self.envs[row : row + 1], bool(flag))

    def set_weightless(self, weightless: Any, rows: Any, links: Any) -> None:
        """Whether gravity leaves links alone, `(rows, links)`."""
        names = np.array(self.view.body_names)[slice(None) if links is None else np.asarray(links)]
        for row, flags in zip(self.picked(rows), np.asarray(weightless, bool), strict=True):
            env = int(self.envs[row])
            model, bodies = self.physics.world.model(env), self.physics.world.scene(env).robots[self.view.name].bodies
            batch, slot = self.physics.world.batch(env)
            for name, flag in zip(names, flags, strict=True):
                body = bodies[str(name)].body
                batch.xfrc_applied[slot, body, :3] = -model.body_mass[body] * model.opt.gravity * flag


class BodyRows(Rows):
    """Rows of rigid bodies, which may be different ones."""

    def __init__(self, simulator: Simulator, paths: list[str]):
        super().__init__(simulator, paths)
        self.views = self.physics.bodies(paths)
        self.ids = [self.physics.body_id(path) for path in paths]
        self._links = np.array([self.physics.is_link(path) for path in paths])
        self._seen: tuple[int, dict[str, tuple[Floats, Floats]]] = -1, {}
        if self._links.any():
            self.physics.link_rows.add(self)
        self.coms = np.array([self._com(int(env), body) for env, body in zip(self.envs, self.ids, strict=True)])

    def get_poses(self, rows: Any) -> tuple[Floats, Floats]:
        """Of the bodies."""
        position, orientation = self._read('get_poses', rows)
        return self.world(position, rows), orientation

    def get_velocities(self, rows: Any) -> tuple[Floats, Floats]:
        """Linear and angular."""
        linear, angular = self._read('get_velocities', rows)
        return self.at_com(linear, angular, self.get_poses(rows)[1], rows), angular

    def set_poses(self, positions: Any, orientations: Any, rows: Any) -> None:
        """Of bodies that move freely."""
        self._write('set_poses', rows, positions=self.local(positions, rows), orientations=orientations)

    def set_velocities(self, linear: Any, angular: Any, rows: Any) -> None:
        """Of bodies that move freely; None keeps what is there."""
        linear, angular = _kept(linear, angular, self.get_velocities(rows))
        origin = self.at_com(linear, angular, self.get_poses(rows)[1], rows, -1)
        self._write('set_velocities', rows, linear=origin, angular=angular)

    def get_masses(self, rows: Any) -> Floats:
        """`(rows, 1)`."""
        return np.array([[self.views[row].get_masses()[self.envs[row]]] for row in self.picked(rows)], np.float32)

    def set_masses(self, masses: Any, rows: Any) -> None:
        """`(rows, 1)` or `(rows,)`; inertias stay what they are."""
        inertias = self.get_inertias(rows)
        self._write('set_masses', rows, masses=np.reshape(masses, -1))
        self.set_inertias(inertias, rows)

    def get_inertias(self, rows: Any) -> Floats:
        """Around the centres of mass, `(rows, 9)`, in the axes of the bodies."""
        inertias = []
        for row in self.picked(rows):
            model, body = self.physics.world.model(int(self.envs[row])), self.ids[row]
            turn = _matrix(model.body_iquat[body])
            inertias.append((turn * model.body_inertia[body]) @ turn.T)
        return np.array(inertias, np.float32).reshape(-1, 9)

    def set_inertias(self, inertias: Any, rows: Any) -> None:
        """`(rows, 9)`; their principal axes have to be those of before."""
        for row, inertia in zip(self.picked(rows), np.reshape(inertias, (-1, 3, 3)), strict=True):
            env, body = int(self.envs[row]), self.ids[row]
            turn = _matrix(self.physics.world.model(env).body_iquat[body])
            batch, slot = self.physics.world.batch(env)
            batch.expand('body_inertia')[slot, body] = np.diag(turn.T @ inertia @ turn)

    def get_contact_forces(self, rows: Any) -> Floats:
        """Net contact forces `(rows, 3)` [N] of tracked links of articulations."""
        picked = self.picked(rows)
        forces = np.zeros((len(picked), 3), np.float32)
        for k, row in enumerate(picked):
            view, link = self.physics.articulation_of_link(self.paths[row])
            forces[k] = view.get_contact_forces()[self.envs[row], view.contact_links.index(link)]
        return forces

    def hold(self) -> None:
        """Links stay where they are seen now until the next step: joints or roots are about to be set."""
        if self.valid and self._seen[0] != self.physics.steps:
            self._seen = (
                self.physics.steps,
                {name: self._read_now(name, None) for name in ('get_poses', 'get_velocities')},
            )

    def _read(self, name: str, rows: Any) -> tuple[Floats, Floats]:
        now, picked = self._read_now(name, rows), self.picked(rows)
        if self._seen[0] == self.physics.steps:
            held = self._links[picked]
            for values, before in zip(now, self._seen[1][name], strict=True):
                values[held] = before[picked][held]
        return now

    def _read_now(self, name: str, rows: Any) -> tuple[Floats, Floats]:
        picked = self.picked(rows)
        values: list[list[Any]] = [[], []]
        for view in dict.fromkeys(self.views[row] for row in picked):
            for store, array in zip(values, getattr(view, name)(), strict=True):
                store.append((view, np.array(array)))
        pair = []
        for store in values:
            arrays = dict(store)
            pair.append(np.array([arrays[self.views[row]][self.envs[row]] for row in picked], np.float32))
            pair[-1][np.isin(self.envs[picked], list(self.physics.broken))] = np.nan
        return pair[0], pair[1]

    def _write(self, name: str, rows: Any, **values: Any) -> None:
        picked = self.picked(rows)
        given = {key: _sized(key, value, len(picked)) for key, value in values.items() if value is not None}
        self.physics.revive(self.envs[picked])
        for k, row in enumerate(picked):
            one = {key: value[[k]] for key, value in given.items()}
            if one:
                getattr(self.views[row], name)(self.envs[[row]], **one)


def _sized(name: str, value: Any, rows: int) -> Floats:
    array = np.asarray(value, np.float32)
    if array.ndim == 0 or len(array) != rows:
        raise ValueError(f'{name} have shape {array.shape}, expected {rows} rows')
    return array


def _kept(one: Any, other: Any, now: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Two arrays of which those that are None are what is there now."""
    pairs = zip((one, other), now, strict=True)
    one, other = (np.asarray(value, np.float32) if value is not None else old for value, old in pairs)
    return one, other


def _depth(model: Any, body: int) -> int:
    return 0 if body == 0 else 1 + _depth(model, int(model.body_parentid[body]))


def _matrix(quat: Any) -> NDArray[np.float64]:
    return quat_rotate(np.asarray(quat, np.float64)[None], np.eye(3)).T
