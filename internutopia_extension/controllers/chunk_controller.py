"""Chunks of actions: cameras that wait for the end of one need not render before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.context import RobotContext
from internutopia.core.robot.controller import BaseController
from internutopia.core.scene.scene import IScene
from internutopia_extension.configs.controllers import ChunkControllerCfg
from internutopia_extension.controllers.batch_values import BoxActionController


@BaseController.register('ChunkController')
class ChunkController(BoxActionController):
    """Counter of the steps of a chunk of actions that are still to come, `[count]`; it moves nothing.

    It is commanded by a policy that acts without looking: a camera with `after_actions` captures no images until the
    count is 0. Without a command, it is.
    """

    batched = True
    action_shape = (1,)
    action_meaning = 'number of steps to come'
    action_limits = 1.0

    def __init__(self, config: ChunkControllerCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self._left = self.state()

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Set the counts of some envs."""
        self._left[env_ids] = self.parsed(action, env_ids)[..., 0]
        return ArticulationAction()

    def finished(self) -> NDArray[np.bool_]:
        """Return True where a chunk has ended `batch_shape`."""
        return self._left <= 0.0
