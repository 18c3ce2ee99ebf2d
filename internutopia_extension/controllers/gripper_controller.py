"""Gripper controller: opens and closes two fingers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia_extension.configs.controllers import GripperControllerCfg

if TYPE_CHECKING:
    import gymnasium

_COMMANDS = {'open': 1.0, 'close': -1.0}


@BaseController.register('GripperController')
class GripperController(BaseController):
    """Controller that moves a robot's fingers, the joints `finger_joints` of its class, to the ends of their ranges.

    Action: `['open']` or `['close']`, or a number: positive opens. The drives of the fingers press on with their
    stiffness on what is between them.

    Observation: `gripper_pos`, positions of the finger joints `(2,)` [m].
    """

    batched = True
    commands = 'drives'

    def __init__(self, config: GripperControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        joints: Sequence[str] = getattr(robot, 'finger_joints', ())
        if not joints:
            raise ValueError(f'robot {robot.name!r} of type {robot.config.type!r} has no gripper: no finger_joints')
        self.joint_subset = ArticulationSubset(robot.articulation, joints)
        ranges = robot.articulation.view.joint_ranges[self.joint_subset.joint_indices]
        self._closed, self._open = (self.arrays.asarray(ends) for ends in ranges.T)

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Return one env's action as `(1,)`: positive opens."""
        if isinstance(action, list | tuple) and len(action) == 1 and isinstance(action[0], str):
            if action[0] not in _COMMANDS:
                raise ValueError(f"expected ['open'] or ['close'], got {action!r}")
            return np.array([_COMMANDS[action[0]]], np.float32)
        return box_action(action, (1,), " ('open', 'close', or a number: positive opens)")

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute finger positions for the action."""
        return self.forward(self.parsed(action, env_ids), env_ids)

    def forward(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute finger positions for `'open'`, `'close'` or numbers `(1,)`, for several envs `(n, 1)`. ValueError."""
        if isinstance(action, str):
            action = self.parse_action([action])
        xp = self.arrays.xp
        positions = xp.where(self.arrays.asarray(action) > 0.0, self._open, self._closed)
        if env_ids is not ...:
            positions = xp.broadcast_to(positions, (len(env_ids), len(self._open)))
        return self.joint_subset.make_articulation_action(positions)

    @override
    def get_obs(self) -> dict[str, Any]:
        """Return the finger positions."""
        return {'gripper_pos': self.joint_subset.get_joint_positions()}

    @override
    def action_space(self) -> gymnasium.Space[Any]:
        """A number; positive opens."""
        from gymnasium.spaces import Box

        return Box(-1.0, 1.0, (1,))
