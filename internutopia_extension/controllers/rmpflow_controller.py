"""Motion generation of Isaac Sim."""

from __future__ import annotations

from typing import Any

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia_extension.configs.controllers import RMPFlowControllerCfg


@BaseController.register('RMPFlowController')
class RMPFlowController(BaseController):
    """RMPFlow, a part of Isaac Sim: configs that name it are read, an env with it is a ValueError."""

    def __init__(self, config: RMPFlowControllerCfg, robot: BaseRobot, scene: IScene):
        raise ValueError(
            f'robot {robot.name!r}, controller {config.name!r}: RMPFlow runs on Isaac Sim only; '
            'take an InverseKinematicsController, which has the same actions'
        )

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Never called: there are no objects of this class."""
        raise NotImplementedError
