"""Names that scripts of InternUtopia 2.2.1 import: each is there with its signature; `test_2x_gone.py` has the others.

The names and signatures are facts read from that version (github.com/InternRobotics/InternUtopia).
"""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from internutopia_extension import import_extensions

import_extensions()

CFG = 'internutopia_extension.configs'
CORE = 'internutopia.core'
EXT = 'internutopia_extension'

# module, name, what it takes; parameters of ours after those need a default
THERE = [
    ('internutopia.macros', 'determine_gm_path', 'default_path, env_var_name'),
    (f'{CORE}.gym_env', 'Env', 'config'),
    (f'{CORE}.gym_env', 'Env.reset', 'self, *, seed=None, options=None'),
    (f'{CORE}.gym_env', 'Env.step', 'self, action'),
    (f'{CORE}.gym_env', 'Env.warm_up', 'self, steps=10, render=True, physics=True'),
    (f'{CORE}.gym_env', 'Env.render', "self, mode='human'"),
    (f'{CORE}.gym_env', 'Env.get_dt', 'self'),
    (f'{CORE}.gym_env', 'Env.get_observations', 'self'),
    (f'{CORE}.gym_env', 'Env.finished', 'self'),
    (f'{CORE}.gym_env', 'Env.close', 'self'),
    (f'{CORE}.vec_env', 'Env', 'config'),
    (f'{CORE}.vec_env', 'Env.step', 'self, action'),
    (f'{CORE}.vec_env', 'Env.warm_up', 'self, steps=10, render=True, physics=True'),
    (f'{CORE}.vec_env', 'Env.get_dt', 'self'),
    (f'{CORE}.vec_env', 'Env.get_observations', 'self'),
    (f'{CORE}.vec_env', 'Env.finished', 'self'),
    (f'{CORE}.vec_env', 'Env.close', 'self'),
    (f'{CORE}.config', 'Config.distribute', 'self, distribution_config'),
    (f'{CORE}.runner', 'SimulatorRunner.get_obj', 'self, name'),
    (f'{CORE}.runner', 'SimulatorRunner.get_current_time_step_index', 'self'),
    (f'{CORE}.util', 'has_display', ''),
    (f'{CORE}.util', 'is_in_container', ''),
    (f'{CORE}.util', 'remove_suffix', 'name'),
    (f'{CORE}.util.gym', 'gym_adapter', 'joint_names_gym, joint_names_sim'),
    (f'{CORE}.util.gym', 'gym_adapter.gym2sim', 'self, action'),
    (f'{CORE}.util.gym', 'gym_adapter.sim2gym', 'self, obs'),
    (f'{CORE}.util.gym', 'gym_adapter.rearange_order', 'src, from_joint_names, to_joint_names'),
    (f'{CORE}.util.math', 'quat_rotate_inverse', 'q, v'),
    (f'{CORE}.util.math', 'quaternion_multiply', 'q1, q2'),
    (f'{CORE}.util.math', 'quaternion_conjugate', 'q'),
    (f'{CORE}.util.math', 'quaternion_to_gravity_component', 'quaternion'),
    (
        f'{CORE}.util.joint',
        'create_joint',
        'prim_path, joint_type, body0=None, body1=None, enabled=True, joint_frame_in_parent_frame_pos=None, '
        'joint_frame_in_parent_frame_quat=None, joint_frame_in_child_frame_pos=None, '
        'joint_frame_in_child_frame_quat=None, break_force=None, break_torque=None',
    ),
    (f'{CORE}.util.interaction', 'BaseInteraction.get_input', 'self'),
    (f'{CORE}.util.interaction', 'BaseInteraction.register', 'name'),
    *((f'{CORE}.util.physics', f'set_collider{end}', 'item, approx=None, init_state=True') for end in ('', '_')),
    *(
        (f'{CORE}.util.physics', f'{what}_collider{end}', 'item')
        for what in ('activate', 'deactivate', 'remove')
        for end in ('', '_')
    ),
    (f'{CORE}.util.pose_mixin', 'PoseMixin.set_pose', 'self, position=None, orientation=None'),
    (f'{CORE}.util.pose_mixin', 'PoseMixin.set_world_pose', 'self, position=None, orientation=None'),
    (f'{CORE}.util.pose_mixin', 'PoseMixin.set_local_pose', 'self, translation=None, orientation=None'),
    (f'{CORE}.datahub', 'DataHub.set_episode_finished', 'task_name'),
    (f'{CORE}.datahub', 'DataHub.get_episode_finished', 'task_name'),
    (EXT, 'import_extensions', ''),
    *(
        (f'{EXT}.robots.{module}', name, 'config, scene')
        for module, name in (
            ('h1', 'H1Robot'),
            ('h1_with_hand', 'H1WithHandRobot'),
            ('g1', 'G1Robot'),
            ('gr1', 'GR1Robot'),
            ('aliengo', 'AliengoRobot'),
            ('jetbot', 'JetbotRobot'),
            ('franka', 'FrankaRobot'),
            ('mocap_controlled_franka', 'MocapControlledFrankaRobot'),
        )
    ),
    (
        f'{CORE}.robot.isaacsim.articulation',
        'IsaacsimArticulation',
        'usd_path=None, prim_path=None, name=None, position=None, orientation=None, scale=None',
    ),
    (
        f'{CORE}.robot.articulation',
        'IArticulation.create',
        "simulator_type='isaac_sim', usd_path=None, prim_path=None, name=None, position=None, orientation=None, "
        'scale=None',
    ),
    (
        f'{CORE}.robot.rigid_body',
        'IRigidBody.create',
        "simulator_type='isaac_sim', prim_path=None, usd_path=None, name=None, position=None, translation=None, "
        'orientation=None, scale=None, visible=None, mass=None, linear_velocity=None, angular_velocity=None, '
        'owner_articulation=None',
    ),
    (
        f'{CORE}.robot.isaacsim.rigid_body',
        'IsaacsimRigidBody',
        'prim_path=None, usd_path=None, name=None, position=None, translation=None, orientation=None, scale=None, '
        'visible=None, mass=None, linear_velocity=None, angular_velocity=None, owner_articulation=None',
    ),
    (
        f'{EXT}.robots.jetbot',
        'WheeledRobot',
        "prim_path, name='wheeled_robot', robot_path=None, wheel_dof_names=None, wheel_dof_indices=None, "
        'usd_path=None, position=None, orientation=None, scale=None',
    ),
    (
        f'{EXT}.robots.franka',
        'Franka',
        "prim_path, name='franka_robot', usd_path=None, position=None, orientation=None, end_effector_prim_name=None, "
        'gripper_dof_names=None, gripper_open_position=None, gripper_closed_position=None, deltas=None, scale=None',
    ),
    (f'{EXT}.robots.h1', 'H1Robot.get_ankle_height', 'self'),
    (f'{EXT}.robots.h1', 'H1Robot.set_gains', 'self'),
    *(
        (f'{EXT}.{module}', name, 'config, robot, scene')
        for module, name in (
            ('sensors.rep_camera', 'RepCamera'),
            ('sensors.mocap_controlled_camera', 'MocapControlledCamera'),
            ('sensors.layout_edit_mocap_controlled_camera', 'LayoutEditMocapControlledCamera'),
        )
    ),
    *(
        (f'{EXT}.{module}', name, 'config, scene')
        for module, name in (
            ('objects.dynamic_cube', 'DynamicCube'),
            ('objects.visual_cube', 'VisualCube'),
            ('objects.usd_object', 'UsdObject'),
            ('tasks.single_inference_task', 'SimpleInferenceTask'),
            ('tasks.finite_step_task', 'FiniteStepTask'),
            ('tasks.manipulation_task', 'ManipulationTask'),
        )
    ),
    (f'{EXT}.metrics.recording_metric', 'RecordingMetric', 'config, task_config'),
    (f'{EXT}.metrics.traveled_distance_metric', 'TraveledDistanceMetric', 'config, task_config'),
    (
        f'{EXT}.controllers.move_to_point_by_speed_controller',
        'MoveToPointBySpeedController.get_angle',
        'start_position, start_orientation, goal_position',
    ),
    (
        f'{EXT}.controllers.rotate_controller',
        'RotateController.get_delta_z_rot',
        'start_orientation, goal_orientation',
    ),
    (f'{EXT}.interactions.keyboard', 'KeyboardInteraction', ''),
    (f'{EXT}.interactions.keyboard', 'KeyboardInteraction.get_input', 'self'),
    (f'{EXT}.interactions.motion_capture', 'MocapInteraction', 'mocap_url'),
    *(
        (f'{EXT}.interactions.motion_capture', f'MocapInteraction.{name}', 'self')
        for name in ('step', 'server_start', 'server_stop')
    ),
]
NAMES = {  # what is no function: only that it is there
    'internutopia.macros': 'gm MacroDict',
    f'{CORE}.config': 'ObjectCfg RobotCfg TaskCfg DistributionCfg SimConfig Config DistributedConfig Simulator',
    f'{CORE}.config.distribution': 'DistributionCfg RayDistributionCfg',
    f'{CORE}.config.robot': 'BaseCfg ControllerCfg RobotCfg SensorCfg',
    f'{CORE}.config.sensor': 'SensorCfg',
    f'{CORE}.config.object': 'ObjectCfg',
    f'{CORE}.config.metric': 'MetricCfg',
    f'{CORE}.config.task': 'TaskCfg MetricCfg RewardCfg RobotCfg ObjectCfg',
    f'{CORE}.config.task.reward': 'RewardCfg',
    f'{CORE}.util': 'log',
    f'{CORE}.util.log': 'log',
    f'{CORE}.util.pose_mixin': 'PoseMixin',
    f'{CORE}.datahub': 'DataHub',
    f'{CORE}.scene.isaacsim.scene': 'IsaacsimScene',
    f'{CORE}.sensor.isaacsim.camera': 'IsaacsimCamera',
    f'{CFG}.controllers': 'H1MoveBySpeedControllerCfg G1MoveBySpeedControllerCfg GR1MoveBySpeedControllerCfg '
    'AliengoMoveBySpeedControllerCfg JointControllerCfg GR1TeleOpControllerCfg DifferentialDriveControllerCfg '
    'MoveToPointBySpeedControllerCfg MoveAlongPathPointsControllerCfg RotateControllerCfg RecoverControllerCfg '
    'InverseKinematicsControllerCfg RMPFlowControllerCfg GripperControllerCfg FrankaMocapTeleopControllerCfg '
    'LayoutEditMocapControllerCfg',
    f'{CFG}.sensors': 'RepCameraCfg MocapControlledCameraCfg LayoutEditMocapControlledCameraCfg',
    f'{CFG}.tasks': 'SingleInferenceTaskCfg FiniteStepTaskCfg ManipulationTaskCfg',
    f'{CFG}.objects': 'DynamicCubeCfg VisualCubeCfg UsdObjCfg',
    f'{CFG}.metrics': 'RecordingMetricCfg TraveledDistanceMetricCfg',
    f'{CFG}.metrics.traveled_distance_metric': 'TraveledDistanceMetricCfg',
    f'{CFG}.robots.h1': 'H1RobotCfg joint_controller move_by_speed_cfg move_to_point_cfg move_along_path_cfg '
    'rotate_cfg recover_cfg h1_camera_cfg h1_tp_camera_cfg',
    f'{CFG}.robots.h1_with_hand': 'H1WithHandRobotCfg joint_controller move_by_speed_cfg move_to_point_cfg rotate_cfg '
    'move_along_path_cfg recover_cfg h1_with_hand_camera_cfg h1_with_hand_tp_camera_cfg right_arm_joint_controller_cfg '
    'right_arm_ik_controller_cfg',
    f'{CFG}.robots.g1': 'G1RobotCfg move_by_speed_cfg move_to_point_cfg move_along_path_cfg rotate_cfg',
    f'{CFG}.robots.gr1': 'GR1RobotCfg move_by_speed_cfg move_to_point_cfg move_along_path_cfg rotate_cfg teleop_cfg '
    'camera_left_cfg camera_right_cfg',
    f'{CFG}.robots.aliengo': 'AliengoRobotCfg move_by_speed_cfg move_to_point_cfg move_along_path_cfg rotate_cfg '
    'camera_cfg',
    f'{CFG}.robots.jetbot': 'JetbotRobotCfg move_by_speed_cfg move_to_point_cfg move_along_path_cfg rotate_cfg '
    'camera_cfg',
    f'{CFG}.robots.franka': 'FrankaRobotCfg arm_ik_cfg gripper_cfg',
    f'{CFG}.objects.dynamic_cube': 'DynamicCubeCfg',
    f'{CFG}.objects.usd_object': 'UsdObjCfg',
    f'{CFG}.objects.visual_cube': 'VisualCubeCfg',
    f'{CFG}.robots.mocap_controlled_franka': 'MocapControlledFrankaRobotCfg rmpflow_controller_cfg teleop_cfg '
    'layout_cfg gripper_controller_cfg lh_controlled_camera_cfg layout_controlled_camera_cfg',
}


def found(module: str, path: str) -> Any:
    value: Any = importlib.import_module(module)
    for name in path.split('.'):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(('module', 'name', 'takes'), THERE)
def test_what_was_callable_takes_what_it_took(module: str, name: str, takes: str):
    wanted = list(inspect.signature(eval(f'lambda {takes}: None')).parameters.values())
    ours = list(inspect.signature(found(module, name)).parameters.values())
    assert [(p.name, p.default, p.kind) for p in ours[: len(wanted)]] == [(p.name, p.default, p.kind) for p in wanted]
    assert all(p.default is not p.empty or p.kind is p.VAR_KEYWORD for p in ours[len(wanted) :])


@pytest.mark.parametrize('module', NAMES)
def test_names_are_there(module: str):
    missing = [name for name in NAMES[module].split() if not hasattr(importlib.import_module(module), name)]
    assert not missing


def test_env_ids_are_reset_by_position_and_by_name():
    from internutopia.core.vec_env import Env

    parameters = list(inspect.signature(Env.reset).parameters.values())
    assert parameters[1].default is None and 'env_ids' in {p.name for p in parameters}
