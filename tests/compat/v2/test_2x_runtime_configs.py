"""Controllers and sensors under the switch, where 2.x did at once, or in another form, what is done here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia import Config, Env, SimConfig
from internutopia.core.config.robot import ControllerCfg, SensorCfg
from internutopia.core.robot.controller import BaseController
from internutopia.core.sensor.sensor import BaseSensor
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

import_extensions()

TARGET = (0.5, 0.2, 0.45)  # m
REACHED = 0.01  # m
GRIPPER_STEP = 0.05  # m, of `Franka.gripper`


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    """Makes an Env as a script of 2.x does, and resets it."""
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')

    def make(robot: Any, env_num: int = 1) -> Env:
        task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.usd', robots=[robot])
        simulator = SimConfig(physics_dt=1 / 240)
        env = Env(Config(simulator=simulator, env_num=env_num, task_configs=[task] * env_num, metrics_save_path='none'))
        request.addfinalizer(env.close)
        env.reset()
        return env

    return make


@BaseController.register('ReachOnce')
class ReachOnce(BaseController):
    """A client's controller that passes a target on to its sub-controller."""

    def action_to_control(self, action: Any, env_ids: Any = ...) -> Any:
        control, _ = self.sub_controllers[0].forward(np.array(action[0]), None)  # type: ignore[attr-defined]
        return control


@pytest.mark.parametrize('by', ['its own controller', "a client's controller"])
def test_a_target_that_is_sent_once_is_reached(by: str, start):
    copied = arm_ik_cfg.update(threshold=0.02)  # which sets all of its fields
    controllers = [copied, ControllerCfg(name='reach', type='ReachOnce', sub_controllers=[arm_ik_cfg])]
    env = start(FrankaRobotCfg(controllers=controllers), env_num=2)
    action = {'arm_ik_controller': [TARGET, None]} if by == 'its own controller' else {'reach': [TARGET]}
    obs, *_ = env.step([{'franka': action}, {}])
    for _ in range(400):
        obs, *_ = env.step([{}, {'franka': {}}])
    distances = [
        np.linalg.norm(each['franka']['controllers']['arm_ik_controller']['eef_position'] - TARGET) for each in obs
    ]
    assert distances[0] < REACHED and distances[1] > 0.1


def test_the_arm_is_as_fast_as_its_drives_unless_the_config_gives_a_speed(start):
    moved: list[float] = []
    for fields in ({'joint_speed': 0.5}, {}):
        env = start(FrankaRobotCfg(controllers=[arm_ik_cfg.update(**fields)]))
        before = obs = env.get_observations()
        for _ in range(24):
            obs, *_ = env.step([{'franka': {'arm_ik_controller': [TARGET, None]}}])
        joints = (each[0]['franka']['joint_positions'] for each in (before, obs))
        moved.append(np.abs(np.subtract(*joints)).max())
    assert 0.01 < moved[0] < 0.5 * 24 / 240 and moved[1] > 2 * moved[0]


def test_gripper_targets_are_over_all_dofs(start):
    env = start(FrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg]), env_num=2)
    robot: Any = next(iter(env.runner.current_tasks.values())).robots['franka']
    controller = robot.controllers['gripper_controller']
    control = controller.forward('open')
    assert control.joint_positions[:7] == [None] * 7 and control.joint_indices is None
    assert control.joint_positions[7:] == pytest.approx([0.04] * 2)
    assert controller.robot is robot and controller.get_obs()['gripper_pos'] == pytest.approx([0.04] * 2)
    assert np.allclose(controller.action_to_control(['close']).joint_positions[7:], 0.0)
    before, obs = robot.articulation.get_joint_positions(), []
    for _ in range(60):
        obs, *_ = env.step([{'franka': {'gripper_controller': ['close']}}, {}])
    after = robot.articulation.get_joint_positions()
    assert np.allclose(after[7:], 0.0, atol=0.002) and np.allclose(after[:7], before[:7], atol=0.005)
    assert obs[0]['franka']['joint_action'][0]['joint_positions'] == [None] * 7 + [0.0, 0.0]
    assert np.allclose(obs[1]['franka']['controllers']['gripper_controller']['gripper_pos'], 0.04, atol=0.002)


def test_an_arm_that_is_scaled_down_opens_and_closes_as_far_as_its_fingers_go(start):
    env = start(FrankaRobotCfg(scale=(0.5, 0.5, 0.5), controllers=[gripper_cfg]))
    for word, width in (('open', 0.02), ('close', 0.0)):
        for _ in range(60):
            env.step([{'franka': {'gripper_controller': [word]}}])
        gap = env.get_observations()[0]['franka']['controllers']['gripper_controller']['gripper_pos']
        assert np.allclose(gap, width, atol=0.002)


def test_the_gripper_of_a_franka_gives_lists_over_all_dofs(start):
    from internutopia_extension.robots.franka import Franka, FrankaRobot

    env = start(FrankaRobotCfg())
    franka = Franka(prim_path='/World/env_0/robots/franka')
    fingers = franka.get_joint_positions([7, 8])
    closing = franka.gripper.forward('close')
    told = FrankaRobot.action_to_dict(closing)['joint_positions']
    assert told[:7] == [None] * 7 and told[7:] == closing.joint_positions[7:]
    assert closing.joint_positions[:7] == [None] * 7 and closing.joint_indices is None
    assert np.allclose(closing.joint_positions[7:], np.clip(fingers - GRIPPER_STEP, 0.0, None))
    franka.apply_action(closing)
    for _ in range(60):
        env.step([{}])
    assert np.allclose(franka.gripper.get_joint_positions(), closing.joint_positions[7:], atol=0.002)


class ClientCameraCfg(SensorCfg):
    """A client's config with a field of the same name, off unless its class says otherwise."""

    type: str = 'ClientSensor'
    enable: bool = False


@BaseSensor.register('ClientSensor')
class ClientSensor(BaseSensor):
    """A client's sensor."""

    def get_data(self) -> dict[str, Any]:
        return {'given': self.config.enable}


def test_a_field_enable_of_a_clients_class_is_its_own(start, caplog: pytest.LogCaptureFixture):
    env = start(JetbotRobotCfg(sensors=[ClientCameraCfg(name='own')], controllers=[move_by_speed_cfg]))
    assert env.get_observations()[0]['jetbot']['sensors'] == {'own': {'given': False}}
    assert not [record for record in caplog.records if 'is disabled' in record.message]


def test_a_sensor_that_is_off_costs_a_warning(start, caplog: pytest.LogCaptureFixture):
    env = start(JetbotRobotCfg(sensors=[SensorCfg(name='eye', type='ClientSensor', enable=False)]), env_num=2)
    assert env.get_observations()[0]['jetbot']['sensors'] == {}
    said = [record.message for record in caplog.records if 'is disabled' in record.message]
    assert len(said) == 1 and "sensor 'eye'" in said[0] and "robot 'jetbot'" in said[0]
