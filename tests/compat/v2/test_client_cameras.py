"""Cameras of a client of 2.x: what they see in flats in metres and centimetres, against projections worked out by hand.

The robot stands at the start of its episode, at y = 0 in one env and y = -1 m in the other, which is 100 m away.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from client_data import HEIGHT
from flat_usd import EAST, PILLAR, WALL_HEIGHT

pytestmark = [pytest.mark.usefixtures('opengl'), pytest.mark.filterwarnings('ignore:`torch.jit')]
PANORAMA = (160, 120)  # pixels
EYE = (0.15, HEIGHT + 0.6)  # m, of the head camera: ahead of the robot, and above the ground
ABOVE = HEIGHT + 0.75  # m, of the camera above
FARTHEST = 10.0  # m, what the client clips depth at
EDGE = 1  # pixels, that an edge may be off: the robot falls for 5 ms, and pixels have a size
FELL = 1e-3  # m, more than it falls
START_Y = (0.0, -1.0)  # m, of the robots


@pytest.fixture(params=['metres', 'centimetres'])
def seen(request: pytest.FixtureRequest, client_env: Any) -> list[dict[str, Any]]:
    """What the robots see when they have done nothing, env by env; with the points of their third camera."""
    cameras = {'panorama': list(PANORAMA), 'topdown': 500, 'pointcloud': [32, 32]}
    name = {'metres': 'flash', 'centimetres': 'centimetre_scene'}[request.param]
    env = client_env(name, ['straight', 'corner'], cameras=cameras)
    env.reset()
    obs = env.step([{'h1': {'move_by_flash': [0]}}] * 2)[0]
    tasks = [env.runner.current_tasks[env.runner.env_id_to_task_name_map[env_id]] for env_id in range(2)]
    clouds = [task.robots['h1'].sensors['tp_pointcloud'].get_data()['pointcloud'] for task in tasks]
    return [{**each['h1'], 'cloud': cloud} for each, cloud in zip(obs, clouds, strict=True)]


@pytest.mark.slow
def test_the_head_camera(seen):
    focal = PANORAMA[0]  # pixels: it sees half a metre to each side, a metre ahead
    (near, right, _), (far, left, top) = PILLAR
    ahead = near - EYE[0]
    left_edge = PANORAMA[0] / 2 - focal * left / ahead
    right_edge = PANORAMA[0] / 2 - focal * right / (far - EYE[0])  # of its side, which faces the robot's axis
    top_edge = PANORAMA[1] / 2 + focal * (EYE[1] - top) / ahead
    wall_edge = PANORAMA[1] / 2 + focal * (EYE[1] - WALL_HEIGHT) / (EAST - EYE[0])
    rgb, depth = seen[0]['rgb'], seen[0]['depth'][..., 0] * FARTHEST
    rows, columns = np.nonzero(red(rgb))
    assert [columns.min(), columns.max() + 1] == pytest.approx([left_edge, right_edge], abs=EDGE)
    assert [rows.min(), rows.max() + 1] == pytest.approx([top_edge, PANORAMA[1]], abs=EDGE)
    face = (slice(math.ceil(top_edge) + EDGE, None), slice(math.ceil(left_edge) + EDGE, int(left_edge) + 20))
    np.testing.assert_allclose(depth[face], ahead, atol=FELL)
    beside = slice(math.ceil(right_edge) + EDGE, 145)  # from 150 on is the south wall
    floor_edge = PANORAMA[1] / 2 + focal * EYE[1] / (EAST - EYE[0])
    wall = depth[math.ceil(wall_edge) + EDGE : int(floor_edge) - EDGE, beside]
    np.testing.assert_allclose(wall, EAST - EYE[0], atol=FELL)
    assert (depth[: int(wall_edge) - EDGE, beside] == FARTHEST).all()  # the sky
    floor = focal * EYE[1] / (PANORAMA[1] / 2 - 0.5)  # in the middle of the last row
    np.testing.assert_allclose(depth[-1, beside], floor, rtol=FELL)


def test_the_camera_above(seen):
    per_metre = 25  # pixels: 20 m are 500 pixels wide
    (near, right, _), (far, left, top) = PILLAR
    for robot, y in zip(seen, START_Y, strict=True):
        rows, columns = np.nonzero(red(robot['topdown_rgb']))
        assert [rows.min(), rows.max() + 1] == pytest.approx([250 - per_metre * far, 250 - per_metre * near], abs=EDGE)
        edges = [250 - per_metre * (left - y), 250 - per_metre * (right - y)]
        assert [columns.min(), columns.max() + 1] == pytest.approx(edges, abs=EDGE)
        depth = robot['topdown_depth']
        assert depth[rows.min() + 1 : rows.max(), columns.min() + 1 : columns.max()] == pytest.approx(
            ABOVE - top, abs=FELL
        )
        assert depth[200, 275] == pytest.approx(ABOVE, abs=FELL)  # the floor, 2 m ahead and 1 m to the right
        wall = 250 - round(per_metre * (EAST + 0.05))
        assert depth[wall, 250] == pytest.approx(ABOVE - WALL_HEIGHT, abs=FELL)
        assert depth[10, 250] == FARTHEST
        np.testing.assert_allclose(robot['topdown_at'], [0, y, ABOVE], atol=1e-5)


def test_the_point_cloud_is_the_floor_of_its_env(seen):
    ahead, height = 0.1, HEIGHT + 0.4  # m, of the camera, which looks down by 45 degrees
    steepest, flattest = (math.pi / 4 + sign * math.atan(0.5 * 31 / 32) for sign in (1, -1))  # middles of pixels
    for robot, y in zip(seen, START_Y, strict=True):
        cloud = robot['cloud']
        assert cloud.shape == (32 * 32, 3)
        floor = cloud[abs(cloud[:, 2]) < 0.01]
        assert len(floor) > 0.9 * len(cloud)  # arms and legs are in the way
        nearest, farthest = ahead + height / math.tan(steepest), ahead + height / math.tan(flattest)
        assert [floor[:, 0].min(), floor[:, 0].max()] == pytest.approx([nearest, farthest], abs=0.01)
        aside = height / (1 - 0.5 * 31 / 32) * math.sqrt(2) * 0.5 * 31 / 32  # in the farthest row
        assert y - floor[:, 1].min() == pytest.approx(aside, abs=0.01)


def red(picture: np.ndarray) -> np.ndarray:
    """Where the pillar is seen; its dark side, too."""
    return picture[..., 0] > 2 * picture[..., 1].astype(int) + 5
