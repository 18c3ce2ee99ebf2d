"""Modules of 2.x whose classes are in larger modules now: scripts import them under both paths."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

CLASSES = {  # facts of InternUtopia 2.2.1 (github.com/InternRobotics/InternUtopia)
    'controllers.h1_move_by_speed_controller': 'H1MoveBySpeedController',
    'controllers.g1_move_by_speed_controller': 'G1MoveBySpeedController',
    'controllers.gr1_move_by_speed_controller': 'GR1MoveBySpeedController',
    'controllers.aliengo_move_by_speed_controller': 'AliengoMoveBySpeedController',
    'controllers.joint_controller': 'JointController',
    'controllers.gripper_controller': 'GripperController',
    'controllers.move_to_point_by_speed_controller': 'MoveToPointBySpeedController',
    'controllers.rotate_controller': 'RotateController',
    'metrics.recording_metric': 'RecordingMetric',
    'metrics.traveled_distance_metric': 'TraveledDistanceMetric',
    'objects.dynamic_cube': 'DynamicCube',
    'objects.visual_cube': 'VisualCube',
    'objects.usd_object': 'UsdObject',
    'robots.aliengo': 'AliengoRobot',
    'robots.g1': 'G1Robot',
    'robots.gr1': 'GR1Robot',
    'robots.h1': 'H1Robot',
    'robots.h1_with_hand': 'H1WithHandRobot',
    'robots.mocap_controlled_franka': 'MocapControlledFrankaRobot',
    'sensors.mocap_controlled_camera': 'MocapControlledCamera',
    'sensors.layout_edit_mocap_controlled_camera': 'LayoutEditMocapControlledCamera',
    'tasks.single_inference_task': 'SimpleInferenceTask',
    'tasks.finite_step_task': 'FiniteStepTask',
    'tasks.manipulation_task': 'ManipulationTask',
}


@pytest.mark.parametrize('path', CLASSES)
def test_a_class_is_found_at_both_paths(path: str):
    cls = getattr(importlib.import_module(f'internutopia_extension.{path}'), CLASSES[path])
    assert getattr(importlib.import_module(cls.__module__), cls.__name__) is cls


@pytest.mark.nightly
@pytest.mark.parametrize(
    'line',
    [
        'import internutopia_extension.tasks.finite_step_task as module; module.FiniteStepTask',
        'from internutopia_extension.configs.controllers.ik_controller import InverseKinematicsControllerCfg',
        'from internutopia_extension.robots import mocap_controlled_franka as m; m.MocapControlledFrankaRobot',
    ],
)
def test_an_earlier_path_can_be_the_first_that_a_script_imports(line: str):
    subprocess.run([sys.executable, '-c', line], check=True)
