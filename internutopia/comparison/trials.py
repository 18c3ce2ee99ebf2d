"""Trials of a robot on a physics engine: a fall, a swing, steps of its drives, a drop and a push.

    trials = run_trials(robot, SimConfig(backend='physx'))
    print(trials.figures['fall: acceleration [m/s²]'], trials.joints['knee']['rise time [s]'])

Each trial has its own envs, in which the robot is alone on a plane, and is recorded in time steps of the physics.
Drives hold the start positions of the joints. Figures are NaN where the simulation diverged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import SimConfig
from internutopia.engines.factory import create_world
from internutopia.model.spec import RobotSpec, SceneSpec
from internutopia.util.rotations import quat_multiply, quat_rotate

Floats = NDArray[np.float64]

GRAVITY = 9.81  # m/s²
PUSH = 0.5  # m/s
EXPECTED = {'fall: acceleration [m/s²]': GRAVITY, 'drop: contact force at rest / weight': 1.0}
"""Figures that are known without an engine."""

_FLOOR = 'scenes/empty.xml'
_FALL_TIME, _SWING_TIME, _SETTLING_TIME, _STEP_TIME, _DROP_TIME = 0.3, 1.0, 1.0, 1.0, 3.0  # s
_STANDING_TIME, _PUSH_TIME = 0.3, 1.5  # s, before and after a push
_AT_REST = 0.5  # s, at the end of a drop
_EARLY = 0.25  # s, of a swing: later, limits are hit and differences grow by themselves
_CLEARANCE, _DROP_HEIGHT = 1.0, 0.05  # m, of the robot's lowest point above the floor
_EFFORT = 10.0  # N·m or N
_POSITION_STEP, _VELOCITY_STEP = 0.1, 1.0  # rad and rad/s; m and m/s
_SHARE = 0.1  # of a range of joint positions or controls, that a step is at most
_MARGIN = 0.05  # of a range of joint positions, that joints start within their limits
_LOWER, _UPPER = 'lower limit [rad, m]', 'upper limit [rad, m]'
_STIFFNESS, _DAMPING = 'stiffness [N·m/rad, N/m]', 'damping [N·m·s/rad, N·s/m]'
_PRESSED = 0.2  # of the weight: with less normal force, the ratio of friction to it is not taken


@dataclass(frozen=True)
class Trials:
    """Results of the trials of a robot on one engine."""

    links: dict[str, dict[str, float]]
    """Figures of the links."""
    joints: dict[str, dict[str, float]]
    """Figures of the joints: as the engine has them, and the inertia that an effort on each meets."""
    drives: dict[str, dict[str, float]]
    """Figures of the responses to a step of the drives' targets, by joint."""
    figures: dict[str, float]
    """Figures of the robot, as `'<trial>: <figure> [<unit>]'`."""
    traces: dict[str, Floats] = field(repr=False)
    """Over time `(T,)`: `'swing'` `(T, dof)`; `'step <joint>'`, from 0 at the start to 1 at the target; `'drop height'`
    [m], `'drop force'` as a multiple of the weight, `'push'` [m]."""
    dt: float
    """Time between two values of a trace [s]."""


def placed(robot: RobotSpec) -> RobotSpec:
    """Return a robot as trials have it: at the origin, facing along x, without sensors and cameras."""
    w, x, y, z = orientation = np.array(robot.orientation)
    turn = np.array([w, 0.0, 0.0, -z])
    size = np.linalg.norm(turn)
    if size > 0:
        orientation = quat_multiply(turn / size, orientation).round(6) + 0.0
    w, x, y, z = orientation.tolist()
    return replace(robot, position=(0.0, 0.0, 0.0), orientation=(w, x, y, z), probes=(), cameras=())


def run_trials(robot: RobotSpec, simulator: SimConfig) -> Trials:
    """Run the trials of a robot.

    Args:
        robot: the robot; its place, heading and sensors do not count.
        simulator: engine and time step.

    Errors are those of a scene that cannot be loaded, or that the engine refuses.
    """
    robot = placed(robot)
    simulator = simulator.update(substeps=1)
    with _Envs(simulator, robot) as envs:
        view = envs.view
        links = {name: {'mass [kg]': float(view.body(name).get_masses()[0])} for name in view.body_names}
        joints = _joints(envs)
        envs.lift(_CLEARANCE)
        fall = envs.record(_FALL_TIME, lambda: view.get_root_velocities()[0])[:, 0]
        free, driven = bool(np.any(fall)), not view.control_names and bool(joints)
    held = replace(robot, fixed_base=True)
    figures: dict[str, float] = {}
    drives, traces = _steps(simulator, held, joints)
    if joints:
        traces['swing'] = _swing(simulator, held)
    if driven:
        for joint, inertia in zip(joints.values(), _inertias(simulator, held, len(joints)), strict=True):
            joint['inertia [kg·m², kg]'] = float(inertia)
    if free:
        figures['fall: acceleration [m/s²]'] = float(-fall[-1, 2] / _FALL_TIME)
        figures_of_drop, traces_of_drop = _drop_and_push(simulator, replace(robot, contact_links=tuple(links)))
        figures, traces = figures | figures_of_drop, traces | traces_of_drop
    return Trials(links, joints, drives, figures, traces, float(simulator.physics_dt))


