"""Parameters with which built-in terms are tested, for tests that compare what terms give on arrays of other kinds."""

from typing import Any

import pytest

from internutopia.rl.terms import KINDS, registered_terms

ENVS = 5
OBJECTS = ('a', 'b', 'c')
GO: dict[str, Any] = {'name': 'go'}
GOAL: dict[str, Any] = {'name': 'goal'}
TIP: dict[str, Any] = {'link': 'leg'}
GAIT: dict[str, Any] = {**GO, 'period': 0.8, 'offsets': [0.1, 0.6]}
STEPS: dict[str, Any] = {**GAIT, 'height': 0.08, 'ground': 0.05}
# parameters of all terms that need some or that do more with them; one term may come several times
CASES: dict[tuple[str, str], list[dict[str, Any]]] = {
    ('observation', 'joint_positions'): [{}, {'relative': True, 'joints': ['tail']}],
    ('observation', 'joint_velocities'): [{}, {'joints': ['tail', 'hip']}],
    ('observation', 'command'): [GO],
    ('observation', 'goal_direction'): [GOAL],
    ('observation', 'phase'): [{'period': 0.7}],
    ('observation', 'gait_phase'): [{**GO, 'period': 0.7}, {**GO, 'period': 0.7, 'stops': False}],
    ('observation', 'link_position'): [TIP],
    ('observation', 'constant'): [{}, {'value': [2.0, 3.0]}],
    ('observation', 'height_scan'): [{'forward': [0.0, 0.3], 'left': [-0.1, 0.1]}],
    ('observation', 'nearest_objects'): [{'objects': OBJECTS, 'count': 2}],
    ('observation', 'target_offset'): [{**TIP, 'name': 'target'}],
    ('observation', 'object_offset'): [{**TIP, 'body': 'a'}, {**TIP, 'body': 'a', 'offset': (0.1, 0.0, -0.2)}],
    ('reward', 'track_linear_velocity'): [GO, {**GO, 'final': 0.2}],
    ('reward', 'track_yaw_rate'): [GO, {**GO, 'final': 0.2}],
    ('reward', 'goal_progress'): [GOAL],
    ('reward', 'goal_reached'): [{**GOAL, 'radius': 1.5}],
    ('reward', 'left_area'): [{'radius': 0.25}],
    ('reward', 'height'): [{'target': 0.3}],
    ('reward', 'posture_cost'): [{}, {'joints': ['tail']}],
    ('reward', 'joint_limit_cost'): [{'margin': 1.0}],
    ('reward', 'height_cost'): [{'target': 0.3}],
    ('reward', 'near_objects_cost'): [{'objects': OBJECTS, 'distance': 2.0}],
    ('reward', 'target_distance'): [{**TIP, 'name': 'target'}],
    ('reward', 'target_near'): [{**TIP, 'name': 'target', 'tolerance': 0.5}],
    ('reward', 'object_near'): [{**TIP, 'body': 'a', 'tolerance': 0.5}],
    ('reward', 'object_reached'): [{**TIP, 'body': 'a', 'radius': 0.5}],
    ('reward', 'object_lifted'): [{'body': 'a', 'low': 0.0, 'high': 0.2}],
    ('reward', 'grip'): [{**TIP, 'body': 'a', 'joints': ['tail'], 'opening': 0.5, 'radius': 1.0}],
    ('reward', 'risen'): [{'height': 0.5}],
    ('reward', 'upright_posture'): [{'tolerance': 0.5}, {'tolerance': 0.5, 'joints': ['tail']}],
    ('reward', 'gait_contact'): [GAIT],
    ('reward', 'swing_height_cost'): [STEPS, {**STEPS, 'ahead': [0.0, 0.1]}],
    ('reward', 'foothold_cost'): [{'sole': [(0.1, 0.0, -0.02), (-0.1, 0.0, 0.1)]}],
    ('reward', 'standing_posture_cost'): [{**GO, 'joints': ['hip', 'tail'], 'positions': {'tail': 0.3}}],
    ('reward', 'standing_motion_cost'): [GO],
    ('reward', 'standing_drift_cost'): [GO],
    ('reward', 'standing'): [GO],
    ('reward', 'path_error_cost'): [GO, {**GO, 'horizon': 0.1, 'limit': 0.01}],
    ('reward', 'low_links_cost'): [{'links': ['leg'], 'height': 1.0}],
    ('reward', 'stance_bend_cost'): [{**GAIT, 'joints': ['hip', 'tail'], 'bend': -0.2}],
    ('reward', 'swing_bend_cost'): [{**GAIT, 'joints': ['hip', 'tail'], 'bend': 0.5}],
    ('reward', 'feet_near_cost'): [{'distance': 1.0}],
    ('termination', 'fallen'): [{'minimum_height': 0.2}],
    ('termination', 'tilted'): [{'limit': 0.5}],
    ('termination', 'height_outside'): [{'low': 0.1, 'high': 0.2}],
    ('termination', 'joint_outside'): [{'joint': 'tail', 'low': -0.2, 'high': 0.2}],
    ('termination', 'goal_reached'): [{**GOAL, 'radius': 1.5}],
    ('termination', 'left_area'): [{'radius': 0.25}],
    ('termination', 'near_object'): [{'objects': OBJECTS, 'distance': 1.0}],
    ('termination', 'object_reached'): [{**TIP, 'body': 'a', 'radius': 0.5}],
    ('termination', 'object_away'): [{'body': 'a', 'distance': 1.0}],
    ('command', 'uniform'): [{'low': [0.0, -1.0], 'high': [1.0, 2.0]}],
    ('command', 'choice'): [{'rows': [[0.0, 1.0], [2.0, 3.0]]}],
    ('command', 'velocity'): [{}, {'standing': 0.3, 'turning': 0.4}, {'standing': 0.3, 'by_level': True}],
    ('command', 'position'): [{'low': [0.0, -1.0, 0.0], 'high': [1.0, 2.0, 0.5]}],
    ('command', 'goal'): [
        {'distance': (1.0, 2.0)},
        {'distance': (1.0, 2.0), 'around': 'robot', 'avoid': OBJECTS, 'clearance': 0.5},
    ],
    ('curriculum', 'survival'): [{'long': 0.3, 'short': 0.1}],
    ('curriculum', 'performance'): [{'reward': 'alive', 'duration': 0.3, 'high': 0.6, 'low': 0.4}],
    ('randomization', 'joint_offset'): [{'position': (-2.0, 2.0), 'velocity': (-1.0, 1.0)}],
    ('randomization', 'base_pose'): [{'x': (-1.0, 1.0), 'z': (0.0, 0.2), 'yaw': (-3.0, 3.0)}],
    ('randomization', 'tumbled'): [{'height': (0.4, 0.5)}, {'height': (0.4, 0.5), 'share': 0.5}],
    ('randomization', 'terrain_pose'): [{'x': [0.0, 2.0], 'y': [1.0], 'spread': 0.3, 'by_level': True}],
    ('randomization', 'push'): [{'speed': 1.0}, {'speed': 1.0, 'by_level': True}],
    ('randomization', 'gains'): [{'stiffness': (0.5, 2.0), 'damping': (0.5, 2.0)}],
    ('randomization', 'mass'): [{**TIP, 'factor': (0.5, 2.0)}],
    ('randomization', 'foot_size'): [{'length': (0.5, 1.0), 'width': (0.2, 1.0)}],
    ('randomization', 'friction'): [{'coefficient': (0.5, 2.0)}],
    ('randomization', 'joint_pose'): [{'positions': {'tail': (0.1, 0.3), 'hip': (-0.2, 0.2)}}],
    ('randomization', 'other_pose'): [{'positions': {'tail': 0.2, 'hip': -0.1}, 'rise': 0.1}],
    ('randomization', 'scatter'): [{'objects': OBJECTS, 'distance': (1.0, 2.0)}],
    ('randomization', 'place_object'): [{'body': 'a', 'x': (0.0, 1.0), 'y': (-1.0, 0.0), 'z': 0.3}],
}
# need a world that takes pictures, a sensor, another robot, an object with joints
ELSEWHERE = {
    ('observation', 'camera'),
    ('observation', 'sensor'),
    ('observation', 'robot_offset'),
    ('observation', 'robot_velocity'),
    ('reward', 'robot_near'),
    ('reward', 'robot_within'),
    ('termination', 'robot_within'),
    ('observation', 'object_joint'),
    ('reward', 'object_joint_moved'),
    ('metric', 'object_joint_moved'),
}
MOTION = 'internutopia.rl.terms.motion'  # they need the file of a motion
BUILT_IN: list[tuple[Any, str]] = [
    (kind, name)
    for kind in KINDS
    for name, function in registered_terms(kind).items()
    if function.__module__.startswith('internutopia.')
    and (kind, name) not in ELSEWHERE
    and function.__module__ != MOTION
]
EVERY_CASE = [
    pytest.param(kind, name, params, id=f'{kind}-{name}-{index}')
    for kind, name in BUILT_IN
    for index, params in enumerate(CASES.get((kind, name), [{}]))
]
