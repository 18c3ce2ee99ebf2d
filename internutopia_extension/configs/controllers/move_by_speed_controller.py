"""Config of walking policies."""

from internutopia.core.config.fields import PathStr
from internutopia.core.config.robot import ControllerCfg


class MoveBySpeedControllerCfg(ControllerCfg):
    """Walks with commanded forward, lateral (m/s) and rotation (rad/s) speeds, body frame."""

    type: str = 'MoveBySpeedController'
    joint_names: list[str] | None = None
    """Joints that the controller drives, in the order of its joint targets; None means those of the policy."""
    policy_weights_path: PathStr
    """The walking policy: an ONNX or TorchScript file, or a YAML file that describes one."""