def response_differences(reference: Trials, trials: Trials) -> dict[str, float]:
    """Return the greatest difference between two responses of each drive to a step, as a share of the step [%]."""
    names = [name for name in reference.traces if name.startswith('step ') and name in trials.traces]
    return {
        name.removeprefix('step '): 100.0 * float(np.abs(reference.traces[name] - trials.traces[name]).max())
        for name in names
    }


def swing_difference(reference: Trials, trials: Trials) -> float:
    """Return the greatest difference of a joint after a quarter of a second without drives [rad or m]."""
    index = round(_EARLY / reference.dt)
    return float(np.abs(reference.traces['swing'][index] - trials.traces['swing'][index]).max())


class _Envs:
    """Envs with nothing but a robot in them."""

    def __init__(self, simulator: SimConfig, robot: RobotSpec, env_num: int = 1):
        self.ids = np.arange(env_num)
        self._failed = np.zeros(env_num, bool)
        self._world = create_world(simulator, env_num, np.zeros((env_num, 3)))
        try:
            spec = SceneSpec(_FLOOR, robots=(robot,))
            handle = self._world.prepare(spec)
            self._world.load({env_id: (handle, spec) for env_id in self.ids.tolist()})
            self.view = self._world.articulation(robot.name, 0)
        except BaseException:
            self._world.close()
            raise

    def __enter__(self) -> _Envs:
        return self

    def __exit__(self, *_: object) -> None:
        self._world.close()

    def lift(self, height: float) -> None:
        """Move the lowest point of the robot to a height [m]."""
        positions, _ = self.view.get_root_poses()
        self.view.set_root_poses(self.ids, positions + [0.0, 0.0, height - self.view.box(0)[0][2]])

    def record(self, seconds: float, read: Callable[[], Any]) -> Floats:
        """Step for a time [s]; returns what is read after each time step, `(T, env_num, ...)`."""
        rows = []
        for _ in range(max(round(seconds / self._world.dt), 1)):
            self._failed[list(self._world.step(self.ids))] = True
            row = np.array(read(), float)
            row[self._failed] = np.nan
            rows.append(row)
        return np.array(rows)


def _joints(envs: _Envs) -> dict[str, dict[str, float]]:
    """Return what the engine has of each joint."""
    view = envs.view
    armature, damping = view.joint_dynamics
    columns = {
        _LOWER: view.joint_ranges[:, 0],
        _UPPER: view.joint_ranges[:, 1],
        'armature [kg·m², kg]': armature,
        'joint damping [N·m·s/rad, N·s/m]': damping,
    }
    if view.dof_names and not view.control_names:
        columns[_STIFFNESS], columns[_DAMPING] = (gains[0] for gains in view.get_gains())
    return {
        joint: {name: float(column[index]) for name, column in columns.items()}
        for index, joint in enumerate(view.dof_names)
    }


def _swing(simulator: SimConfig, held: RobotSpec) -> Floats:
    """Return the joint positions `(T, dof)` of a robot that hangs in the air, without drives.

    Actuators of a model stay as they are, with controls of zero.
    """
    with _Envs(simulator, held) as envs:
        envs.lift(_CLEARANCE)
        if not envs.view.control_names:
            envs.view.set_gains(envs.ids, 0.0, 0.0)
        return envs.record(_SWING_TIME, envs.view.get_joint_positions)[:, 0]


def _inertias(simulator: SimConfig, held: RobotSpec, dof: int) -> Floats:
    """Return the inertia [kg·m² or kg] that each joint feels: an effort on it, by the acceleration in one time step.

    Each joint has its own env. One more has no efforts: what else accelerates joints is subtracted.
    """
    with _Envs(simulator, held, dof + 1) as envs:
        view, dt = envs.view, float(simulator.physics_dt)
        envs.lift(_CLEARANCE)
        view.set_gains(envs.ids, 0.0, 0.0)
        low, high = view.joint_ranges.T
        margin = _MARGIN * np.where(np.isfinite(high - low), high - low, 0.0)
        start = np.clip(view.get_joint_positions()[0], low + margin, high - margin)
        view.set_joint_positions(envs.ids, np.tile(start, (dof + 1, 1)))
        sign = np.where(high - start < start - low, -1.0, 1.0)  # away from the limit that is closer
        view.set_targets(envs.ids[1:], efforts=np.diag(_EFFORT * sign))
        velocities = envs.record(dt, view.get_joint_velocities)[0]
        efforts = np.diag(view.get_joint_efforts()[1:])  # clamped
        with np.errstate(divide='ignore'):
            return efforts * dt / np.diag(velocities[1:] - velocities[0])


