"""Built-in configs: found by their type, refusing what is wrong, used as the tutorials and other packages use them."""

import importlib
import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import internutopia_extension
from internutopia.config import (
    Config,
    ControllerCfg,
    MetricCfg,
    ObjectCfg,
    RobotCfg,
    SensorCfg,
    SimConfig,
    TaskCfg,
)
from internutopia.config.base import BaseCfg
from internutopia.macros import gm
from internutopia_extension import configs, import_extensions
from internutopia_extension.configs import joint_names
from internutopia_extension.configs.controllers import (
    ActuatorControllerCfg,
    FrankaMocapTeleopControllerCfg,
    G1MoveBySpeedControllerCfg,
    GR1TeleOpControllerCfg,
    InverseKinematicsControllerCfg,
    LayoutEditMocapControllerCfg,
)
from internutopia_extension.configs.metrics import RecordingMetricCfg, TraveledDistanceMetricCfg
from internutopia_extension.configs.objects import DynamicCubeCfg, UsdObjCfg, VisualCubeCfg
from internutopia_extension.configs.robots.franka import arm_ik_cfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg, h1_tp_camera_cfg, move_by_speed_cfg, rotate_cfg
from internutopia_extension.configs.sensors import RepCameraCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg, ManipulationTaskCfg, SingleInferenceTaskCfg

CONTROLLER_CLASSES = {
    'H1MoveBySpeedController': 'h1_move_by_speed_controller.H1MoveBySpeedControllerCfg',
    'G1MoveBySpeedController': 'g1_move_by_speed_controller.G1MoveBySpeedControllerCfg',
    'GR1MoveBySpeedController': 'gr1_move_by_speed_controller.GR1MoveBySpeedControllerCfg',
    'AliengoMoveBySpeedController': 'aliengo_move_by_speed_controller.AliengoMoveBySpeedControllerCfg',
    'DifferentialDriveController': 'dd_controller.DifferentialDriveControllerCfg',
    'JointController': 'joint_controller.JointControllerCfg',
    'MoveToPointBySpeedController': 'move_to_point_by_speed_controller.MoveToPointBySpeedControllerCfg',
    'MoveAlongPathPointsController': 'move_along_path_points_controller.MoveAlongPathPointsControllerCfg',
    'RotateController': 'rotate_controller.RotateControllerCfg',
    'RecoverController': 'recover_controller.RecoverControllerCfg',
    'InverseKinematicsController': 'ik_controller.InverseKinematicsControllerCfg',
    'RMPFlowController': 'rmpflow_controller.RMPFlowControllerCfg',
    'GripperController': 'gripper_controller.GripperControllerCfg',
    'GR1TeleOpController': 'gr1_teleop_controller.GR1TeleOpControllerCfg',
    'FrankaMocapTeleopController': 'franka_mocap_teleop_controller.FrankaMocapTeleopControllerCfg',
    'LayoutEditMocapController': 'layout_edit_mocap_controller.LayoutEditMocapControllerCfg',
}


def find(package: str, path: str) -> Any:
    module, _, name = path.rpartition('.')
    return getattr(importlib.import_module(f'internutopia_extension.configs.{package}.{module}'), name)


@pytest.mark.parametrize('kind', CONTROLLER_CLASSES)
def test_controller_class_is_found_by_type_and_in_both_places(kind):
    path = CONTROLLER_CLASSES[kind]
    cls = find('controllers', path)
    assert ControllerCfg.class_for({'type': kind}) is cls
    assert getattr(configs.controllers, path.rpartition('.')[2]) is cls
    assert cls.model_fields['type'].default == kind


