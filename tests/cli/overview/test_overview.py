"""The picture of a run from above: where obstacles and paths are drawn."""

import numpy as np
import pytest

from internutopia.cli.overview import Overview
from internutopia.cli.overview.picture import surroundings
from internutopia.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

import_extensions()
SCENE = """<mujoco><worldbody>
  <geom type="plane" size="0 0 1"/>
  <geom name="wall" type="box" size="0.1 1 0.5" pos="2 0 0.5"/>
  <geom name="post" type="cylinder" size="0.3 0.5" pos="-1 1 0.5"/>
  <body name="crate" pos="0 -1 0.1"><freejoint/><geom type="box" size="0.1 0.2 0.1"/></body>
</worldbody></mujoco>"""


@pytest.fixture
def env(tmp_path):
    (tmp_path / 'scene.xml').write_text(SCENE)
    robot = JetbotRobotCfg(position=(0, 0, 0.03), controllers=[move_by_speed_cfg])
    task = FiniteStepTaskCfg(max_steps=40, scene_asset_path=str(tmp_path / 'scene.xml'), robots=[robot])
    env = Env(
        Config(
            simulator=SimConfig(physics_dt='1/240', substeps=4),
            env_num=2,
            env_offset_size=6.0,
            task_configs=[task] * 2,
            metrics_save_path=None,
        )
    )
    yield env
    env.close()


def test_footprints_are_where_the_geoms_stand(env):
    env.reset()
    world = env.runner.world
    seen = surroundings(world.model(0), world.data(0))
    assert seen.endless_floor
    found = {
        (shape.kind, *np.round([*(low + high) / 2, *high - low], 2) + 0.0)
        for shape in seen.footprints
        for low, high in [(shape.outline.min(axis=0), shape.outline.max(axis=0))]
    }
    assert found == {('static', 2, 0, 0.2, 2), ('static', -1, 1, 0.6, 0.6), ('movable', 0, -1, 0.2, 0.4)}


@pytest.mark.slow
def test_a_picture_of_a_run(env, tmp_path):
    overview = Overview(env)
    obs, tasks = env.reset()
    overview.on_reset([0, 1], obs, tasks)
    for _ in range(40):
        obs, *_ = env.step([{'jetbot': {'move_by_speed': [0.5, 0.0]}}] * 2)
        overview.on_step(obs)
    overview.on_end([0, 1], obs)
    overview.save(tmp_path / 'picture.png')
    from matplotlib import image

    pixels = image.imread(tmp_path / 'picture.png')
    assert min(pixels.shape[:2]) > 300
    assert pixels[..., :3].std() > 0.05  # not blank
