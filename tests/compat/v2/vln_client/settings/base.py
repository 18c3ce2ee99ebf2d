"""Settings that the others have in common: flash in one env."""

from typing import Any

base: dict[str, Any] = {
    'split': 'metres',
    'env_num': 1,
    'controller': 'flash',
    'steps_per_action': 100,
    'cameras': {'panorama': [32, 24], 'topdown': 40, 'pointcloud': [16, 16]},
    'env_settings': {
        'physics_dt': 1 / 200,
        'rendering_dt': 1 / 200,
        'rendering_interval': 5,
        'use_fabric': False,
        'headless': True,
    },
    'task_settings': {
        'env_num': 1,
        'offset_size': 100,
        'use_distributed': False,
        'proc_num': 1,
        'success_distance': 0.5,
        'max_step': 30,
        'check_fall_and_stuck': True,
        'robot_ankle_height': 0.0758,
        'fall_height_threshold': 0.5,
        'warm_up_step': 100,
        'robot_flash': True,
        'one_step_stand_still': True,
    },
}
walking = base['task_settings'] | {'robot_flash': False, 'one_step_stand_still': False}
