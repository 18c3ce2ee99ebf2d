"""Config of RMPFlow."""

from internutopia.config.fields import PathStr
from internutopia.config.robot import ControllerCfg


class RMPFlowControllerCfg(ControllerCfg):
    """Smooth motion of an end effector to a position and, if given, an orientation (env frame)."""

    type: str = 'RMPFlowController'
    robot_description_path: PathStr
    """Description of the arm: which joints may move, and their default positions (YAML)."""
    robot_urdf_path: PathStr
    """Kinematics of the arm (URDF)."""
    rmpflow_config_path: PathStr
    """Weights of the motion policy (YAML)."""
    end_effector_frame_name: str
    """Link of the URDF that is brought to the target."""
