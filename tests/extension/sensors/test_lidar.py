"""Lidar: distances in a room of known size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.core.vec_env import Env
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.sensors import LidarCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.sensors.lidar import ray_directions

EXACT = 2e-6  # [m], float32 poses and ranges of a few metres
# from the inner faces of one wall to that of the opposite one [m]
ROOMS = {'room': (6.0, 4.0, 3.0), 'hall': (10.0, 8.0, 5.0)}
# a mast with a disc above and one below the lidar, on a turntable; a collider around everything is hidden
TOWER = """
<worldbody>
  <body name="table">
    <geom type="cylinder" size=".3 .01" mass="1"/>
    <geom type="sphere" size="0.9" group="3" contype="0" conaffinity="0"/>
    <body name="mast"><joint name="turn" axis="0 0 1"/>
      <geom type="cylinder" size=".02 .25" mass="1" contype="0" conaffinity="0"/>
      <body name="cage" pos="0 0 .25"><geom type="sphere" size=".2" mass=".1" contype="0" conaffinity="0"/></body>
    </body>
  </body>
</worldbody>
"""
# rays at -180, -90, 0 and 90 degrees
SIDE: dict[str, Any] = {'horizontal_rays': 4, 'translation': (0.0, 0.0, 0.25), 'prim_path': 'mast'}


@pytest.fixture
def rooms(write_model: Callable[[str, str], str]) -> dict[str, str]:
    """Rooms of six walls each; another structure each, too."""
    paths = {}
    for name, size in ROOMS.items():
        x, y, z = (0.5 * side for side in size)
        walls = [
            f'<geom type="box" pos="{px} {py} {pz}" size="{sx} {sy} {sz}"/>'
            for sign in (-1, 1)
            for px, py, pz, sx, sy, sz in (
                (sign * (x + 0.1), 0, 0, 0.1, 9, 9),
                (0, sign * (y + 0.1), 0, 9, 0.1, 9),
                (0, 0, sign * (z + 0.1), 9, 9, 0.1),
            )
        ]
        extra = '<body pos="0 0 -1"><geom size=".01"/></body>' if name == 'hall' else ''
        paths[name] = write_model(name, f'<worldbody>{"".join(walls)}{extra}</worldbody>')
    return paths


@pytest.fixture
def tower(write_model: Callable[[str, str], str]) -> Callable[..., GenericRobotCfg]:
    """Makes a fixed tower with a lidar."""
    path = write_model('tower', TOWER)
    return lambda lidar, **fields: GenericRobotCfg(usd_path=path, sensors=[lidar], **fields)


def task(robot: GenericRobotCfg, scene: str | None, **fields: Any) -> TaskCfg:
    return SingleInferenceTaskCfg(robots=[robot], scene_asset_path=scene, **fields)


@pytest.fixture
def start(make_env: Callable[..., Env]) -> Callable[..., Env]:
    """Starts an Env with one task config per env."""

    def start(*tasks: TaskCfg, threads: int = 1, **fields: Any) -> Env:
        sim = SimConfig(physics_dt=1 / 200, threads=threads)
        env = make_env(
            Config(simulator=sim, task_configs=list(tasks), env_num=len(tasks), metrics_save_path='none', **fields)
        )
        env.reset()
        return env

    return start


def seen(env: Env, env_id: int = 0, key: str = 'ranges') -> np.ndarray:
    return env.get_observations()[env_id]['robot']['sensors']['lidar'][key]


def test_walls_all_around(start: Any, tower: Any, rooms: dict[str, str]) -> None:
    """Every point that is hit lies on an inner face of the room, in its direction."""
    cfg = LidarCfg(
        **{**SIDE, 'horizontal_rays': 12}, vertical_fov=np.pi, vertical_rays=5, pointcloud=True, max_range=20.0
    )
    position = np.array([0.5, -0.3, 0.2])
    env = start(*(task(tower(cfg, position=position), rooms[name]) for name in ROOMS), threads=2)
    for env_id, size in enumerate(ROOMS.values()):
        ranges, points = seen(env, env_id), seen(env, env_id, 'pointcloud')
        assert (ranges.shape, ranges.dtype, points.shape) == ((5, 12), np.float32, (5, 12, 3))
        eye = position + [0, 0, 0.25]
        rays = ray_directions(cfg).reshape(5, 12, 3)
        with np.errstate(divide='ignore'):
            expected = np.min((0.5 * np.array(size) - np.sign(rays) * eye) / np.abs(rays), axis=-1)
        np.testing.assert_allclose(ranges, expected, rtol=1e-6, atol=EXACT)
        np.testing.assert_allclose(points, eye + expected[..., None] * rays, atol=2 * EXACT)
        on_a_face = np.abs(np.abs(points) - 0.5 * np.array(size)).min(axis=-1)
        assert on_a_face.max() < 2 * EXACT


def test_order_of_the_rays() -> None:
    """From right to left, from below to above, borders included; a full circle does not end where it began."""
    cfg = LidarCfg(horizontal_fov=np.pi, horizontal_rays=3, vertical_fov=np.pi / 2, vertical_rays=3)
    rays = ray_directions(cfg).reshape(3, 3, 3)
    np.testing.assert_allclose(rays[1], [[0, -1, 0], [1, 0, 0], [0, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(rays[:, 1, 2], [-np.sqrt(0.5), 0, np.sqrt(0.5)], atol=1e-12)
    circle = ray_directions(LidarCfg(horizontal_rays=4))
    np.testing.assert_allclose(circle, [[-1, 0, 0], [0, -1, 0], [1, 0, 0], [0, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(ray_directions(LidarCfg(horizontal_rays=1, vertical_fov=1.0)), [[1, 0, 0]])


def test_the_lidar_moves_with_its_link(start: Any, tower: Any, rooms: dict[str, str]) -> None:
    env = start(task(tower(LidarCfg(**SIDE), position=(1.0, 0.0, 0.0)), rooms['room']))
    np.testing.assert_allclose(seen(env), [[4, 2, 2, 2]], atol=EXACT)
    robot = env.runner.current_tasks['0'].robots['robot']
    robot.articulation.set_joint_positions([np.pi / 2])
    np.testing.assert_allclose(seen(env), [[2, 2, 2, 4]], atol=EXACT)
    robot.articulation.set_pose((-1.0, 0.5, 0.0))
    np.testing.assert_allclose(robot.sensors['lidar'].get_data()['ranges'], [[2.5, 4, 1.5, 2]], atol=EXACT)


def test_what_is_nearer_than_the_walls(start: Any, tower: Any, rooms: dict[str, str]) -> None:
    """An object in the way of one ray, and the robot in its own way only if it is told to look at itself."""
    cube = DynamicCubeCfg(name='cube', prim_path='/cube', position=(1.5, 0.0, 0.25), scale=(0.2, 0.2, 0.2))
    changes: list[dict[str, Any]] = [{}, {'exclude_robot': False}, {'geom_groups': [3]}]
    robots = [tower(LidarCfg(**SIDE, **fields)) for fields in changes]
    env = start(*(task(robot, rooms['room'], objects=[cube]) for robot in robots))
    np.testing.assert_allclose(seen(env, 0), [[3, 2, 1.4, 2]], atol=EXACT)
    # the cage, but not the mast that it sits on
    np.testing.assert_allclose(seen(env, 1), [[0.2] * 4], atol=EXACT)
    assert np.isinf(seen(env, 2)).all(), 'nothing but the robot is in group 3'


def test_looking_changes_nothing(start: Any, tower: Any, rooms: dict[str, str]) -> None:
    """All groups are seen at once, past the robot, and everything is in the group that it was in afterwards."""
    env = start(task(tower(LidarCfg(**SIDE, geom_groups=[0, 1, 2, 3, 4, 5])), rooms['room']))
    np.testing.assert_allclose(seen(env), [[3, 2, 3, 2]], atol=EXACT)
    world: Any = env.runner.world
    assert sorted(world.model(0).geom_group.tolist()) == [0] * 9 + [3]


def test_limits_of_the_range(start: Any, tower: Any, rooms: dict[str, str]) -> None:
    limits: dict[str, Any] = {'min_range': 2.5, 'max_range': 3.5}
    cfgs = [LidarCfg(**SIDE, **limits, pointcloud=True), LidarCfg(**SIDE, **limits, miss='max')]
    env = start(*(task(tower(cfg, position=(1.0, 0.0, 0.0)), rooms[room]) for cfg in cfgs for room in ROOMS))
    np.testing.assert_array_equal(seen(env, 0), np.array([[np.inf, -np.inf, -np.inf, -np.inf]], np.float32))
    assert np.isnan(seen(env, 0, 'pointcloud')).all()
    assert seen(env, 2).tolist() == [[3.5, 2.5, 2.5, 2.5]] and seen(env, 3).tolist() == [[3.5] * 4]
    assert np.isinf(seen(start(task(tower(LidarCfg(**SIDE)), None)))).all(), 'empty space'


def test_the_env_id_does_not_matter(start: Any, tower: Any, rooms: dict[str, str]) -> None:
    """Envs of two scenes that are reset one by one, in another order: the same values, bit for bit."""
    cfg = LidarCfg(**{**SIDE, 'horizontal_rays': 7}, noise=0.01)
    tasks = [task(tower(cfg, position=(0.1 * i, 0.0, 0.0)), rooms[name]) for i, name in enumerate([*ROOMS] * 2)]
    env = start(*tasks, seed=1)
    before = [seen(env, i) for i in range(4)]
    other = start(*tasks, seed=1, episode_order='cycle')
    again = other.reset([3, 1, 0, 2])[0]
    plain = start(*(t.update(robots=[tower(cfg.update(noise=0.0), position=t.robots[0].position)]) for t in tasks))
    for i in range(4):
        expected = seen(plain, i)
        assert 0 < np.abs(before[i] - expected).max() < 0.06
        assert again[i]['robot']['sensors']['lidar']['ranges'].shape == (1, 7)
    np.testing.assert_array_equal(seen(other, 3), again[0]['robot']['sensors']['lidar']['ranges'])


def test_one_object_per_env(start: Any, tower: Any, rooms: dict[str, str]) -> None:
    robots = [tower(LidarCfg(**SIDE), position=(0.5 * i, 0.0, 0.0)) for i in range(2)]
    batched, single = (
        start(*(task(robot.update(type=f'{kind}GenericRobot'), rooms['room']) for robot in robots))
        for kind in ('', 'PerEnv')
    )
    for i in range(2):
        np.testing.assert_array_equal(seen(single, i), seen(batched, i))


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'horizontal_fov': 360.0}, 'in rad, at most 2 pi; got 360: was it meant in degrees'),
        ({'horizontal_fov': 0.0}, 'horizontal_fov'),
        ({'horizontal_fov': np.nan}, 'horizontal_fov'),
        ({'vertical_fov': 30.0}, 'in rad, at most pi'),
        ({'horizontal_rays': 0}, 'horizontal_rays'),
        ({'vertical_rays': 16}, 'need a vertical_fov above 0'),
        ({'min_range': 5.0, 'max_range': 5.0}, 'max_range must be above min_range'),
        ({'max_range': np.inf}, 'max_range'),
        ({'geom_groups': []}, 'would detect nothing'),
        ({'geom_groups': [6]}, 'geom_groups'),
    ],
)
def test_a_bad_config(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        LidarCfg(**fields)


def test_a_link_that_is_not_there(make_env: Any, tower: Any) -> None:
    env = make_env(Config(task_configs=[task(tower(LidarCfg(prim_path='head/mats')), None)], metrics_save_path='none'))
    with pytest.raises(ValueError, match="sensor 'lidar': there is no link 'head/mats'; did you mean 'mast'"):
        env.reset()
