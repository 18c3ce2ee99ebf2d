"""Config of plain joint control."""

from internutopia.config.robot import ControllerCfg


class JointControllerCfg(ControllerCfg):
    """Position (rad or m) and velocity targets for named joints."""

    type: str = 'JointController'
    joint_names: list[str]
    """Joints that actions command, in their order."""
