"""Env access: what the viewer asks of envs and tells them, the same for the list API and the array API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from internutopia.core.gym_env import Env as GymEnv
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.util.arrays import to_host
from internutopia.core.vec_env import Env
from internutopia.core.world.batched.world import BatchedWorld
from internutopia.rl.training.loading import velocity_command
from internutopia.rl.vector_env import VectorEnv
from internutopia_extension.controllers.differential_drive_controller import DifferentialDriveController
from internutopia_extension.controllers.move_by_speed_controller import MoveBySpeedController

_SPEEDS = ('forward [m/s]', 'lateral [m/s]', 'yaw rate [rad/s]')


@dataclass(frozen=True)
class VelocityCommand:
    """What a robot can be told to drive or walk: the controller or command `name`, with a range for each label."""

    robot: str
    name: str
    labels: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class EnvAccess(Protocol):
    """Envs of one runner."""

    runner: SimulatorRunner
    world: BatchedWorld
    step_dt: float  # [s]

    def velocity_commands(self, env_id: int) -> list[VelocityCommand]:
        """Those that an env takes which holds an episode, one for each robot at most."""
        ...

    def set_velocity(self, env_id: int, command: VelocityCommand, speeds: Sequence[float] | None) -> None:
        """Command speeds from now on instead of what the program says; None lets that count again."""
        ...

    def figures(self, env_id: int) -> dict[str, Any]:
        """How the last step went in an env that holds an episode: reward and what it is made of."""
        ...

    def result(self, env_id: int) -> dict[str, Any]:
        """What came of the episode that has ended in an env: metrics by name."""
        ...


def access_to(env: Any) -> EnvAccess:
    """The access to an env.

    Raises:
        TypeError: it is none that the viewer knows.
        NotImplementedError: its envs are in other processes, or on an engine that the viewer cannot show.
    """
    if isinstance(env, VectorEnv):
        return _ArrayAccess(env)
    if isinstance(env, Env | GymEnv):
        return _ListAccess(env)
    raise TypeError(
        f'the viewer takes an Env, a gym_env.Env or an rl.VectorEnv of this process, got {type(env).__name__}'
    )


def _checked_world(runner: SimulatorRunner) -> BatchedWorld:
    if not isinstance(runner.world, BatchedWorld):
        raise NotImplementedError(
            f'the viewer shows envs on MuJoCo and MuJoCo Warp, not on {type(runner.world).__name__}'
        )
    return runner.world


class _ListAccess:
    """`vec_env.Env` and `gym_env.Env`: velocities are actions of controllers."""

    def __init__(self, env: Env | GymEnv):
        self.runner = env.runner
        self.world = _checked_world(self.runner)
        self.step_dt = self.world.step_dt

    def velocity_commands(self, env_id: int) -> list[VelocityCommand]:
        commands: list[VelocityCommand] = []
        for name, robot in self.runner.slot(env_id).task.robots.items():
            for controller_name, controller in robot.get_controllers().items():
                if isinstance(controller, MoveBySpeedController | DifferentialDriveController):
                    space: Any = controller.action_space()
                    labels = _SPEEDS if len(space.low) == 3 else (_SPEEDS[0], _SPEEDS[2])
                    low, high = (tuple(limit.astype(float).tolist()) for limit in (space.low, space.high))
                    commands.append(VelocityCommand(name, controller_name, labels, low, high))
                    break
        return commands

    def set_velocity(self, env_id: int, command: VelocityCommand, speeds: Sequence[float] | None) -> None:
        overrides = self.runner.overrides.setdefault(env_id, {})
        if speeds is None:
            overrides.pop(command.robot, None)
        else:
            overrides[command.robot] = {command.name: list(speeds)}
        if not overrides:
            del self.runner.overrides[env_id]

    def figures(self, env_id: int) -> dict[str, Any]:
        return {'reward': self.runner.slot(env_id).last.reward}

    def result(self, env_id: int) -> dict[str, Any]:
        return (self.runner.slot(env_id).last.info or {}).get('metrics', {})


class _ArrayAccess:
    """`rl.VectorEnv`: velocities are a command of the learning task."""

    def __init__(self, env: VectorEnv):
        self._core = env.core
        self.runner = env.core.runner
        self.world = _checked_world(self.runner)
        self.step_dt = env.core.step_dt

    def velocity_commands(self, env_id: int) -> list[VelocityCommand]:
        learning = self._core.learning
        name = velocity_command(learning)
        if name is None:
            return []
        params = learning.commands[name].params
        low, high = zip(*(params.get(key, (-1.0, 1.0)) for key in ('forward', 'lateral', 'yaw_rate')), strict=True)
        robot = learning.robot or next(iter(self.runner.slot(env_id).task.robots))
        return [VelocityCommand(robot, name, _SPEEDS, low, high)]

    def set_velocity(self, env_id: int, command: VelocityCommand, speeds: Sequence[float] | None) -> None:
        if speeds is not None:  # what was commanded last stays until the task samples another one
            values = self._core.arrays.asarray(np.array(speeds, np.float32))
            self._core.state.commands[command.name][env_id] = values

    def figures(self, env_id: int) -> dict[str, Any]:
        terms = self._core.rewards.contributions(env_id)
        return self.result(env_id) | {'reward': sum(value for _, value in terms)} | dict(terms)

    def result(self, env_id: int) -> dict[str, Any]:
        return {'return': float(to_host(self._core.returns)[env_id])}
