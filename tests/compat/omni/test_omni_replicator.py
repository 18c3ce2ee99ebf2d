"""`orchestrator.step` of Replicator: cameras show the present when they are read next, physics stands still."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.core.config import RobotCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.sensor.sensor import BaseSensor
from internutopia.core.task import BaseTask
from internutopia_extension.configs.sensors import RepCameraCfg
from internutopia_extension.sensors.rep_camera import RepCamera

RARELY = 1000  # steps between two frames
# slides down freely and is directed at the ground: its depth is its height
FALLING = """
<worldbody>
  <body name="base" pos="0 0 20"><joint type="slide" axis="0 0 1" name="height"/>
    <geom type="sphere" size="0.05" mass="1" pos="0 0 1"/>
    <camera name="eye"/>
  </body>
</worldbody>"""

# a camera 2 m above a slab of 0.1 m
DESK = """
<mujoco><worldbody>
  <geom type="box" size="3 3 0.1"/>
  <camera name="eye" pos="0 0 2"/>
</worldbody></mujoco>"""

pytestmark = pytest.mark.usefixtures('stand_ins', 'opengl')


@BaseSensor.register('OneEnvCamera')
class OneEnvCamera(RepCamera):
    """Not batched: one object for each env."""


@BaseTask.register('PhotoTask')
class PhotoTask(BaseTask):
    """Env 0 requests a frame in its third step; no task's observation is its own business otherwise."""

    def get_observations(self) -> dict[str, Any]:
        if self.env_id == 0 and self.steps == 2:
            replicator = importlib.import_module('omni.replicator.core')
            replicator.orchestrator.step(rt_subframes=2, delta_time=0.0, pause_timeline=False)
        return super().get_observations()

    def is_done(self) -> bool:
        self.steps += 1
        return False


@pytest.fixture
def faller(write_model, make_robot) -> Callable[[str], RobotCfg]:
    def make(camera_type: str) -> RobotCfg:
        camera = RepCameraCfg(name='eye', prim_path='base/eye', type=camera_type, resolution=(4, 4), depth=True)
        return make_robot(
            write_model('faller', FALLING), type='PassiveRobot', name='faller', sensors=[camera], controllers=[]
        )

    return make


@pytest.mark.parametrize('camera_type', ['RepCamera', 'OneEnvCamera'])
def test_observations_of_all_envs_hold_a_new_frame(make_env, make_task, faller, camera_type):
    pictures: dict[str, list[Any]] = {}
    heights: dict[str, list[Any]] = {}
    for task_type in ('ToyTask', 'PhotoTask'):
        task = make_task('floor', type=task_type, max_steps=9, robots=[faller(camera_type)])
        env = make_env(tasks=[task] * 2, sim={'rendering_interval': RARELY, 'substeps': 20})
        observations = [env.reset()[0]] + [env.step([None] * 2)[0] for _ in range(4)]
        robots = [[obs['faller'] for obs in step] for step in observations]
        pictures[task_type] = [[float(robot['sensors']['eye']['depth'].min()) for robot in step] for step in robots]
        heights[task_type] = [[20 + float(robot['joint_positions'][0]) for robot in step] for step in robots]
        frames = [[robot['render'] for robot in step] for step in robots]
        assert frames == [[True] * 2, *[[task_type == 'PhotoTask' and step == 3] * 2 for step in range(1, 5)]]
    assert heights['PhotoTask'] == heights['ToyTask']  # physics did not advance
    assert np.ptp(pictures['ToyTask']) == 0
    assert heights['ToyTask'][0][0] - heights['ToyTask'][3][0] > 0.1
    start, third = heights['PhotoTask'][0][0], heights['PhotoTask'][3][0]
    seen = pictures['PhotoTask']
    np.testing.assert_allclose(seen, [[height] * 2 for height in (start, start, start, third, third)], rtol=1e-4)


