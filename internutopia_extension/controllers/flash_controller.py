"""Discrete steps of a robot that is put where they lead to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.context import RobotContext
from internutopia.core.robot.controller import BaseController
from internutopia.core.scene.scene import IScene
from internutopia.model.groups import BOTH_GROUP, COLLIDER_GROUP
from internutopia.navigation.agent import Agent
from internutopia.util.rotations import quat_from_yaw, quat_multiply, unit_quat, yaw_of
from internutopia_extension.configs.controllers import FlashControllerCfg
from internutopia_extension.controllers.discrete import FORWARD, TURNS, DiscreteController

_SPACING = 0.05  # m, of the rays that feel what is in the way: thinner things may be missed
_ABOVE = 0.01  # m, of the lowest rays over what is stepped on
_DOWN = np.array([0.0, 0.0, -1.0])


@BaseController.register('FlashController')
class FlashController(DiscreteController):
    """Steps and turns by teleportation, without physics, if nothing is in the way.

    Every action is over after one step of the env, and sets pose, joints and velocities: those that the robot started
    with, at the new place. So send one in every step, or the robot falls as physics has it. What is in the way is found
    with rays, 5 cm apart, through all that an upright cylinder around the robot passes on its way; things no higher
    than the height of a step are not in the way. The robot then stands on the ground at the new place. If there is none
    within the height of a step up or down, or something is in the way, it stays: `collided`.
    """

    batched = True

    def __init__(self, config: FlashControllerCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self._view = robot.articulation.view
        agent = Agent.of(robot.config, config.step_height)
        radius, height = config.radius or agent.radius, config.height or agent.height
        self._step_height = agent.step_height
        # a row for each env, in every kind of scene
        self._place = self._rows_of(4)  # root x, y, z [m] and yaw [rad]; NaN before the first action
        self._stance = self._rows_of(5)  # root orientation at yaw 0, height of the root above the ground [m]
        self._joints = self._rows_of(len(self._view.dof_names))  # at the start [rad or m]
        self._blocked = self.state((), False, np.bool_)
        across = np.linspace(-radius, radius, 1 + math.ceil(2 * radius / _SPACING))
        up = np.arange(agent.step_height + _ABOVE, height, _SPACING)
        self._ray_offsets = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)  # to the left, up [m]
        reach = np.sqrt(np.maximum(radius**2 - self._ray_offsets[:, 0] ** 2, 0.0))
        self._free = reach + self.forward_distance  # (rays,) [m], that has to be free

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Move the robot; its joint targets stay."""
        action = self.numbers_of(self.parsed(action, env_ids))
        self.action[env_ids] = action
        self.actions[env_ids] += 1
        self._blocked[env_ids] = False
        rows, envs = self._which(env_ids)
        new = np.isnan(self._place[rows, 0])
        if new.any():
            self._note_start(rows[new], envs[new])
        actions = np.atleast_1d(action)
        self._place[rows, 3] += self.turn_angle * TURNS[actions]
        going = actions == FORWARD
        if going.any():
            self._go(rows[going], envs[going])
        place, still = self._place[rows], np.zeros((len(rows), 3))
        self._view.set_root_poses(envs, place[:, :3], quat_multiply(quat_from_yaw(place[:, 3]), self._stance[rows, :4]))
        self._view.set_root_velocities(envs, still, still)
        if self._view.dof_names:
            self._view.set_joint_positions(envs, self._joints[rows])
            self._view.set_joint_velocities(envs, np.zeros_like(self._joints[rows]))
        return ArticulationAction()

    @override
    def finished(self) -> NDArray[np.bool_]:
        """Return True after the first action."""
        return self.action >= 0

    @override
    def collided(self) -> NDArray[np.bool_]:
        """Return True if the last action was a step forward that was obstructed."""
        return self._blocked

    def _note_start(self, rows: NDArray[np.intp], envs: NDArray[np.intp]) -> None:
        """Save the poses in these envs before their first action."""
        position, orientation = (values[envs].astype(np.float64) for values in self._view.get_root_poses())
        yaw = yaw_of(orientation)
        self._place[rows] = np.concatenate([position, yaw[:, None]], axis=1)
        self._stance[rows, :4] = quat_multiply(quat_from_yaw(-yaw), unit_quat(orientation))
        self._stance[rows, 4] = self._ground_below(envs, position)
        self._joints[rows] = self._view.get_joint_positions()[envs]

    def _go(self, rows: NDArray[np.intp], envs: NDArray[np.intp]) -> None:
        """Move these envs a step further, where they can."""
        place, height = self._place[rows], self._stance[rows, 4]
        cos, sin, zero = np.cos(place[:, 3]), np.sin(place[:, 3]), np.zeros(len(rows))
        ahead, left = np.stack([cos, sin, zero], axis=-1), np.stack([-sin, cos, zero], axis=-1)
        across, up = self._ray_offsets.T
        origins = place[:, None, :3] + across[:, None] * left[:, None]
        origins[..., 2] += up - height[:, None]
        free = (self._cast(envs, origins, np.broadcast_to(ahead[:, None], origins.shape)) > self._free).all(axis=1)
        there = place[:, :3] + self.forward_distance * ahead
        climb = height - self._ground_below(envs, there)
        moved = free & (np.abs(climb) <= self._step_height)
        there[:, 2] += climb
        self._place[rows, :3] = np.where(moved[:, None], there, place[:, :3])
        self._blocked.reshape(-1)[rows] = ~moved

    def _ground_below(self, envs: NDArray[np.intp], points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the depth of the ground below points `(n, 3)` [m]."""
        return self._cast(envs, points[:, None], np.broadcast_to(_DOWN, (len(envs), 1, 3)))[:, 0]

    def _cast(
        self, envs: NDArray[np.intp], origins: NDArray[np.float64], directions: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return distances [m] to colliders, the robot excluded."""
        return self._view.cast_rays(
            envs, origins, directions, groups=(BOTH_GROUP, COLLIDER_GROUP), link=self._view.body_names[0]
        )

    def _rows_of(self, count: int) -> NDArray[np.float64]:
        """Return state with a row for each env, NaN after a reset; a single row for one env."""
        return self.state((count,), np.nan, np.float64).reshape(math.prod(self.batch_shape), count)

    def _which(self, env_ids: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return rows of the state, and env ids, of the envs that an action is for."""
        if env_ids is not ...:
            return env_ids, env_ids
        env_id = self.scene.env_id
        if isinstance(env_id, int):
            return np.array([0]), np.array([env_id])
        return np.arange(len(self._place)), np.arange(len(self._place))
