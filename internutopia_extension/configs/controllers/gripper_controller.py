"""Config of a two-finger gripper."""

from internutopia.config.robot import ControllerCfg


class GripperControllerCfg(ControllerCfg):
    """Opens and closes a two-finger gripper."""

    type: str = 'GripperController'
