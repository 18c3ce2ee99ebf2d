"""Config of GR1's teleoperation."""

from internutopia.config.robot import ControllerCfg


class GR1TeleOpControllerCfg(ControllerCfg):
    """Teleoperation by the wrists, hands and head of a person who wears a headset."""

    type: str = 'GR1TeleOpController'
    joint_names: list[str]
    """Joints that the controller drives, in the order of the joint targets."""
