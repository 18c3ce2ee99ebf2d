"""Built-in controllers; importing this package registers them."""

from internutopia_extension.controllers import (
    differential_drive_controller,
    discrete_controllers,
    ground_controllers,
    holonomic_drive_controller,
    inverse_kinematics_controller,
    joint_controllers,
    learned_controller,
    move_along_path_points_controller,
    recover_controller,
    walking_controllers,
)

__all__ = [
    'differential_drive_controller',
    'discrete_controllers',
    'ground_controllers',
    'holonomic_drive_controller',
    'inverse_kinematics_controller',
    'joint_controllers',
    'learned_controller',
    'move_along_path_points_controller',
    'recover_controller',
    'walking_controllers',
]
