"""Built-in controllers; importing this package registers them."""

from internutopia_extension.controllers import (
    discrete_controllers,
    ground_controllers,
    inverse_kinematics_controller,
    joint_controllers,
    learned_controller,
    move_along_path_points_controller,
    recover_controller,
    speed_controllers,
    walking_controllers,
)

__all__ = [
    'discrete_controllers',
    'ground_controllers',
    'inverse_kinematics_controller',
    'joint_controllers',
    'learned_controller',
    'move_along_path_points_controller',
    'recover_controller',
    'speed_controllers',
    'walking_controllers',
]
