"""Terms about objects, and those that put things in their places: known answers."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from internutopia.config.learning import LearningCfg
from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia.rl.terms import look_up_term
from internutopia.util.rotations import quat_from_yaw

PLACES = {'a': (1.0, 0.0, 0.1), 'b': (0.0, 2.0, 0.1), 'c': (-0.5, 0.0, 0.1)}
OBJECTS = ('a', 'b', 'c')
POSES = [((0.0, 0.0), 0.0), ((0.0, 1.5), np.pi / 2)]  # of the robot in the two envs: (x, y) [m], yaw [rad]


@pytest.fixture
def state(make_config: Any, make_task: Any, make_block: Any, hopper: Any) -> Iterator[RobotState]:
    """Two envs with three boxes each, and a robot that stands elsewhere in each."""
    blocks = [make_block(name, mass=1.0, position=place) for name, place in PLACES.items()]
    task = make_task('floor', robots=[hopper.update(orientation=None)], objects=blocks, type='SingleInferenceTask')
    config = make_config(tasks=[task], env_num=2, sim={'substeps': 4}, episode_order='cycle', seed=0)
    learning = {'action': {'controller': 'joints'}, 'observations': [{'term': 'joint_positions'}]}
    envs = VectorEnv(config, LearningCfg.model_validate(learning))
    envs.reset()
    state = envs.core.state
    xyz = np.array([[*place, 0.5] for place, _ in POSES])
    state.articulation.set_pose(xyz, quat_from_yaw(np.array([yaw for _, yaw in POSES])))
    state.changed()
    yield state
    envs.close()


def call(kind: Any, term: str, /, **params: Any) -> Callable[..., Any]:
    return look_up_term(kind, term, params)


def test_nearest_objects_in_the_heading_of_the_base(state: RobotState) -> None:
    seen = call('observation', 'nearest_objects', objects=OBJECTS, count=2)(state)
    # env 0: c, then a. env 1, which looks along y: b 0.5 m ahead, then c 1.5 m behind and 0.5 m to its left
    np.testing.assert_allclose(seen, [[-0.5, 0.0, 1.0, 0.0], [0.5, 0.0, -1.5, 0.5]], atol=1e-5)


def test_near_objects(state: RobotState) -> None:
    cost = call('reward', 'near_objects_cost', objects=OBJECTS, distance=2.0)(state)
    far = [np.hypot(1.0, 1.5), 0.5, np.hypot(0.5, 1.5)]
    np.testing.assert_allclose(cost, [0.5 + 0.0 + 0.75, sum(1 - d / 2 for d in far)], rtol=1e-5)
    for distance, near in ((0.45, [False, False]), (0.55, [True, True])):
        assert call('termination', 'near_object', objects=OBJECTS, distance=distance)(state).tolist() == near
    assert call('termination', 'near_object', objects=('b',), distance=0.6)(state).tolist() == [False, True]


def test_scatter_spreads_objects_in_the_given_envs(state: RobotState) -> None:
    before = state.object_positions(OBJECTS).copy()
    with state.rng.for_envs(env_ids := np.array([1])):
        call('randomization', 'scatter', objects=OBJECTS, distance=(1.0, 2.0))(state, env_ids)
    state.changed()
    after = state.object_positions(OBJECTS)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1, :, 2], before[1, :, 2])
    radius = np.linalg.norm(after[1, :, :2], axis=-1)
    assert (radius >= 1.0).all() and (radius <= 2.0).all()
    bearings = np.sort(np.arctan2(after[1, :, 1], after[1, :, 0]))
    gaps = np.diff([*bearings, bearings[0] + 2 * np.pi])
    assert gaps.min() > 0.39 * 2 * np.pi / 3, 'each in its own sector'


def test_joint_pose_puts_joints_within_their_ranges(state: RobotState) -> None:
    before = state.joint_positions.copy()
    with state.rng.for_envs(env_ids := np.array([0])):
        call('randomization', 'joint_pose', positions={'tail': (0.5, 0.6)})(state, env_ids)
    state.changed()
    assert 0.5 <= state.joint_positions[0, 1] <= 0.6 and state.joint_positions[0, 0] == before[0, 0]
    np.testing.assert_array_equal(state.joint_positions[1], before[1])


def test_goals_keep_clear_of_objects(state: RobotState) -> None:
    params = {'distance': (0.9, 1.1), 'clearance': 0.5}
    nearest = []
    for avoid in ((), OBJECTS):
        goal = call('command', 'goal', avoid=avoid, **params)
        with state.rng.for_envs(env_ids := np.array([0])):
            goals = np.concatenate([goal(state, env_ids) for _ in range(200)])
        nearest.append(np.linalg.norm(goals - [1.0, 0.0], axis=-1).min())
    assert nearest[0] < 0.3 and nearest[1] >= 0.5


def test_unknown_objects_are_named(state: RobotState) -> None:
    with pytest.raises(KeyError, match="no movable body 'd'"):
        call('observation', 'nearest_objects', objects=('d',), count=1)(state)
