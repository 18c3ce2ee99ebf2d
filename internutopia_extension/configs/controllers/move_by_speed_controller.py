"""Config of walking policies."""

from internutopia.core.config.fields import PathStr
from internutopia.core.config.robot import ControllerCfg


class MoveBySpeedControllerCfg(ControllerCfg):
    """Walks with commanded forward, lateral (m/s) and rotation (rad/s) speeds, body frame."""

    type: str = 'MoveBySpeedController'
    joint_names: list[str]
    """Joints that the controller drives, in the order of its joint targets."""
    policy_weights_path: PathStr
    """Weights of the walking policy."""