@BaseRobot.register('LookingRobot')
class LookingRobot(BaseRobot):
    """Reads its camera in each step, by the sensor and by the camera's handle."""

    def get_obs(self) -> Any:
        eye: Any = self.sensors['eye']
        depths = eye.get_data()['depth'], eye.camera.get_distance_to_image_plane()
        return {**super().get_obs(), 'seen': [float(depth.min()) for depth in depths]}


@pytest.mark.parametrize('version', ['2.x', '3.x'])
def test_a_camera_that_is_read_in_each_step_renders_the_frames_of_2x(make_env, make_task, faller, version):
    robot = faller('RepCamera').update(type='LookingRobot')
    sim = {'rendering_interval': 2, 'substeps': 20, 'omni_compat': True}
    env = make_env(tasks=[make_task('floor', max_steps=99, robots=[robot])] * 2, sim=sim, compat=version)
    obs = env.reset()[0]

    def heights(obs: Any) -> tuple[list[float], float]:
        faller = obs[1]['faller']
        return faller['seen'], 20 + float(
            env.runner.current_tasks['1'].robots['faller'].articulation.get_joint_positions()[0]
        )

    def check(obs: Any, shown: float) -> None:
        assert heights(obs)[0] == pytest.approx([shown] * 2, rel=1e-4)

    check(obs, shown := 20.0)
    for step in range(1, 8):
        obs = env.step([None] * 2)[0]
        now = heights(obs)[1]
        assert now < shown - 1e-3
        if version == '3.x' or step % 3 == 0:
            shown = now
        check(obs, shown)
    importlib.import_module('omni.replicator.core').orchestrator.step()
    seen, now = heights(env.get_observations())
    assert seen == pytest.approx([now] * 2, rel=1e-4)
    for _ in range(2):
        env.step([None] * 2)
    env.runner.current_tasks['0'].robots['faller'].articulation.set_joint_positions([-5.0])  # teleported: all are new
    obs = env.step([None] * 2)[0]
    now = heights(obs)[1]
    check(obs, now)
    env.warm_up(3)
    obs = env.step([None] * 2)[0]
    now = heights(obs)[1]
    check(obs, now)


def test_time_cannot_be_advanced_by_it():
    orchestrator = importlib.import_module('omni.replicator.core').orchestrator
    orchestrator.step()  # also without an Env
    with pytest.raises(ValueError, match='delta_time must be 0, got 0.1; time passes in Env.step'):
        orchestrator.step(delta_time=0.1)


def test_annotators_give_what_cameras_give(make_env, make_task, tmp_path):
    scene = tmp_path / 'scene.xml'
    scene.write_text(DESK)
    rep = importlib.import_module('omni.replicator.core')
    env = make_env(tasks=[make_task(scene=str(scene), robots=[])], env_num=1)
    env.reset()
    camera = '/World/env_0/scene/eye'
    product = rep.create.render_product(camera, (32, 16))
    picture = {}
    for name in ('rgb', 'distance_to_image_plane', 'camera_params'):
        annotator = rep.AnnotatorRegistry.get_annotator(name)
        with pytest.raises(RuntimeError, match='attach a render product'):
            annotator.get_data()
        annotator.attach([product])
        picture[name] = annotator.get_data()
    assert picture['rgb'].shape == (16, 32, 4) and picture['distance_to_image_plane'][8, 16] == pytest.approx(1.9, 0.01)
    assert picture['camera_params']['renderProductResolution'].tolist() == [32, 16]
    with pytest.raises(NotImplementedError, match='RepCamera has others'):
        rep.AnnotatorRegistry.get_annotator('semantic_segmentation')
    with pytest.raises(NotImplementedError, match='env.runner.add_object'):
        rep.create.cube()


def test_what_replicator_adds_to_a_stage_says_what_to_use():
    rep: Any = importlib.import_module('omni.replicator.core')
    with pytest.raises(ImportError, match='trigger is not available: RepCamera .* LearningCfg randomizes'):
        rep.trigger.on_frame()
    with pytest.raises(NotImplementedError, match='objects are in the task config'):
        rep.create.cube()
