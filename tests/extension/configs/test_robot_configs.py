"""Robot configs and the ready-made configs beside them, against the public table of their names and values."""

import importlib
import json
from typing import Any

import pytest

from internutopia.config import ControllerCfg, RobotCfg, SensorCfg
from internutopia.config.base import BaseCfg
from internutopia.macros import gm
from internutopia_extension.configs import joint_names, robots
from internutopia_extension.navigation.robots import Moves, navigation_robot

A = gm.ASSET_PATH

ROBOTS = {
    'h1.H1RobotCfg': ('H1Robot', 'h1', '/h1', '/robots/h1/h1.usd'),
    'h1_with_hand.H1WithHandRobotCfg': (
        'H1WithHandRobot',
        'h1_with_hand',
        '/h1_with_hand',
        '/robots/h1_with_hand/h1_with_hand_rt_v2.usd',
    ),
    'g1.G1RobotCfg': ('G1Robot', 'g1', '/g1', '/robots/g1/g1_29dof_color.usd'),
    'gr1.GR1RobotCfg': ('GR1Robot', 'gr1', '/gr1', '/robots/gr1/gr1.usd'),
    'aliengo.AliengoRobotCfg': ('AliengoRobot', 'aliengo', '/aliengo', '/robots/aliengo/aliengo_camera.usd'),
    'go2.Go2RobotCfg': ('Go2Robot', 'go2', '/go2', '/robots/go2/go2.xml'),
    'jetbot.JetbotRobotCfg': ('JetbotRobot', 'jetbot', '/World/jetbot', '/robots/jetbot/jetbot.usd'),
    'franka.FrankaRobotCfg': ('FrankaRobot', 'franka', '/franka', '/robots/franka/franka.usd'),
    'ridgeback_franka.RidgebackFrankaRobotCfg': (
        'RidgebackFrankaRobot',
        'ridgeback_franka',
        '/ridgeback_franka',
        '/robots/ridgeback_franka/ridgeback_franka.xml',
    ),
    'mocap_controlled_franka.MocapControlledFrankaRobotCfg': (
        'MocapControlledFrankaRobot',
        'mocap_controlled_franka',
        '/mocap_controlled_franka',
        '/robots/franka/mocap_teleop_franka.usd',
    ),
}

MOVE_TO_POINT = {'name': 'move_to_point', 'forward_speed': 1.0, 'rotation_speed': 4.0, 'threshold': 0.05}
MOVE_ALONG_PATH = {'name': 'move_along_path', 'forward_speed': 1.0, 'rotation_speed': 4.0, 'threshold': 0.1}
DOWN = (0.70710678, 0.0, 0.70710678, 0.0)

