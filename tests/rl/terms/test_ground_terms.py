"""Terms on ground that is not level: the map of the ground, what looks it up, and where episodes start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.spatial.transform import Rotation

from internutopia.config.learning import ElevationCfg, LearningCfg
from internutopia.engines.batched.articulation import MujocoArticulationView
from internutopia.rl import VectorEnv
from internutopia.rl.elevation import GroundBelow
from internutopia.rl.terms import look_up_term
from internutopia.util.arrays import to_host
from internutopia.util.rotations import quat_from_yaw
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import velocity

import_extensions()

X, Y = 24.0, -6.0  # m, middle of the highest ring of steps: 12 cm each, from 0.7 m on, 30 cm wide
HILL = 2.2 * np.tan(np.radians(18.0))  # m, of the steepest hill, whose slopes are 2.2 m long
SCAN = {'forward': (0.0, 0.85, 1.15), 'left': (-0.2, 0.0, 0.2)}


@pytest.fixture(scope='module')
def envs() -> Iterator[VectorEnv]:
    config = velocity.config(8, 0, robot='aliengo', terrain='rough', threads=1)
    learning = config.task_configs[0].learning
    assert learning is not None
    part = ElevationCfg(x=(X - 3.0, X + 3.0), y=(Y - 3.0, 3.0))
    envs = VectorEnv(config, learning.update(elevation=part))
    envs.reset(seed=0)
    yield envs
    envs.close()


@pytest.mark.slow
def test_a_device_has_the_map_of_the_host(envs: VectorEnv) -> None:
    pytest.importorskip('mujoco_warp')
    config = velocity.config(2, 0, robot='aliengo', terrain='rough')
    config.simulator = config.simulator.model_copy(update={'backend': 'mujoco_warp'})
    part = ElevationCfg(x=(X, X + 2.0), y=(-1.0, 1.0))
    places = np.stack(np.meshgrid(np.arange(X + 0.075, X + 2.0, 0.3), np.arange(-0.925, 1.0, 0.3)), axis=-1)
    with closing(VectorEnv(config, envs.core.learning.update(elevation=part), arrays='torch')) as device:
        device.reset(seed=0)
        ours, theirs = device.core.state.elevation, envs.core.state.elevation
        assert ours is not None and theirs is not None
        heights = ours.heights(device.core.arrays.asarray(places, 'float32'))
        np.testing.assert_allclose(to_host(heights), theirs.heights(places), atol=1e-4)
        assert np.ptp(to_host(heights)) > 0.1

        state = device.core.state
        below = ground_below(state).heights(device.core.arrays.asarray(np.stack([places[2], places[3]]), 'float32'))
        np.testing.assert_allclose(to_host(below), theirs.heights(np.stack([places[2], places[3]])), atol=0.01)


def put(envs: VectorEnv, places: Any, yaw: Any = 0.0) -> Any:
    """Robots at places (x, y, z) `(8, 3)`; the state."""
    state = envs.core.state
    state.articulation.set_pose(np.broadcast_to(places, (8, 3)), quat_from_yaw(np.broadcast_to(yaw, 8)))
    state.changed()
    return state


@pytest.mark.parametrize(
    ('place', 'height'),
    [
        ((X, Y), 0.0),
        ((X + 0.85, Y), 0.12),
        ((X, Y - 1.15), 0.24),
        ((X + 1.6, Y + 1.6), 0.36),
        ((X - 2.75, Y), 0.12),
        ((X, 0.0), HILL),
        ((X + 0.7 + 1.1, 0.0), HILL / 2),
        ((X, 2.95), 0.0),
        ((X + 50.0, 0.0), 0.0),  # outside, the last cell counts
    ],
)
def test_heights_are_those_of_the_scene(envs: VectorEnv, place: Any, height: float) -> None:
    found = envs.core.state.ground_height(np.array([place], np.float32))
    np.testing.assert_allclose(
        found, [height], atol=0.01
    )  # a slope rises by 8 mm from the middle of a cell to its edge


def test_envs_that_start_alike_share_a_map_and_others_do_not(
    make_config: Any, make_task: Any, make_block: Any, hopper: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cast, grids = MujocoArticulationView.cast_rays, []

    def count(self: MujocoArticulationView, env_ids: Any, origins: Any, *arguments: Any, **options: Any) -> Any:
        grids.append(origins)
        return cast(self, env_ids, origins, *arguments, **options)

    monkeypatch.setattr(MujocoArticulationView, 'cast_rays', count)
    place = np.array([[1.0, 0.0]], np.float32)
    for x, height, casts in ((1.0, 0.3, 1), (1.0, 0.3, 1), (2.0, 0.0, 2)):  # the same model, and another pose
        block = make_block('block', position=(x, 0.0, 0.2))
        task = make_task('floor', robots=[hopper], objects=[block], type='SingleInferenceTask')
        learning = {
            'action': {'controller': 'joints'},
            'observations': [{'term': 'joint_positions'}],
            'elevation': {'x': (0.0, 3.0), 'y': (-1.0, 1.0)},
        }
        config = make_config(tasks=[task], env_num=2, episode_order='cycle', seed=0)
        with closing(VectorEnv(config, LearningCfg.model_validate(learning))) as envs:
            envs.reset()
            np.testing.assert_allclose(envs.core.state.ground_height(place), [height], atol=1e-6)
        assert len(grids) == casts


def test_rays_from_above_a_robot_find_the_same(envs: VectorEnv) -> None:
    """Through the robot itself."""
    around = np.array([(0.0, 0.0), (0.85, 0.0), (0.0, -1.15), (1.6, 1.6), (-2.75, 0.0)], np.float32)
    places = np.broadcast_to(around + (X, Y), (8, 5, 2)).astype(np.float32)
    heights = ground_below(put(envs, (X, Y, 0.4))).heights(places)
    np.testing.assert_allclose(heights, [[0.0, 0.12, 0.24, 0.36, 0.12]] * 8, atol=1e-5)


def ground_below(state: Any) -> GroundBelow:
    return GroundBelow(state.articulation.view, lambda: state.base_position, state.arrays)


def test_what_robots_see_of_it_in_their_heading(envs: VectorEnv) -> None:
    yaws = np.arange(8) * np.pi / 2
    state = put(envs, (X, Y, 0.5), yaws)
    scan = look_up_term('observation', 'height_scan', SCAN)(state)
    np.testing.assert_allclose(scan, [[0.5] * 3 + [0.38] * 3 + [0.26] * 3] * 8, atol=1e-4)
    state = put(envs, (X, Y + 0.6, 0.5))  # 0.1 m from the first step, which is to the left
    scan = look_up_term('observation', 'height_scan', SCAN)(state)
    np.testing.assert_allclose(scan[0, :3], [0.5, 0.5, 0.38], atol=1e-4)


def test_heights_count_from_the_ground_under_the_feet(envs: VectorEnv) -> None:
    level = put(envs, (X, Y, 0.4))
    feet = level.feet_positions[0, :, 2].copy()
    state = put(envs, (X + 2.0, Y, 0.36 + 0.4))  # on top, wide enough for the robot to stand across
    np.testing.assert_allclose(state.feet_ground, 0.36, atol=1e-5)
    np.testing.assert_allclose(state.base_clearance, 0.4, atol=1e-5)
    np.testing.assert_allclose(state.feet_positions[0, :, 2] - 0.36, feet, atol=1e-5)
    for kind, name, params, expected in (
        ('observation', 'base_height', {}, 0.4),
        ('reward', 'height_cost', {'target': 0.3}, 0.01),
        ('termination', 'fallen', {'minimum_height': 0.41}, True),
        ('termination', 'fallen', {'minimum_height': 0.39}, False),
    ):
        np.testing.assert_allclose(look_up_term(kind, name, params)(state), expected, atol=1e-4)  # type: ignore[arg-type]


@pytest.mark.parametrize('yaw', [0.0, np.pi / 2])
def test_a_foot_that_swings_counts_from_the_highest_ground_ahead_of_it(envs: VectorEnv, yaw: float) -> None:
    """Up the first step at 0.7 m, in the heading of the robot."""
    state = put(envs, (X, Y, 0.4), yaw)
    way = np.array([np.cos(yaw), np.sin(yaw)])
    front = ((state.feet_positions[0, :, :2] - (X, Y)) @ way).max()
    state = put(envs, (*((X, Y) + (0.6 - front) * way), 0.4), yaw)  # front feet 10 cm before the step
    state.commands['velocity'][:] = [0.5, 0.0, 0.0]
    z = state.feet_positions[..., 2].astype(float)
    gait = {'name': 'velocity', 'period': 1.0, 'offsets': (0.0, 0.5, 0.5, 0.0), 'height': 0.1, 'ground': 0.02}
    state.steps[:] = 48 * 0.775  # feet 0 and 3 in the middle of their swing; 0 and 1 are those in front
    state.changed()
    arc = np.sin(np.pi * (np.array([37 / 48, 0, 0, 37 / 48]) - 0.55).clip(min=0.0) / 0.45)
    for ahead, rise in (((0.0, 0.05), 0.0), ((-0.2, 0.0, 0.2), 0.12), ((0.2,), 0.12)):
        wanted = 0.02 + 0.1 * arc + [rise, 0.0, 0.0, 0.0]
        cost = look_up_term('reward', 'swing_height_cost', {**gait, 'ahead': ahead})(state)
        np.testing.assert_allclose(cost, np.square(z - wanted).sum(axis=1), rtol=1e-3)


def test_a_sole_over_an_edge_is_a_bad_foothold(envs: VectorEnv) -> None:
    """Front feet 2 cm before the edge of the top, which falls off by 12 cm; hind feet well on it."""
    sole = np.array([(x, 0.0, 0.0) for x in (-0.08, 0.0, 0.08, 0.12)])
    put(envs, (X, Y, 0.38))
    for _ in range(3):
        envs.step(np.zeros((8, 12), np.float32))
    touch = envs.core.state.feet_contacts.copy()
    assert touch.sum() > 16, 'most stand'
    front = (envs.core.state.feet_positions[:, :, 0] - envs.core.state.base_position[:, None, 0])[:, :2].max()
    state = put(envs, (X + 2.28 - front, Y, 0.36 + 0.38))
    assert (state.feet_contacts == touch).all(), 'those of the last step'
    turned = Rotation.from_quat(np.roll(state.feet_orientations.reshape(-1, 4), -1, axis=1))
    points = np.stack([turned.apply(point) for point in sole], axis=1).reshape(8, 4, 4, 3)
    points += state.feet_positions[:, :, None]
    hollow = points[..., 2] - np.where(points[..., 0] < X + 2.3, 0.36, 0.24) > 0.05
    assert hollow[:, :2].any() and not hollow[:, 2:].all()
    cost = look_up_term('reward', 'foothold_cost', {'sole': sole.tolist(), 'margin': 0.05})(state)
    np.testing.assert_allclose(cost, (hollow.mean(axis=-1) * touch).sum(axis=1), rtol=1e-5)


def test_episodes_start_on_the_ground_of_the_rows_that_the_level_allows(envs: VectorEnv) -> None:
    state, ids = envs.core.state, np.arange(8)
    start = look_up_term(
        'randomization', 'terrain_pose', {'x': (-50.0, X), 'y': (Y, 0.0), 'spread': 0.3, 'by_level': True}
    )
    for level, rows in ((0.0, {-50.0}), (1.0, {-50.0, X})):
        state.levels[:] = level
        seen = []
        for _ in range(8):
            put(envs, (0.0, 0.0, 0.4))
            start(state, ids)
            state.changed()
            seen.append(state.base_position.copy())
        places = np.concatenate(seen)
        assert {min((-50.0, X), key=lambda x: abs(x - place)) for place in places[:, 0]} == rows
        assert np.abs(places[:, 0] - np.where(places[:, 0] < 0, -50.0, X)).max() <= 0.3 + 1e-5
        high = (places[:, 0] > 0) & (np.abs(places[:, 1]) < 0.5)
        np.testing.assert_allclose(places[high, 2], 0.4 + HILL, atol=1e-3)  # its top is level
        assert (places[:, 1] < -3.0).any() and (places[:, 1] > -3.0).any()
    assert high.any()


def test_without_a_map_the_ground_is_level() -> None:
    envs = VectorEnv(velocity.config(2, 0, robot='aliengo', threads=1))
    envs.reset(seed=0)
    state = envs.core.state
    scan = look_up_term('observation', 'height_scan', SCAN)(state)
    np.testing.assert_array_equal(scan, np.repeat(state.base_position[:, 2:], 9, axis=1))
    envs.close()


def test_a_scan_that_differs_left_and_right_cannot_be_mirrored(envs: VectorEnv) -> None:
    from internutopia.rl.terms.registry import look_up_mirror

    mirror: Any = look_up_mirror('observation', 'height_scan')
    assert mirror(envs.core.state, **SCAN).order.tolist() == [2, 1, 0, 5, 4, 3, 8, 7, 6]
    with pytest.raises(ValueError, match='differs left and right'):
        mirror(envs.core.state, forward=(0.0,), left=(0.0, 0.3))


def test_areas_that_are_none_or_too_large() -> None:
    with pytest.raises(ValidationError, match='lower end first'):
        ElevationCfg(x=(1.0, 0.0), y=(0.0, 1.0))
    with pytest.raises(ValidationError, match='cells; there may be'):
        ElevationCfg(x=(0.0, 1e5), y=(0.0, 1e5))
