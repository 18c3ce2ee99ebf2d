"""Hopper that walks with a policy of known weights, for tests of walking controllers."""

from typing import Any

import numpy as np

from internutopia.core.robot.controller import BaseController
from internutopia.core.vec_env import Env
from internutopia.rl.policy import Policy
from internutopia_extension.controllers.move_by_speed_controller import MoveBySpeedController

HOME = [0.3, -0.2]  # rad, hip and tail
PERIOD = 0.5  # s
COMMAND = {'term': 'command', 'params': {'name': 'speed'}}
# The observation: command (3), last action (2), cosine and sine of the clock (2). The hip follows the forward speed and
# the clock, the tail the rotation speed and its own last action.
OBSERVATIONS = [COMMAND, {'term': 'last_action'}, {'term': 'phase', 'params': {'period': PERIOD}}]
WEIGHTS = np.zeros((7, 2))
WEIGHTS[[0, 6], 0] = 1.0, 0.1
WEIGHTS[[2, 4], 1] = -1.0, 0.5
METADATA = {'observations': OBSERVATIONS, 'offset': [0.2, 0.1], 'scale': 0.5}
# What a policy that really walks looks at
SENSES = [
    {'term': 'base_angular_velocity', 'scale': 0.25},
    {'term': 'projected_gravity'},
    COMMAND,
    {'term': 'joint_positions', 'params': {'relative': True, 'joints': ['hip', 'tail']}},
    {'term': 'joint_velocities', 'params': {'joints': ['tail', 'hip']}, 'scale': 0.05, 'clip': 5.0},
    {'term': 'last_action'},
    {'term': 'phase', 'params': {'period': PERIOD}},
]


class Recorder:
    """A policy that remembers what it was asked."""

    def __init__(self, policy: Policy):
        self.path, self.metadata, self._policy = policy.path, policy.metadata, policy
        self.batches: list[np.ndarray] = []

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        self.batches.append(observations.copy())
        return self._policy(observations)

    def step(self, observations: np.ndarray, state: Any) -> Any:
        self.batches.append(observations.copy())
        return self._policy.step(observations, state)


class Walk(MoveBySpeedController):
    """Remembers the targets that it gave each env."""

    batched = True

    def __init__(self, config: Any, robot: Any, scene: Any):
        super().__init__(config, robot, scene)
        self.policy: Any = Recorder(self.policy)
        self.given: dict[int, list[list[float]]] = {}

    def action_to_control(self, action: Any, env_ids: Any = ...) -> Any:
        control = super().action_to_control(action, env_ids)
        ids = np.atleast_1d(self.scene.env_id if env_ids is ... else env_ids)
        for env_id, row in zip(ids.tolist(), np.atleast_2d(control.joint_positions).tolist(), strict=True):
            self.given.setdefault(env_id, []).append(row)
        return control


BaseController.register('Walk')(Walk)
BaseController.register('PerEnvWalk')(type('PerEnvWalk', (MoveBySpeedController,), {}))


def robot_of(env: Env, env_id: int = 0) -> Any:
    [robot] = env.runner.current_tasks[env.runner.env_id_to_task_name_map[env_id]].robots.values()
    return robot


def walk_of(env: Env) -> Any:
    """The controller that runs for all envs."""
    return robot_of(env).batch.robot.controllers['walk']


def send(env: Env, *speeds: Any) -> list[Any]:
    """One step; the observations."""
    return env.step([None if speed is None else {'hopper': {'walk': speed}} for speed in speeds])[0]


def expected(commands: list[Any]) -> list[list[float]]:
    """Targets (tail, hip) of the policy for each of its actions since the start of the episode."""
    targets, tail = [], 0.0
    for index, (forward, _, rotation) in enumerate(commands):
        hip = forward + 0.1 * np.sin(2 * np.pi * index / 48 / PERIOD)
        tail = 0.5 * tail - rotation
        targets.append([0.1 + 0.5 * tail, 0.2 + 0.5 * hip])
    return targets
