"""Config of a two-finger gripper."""

from internutopia.config.robot import ControllerCfg


class GripperControllerCfg(ControllerCfg):
    """Opening and closing of a two-finger gripper."""

    type: str = 'GripperController'