@pytest.mark.parametrize(
    ('family', 'kind', 'cls'),
    [
        (TaskCfg, 'SingleInferenceTask', SingleInferenceTaskCfg),
        (TaskCfg, 'FiniteStepTask', FiniteStepTaskCfg),
        (TaskCfg, 'ManipulationTask', ManipulationTaskCfg),
        (ObjectCfg, 'DynamicCube', DynamicCubeCfg),
        (ObjectCfg, 'VisualCube', VisualCubeCfg),
        (ObjectCfg, 'UsdObject', UsdObjCfg),
        (MetricCfg, 'RecordingMetric', RecordingMetricCfg),
        (MetricCfg, 'TraveledDistanceMetric', TraveledDistanceMetricCfg),
        (SensorCfg, 'RepCamera', RepCameraCfg),
        (RobotCfg, 'GenericRobot', GenericRobotCfg),
    ],
)
def test_class_is_found_by_type(family, kind, cls):
    assert family.class_for({'type': kind}) is cls


def test_metric_modules_and_names():
    assert find('metrics', 'traveled_distance_metric.TraveledDistanceMetricCfg') is TraveledDistanceMetricCfg
    assert find('metrics', 'recording_metric.RecordingMetricCfg') is RecordingMetricCfg
    assert TraveledDistanceMetricCfg(robot_name='h1').name == 'traveled_distance_metric'
    assert RecordingMetricCfg(robot_name='h1').name == 'recording_metric'


@pytest.mark.parametrize(
    ('one', 'other', 'length'),
    [
        ('H1_19', 'H1_GYM_19', 19),
        ('ALIENGO_12', 'ALIENGO_GYM_12', 12),
        ('G1_SIM', 'G1_GYM', 27),
        ('GR1_54', 'GR1_TELEOP_54', 54),
        ('GR1_54', 'GR1_DOF_54', 54),
    ],
)
def test_joint_orders_name_the_same_joints(one, other, length):
    first, second = getattr(joint_names, one), getattr(joint_names, other)
    assert len(set(first)) == len(first) == len(second) == length
    assert set(first) == set(second)
    assert first != second


def test_aliengo_policy_goes_leg_by_leg():
    assert joint_names.ALIENGO_GYM_12[:4] == ['FL_hip_joint', 'FL_thigh_joint', 'FL_calf_joint', 'FR_hip_joint']


def test_policies_of_the_humanoids_start_with_the_legs():
    for names in (joint_names.G1_GYM, joint_names.GR1_54):
        assert all('hip' in name or 'knee' in name or 'ankle' in name for name in names[:12])
        assert not any('hip' in name or 'knee' in name or 'ankle' in name for name in names[12:])


def test_defaults_of_the_cameras():
    camera = RepCameraCfg(name='camera')
    assert (camera.resolution, camera.enable, camera.rgba) == (None, True, True)
    assert not any((camera.landmarks, camera.depth, camera.pointcloud, camera.camera_params))


def test_defaults_of_the_actuator_controller():
    assert (ActuatorControllerCfg().name, ActuatorControllerCfg().type) == ('actuators', 'ActuatorController')


def test_generic_robot():
    robot = GenericRobotCfg(usd_path='ant.xml', damping={'hip': 1.0}, initial_joint_positions={'hip': 0.1})
    assert (robot.name, robot.prim_path, robot.type) == ('robot', '/robot', 'GenericRobot')
    assert (robot.stiffness, robot.damping, robot.fixed_base, robot.base_link) == (None, {'hip': 1.0}, None, None)
    assert TaskCfg.model_validate_json(TaskCfg(robots=[robot]).model_dump_json()).robots == [robot]
    with pytest.raises(ValidationError, match='usd_path'):
        GenericRobotCfg.model_validate({'usd_path': None})
    with pytest.raises(ValidationError, match='stiffness'):
        GenericRobotCfg(usd_path='ant.xml', stiffness=-1)