# module.instance -> its type, and the fields that matter; 'subs' are the names of its sub-controllers.
INSTANCES: dict[str, tuple[str, dict[str, Any]]] = {
    'g1.move_by_speed_cfg': (
        'G1MoveBySpeedController',
        {
            'name': 'move_by_speed',
            'joint_names': joint_names.G1_SIM,
            'policy_weights_path': A + '/robots/g1/policy/move_by_speed/g1_15000.onnx',
        },
    ),
    'gr1.move_by_speed_cfg': (
        'GR1MoveBySpeedController',
        {
            'name': 'move_by_speed',
            'joint_names': joint_names.GR1_54,
            'policy_weights_path': A + '/robots/gr1/policy/move_by_speed/gr1_policy.onnx',
        },
    ),
    'go2.move_by_speed_cfg': (
        'MoveBySpeedController',
        {
            'name': 'move_by_speed',
            'joint_names': joint_names.ALIENGO_12,
            'policy_weights_path': A + '/robots/go2/move_by_speed.onnx',
            'hold_heading': True,
            'hold_position': True,
        },
    ),
    'aliengo.move_by_speed_cfg': (
        'AliengoMoveBySpeedController',
        {
            'name': 'move_by_speed',
            'joint_names': joint_names.ALIENGO_12,
            'policy_weights_path': A + '/robots/aliengo/policy/move_by_speed/aliengo_loco_model_4000.pt',
        },
    ),
    'jetbot.move_by_speed_cfg': (
        'DifferentialDriveController',
        {'name': 'move_by_speed', 'wheel_base': 0.1125, 'wheel_radius': 0.03},
    ),
    'ridgeback_franka.move_by_speed_cfg': (
        'HolonomicDriveController',
        {'name': 'move_by_speed', 'joint_names': joint_names.RIDGEBACK_BASE_3},
    ),
    'ridgeback_franka.move_to_point_cfg': ('MoveToPointBySpeedController', MOVE_TO_POINT | {'threshold': 0.02}),
    'ridgeback_franka.rotate_cfg': ('RotateController', {'rotation_speed': 2.0, 'threshold': 0.02}),
    'ridgeback_franka.arm_joint_controller_cfg': (
        'JointController',
        {'name': 'arm_joint_controller', 'joint_names': joint_names.FRANKA_ARM_7},
    ),
    'g1.move_to_point_cfg': ('MoveToPointBySpeedController', MOVE_TO_POINT | {'rotation_speed': 2.0}),
    'jetbot.move_to_point_cfg': (
        'MoveToPointBySpeedController',
        MOVE_TO_POINT | {'rotation_speed': 1.0, 'threshold': 0.1, 'subs': ['move_by_speed']},
    ),
    'jetbot.move_along_path_cfg': ('MoveAlongPathPointsController', MOVE_ALONG_PATH | {'rotation_speed': 1.0}),
    'g1.rotate_cfg': ('RotateController', {'rotation_speed': 4.0, 'threshold': 0.1}),
    'gr1.rotate_cfg': ('RotateController', {'rotation_speed': 4.0, 'threshold': 0.05}),
    'jetbot.rotate_cfg': ('RotateController', {'rotation_speed': 2.0, 'threshold': 0.02}),
    'gr1.teleop_cfg': ('GR1TeleOpController', {'name': 'teleop', 'joint_names': joint_names.GR1_TELEOP_54}),
    'h1.h1_camera_cfg': (
        'RepCamera',
        {'name': 'camera', 'prim_path': 'logo_link/Camera', 'resolution': (640, 480), 'depth': True, 'rgba': True},
    ),
    'h1.h1_tp_camera_cfg': (
        'RepCamera',
        {'name': 'tp_camera', 'prim_path': 'torso_link/TPCamera', 'resolution': (640, 480), 'depth': True},
    ),
    'h1_with_hand.h1_with_hand_camera_cfg': ('RepCamera', {'name': 'camera', 'prim_path': 'logo_link/Camera'}),
    'h1_with_hand.h1_with_hand_tp_camera_cfg': (
        'RepCamera',
        {'name': 'tp_camera', 'prim_path': 'torso_link/TPCamera', 'resolution': (640, 480), 'depth': True},
    ),
    'h1_with_hand.right_arm_joint_controller_cfg': (
        'JointController',
        {
            'name': 'right_arm_joint_controller',
            'joint_names': [
                'right_shoulder_pitch_joint',
                'right_shoulder_roll_joint',
                'right_shoulder_yaw_joint',
                'right_elbow_joint',
            ],
        },
    ),
    'h1_with_hand.right_arm_ik_controller_cfg': (
        'InverseKinematicsController',
        {
            'name': 'right_arm_ik_controller',
            'robot_description_path': A + '/robots/h1_with_hand/right_arm_descriptor.yaml',
            'robot_urdf_path': A + '/robots/h1_with_hand/h1_with_hand.urdf',
            'end_effector_frame_name': 'right_hand_link',
            'threshold': 0.01,
            'reference': None,
        },
    ),
    'gr1.camera_left_cfg': (
        'RepCamera',
        {'name': 'camera_left', 'prim_path': 'head_yaw_link/CameraLeft', 'resolution': (1280, 720), 'depth': False},
    ),
    'gr1.camera_right_cfg': (
        'RepCamera',
        {'name': 'camera_right', 'prim_path': 'head_yaw_link/CameraRight', 'resolution': (1280, 720)},
    ),
    'go2.camera_cfg': ('RepCamera', {'name': 'camera', 'prim_path': 'Head_upper/Camera', 'resolution': None}),
    'aliengo.camera_cfg': ('RepCamera', {'name': 'camera', 'prim_path': 'trunk/Camera', 'resolution': None}),
    'jetbot.camera_cfg': (
        'RepCamera',
        {'name': 'camera', 'prim_path': 'chassis/rgb_camera/jetbot_camera', 'resolution': (640, 360)},
    ),
    'franka.arm_ik_cfg': (
        'InverseKinematicsController',
        {
            'name': 'arm_ik_controller',
            'robot_description_path': A + '/robots/franka/rmpflow/robot_descriptor.yaml',
            'robot_urdf_path': A + '/robots/franka/lula_franka_gen.urdf',
            'end_effector_frame_name': 'right_gripper',
            'threshold': 0.01,
        },
    ),
    'franka.gripper_cfg': ('GripperController', {'name': 'gripper_controller'}),
    'mocap_controlled_franka.rmpflow_controller_cfg': (
        'RMPFlowController',
        {
            'name': 'rmpflow_controller',
            'robot_description_path': A + '/robots/franka/rmpflow/robot_descriptor.yaml',
            'robot_urdf_path': A + '/robots/franka/lula_franka_gen.urdf',
            'rmpflow_config_path': A + '/robots/franka/franka_rmpflow_common.yaml',
            'end_effector_frame_name': 'right_gripper',
        },
    ),
    'mocap_controlled_franka.gripper_controller_cfg': ('GripperController', {'name': 'gripper_controller'}),
    'mocap_controlled_franka.teleop_cfg': (
        'FrankaMocapTeleopController',
        {
            'name': 'franka_mocap_teleop_controller',
            'scale': (0.25, 0.75, 0.75),
            'target_position': (0, 0, 1),
            'origin_xyz': (0.46, 0, 0.38),
            'origin_xyz_angle': (0, 0, 0),
            'subs': ['rmpflow_controller', 'gripper_controller'],
        },
    ),
    'mocap_controlled_franka.layout_cfg': (
        'LayoutEditMocapController',
        {
            'name': 'layout_edit_mocap_controller',
            'scale': (0.25, 0.75, 0.75),
            'target_position': (0, 0, 1),
            'rh_origin_xyz': (-0.38, -0.2, 1.2),
            'lh_origin_xyz': (-0.38, 0.1, 1.2),
            'origin_xyz_angle': (0, 0, 0),
            'hand_scale': [0.01] * 3,
            'right_hand_path': A + '/assets/objects/hand/right_hand.usd',
            'left_hand_path': A + '/assets/objects/hand/left_hand.usd',
            'right_hand_prim_path': '/World/right_hand',
            'left_hand_prim_path': '/World/left_hand',
            'save_asset_path': 'InternUtopia/out',
            'save_robot': False,
            'subs': ['rmpflow_controller'],
        },
    ),
    'mocap_controlled_franka.lh_controlled_camera_cfg': (
        'MocapControlledCamera',
        {
            'name': 'lh_controlled_camera',
            'prim_path': 'logo_link/lh_controlled_camera',
            'translation': (0, 0, 5),
            'orientation': DOWN,
        },
    ),
    'mocap_controlled_franka.layout_controlled_camera_cfg': (
        'LayoutEditMocapControlledCamera',
        {
            'name': 'layout_controlled_camera',
            'prim_path': 'Camera/layout_controlled_camera',
            'translation': (0.11, -0.04, 6.5),
            'orientation': DOWN,
        },
    ),
}
for name in ('arm_ik_cfg', 'gripper_cfg'):
    INSTANCES[f'ridgeback_franka.{name}'] = INSTANCES[f'franka.{name}']
