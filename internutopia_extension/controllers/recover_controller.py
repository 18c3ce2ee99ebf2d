"""Recovery: puts a fallen robot back on its feet."""

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
from internutopia.model.spec import IDENTITY_QUAT
from internutopia_extension.configs.controllers import RecoverControllerCfg
from internutopia_extension.controllers.batch_values import has_direction


@BaseController.register('RecoverController')
class RecoverController(BaseController):
    """Teleportation of a fallen robot to a standing pose, at rest, with its initial joint positions.

    Action: `[position]` or `[position, orientation]` of the root, `(3,)` [m] and `(4,)`, env frame; without an
    orientation it stands unrotated. A z of 0 or below means a point of the ground: the root then goes to
    `config.recover_height`. Drives are set to hold the joints; earlier commands are dropped.
    """

    batched = True

    def __init__(self, config: RecoverControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.recover_height = config.recover_height
        start = type(robot).model(robot.config).joint_positions
        positions = [start.get(name, 0.0) for name in robot.articulation.dof_names]
        self.joint_positions = self.arrays.asarray(positions, 'float32')

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Return one env's action as `(7,)`: position and orientation."""
        if not isinstance(action, list | tuple | np.ndarray) or len(action) not in (1, 2):
            raise ValueError(f'expected [position] or [position, orientation], got {action!r}')
        position = box_action(action[0], (3,), ' (position)')
        orientation = box_action(action[1] if len(action) == 2 else IDENTITY_QUAT, (4,), ' (orientation)')
        if not has_direction(orientation):
            raise ValueError(f'expected an orientation of a length other than zero, got {action[1]!r}')
        return np.concatenate([position, orientation])

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Teleport to the pose of the action, `(7,)`, or as the action space has it `(1, 3)`."""
        action = self.parsed(action, env_ids)
        if action.shape[-1] == 3:
            return self.forward(action[..., 0, :], env_ids=env_ids)
        return self.forward(action[..., :3], action[..., 3:], env_ids)

    def forward(
        self, target_position: Any, target_orientation: Any = IDENTITY_QUAT, env_ids: Any = ...
    ) -> ArticulationAction:
        """Teleport to a pose, `(3,)` and `(4,)` or for several envs `(n, 3)` and `(n, 4)`."""
        xp = self.arrays.xp
        position = self.arrays.asarray(target_position, 'float32')
        height = xp.where(position[..., 2:] > 0.0, position[..., 2:], self.recover_height)
        position = xp.concat([position[..., :2], height], axis=-1)
        orientation = xp.broadcast_to(self.arrays.asarray(target_orientation, 'float32'), (*position.shape[:-1], 4))
        articulation = self.robot.articulation
        articulation.set_pose(position, orientation, env_ids)
        articulation.set_world_velocity(self.arrays.zeros((*position.shape[:-1], 6)), env_ids)
        articulation.set_joint_positions(self.joint_positions, env_ids=env_ids)
        rest = xp.zeros_like(self.joint_positions)
        articulation.set_joint_velocities(rest, env_ids=env_ids)
        if articulation.view.control_names:
            return ArticulationAction()  # the model's own actuators have no targets to hold
        return ArticulationAction(self.joint_positions, joint_velocities=rest, joint_efforts=rest)

    @override
    def action_space(self) -> Space[Any]:
        """Return the space of `[position]` up to 100 m away from the origin along x and y, on the ground."""
        reach = np.array([[100.0, 100.0, 0.0]], np.float32)
        return Box(-reach, reach)