def _steps(
    simulator: SimConfig, held: RobotSpec, joints: dict[str, dict[str, float]]
) -> tuple[dict[str, dict[str, float]], dict[str, Floats]]:
    """Return figures and traces of the responses of drives to a step of their targets, each in its own env.

    Joints with stiffness get another position, those with nothing but damping another velocity.
    """
    driven = [name for name, joint in joints.items() if joint.get(_STIFFNESS) or joint.get(_DAMPING)]
    figures: dict[str, dict[str, float]] = {}
    traces: dict[str, Floats] = {}
    if not driven:
        return figures, traces
    with _Envs(simulator, held, len(driven)) as envs:
        view = envs.view
        envs.lift(_CLEARANCE)
        targets = view.get_joint_positions()[0].astype(float)
        start = envs.record(_SETTLING_TIME, view.get_joint_positions)[-1]
        indices, sizes = [view.dof_names.index(name) for name in driven], []
        for env_id, (name, index) in enumerate(zip(driven, indices, strict=True)):
            joint, env = joints[name], envs.ids[env_id : env_id + 1]
            if joint[_STIFFNESS]:
                below, above = targets[index] - joint[_LOWER], joint[_UPPER] - targets[index]
                sizes.append(min(_POSITION_STEP, _SHARE * (below + above)) * (-1.0 if above < below else 1.0))
                view.set_targets(env, positions=[[targets[index] + sizes[-1]]], joints=[index])
            else:
                sizes.append(_VELOCITY_STEP)
                view.set_targets(env, velocities=[[_VELOCITY_STEP]], joints=[index])
        recorded = envs.record(
            _STEP_TIME,
            lambda: np.stack([view.get_joint_positions(), view.get_joint_velocities(), view.get_joint_efforts()], -1),
        )
    for env_id, (name, index, size) in enumerate(zip(driven, indices, sizes, strict=True)):
        positions, velocities, efforts = recorded[:, env_id, index].T
        response = (positions - start[env_id, index] if joints[name][_STIFFNESS] else velocities) / size
        traces[f'step {name}'] = response
        figures[name] = _of_response(response, float(simulator.physics_dt))
        figures[name]['greatest effort [N·m, N]'] = float(np.abs(efforts).max())
    return figures, traces


def _of_response(response: Floats, dt: float) -> dict[str, float]:
    """Return the figures of a response to a step of 1."""
    return {
        'rise time [s]': (_first(response >= 0.9) - _first(response >= 0.1)) * dt,
        'overshoot [%]': 100.0 * max(float(response.max()) - 1.0, 0.0),
        'error after 1 s [%]': 100.0 * float(response[-1] - 1.0),
    }


def _first(true: NDArray[np.bool_]) -> float:
    """Return the index of the first true value; NaN if there is none."""
    return float(np.argmax(true)) if true.any() else np.nan


def _drop_and_push(simulator: SimConfig, robot: RobotSpec) -> tuple[dict[str, float], dict[str, Floats]]:
    """Return figures and traces of a robot that falls to the floor, and of one that stands and is pushed forward."""
    with _Envs(simulator, robot) as envs:
        envs.lift(_DROP_HEIGHT)
        drop = _record_base(envs, _DROP_TIME)
    with _Envs(simulator, robot) as envs:
        envs.lift(0.0)
        start = _record_base(envs, _STANDING_TIME)[-1, 0]
        linear, angular = envs.view.get_root_velocities()
        envs.view.set_root_velocities(envs.ids, linear + [PUSH, 0.0, 0.0], angular)
        push = _record_base(envs, _PUSH_TIME)
    force = drop[:, 7]
    landed = int(np.argmax(force > _PRESSED))
    at_rest = round(_AT_REST / float(simulator.physics_dt))
    pressed = push[:, 7] > _PRESSED
    friction = np.linalg.norm(push[pressed, 5:7], axis=1) / push[pressed, 7]
    figures = {
        'drop: greatest contact force / weight': force.max(),
        'drop: upward speed after landing [m/s]': max(drop[landed:, 3].max(), 0.0),
        'drop: contact force at rest / weight': force[-at_rest:].mean(),
        'drop: height of the base at rest [m]': drop[-1, 2],
        'drop: tilt at rest [deg]': _tilt(drop),
        'push: way forward [m]': push[-1, 0] - start,
        'push: greatest friction / normal force': friction.max(initial=0.0),
        'push: tilt at the end [deg]': _tilt(push),
    }
    traces = {'drop height': drop[:, 2], 'drop force': force, 'push': push[:, 0] - start}
    return {name: float(figure) for name, figure in figures.items()}, traces


def _record_base(envs: _Envs, seconds: float) -> Floats:
    """Return rows `(T, 8)`: position of the base, its vertical velocity, how upright it is, contact force / weight."""
    view = envs.view
    weight = GRAVITY * sum(float(view.body(name).get_masses()[0]) for name in view.body_names)

    def read() -> Floats:
        position, orientation = (pose[0].astype(float) for pose in view.get_root_poses())
        upright = quat_rotate(orientation, np.array([0.0, 0.0, 1.0]))[2]
        force = view.get_contact_forces()[0].sum(axis=0) / weight
        return np.concatenate([position, [view.get_root_velocities()[0][0, 2], upright], force])[None]

    return envs.record(seconds, read)[:, 0]


def _tilt(rows: Floats) -> float:
    return float(np.degrees(np.arccos(np.clip(rows[-1, 4], -1.0, 1.0))))
