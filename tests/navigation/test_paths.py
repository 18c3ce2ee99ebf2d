"""Distances and paths, against what geometry says of them."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import mujoco
import numpy as np
import pytest
from scenes import AGENT, box, map_of, room

from internutopia.model.scene_cache import SCENES
from internutopia.model.spec import ObjectSpec, SceneSpec
from internutopia.navigation import Agent, NavigationMap

CELL = 0.05
WALL = box((2.0, 4.0), (0.0, 3.0), (0.0, 1.0))  # from one side of a room of 6 m x 4 m


def around_the_wall(x: float, y: float) -> float:
    """Length of the shortest way from `(x, y)`, left of the wall, to the same place on its right.

    A tangent to the circle of the agent's radius about the wall's corner, an arc, and straight on along the wall.
    """
    to_corner = math.hypot(2.0 - x, 3.0 - y)
    heading = math.atan2(3.0 - y, 2.0 - x) + math.asin(AGENT.radius / to_corner)
    return 2.0 * (math.sqrt(to_corner**2 - AGENT.radius**2) + AGENT.radius * heading + 1.0)


def test_distances_in_an_empty_room_are_those_of_straight_lines() -> None:
    found = map_of(room(6.0, 4.0))
    points = found.sample(2000, np.random.default_rng(0))
    goal = np.array([0.52, 0.97, 0.0])
    straight = np.linalg.norm(points - goal, axis=1)
    distances = found.distance_field(goal).distances(points)
    assert np.abs(distances - straight).max() < CELL
    assert (distances >= straight - 1e-9).all()
    path, length = found.shortest_path(points[0], [goal])
    np.testing.assert_allclose(path, [points[0], goal])
    assert length == pytest.approx(straight[0])


@pytest.mark.parametrize(('x', 'y'), [(1.0, 1.0), (0.4, 2.5), (1.63, 0.31)])
def test_distances_around_corners_are_those_of_tangents_and_arcs(x: float, y: float) -> None:
    found = map_of(room(6.0, 4.0, WALL))
    expected = around_the_wall(x, y)
    distance = found.distance_field([6.0 - x, y, 0.0]).distances([x, y, 0.0])[0]
    assert distance == pytest.approx(expected, abs=CELL)
    path, length = found.shortest_path([x, y, 0.0], [[6.0 - x, y, 0.0]])
    assert length == pytest.approx(expected, abs=CELL) and length <= distance + CELL
    assert length == pytest.approx(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    np.testing.assert_allclose(path[[0, -1]], [[x, y, 0.0], [6.0 - x, y, 0.0]])


@pytest.mark.parametrize('radius', [0.11, 0.377])
@pytest.mark.parametrize('shift', [0.0, 0.007, 0.0125])
def test_distances_are_right_wherever_walls_are_on_the_grid(radius: float, shift: float) -> None:
    left, right, top = 2.0 + shift, 2.1 + 2.2 * shift, 3.0 + 0.9 * shift
    found = map_of(room(6.0, 5.0, box((left, right), (0.0, top), (0.0, 1.0))), Agent(radius, 1.0, 0.1))
    x, y = 0.83, 1.27
    to_corner = math.hypot(left - x, top - y)
    heading = math.atan2(top - y, left - x) + math.asin(radius / to_corner)
    expected = 2.0 * (math.sqrt(to_corner**2 - radius**2) + radius * heading) + right - left
    goal = [left + right - x, y, 0.0]
    assert found.distance_field(goal).distances([x, y, 0.0])[0] == pytest.approx(expected, abs=CELL)
    path, length = found.shortest_path([x, y, 0.0], [goal])
    assert length == pytest.approx(expected, abs=CELL) and length > expected - 0.01
    assert found.is_free(along(path)).all()


def test_the_nearest_of_several_goals_counts_and_bad_ones_do_not() -> None:
    found = map_of(room(6.0, 4.0, WALL))
    goals = [[5.0, 1.0, 0.0], [1.0, 3.0, 0.0], [3.0, 1.0, 0.0]]  # the last one is in the wall
    field = found.distance_field(goals)
    np.testing.assert_allclose(field.goals, goals[:2])
    assert field.distances([1.0, 1.0, 0.0])[0] == pytest.approx(2.0, abs=CELL)
    np.testing.assert_allclose(field.path([1.0, 1.0, 0.0])[0][-1], goals[1])
    np.testing.assert_allclose(field.path([5.0, 1.5, 0.0])[0][-1], goals[0])


def test_goals_that_cannot_be_reached_are_infinitely_far() -> None:
    found = map_of(room(6.0, 4.0, box((2.0, 4.0), (0.0, 4.0), (0.0, 1.0))))
    field = found.distance_field([1.0, 1.0, 0.0])
    assert np.isinf(field.distances([[5.0, 1.0, 0.0], [3.0, 2.0, 0.0], [9.0, 9.0, 0.0], [1.0, 1.0, 7.0]])).all()
    points, length = field.path([5.0, 1.0, 0.0])
    assert points.shape == (0, 3) and length == math.inf


def test_a_robot_that_leans_against_a_wall_is_at_the_edge_of_free_space() -> None:
    field = map_of(room(6.0, 4.0)).distance_field([3.0, 2.0, 0.0])
    assert field.distances([3.0, 0.05, 0.4])[0] == pytest.approx(1.95, abs=CELL)
    points, length = field.path([3.0, 0.05, 0.4])
    assert points[0] == pytest.approx([3.0, 0.2, 0.0], abs=1.1 * CELL) and length == pytest.approx(1.8, abs=1.1 * CELL)


def test_points_that_are_no_places_are_refused_by_name() -> None:
    found = map_of(room(6.0, 4.0, WALL))
    with pytest.raises(ValueError, match=r'goal \(3, 1, 0\) of the scene: no free place.*within 0.3 m; none is near'):
        found.distance_field([3.0, 1.0, 0.0])
    with pytest.raises(ValueError, match=r'start \(1, 1, 9\) of the scene: no free place.*none is near on its floor'):
        found.shortest_path([1.0, 1.0, 9.0], [[5.0, 1.0, 0.0]])
    with pytest.raises(ValueError, match=r'points\[1\] is \[nan, 0.0, 0.0\]: expected three finite numbers'):
        found.distance_field([1.0, 1.0, 0.0]).distances([[1.0, 1.0, 0.0], [math.nan, 0.0, 0.0]])
    with pytest.raises(ValueError, match=r'points must have the shape \(n, 3\), got \(2,\)'):
        found.is_free([1.0, 1.0])


def collisions(scene: str, agent: Agent, count: int, folder: Path) -> list[int]:
    """Which of so many random paths a cylinder of the agent's size collides with something on that is swept along."""
    middle, half = (agent.height + agent.step_height) / 2, (agent.height - agent.step_height) / 2
    file = folder / 'probe.xml'
    probe = f'<geom type="cylinder" size="{agent.radius} {half}" pos="0 0 {middle}" mass="1"/>'
    file.write_text(f'<mujoco><worldbody><body>{probe}</body></worldbody></mujoco>')
    spec = SceneSpec(asset=scene, objects=(ObjectSpec('probe', asset=str(file)),))
    compiled = SCENES.get(spec, 0.005)
    data = mujoco.MjData(compiled.model)
    place = compiled.bodies['probe'].qpos
    geom = compiled.model.body_geomadr[compiled.bodies['probe'].body]
    found = NavigationMap.of_scene(scene, agent)
    rng = np.random.default_rng(0)
    goals, starts = found.sample(1 + count // 10, rng), found.sample(count, rng)
    field, bad = found.distance_field(goals[0]), []
    for k, start in enumerate(starts):
        if k % 10 == 0:
            field = found.distance_field(goals[k // 10])
        for point in along(field.path(start)[0]):
            data.qpos[place : place + 3] = point
            mujoco.mj_kinematics(compiled.model, data)
            mujoco.mj_collision(compiled.model, data)
            if (data.contact.dist[(data.contact.geom == geom).any(axis=1)] < 0.0).any():
                bad.append(k)
                break
    return bad


def along(corners: np.ndarray, spacing: float = 0.02) -> np.ndarray:
    """Points on a path."""
    pieces = [np.linspace(a, b, 2 + int(np.linalg.norm(b - a) / spacing)) for a, b in itertools.pairwise(corners)]
    return np.concatenate(pieces)


H1, SMALL = Agent(radius=0.377, height=1.74, step_height=0.087), Agent(radius=0.11, height=0.17, step_height=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(('scene', 'agent'), [('apartment.usda', H1), ('rooms.xml', SMALL)])
def test_nothing_is_touched_along_paths(scene: str, agent: Agent, tmp_path: Path) -> None:
    assert collisions(f'scenes/{scene}', agent, 25, tmp_path) == []


@pytest.mark.nightly
@pytest.mark.parametrize('agent', [H1, SMALL])
@pytest.mark.parametrize('scene', ['apartment.usda', 'rooms.xml', 'warehouse.xml', 'obstacles.usda'])
def test_nothing_is_touched_along_many_paths(scene: str, agent: Agent, tmp_path: Path) -> None:
    assert collisions(f'scenes/{scene}', agent, 100, tmp_path) == []