for robot, policy in (
    ('h1', '/robots/h1/policy/move_by_speed/h1_loco_model_20000.pt'),
    ('h1_with_hand', '/robots/h1_with_hand/move_by_speed.onnx'),
):
    INSTANCES |= {
        f'{robot}.joint_controller': (
            'JointController',
            {'name': 'joint_controller', 'joint_names': joint_names.H1_19},
        ),
        f'{robot}.move_by_speed_cfg': (
            'H1MoveBySpeedController',
            {
                'name': 'move_by_speed',
                'joint_names': joint_names.H1_19,
                'policy_weights_path': A + policy,
            },
        ),
        f'{robot}.recover_cfg': (
            'RecoverController',
            {'name': 'recover', 'recover_height': 1.0, 'subs': ['joint_controller']},
        ),
    }
for robot in ('h1', 'h1_with_hand', 'gr1', 'aliengo', 'go2'):
    INSTANCES[f'{robot}.move_to_point_cfg'] = (
        'MoveToPointBySpeedController',
        MOVE_TO_POINT | {'subs': ['move_by_speed']},
    )
for robot in ('h1', 'h1_with_hand', 'g1', 'gr1', 'aliengo', 'go2', 'ridgeback_franka'):
    INSTANCES[f'{robot}.move_along_path_cfg'] = (
        'MoveAlongPathPointsController',
        MOVE_ALONG_PATH | {'subs': ['move_to_point']},
    )
