"""Local map against what can be seen in scenes of boxes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.config import Config, RobotCfg, SensorCfg, SimConfig, TaskCfg
from internutopia.core.vec_env import Env
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.sensors import LocalMapCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

PUCK = """
<worldbody><body name="puck"><freejoint/><geom type="cylinder" size=".1 .1" mass="1"/></body></worldbody>
"""
ROOM = """
<worldbody>
  <geom type="box" pos="0 0 -.1" size="5 5 .1"/>
  <geom type="box" pos="{x} 0 .5" size=".5 .5 .5"/>
</worldbody>
"""
RADIUS = 0.1 * math.sqrt(2)  # m: the puck is taken for its box


@pytest.mark.slow
def test_the_map_around_a_robot_is_turned_as_it_looks(
    make_env: Callable[..., Env], write_model: Callable[[str, str], str]
) -> None:
    puck = write_model('puck', PUCK)
    scenes = [write_model(f'room{x}', ROOM.format(x=x)) for x in (2, -2)]
    left = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))  # looks along y
    poses = [((0.0, 0.0, 0.1), None), ((0.0, 0.0, 0.1), left), ((0.0, 0.0, 0.1), None), ((4.2, 0.0, 0.1), None)]
    sensors: list[SensorCfg] = [LocalMapCfg(size=4.0, resolution=0.2)]
    robots: list[RobotCfg] = [
        GenericRobotCfg(usd_path=puck, position=place, orientation=turned, sensors=sensors) for place, turned in poses
    ]
    tasks: list[TaskCfg] = [
        SingleInferenceTaskCfg(scene_asset_path=scenes[number == 2], robots=[robot])
        for number, robot in enumerate(robots)
    ]
    env = make_env(
        Config(
            simulator=SimConfig(physics_dt=1 / 200, threads=1), task_configs=tasks, env_num=4, metrics_save_path='none'
        )
    )
    obs, _ = env.reset()
    maps = [next(iter(each.values()))['sensors']['local_map']['occupancy'] for each in obs]
    assert all(each.shape == (20, 20) and each.dtype == np.uint8 for each in maps)
    offset = (9.5 - np.arange(20)) * 0.2  # m to the front, to the left
    ahead, aside = offset[:, None], offset[None, :]

    def box(forward: float, sideways: float) -> np.ndarray:
        x, y = np.abs(ahead - forward) - 0.5, np.abs(aside - sideways) - 0.5
        return np.hypot(np.clip(x, 0, None), np.clip(y, 0, None))

    for seen, distance in zip(maps, (box(2, 0), box(0, -2), box(-2, 0), box(-2.2, 0)), strict=True):
        clear = np.abs(distance - RADIUS) > 0.05  # a cell
        floor = np.ones_like(distance, bool)
        if seen is maps[3]:  # the edge of the floor is 0.8 m ahead
            floor = np.broadcast_to(ahead < 0.8 - RADIUS - 0.05, distance.shape)
            assert seen[ahead[:, 0] > 0.8 - RADIUS + 0.05].all()
        np.testing.assert_array_equal(seen[clear & floor], (distance < RADIUS)[clear & floor])


def test_what_is_shown_has_a_whole_number_of_pixels() -> None:
    assert LocalMapCfg(size=3.2, resolution=0.1).pixels == 32
    with pytest.raises(ValidationError, match=r'size=1.0 m must be 1 to 1024 times the resolution, 0.3 m'):
        LocalMapCfg(size=1.0, resolution=0.3)
