"""Built-in controllers; importing this package registers them."""

from internutopia_extension import keep_paths
from internutopia_extension.controllers import (
    differential_drive_controller,
    discrete_controllers,
    ground_controllers,
    inverse_kinematics_controller,
    joint_controllers,
    move_along_path_points_controller,
    recover_controller,
    walking_controllers,
)

__all__ = [
    'differential_drive_controller',
    'discrete_controllers',
    'ground_controllers',
    'inverse_kinematics_controller',
    'joint_controllers',
    'move_along_path_points_controller',
    'recover_controller',
    'walking_controllers',
]

_WALKING = ('h1', 'g1', 'gr1', 'aliengo')
keep_paths(__name__, walking_controllers.__name__, *(f'{robot}_move_by_speed_controller' for robot in _WALKING))
keep_paths(__name__, joint_controllers.__name__, 'joint_controller', 'gripper_controller')
keep_paths(__name__, ground_controllers.__name__, 'move_to_point_by_speed_controller', 'rotate_controller')
