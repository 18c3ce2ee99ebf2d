"""Env access: the viewer's queries and commands to envs, the same for the list API and the array API."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from internutopia.core.gym_env import GymEnv
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.vec_env import Env
from internutopia.engines.batched.world import BatchedWorld
from internutopia.rl.array_runner import ArrayRunner
from internutopia.rl.terms.registry import look_up_marker
from internutopia.rl.training.loading import velocity_command
from internutopia.rl.vector_env import VectorEnv
from internutopia.util.arrays import to_host
from internutopia.viewer.frames import ArmPose
from internutopia.viewer.robot_controls import SPEEDS, RobotCommand, RobotControls, VelocityControl, controls_of


class EnvAccess(Protocol):
    """Access to the envs of one runner."""

    runner: SimulatorRunner
    world: BatchedWorld
    step_dt: float  # [s]

    def controls(self, env_id: int) -> dict[str, RobotControls]:
        """Return the controls of the robots of an env that holds an episode, by name."""
        ...

    def command(self, env_id: int, controls: RobotControls, command: RobotCommand | None) -> None:
        """Command a robot from now on in place of the program; None hands it back to the program."""
        ...

    def arm_pose(self, env_id: int, robot: str, arm: str) -> ArmPose:
        """Return the pose of an arm of a robot; it must be in `controls`."""
        ...

    def goals(self, env_id: int) -> dict[str, NDArray[np.float64]]:
        """Return the points `(3,)` [m], env frame, that commands of a learning task name, by command."""
        ...

    def figures(self, env_id: int) -> dict[str, Any]:
        """Return the figures of the last step in an env that holds an episode: reward and its terms."""
        ...

    def result(self, env_id: int) -> dict[str, Any]:
        """Return the result of the episode that has ended in an env: metrics by name."""
        ...


def access_to(env: Any) -> EnvAccess:
    """Return the access to an env of this process.

    Raises:
        TypeError: the viewer does not support this kind of env.
        NotImplementedError: its envs are in other processes, or on an engine that the viewer cannot show.
    """
    if isinstance(env, VectorEnv):
        return access_beside(env.core)
    if isinstance(env, Env | GymEnv):
        return access_beside(env.runner)
    raise TypeError(
        'the viewer takes an Env, a gym_env.Env, an rl.VectorEnv or remote envs, got '
        f'{type(env).__module__}.{type(env).__name__}'
    )


def access_beside(owner: SimulatorRunner | ArrayRunner) -> EnvAccess:
    """Return the access to the envs of a runner of the list API or the array API.

    NotImplementedError if they are on an engine that the viewer cannot show.
    """
    return _ListAccess(owner) if isinstance(owner, SimulatorRunner) else _ArrayAccess(owner)


def _checked_world(runner: SimulatorRunner) -> BatchedWorld:
    if not isinstance(runner.world, BatchedWorld):
        raise NotImplementedError(
            f'the viewer shows envs on MuJoCo and MuJoCo Warp, not on {type(runner.world).__name__}'
        )
    return runner.world


class _ListAccess:
    """Access to `vec_env.Env` and `gym_env.Env`; commands are actions of controllers."""

    def __init__(self, runner: SimulatorRunner):
        self.runner = runner
        self.world = _checked_world(self.runner)
        self.step_dt = self.world.step_dt

    def controls(self, env_id: int) -> dict[str, RobotControls]:
        return {name: controls_of(name, robot) for name, robot in self.runner.slot(env_id).task.robots.items()}

    def command(self, env_id: int, controls: RobotControls, command: RobotCommand | None) -> None:
        overrides = self.runner.overrides.setdefault(env_id, {})
        if command is None:
            overrides.pop(controls.robot, None)
        else:
            overrides[controls.robot] = command.actions(controls)
        if not overrides:
            del self.runner.overrides[env_id]

    def arm_pose(self, env_id: int, robot: str, arm: str) -> ArmPose:
        controller: Any = self.runner.slot(env_id).task.robots[robot].get_controllers()[arm]
        return ArmPose(*controller.arm_pose(env_id))

    def goals(self, env_id: int) -> dict[str, NDArray[np.float64]]:
        return {}

    def figures(self, env_id: int) -> dict[str, Any]:
        return {'reward': self.runner.slot(env_id).last.reward}

    def result(self, env_id: int) -> dict[str, Any]:
        return (self.runner.slot(env_id).last.info or {}).get('metrics', {})


class _ArrayAccess:
    """Access to `rl.VectorEnv`; commands are velocities, a command of the learning task."""

    def __init__(self, core: ArrayRunner):
        self._core = core
        self.runner = core.runner
        self.world = _checked_world(self.runner)
        self.step_dt = core.step_dt

    def controls(self, env_id: int) -> dict[str, RobotControls]:
        robots = self.runner.slot(env_id).task.robots
        offered = {name: RobotControls(name) for name in robots}
        learning = self._core.learning
        name = velocity_command(learning)
        if name is not None:
            params = learning.commands[name].params
            low, high = zip(*(params.get(key, (-1.0, 1.0)) for key in ('forward', 'lateral', 'yaw_rate')), strict=True)
            robot = learning.robot or next(iter(robots))
            offered[robot] = RobotControls(robot, VelocityControl(name, SPEEDS, low, high))
        return offered

    def command(self, env_id: int, controls: RobotControls, command: RobotCommand | None) -> None:
        if controls.velocity is not None:
            speeds = None if command is None else command.speeds
            values = None if speeds is None else self._core.arrays.asarray(np.array(speeds, np.float32))
            self._core.commands.hold(controls.velocity.name, env_id, values)

    def arm_pose(self, env_id: int, robot: str, arm: str) -> ArmPose:
        raise NotImplementedError('the array API has no arms in `controls`')

    def goals(self, env_id: int) -> dict[str, NDArray[np.float64]]:
        commands = self._core.learning.commands
        points = {name for name, cfg in commands.items() if look_up_marker(cfg.term) == 'point'}
        places = {name: to_host(self._core.state.command(name)[env_id]) for name in points}
        return {name: np.array([*place, 0.0][:3], np.float64) for name, place in places.items()}

    def figures(self, env_id: int) -> dict[str, Any]:
        terms = self._core.rewards.contributions(env_id)
        return self.result(env_id) | {'reward': sum(value for _, value in terms)} | dict(terms)

    def result(self, env_id: int) -> dict[str, Any]:
        return {'return': float(to_host(self._core.returns)[env_id])}
