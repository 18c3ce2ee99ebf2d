"""Modules of InternUtopia 2.x whose classes are here in other modules: one table."""

from __future__ import annotations

_CORE, _V2 = 'internutopia.core', 'internutopia.compat.v2'
_EXTENSION = 'internutopia_extension'
_CONFIGS = f'{_EXTENSION}.configs'
_CONTROLLERS = f'{_EXTENSION}.controllers'


def _below(package: str, module: str, *names: str) -> dict[str, str]:
    return {f'{package}.{name}': module for name in names}


MOVED = {
    f'{_CORE}.datahub.datahub': f'{_CORE}.datahub',
    f'{_CORE}.object.object': f'{_CORE}.object',
    **_below(_CORE, f'{_V2}.handles', 'scene.isaacsim', 'scene.isaacsim.scene'),
    **_below(_CORE, f'{_V2}.handles', 'sensor.isaacsim', 'sensor.isaacsim.camera'),
    **_below(f'{_CORE}.util', f'{_V2}.core_util', 'gym', 'math', 'physics'),
    **_below(
        f'{_CONFIGS}.controllers',
        f'{_CONFIGS}.controllers',
        *('aliengo_move_by_speed_controller', 'dd_controller', 'franka_mocap_teleop_controller', 'gripper_controller'),
        *('g1_move_by_speed_controller', 'gr1_move_by_speed_controller', 'gr1_teleop_controller', 'ik_controller'),
        *('h1_move_by_speed_controller', 'joint_controller', 'layout_edit_mocap_controller', 'recover_controller'),
        *('move_along_path_points_controller', 'move_to_point_by_speed_controller', 'rmpflow_controller'),
        'rotate_controller',
    ),
    **_below(f'{_CONFIGS}.objects', f'{_CONFIGS}.objects', 'dynamic_cube', 'usd_object', 'visual_cube'),
    **_below(f'{_CONFIGS}.metrics', f'{_CONFIGS}.metrics', 'recording_metric', 'traveled_distance_metric'),
    **_below(
        f'{_CONFIGS}.tasks', f'{_CONFIGS}.tasks', 'finite_step_task', 'manipulation_task', 'single_inference_task'
    ),
    **_below(
        _CONTROLLERS,
        f'{_CONTROLLERS}.walking_controllers',
        *(f'{robot}_move_by_speed_controller' for robot in ('aliengo', 'g1', 'gr1', 'h1')),
    ),
    f'{_CONTROLLERS}.dd_controller': f'{_CONTROLLERS}.speed_controllers',
    **_below(_CONTROLLERS, f'{_CONTROLLERS}.joint_controllers', 'gripper_controller', 'joint_controller'),
    f'{_CONTROLLERS}.ik_controller': f'{_CONTROLLERS}.inverse_kinematics_controller',
    **_below(
        _CONTROLLERS,
        f'{_CONTROLLERS}.ground_controllers',
        *('move_to_point_by_speed_controller', 'rotate_controller'),
    ),
    **_below(f'{_EXTENSION}.metrics', f'{_EXTENSION}.metrics', 'recording_metric', 'traveled_distance_metric'),
    **_below(f'{_EXTENSION}.objects', f'{_EXTENSION}.objects', 'dynamic_cube', 'usd_object', 'visual_cube'),
    f'{_EXTENSION}.robots.mocap_controlled_franka': f'{_EXTENSION}.robots.franka',
    **_below(
        f'{_EXTENSION}.sensors',
        f'{_EXTENSION}.sensors.rep_camera',
        *('layout_edit_mocap_controlled_camera', 'mocap_controlled_camera'),
    ),
    **_below(
        f'{_EXTENSION}.tasks',
        f'{_EXTENSION}.tasks',
        *('finite_step_task', 'manipulation_task', 'single_inference_task'),
    ),
}
"""Module here, by module of 2.x."""
