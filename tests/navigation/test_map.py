"""Maps of rooms whose free space is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scenes import box, map_of, room

from internutopia.config import TaskCfg
from internutopia.config.robot import RobotCfg
from internutopia.navigation import Agent, NavigationMap

CELL = 0.05


def free_extent(found: NavigationMap, island: int = 0) -> tuple[np.ndarray, np.ndarray]:
    points = found.points[found.islands == island]
    return points.min(axis=0), points.max(axis=0)


def test_free_space_of_an_empty_room_ends_a_radius_from_its_walls() -> None:
    low, high = free_extent(map_of(room(3.0, 2.0)))
    np.testing.assert_allclose(low, [0.2, 0.2, 0.0], atol=CELL)
    np.testing.assert_allclose(high, [2.8, 1.8, 0.0], atol=CELL)
    assert (low[:2] >= 0.2).all() and (high[:2] <= [2.8, 1.8]).all()


@pytest.mark.parametrize(
    ('geom', 'reach'),
    [
        ('type="cylinder" size="0.5 0.5"', 0.5),
        ('type="sphere" size="0.5"', 0.5),
        ('type="capsule" size="0.3 0.4"', 0.3),
        ('type="ellipsoid" size="0.5 0.5 0.7"', 0.5),
        ('type="mesh" mesh="octagon"', 0.5),
        ('type="cylinder" size="0.02 0.5"', 0.02),  # thinner than a cell
    ],
)
def test_obstacles_are_widened_by_the_radius_in_all_directions(geom: str, reach: float) -> None:
    """And by three columns more at most, where a box would be by 0.16 m more in the corners."""
    angles = np.pi / 4 * np.arange(8)
    corners = ' '.join(f'{0.5 * math.cos(a)} {0.5 * math.sin(a)} {z}' for z in (-0.5, 0.5) for a in angles)
    asset = f'</worldbody><asset><mesh name="octagon" vertex="{corners}"/></asset><worldbody>'
    found = map_of(room(4.0, 4.0, f'<geom {geom} pos="2 2 0.5"/>') + asset, Agent(0.4, 1.0, 0.2))
    for angle in np.linspace(0.0, 2.0 * np.pi, 17):
        direction = np.array([math.cos(angle), math.sin(angle), 0.0])
        middle = np.array([2.0, 2.0, 0.0])
        least = reach * math.cos(np.pi / 8) if 'octagon' in geom else reach
        near, far = middle + direction * (least + 0.39), middle + direction * (reach + 0.4 + 0.075)
        assert found.is_free([near, far]).tolist() == [False, True], angle


def test_height_fields_are_stood_on_where_they_are_not_steep() -> None:
    """A ramp of 20 degrees, then one of 60."""
    asset = '<asset><hfield name="ramp" nrow="2" ncol="4" size="1.5 1 1.2 0.1" elevation="{}"/></asset>'
    heights = np.tile([0.0, math.tan(math.radians(20)), math.tan(math.radians(20)) + math.tan(math.radians(60)), 0], 2)
    asset = asset.format(' '.join(f'{value:.6f}' for value in heights)).replace('1.2 0.1', f'{heights.max():.6f} 0.1')
    found = map_of(f'</worldbody>{asset}<worldbody><geom type="hfield" hfield="ramp" pos="1.5 1 0"/>')
    low, high = free_extent(found)
    assert low[0] == pytest.approx(0.2, abs=CELL)
    assert 0.7 < high[0] <= 0.95  # a radius from where it gets steep, at x = 1, or less by what is a step
    assert found.nearest([[0.5, 1.0, 0.5 * math.tan(math.radians(20))]])[0][0, 2] == pytest.approx(
        0.5 * math.tan(math.radians(20)), abs=0.02
    )


@pytest.mark.parametrize(('height', 'open_'), [(0.95, False), (1.05, True)])
def test_what_is_high_enough_is_walked_under(height: float, open_: bool) -> None:
    beam = box((1.4, 1.6), (0.0, 2.0), (height, height + 0.3))
    found = map_of(room(3.0, 2.0, beam))
    assert np.isfinite(found.distance_field([0.5, 1.0, 0.0]).distances([2.5, 1.0, 0.0])[0]) == open_
    assert found.is_free([1.5, 1.0, 0.0])[0] == open_


@pytest.mark.parametrize(('height', 'open_'), [(0.18, True), (0.22, False)])
def test_what_is_low_enough_is_stepped_on(height: float, open_: bool) -> None:
    sill = box((1.4, 1.6), (0.0, 2.0), (0.0, height))
    distance = map_of(room(3.0, 2.0, sill)).distance_field([0.5, 1.0, 0.0]).distances([2.5, 1.0, 0.0])[0]
    assert np.isfinite(distance) == open_


def two_floors(riser: float) -> str:
    """A lower room, ten steps along x at its side, and an upper floor over most of it."""
    steps = [box((2.0 + 0.3 * k, 2.3 + 0.3 * k), (0.0, 1.0), (0.0, riser * (k + 1))) for k in range(10)]
    top = riser * 10
    return room(
        6.0, 3.0, *steps, box((0.0, 6.0), (1.0, 3.0), (top - 0.1, top)), box((5.0, 6.0), (0.0, 1.0), (0.0, top))
    )


@pytest.mark.slow
def test_floors_above_each_other_are_kept_apart_and_stairs_join_them() -> None:
    found = map_of(two_floors(riser=0.18))
    below, above = [1.0, 2.0, 0.0], [1.0, 2.0, 1.8]
    assert found.is_free([below, above]).all()
    assert found.islands.max() >= 0 and len(np.unique(found.nearest([below, above])[0][:, 2])) == 2
    up = found.distance_field([below]).distances([above])[0]
    # along the steps, 3 m, and back on the upper floor: no less than that, and no more than along right angles
    slope = math.hypot(3.0, 1.8)
    assert slope + 4.0 < up < slope + 8.0
    assert found.distance_field([below]).distances([[1.0, 2.0, 1.0]])[0] == pytest.approx(0.0, abs=CELL)  # in its body
    path, length = found.shortest_path(below, [above])
    assert length == pytest.approx(up, rel=0.02)
    assert (np.diff(path[:, 2]) > -0.01).all() and path[-1, 2] == pytest.approx(1.8)
    steep = map_of(two_floors(riser=0.22))
    assert np.isinf(steep.distance_field([below]).distances([[1.0, 2.0, 2.2]])[0])


def test_islands_are_numbered_by_area_and_roofs_come_last() -> None:
    wall = box((2.0, 2.2), (0.0, 3.0), (0.0, 2.0))
    roof = box((-0.1, 6.1), (-0.1, 3.1), (2.0, 2.1))
    found = map_of(room(6.0, 3.0, wall, roof))
    assert found.islands.max() == 2
    floors = [found.points[found.islands == island, 2].max() for island in range(3)]
    np.testing.assert_allclose(floors, [0.0, 0.0, 2.1], atol=1e-9)
    assert found.points[found.islands == 0, 0].min() > 2.2
    assert found.points[found.islands == 1, 0].max() < 2.0
    assert (found.islands == 2).sum() > (found.islands == 0).sum()


def test_samples_are_free_and_repeatable() -> None:
    found = map_of(room(3.0, 2.0, box((1.0, 1.3), (0.5, 0.8), (0.0, 1.0))))
    points = found.sample(500, np.random.default_rng(3))
    assert found.is_free(points).all() and points.shape == (500, 3)
    assert (points == found.sample(500, np.random.default_rng(3))).all()
    quarters = np.histogram(points[:, 0], bins=4, range=(0.2, 2.8))[0]
    assert quarters.min() > 60  # of 125, less the box
    with pytest.raises(ValueError, match='no island 7, there are 1'):
        found.sample(1, np.random.default_rng(0), island=7)


def test_nearest_places() -> None:
    found = map_of(room(3.0, 2.0))
    places, distances = found.nearest([[1.0, 1.0, 0.5], [0.05, 1.0, 0.0], [1.0, 1.0, 5.0]])
    np.testing.assert_allclose(places[0], [1.0, 1.0, 0.0])
    np.testing.assert_allclose(places[1], [0.2, 1.0, 0.0], atol=1.1 * CELL)
    assert distances[0] == 0.0 and distances[1] == pytest.approx(0.15, abs=1.1 * CELL) and np.isinf(distances[2])
    assert np.isnan(places[2]).all()


def test_clearance_is_the_distance_to_walls_on_the_same_floor() -> None:
    found = map_of(room(3.0, 3.0, box((2.0, 2.4), (0.0, 1.0), (0.0, 1.5))))
    points = [[1.5, 0.5, 0.0], [0.7, 1.5, 0.0], [1.6, 1.3, 0.0], [1.5, 1.6, 0.0]]
    np.testing.assert_allclose(found.clearance(points, 0.9), [0.5, 0.7, 0.5, math.hypot(0.5, 0.6)], atol=1e-9)
    assert np.isinf(found.clearance([points[1]], 0.6)).all()


def test_what_moves_is_left_out_where_that_is_asked_for() -> None:
    crate = f'<body><freejoint/>{box((1.2, 1.8), (0.7, 1.3), (0.0, 0.6))}</body>'
    assert not map_of(room(3.0, 2.0, crate)).is_free([1.5, 1.0, 0.0])[0]
    assert map_of(room(3.0, 2.0, crate), movable=False).is_free([1.5, 1.0, 0.0])[0]
    held = crate.replace('<freejoint/>', '').replace('<body>', '<body mocap="true">')  # as objects that stand still are
    assert not map_of(room(3.0, 2.0, held), movable=False).is_free([1.5, 1.0, 0.0])[0]


def test_what_does_not_collide_is_no_obstacle() -> None:
    picture = box((1.2, 1.8), (0.7, 1.3), (0.0, 1.0), contype='0', conaffinity='0')
    assert map_of(room(3.0, 2.0, picture)).is_free([1.5, 1.0, 0.0])[0]


def test_a_ground_without_borders_is_mapped_around_the_origin() -> None:
    low, high = free_extent(map_of('<geom type="plane" size="0 0 1"/>', cell=0.1))
    np.testing.assert_allclose([low[:2], high[:2]], [[-4.8, -4.8], [4.8, 4.8]], atol=CELL)


@pytest.mark.slow
def test_scenes_that_cannot_be_mapped_say_why() -> None:
    with pytest.raises(ValueError, match='there is no ground.*a scene needs a floor that collides'):
        map_of('<geom type="plane" size="0 0 1" contype="0" conaffinity="0"/>')
    with pytest.raises(ValueError, match='no room for an agent of radius 2 m and height 1 m'):
        map_of(room(3.0, 2.0), Agent(radius=2.0, height=1.0, step_height=0.1))
    with pytest.raises(ValueError, match='cell must be a positive width in metres, got 0'):
        map_of(room(3.0, 2.0), cell=0)


def test_agents_must_make_sense() -> None:
    with pytest.raises(ValueError, match='radius must be a positive number of metres, got nan'):
        Agent(radius=math.nan, height=1.0, step_height=0.1)
    with pytest.raises(ValueError, match='turning_radius must be a number of metres, got inf'):
        Agent(radius=0.1, height=1.0, step_height=0.1, turning_radius=math.inf)
    with pytest.raises(ValueError, match='step_height = 1.0 m must be below height = 1.0 m'):
        Agent(radius=0.1, height=1.0, step_height=1.0)


def test_agent_of_a_robot(make_robot: Callable[..., RobotCfg], write_model: Callable[[str, str], str]) -> None:
    """A box of 0.6 x 0.8 x 0.5 m on a stick, about the middle: its corners are 0.5 m off."""
    body = '<body name="base" pos="0 0 1"><freejoint/><geom type="box" size="0.3 0.4 0.25"/>'
    body += '<geom type="capsule" size="0.05 0.45" pos="0 0 -0.5"/></body>'
    model = write_model('boxy', f'<worldbody>{body}</worldbody>')
    agent = Agent.of(make_robot(usd_path=model))
    assert (agent.radius, agent.turning_radius) == (pytest.approx(0.4), pytest.approx(0.5))
    assert (agent.height, agent.step_height) == (pytest.approx(1.25), pytest.approx(0.0625))
    assert Agent.of(make_robot(usd_path=model), step_height=0.2).step_height == 0.2


def test_long_robots_get_round_corners_that_they_could_not_turn_in(
    make_robot: Callable[..., RobotCfg], write_model: Callable[[str, str], str]
) -> None:
    """A box of 1.2 x 0.3 m, from 0.4 m behind its base on; at 45 degrees it reaches (0.6 + 0.3) m from the corner."""
    body = '<body name="base" pos="0 0 1"><freejoint/><geom type="box" size="0.6 0.15 0.25" pos="0.2 0 0"/></body>'
    robot = make_robot(usd_path=write_model('long', f'<worldbody>{body}</worldbody>'))
    agent = Agent.of(robot)
    corridor = 2 * agent.radius  # from the outer corner to the inner one, across, it is sqrt(2) times as wide
    assert math.sqrt(2) * corridor == pytest.approx(0.6 + 0.3)
    assert agent.turning_radius == pytest.approx(math.hypot(0.8, 0.15))
    half = math.pi / 3
    turned = robot.update(position=(5.0, 2.0, 1.0), orientation=(math.cos(half), 0.0, 0.0, math.sin(half)))
    assert Agent.of(turned) == agent


def test_map_of_a_task_has_its_objects_but_not_its_robots(
    make_task: Callable[..., TaskCfg], make_block: Callable[..., object], make_robot: Callable[..., RobotCfg]
) -> None:
    block = make_block('block', position=(0.5, 0.5, 0.1))
    task = make_task(scene='scenes/rooms.xml', robots=[make_robot(position=(0.0, 0.0, 0.0))], objects=[block])
    found = NavigationMap.of_scene(task, Agent(radius=0.1, height=0.5, step_height=0.02), cell=0.1)
    assert found.is_free([[0.0, 0.0, 0.0], [0.5, 0.5, 0.0]]).tolist() == [True, False]
    assert NavigationMap.of_scene('scenes/rooms.xml', found.agent, cell=0.1).is_free([0.5, 0.5, 0.0])[0]
