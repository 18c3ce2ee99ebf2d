"""Learned controller: the policy of any learning task commands the controller that it has learned to use."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.model.asset_paths import POLICY_SUFFIXES, resolve
from internutopia.rl.observer import ObservationManager
from internutopia.rl.policy import TaskPolicyMetadata, load_policy
from internutopia.rl.state import RobotState
from internutopia_extension.configs.controllers import LearnedControllerCfg

_LIMIT = 100.0  # of the space of commands
_LONGEST_STEP = 1.05  # of an env, as a multiple of the time between two actions of a policy


@BaseController.register('LearnedController')
class LearnedController(BaseController):
    """Policy of any learning task, which commands its sub-controller; see `internutopia.rl.policy.TaskPolicyMetadata`.

    Action: the numbers of the task's commands, one command behind the other, such as a goal [m]; none for a task
    without commands. The policy acts at its own rate, whatever the length of an env step; in between, the
    sub-controller keeps its action. It sees what it saw in training, without noise: robots and objects must be there
    by the same names.

    Raises:
        ValueError: there is no sub-controller, the policy does not fit it or the robot, or an env step is longer than
            the time between two of its actions.
        FileNotFoundError: there is no such policy file.
    """

    batched = True

    def __init__(self, config: LearnedControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.policy = load_policy(resolve(config.policy_weights_path, POLICY_SUFFIXES), kind=TaskPolicyMetadata)
        metadata = self._metadata = self.policy.metadata
        self._where = f'controller {config.name!r}, policy {self.policy.path}'
        world, arrays = scene.world, scene.world.arrays
        if world.step_dt > _LONGEST_STEP * metadata.step_dt:
            raise ValueError(
                f'{self._where}: it acts every {metadata.step_dt:.4g} s, but an env step lasts {world.step_dt:.4g} s'
            )
        if not config.sub_controllers:
            raise ValueError(f'{self._where}: `sub_controllers` must name the controller that gets its actions')
        self.action_shape = (sum(metadata.commands.values()),)
        self._state = RobotState(world, metadata.step_dt, arrays.random(None), len(metadata.offset))
        for name, size in metadata.commands.items():
            self._state.commands[name] = arrays.zeros((world.env_num, size))
        self._state.bind(robot, scene.lead_env)
        try:
            self._observations = ObservationManager(metadata.observations, self._state)
        except ValueError as error:
            raise ValueError(f'{self._where}: {error}') from error
        self._offset, self._scale = (np.array(each, np.float32) for each in (metadata.offset, metadata.scale))
        self._due = np.full(world.env_num, -np.inf)  # when the policy acts next [s]

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Check one env's commands. ValueError with the expected and the given value."""
        names = ', '.join(f'{name} ({size})' for name, size in self._metadata.commands.items())
        return box_action(action, self.action_shape, f' ({names or "no commands"})')

    @override
    def action_space(self) -> Space[Any]:
        """Return the space of the commands, up to 100 each way: metres, speeds and angles are within."""
        return Box(-_LIMIT, _LIMIT, self.action_shape, np.float32)

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        commands = np.atleast_2d(self.parsed(action, env_ids))
        world, rows = self.scene.world, self._rows(env_ids)
        now = world.times[rows]
        due = now >= self._due[rows] - 0.5 * world.step_dt
        if due.any():
            self._decide(rows[due], commands[due], now[due])
        sub = self.sub_controllers[0]
        scaled = self._offset + self._scale * self._state.actions[rows]
        shaped = scaled.reshape(len(rows), *(sub.action_space().shape or ()))
        return sub.action_to_control(shaped[0] if env_ids is ... else shaped, env_ids)

    @override
    def reset(self, env_ids: Any = ...) -> None:
        """Forget the last actions of these envs."""
        super().reset(env_ids)
        rows = self._rows(env_ids)
        self._due[rows] = -np.inf
        self._state.steps[rows] = 0
        self._state.actions[rows] = 0.0

    def save_state(self, env_ids: Any = ...) -> list[NDArray[Any]]:
        """Return the state of these envs, see `internutopia.core.runner.state`."""
        return [array[self._rows(env_ids)] for array in (self._due, self._state.steps, self._state.actions)]

    def load_state(self, state: list[NDArray[Any]], env_ids: Any = ...) -> None:
        """Restore a saved state."""
        for array, rows in zip((self._due, self._state.steps, self._state.actions), state, strict=True):
            array[self._rows(env_ids)] = rows

    def _decide(self, rows: NDArray[np.intp], commands: NDArray[np.float32], now: NDArray[np.float64]) -> None:
        """Run the policy in these envs on commands `(m, k)`, at times `(m,)` [s]."""
        state, metadata = self._state, self._metadata
        robot: Any = self.robot
        state.bind(robot, int(rows[0]))  # an env that has an episode, with all that terms look at
        ends = np.cumsum(list(metadata.commands.values()))[:-1]
        for name, values in zip(metadata.commands, np.split(commands, ends, axis=1), strict=False):
            state.commands[name][rows] = values
        observations = self._observations.compute()[rows]
        try:
            actions = self.policy(observations)
        except Exception as error:  # those of the libraries have no common base
            raise ValueError(
                f'{self._where}: it does not take its {observations.shape[1]} observations: {error}'
            ) from error
        if actions.shape != (len(rows), len(self._offset)):
            raise ValueError(f'{self._where}: it gives actions of shape {actions.shape[1:]}, not {self._offset.shape}')
        if metadata.low is not None and metadata.high is not None:
            actions = np.clip(actions, np.array(metadata.low, np.float32), np.array(metadata.high, np.float32))
        state.actions[rows] = actions
        state.steps[rows] += 1
        on_time = np.abs(now - self._due[rows]) < metadata.step_dt  # else it was not called for a while
        self._due[rows] = np.where(on_time, self._due[rows], now) + metadata.step_dt

    def _rows(self, env_ids: Any) -> NDArray[np.intp]:
        if env_ids is not ...:
            return np.asarray(env_ids)
        env_id = self.scene.env_id
        return np.array([env_id]) if isinstance(env_id, int) else np.arange(self.scene.world.env_num)