@pytest.mark.parametrize(
    ('cls', 'values', 'field'),
    [
        (RepCameraCfg, {'name': 'c', 'resolution': (0, 240)}, 'resolution'),
        (RepCameraCfg, {'name': 'c', 'resolution': (320, 240, 3)}, 'resolution'),
        (RepCameraCfg, {'name': 'c', 'rgb': True}, "has no field 'rgb'; did you mean 'rgba'"),
        (FiniteStepTaskCfg, {'max_steps': 0}, 'max_steps'),
        (ManipulationTaskCfg, {'max_steps': 5, 'target': 'cup'}, 'episode_idx'),
        (DynamicCubeCfg, {'name': 'c', 'prim_path': '/c', 'mass': 0}, 'mass'),
        (UsdObjCfg, {'name': 'c', 'prim_path': '/c'}, 'usd_path'),
        (G1MoveBySpeedControllerCfg, {'name': 'm', 'joint_names': ['a']}, 'policy_weights_path'),
        (
            InverseKinematicsControllerCfg,
            {**dict(arm_ik_cfg), 'reference': 'camera'},
            'reference',
        ),
        (GR1TeleOpControllerCfg, {'name': 't'}, 'joint_names'),
        (FrankaMocapTeleopControllerCfg, {'name': 't', 'scale': (1, 1, 1)}, 'target_position'),
        (LayoutEditMocapControllerCfg, {'name': 't', 'target_position': (1, 1, 1)}, 'scale'),
    ],
)
def test_wrong_values_are_refused(cls, values, field):
    with pytest.raises(ValidationError, match=field):
        cls.model_validate(values)


def test_every_field_of_every_class_is_described():
    def subclasses(cls: type[BaseCfg]) -> list[type[BaseCfg]]:
        return [each for direct in cls.__subclasses__() for each in (direct, *subclasses(direct))]

    built_in = [cls for cls in subclasses(BaseCfg) if cls.__module__.startswith('internutopia')]
    assert len(built_in) > 50
    assert not [
        f'{cls.__name__}.{name}' for cls in built_in for name, f in cls.model_fields.items() if not f.description
    ]


def test_config_of_the_tutorial_round_trips():
    h1 = H1RobotCfg(
        position=(0.0, 0.0, 1.05),
        controllers=[move_by_speed_cfg, rotate_cfg],
        sensors=[h1_tp_camera_cfg.update(name='camera', resolution=(320, 240), enable=False)],
    )
    config = Config(
        simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=True),
        env_num=2,
        env_offset_size=10,
        task_configs=[
            SingleInferenceTaskCfg(
                scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd', scene_scale=(0.01, 0.01, 0.01), robots=[h1]
            ),
            FiniteStepTaskCfg(robots=[h1], max_steps=10),
        ],
    )
    assert Config.model_validate_json(config.model_dump_json(indent=4)) == config


def test_downstream_use_of_shared_configs():
    """What navigation packages do: other types on built-in classes, dumps as arguments, arrays in extra fields."""
    walk = ControllerCfg(**{**move_by_speed_cfg.model_dump(), 'type': 'VlnMoveBySpeedController'})
    camera = RepCameraCfg(**{**h1_tp_camera_cfg.model_dump(), 'type': 'VLNCamera', 'resolution': [64, 64]})
    robot = H1RobotCfg(type='VLNH1Robot', usd_path='h1.usd', controllers=[walk], sensors=[camera])
    placed = robot.update(position=np.array([1.0, 2.0, 3.0]), orientation=[1.0, 0.0, 0.0, 0.0])
    task = TaskCfg.model_validate({'type': 'VLNEvalTask', 'robots': [placed], 'data': {'path': np.ones((2, 3))}})
    again = TaskCfg.model_validate_json(task.model_dump_json()).robots[0]
    assert placed.type == 'VLNH1Robot'
    assert camera.resolution == (64, 64)
    assert again.model_dump() == json.loads(placed.model_dump_json()) | {
        'position': (1.0, 2.0, 3.0),
        'orientation': (1.0, 0.0, 0.0, 0.0),
    }
    assert robot.position == (0.0, 0.0, 0.0)


def test_import_extensions_imports_the_packages_that_are_there(monkeypatch):
    imported = []
    monkeypatch.setattr(internutopia_extension.importlib, 'import_module', imported.append)
    monkeypatch.setattr(internutopia_extension.importlib.util, 'find_spec', lambda name: not name.endswith('rewards'))
    import_extensions()
    assert imported == [
        f'internutopia_extension.{name}'
        for name in ('controllers', 'interactions', 'metrics', 'objects', 'robots', 'sensors', 'tasks', 'terms')
    ]