for robot in ('h1', 'h1_with_hand', 'aliengo', 'go2'):
    INSTANCES[f'{robot}.rotate_cfg'] = (
        'RotateController',
        {'name': 'rotate', 'rotation_speed': 2.0, 'threshold': 0.05, 'subs': ['move_by_speed']},
    )
for robot in ('h1', 'h1_with_hand', 'g1', 'gr1', 'aliengo', 'go2', 'jetbot'):
    INSTANCES[f'{robot}.move_by_discrete_cfg'] = (
        'DiscreteMoveController',
        {'name': 'move_by_discrete', 'subs': ['move_by_speed']},
    )
    INSTANCES[f'{robot}.move_by_flash_cfg'] = ('FlashController', {'name': 'move_by_flash', 'subs': []})
INSTANCES['ridgeback_franka.move_by_discrete_cfg'] = INSTANCES['h1.move_by_discrete_cfg']


def find(path: str) -> Any:
    module, name = path.split('.')
    return getattr(importlib.import_module(f'internutopia_extension.configs.robots.{module}'), name)


@pytest.mark.parametrize('path', ROBOTS)
def test_robot(path):
    robot_type, name, prim_path, usd_path = ROBOTS[path]
    cls = find(path)
    robot = cls()
    assert (robot.type, robot.name, robot.prim_path, robot.usd_path) == (robot_type, name, prim_path, A + usd_path)
    assert robot.position == (0.0, 0.0, 0.0)
    assert (robot.orientation, robot.scale, robot.controllers, robot.sensors) == (None, None, None, None)
    assert RobotCfg.class_for({'type': robot_type}) is cls


@pytest.mark.parametrize('path', INSTANCES)
def test_instance(path):
    kind, expected = INSTANCES[path]
    config = find(path)
    values = dict(config, subs=[sub.name for sub in getattr(config, 'sub_controllers', None) or []])
    assert config.type == kind
    assert {field: values[field] for field in expected} == expected

    family = ControllerCfg if isinstance(config, ControllerCfg) else SensorCfg
    [again] = family.from_items([json.loads(config.model_dump_json())])
    assert again == config


NOT_OF_2X = {
    'gr1.left_arm_ik_cfg',
    'gr1.right_arm_ik_cfg',
    'h1_with_hand.left_arm_ik_controller_cfg',
    'mocap_controlled_franka.arm_ik_cfg',
}


def test_every_instance_of_the_robot_modules_is_in_the_table():
    found = {
        f'{module}.{name}'
        for module in robots.__all__
        for name, value in vars(getattr(robots, module)).items()
        if isinstance(value, BaseCfg)
    }
    assert found - NOT_OF_2X == set(INSTANCES)


def test_instances_of_different_robots_are_not_shared():
    assert find('h1.rotate_cfg') is not find('h1_with_hand.rotate_cfg')


@pytest.mark.parametrize('moves', ['discrete', 'flash'])
@pytest.mark.parametrize('robot', ['aliengo', 'g1', 'go2', 'gr1', 'h1', 'h1_with_hand', 'jetbot'])
def test_robots_of_navigation(robot: str, moves: Moves) -> None:
    config = navigation_robot(robot, moves)
    [controller] = config.controllers or []
    assert config.name == robot and controller.name == f'move_by_{moves}'
    if moves == 'discrete':  # with the robot's own policy
        [walk] = controller.sub_controllers or []
        assert f'/{robot}/' in getattr(walk, 'policy_weights_path', f'/{robot}/')
