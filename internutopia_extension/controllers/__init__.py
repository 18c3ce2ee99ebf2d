"""Built-in controllers; importing this package registers them."""

from internutopia_extension.controllers import (
    actuator_controller,
    aliengo_move_by_speed_controller,
    differential_drive_controller,
    discrete_move_controller,
    flash_controller,
    g1_move_by_speed_controller,
    gr1_move_by_speed_controller,
    gripper_controller,
    h1_move_by_speed_controller,
    inverse_kinematics_controller,
    joint_controller,
    move_along_path_points_controller,
    move_to_point_by_speed_controller,
    recover_controller,
    rotate_controller,
)

__all__ = [
    'actuator_controller',
    'differential_drive_controller',
    'discrete_move_controller',
    'flash_controller',
    'aliengo_move_by_speed_controller',
    'g1_move_by_speed_controller',
    'gr1_move_by_speed_controller',
    'gripper_controller',
    'inverse_kinematics_controller',
    'h1_move_by_speed_controller',
    'joint_controller',
    'move_along_path_points_controller',
    'move_to_point_by_speed_controller',
    'recover_controller',
    'rotate_controller',
]
