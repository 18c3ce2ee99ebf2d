"""What pages tell robots: arms by handles, grippers, goals by clicks; and what cameras and plots show."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

pytest.importorskip('viser', reason='the viewer needs the extra `viewer`')

from page_client import PATIENCE, PageClient

from internutopia.config import Config, RobotCfg, SimConfig
from internutopia.core.vec_env import Env
from internutopia.viewer import attach
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_to_point_cfg
from internutopia_extension.configs.sensors import RepCameraCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

import_extensions()

REACHED = 0.005  # m: what an arm misses a target by
HANDLE = '/targets/franka/arm_ik_controller/pose'


def steps(env: Env, done: Callable[[], Any]) -> None:
    """Step without a word from the program until something is true."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline
        env.step([{}])


def make(robot: RobotCfg) -> Env:
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot])
    simulator = SimConfig(physics_dt='1/240', substeps=4, threads=1)
    return Env(Config(simulator=simulator, task_configs=[task], metrics_save_path='none'))


@pytest.fixture(params=['world', 'robot'])
def franka(request: pytest.FixtureRequest) -> Iterator[Env]:
    """An arm that stands 1 m from the origin and is turned by 90 degrees, told in the frame of the parameter."""
    arm = arm_ik_cfg.update(reference=request.param)
    half = np.sqrt(0.5)
    robot = FrankaRobotCfg(position=(1.0, 0.0, 0.0), orientation=(half, 0, 0, half), controllers=[arm, gripper_cfg])
    with closing(make(robot)) as env:
        yield env


def eef(env: Env) -> Any:
    return env.get_observations()[0]['franka']['controllers']['arm_ik_controller']


@pytest.mark.slow
def test_a_handle_moves_the_arm_and_a_box_the_gripper(franka: Env):
    franka.reset()
    start = eef(franka)['eef_position']
    with attach(franka) as viewer, PageClient(viewer.url) as page:
        steps(franka, lambda: page.sees(lambda: np.allclose(page.position(HANDLE), start, atol=0.01)))
        target = start + [0.05, 0.1, -0.05]
        page.drag(HANDLE, target, eef(franka)['eef_orientation'])
        steps(franka, lambda: np.linalg.norm(eef(franka)['eef_position'] - target) < REACHED)
        page.set('Close gripper_controller', True)
        fingers = franka.runner.world.articulation('franka', 0)
        steps(franka, lambda: fingers.get_joint_positions()[0][-1] < 0.001)
        assert np.linalg.norm(eef(franka)['eef_position'] - target) < REACHED  # is held
        page.set('Release', True)
        steps(franka, lambda: not franka.runner.overrides)
        page.wait_for(lambda: page.element('Close gripper_controller')['value'] is False)


@pytest.fixture
def jetbot() -> Iterator[Env]:
    """A robot that goes to points and has a camera."""
    camera = RepCameraCfg(name='eye', prim_path='chassis/rgb_camera/jetbot_camera', resolution=(32, 24))
    robot = JetbotRobotCfg(position=(2.0, 1.0, 0.03), controllers=[move_to_point_cfg], sensors=[camera])
    with closing(make(robot)) as env:
        yield env


@pytest.mark.slow
def test_a_robot_goes_where_somebody_clicks(jetbot: Env):
    def position() -> Any:
        return jetbot.get_observations()[0]['jetbot']['position'][:2]

    jetbot.reset()
    with attach(jetbot) as viewer, PageClient(viewer.url) as page:
        page.set('Go where I click', True)
        page.click((-0.1, 0.0, 3.0), (0.2, 0.0, -1.0))  # meets the ground half a metre ahead of the robot it follows
        steps(jetbot, lambda: jetbot.runner.overrides)
        (goal,) = jetbot.runner.overrides[0]['jetbot']['move_to_point']
        np.testing.assert_allclose(goal, (2.5, 1.0, 0.0), atol=0.01)
        steps(jetbot, lambda: page.sees(lambda: page.nodes['/goals/jetbot']))
        steps(jetbot, lambda: np.linalg.norm(position() - goal[:2]) < 0.2)


@pytest.mark.slow
def test_a_camera_is_shown_when_it_is_asked_for(opengl: None, jetbot: Env):
    jetbot.reset()
    with attach(jetbot) as viewer, PageClient(viewer.url) as page:
        steps(jetbot, lambda: page.sees(lambda: page.element('eye')))
        assert page.element('eye')['visible'] is False
        page.set('Show eye', True)
        steps(jetbot, lambda: page.sees(lambda: page.element('eye')['visible']))
        page.wait_for(lambda: len(page.element('eye')['_data'] or b'') > 100)  # a JPEG of more than a pixel


@pytest.mark.slow
def test_several_joints_are_plotted(jetbot: Env):
    jetbot.reset()
    with attach(jetbot) as viewer, PageClient(viewer.url) as page:
        page.set('Add plot', True)
        page.wait_for(lambda: page.labels.count('Joint') == 2)
