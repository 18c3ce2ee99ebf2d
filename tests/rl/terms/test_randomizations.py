"""Built-in randomizations: what each changes, in which envs, from what, and when."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from built_in_terms import ELSEWHERE, built_in

from internutopia.rl import VectorEnv
from internutopia.rl.terms import look_up_term

MakeLearner = Callable[..., VectorEnv]

DT = 4 / 200  # s, of a step of the envs made here
HOME = np.array([0.3, -0.2])  # rad, of the hopper


def look(envs: VectorEnv) -> dict[str, np.ndarray]:
    """What randomizations change."""
    state = envs.core.state
    gains = state.articulation.get_gains()
    world: Any = envs.core.runner.world
    models = [world.model(env_id) for env_id in range(envs.num_envs)]
    return {
        'q': state.joint_positions.copy(),
        'dq': state.joint_velocities.copy(),
        'position': state.articulation.get_pose()[0].copy(),
        'orientation': state.articulation.get_pose()[1].copy(),
        'velocity': state.articulation.get_linear_velocity().copy(),
        'stiffness': gains[0].copy(),
        'damping': gains[1].copy(),
        'mass': state.articulation.view.body('leg').get_masses().copy(),
        'armature': np.stack([model.dof_armature[6:] for model in models]),
        'joint damping': np.stack([model.dof_damping[6:] for model in models]),
    }


RANDOMIZATIONS: dict[str, tuple[dict[str, Any], set[str]]] = {
    'joint_offset': ({'position': (-0.1, 0.1), 'velocity': (-0.5, 0.5)}, {'q', 'dq'}),
    'base_pose': ({'x': (-0.1, 0.1), 'y': (0.2, 0.3), 'yaw': (-1.0, 1.0)}, {'position', 'orientation'}),
    'tumbled': ({'height': (0.5, 0.6)}, {'position', 'orientation'}),
    'push': ({'speed': 0.5}, {'velocity'}),
    'gains': ({'stiffness': (0.8, 1.2), 'damping': (0.5, 1.5)}, {'stiffness', 'damping'}),
    'mass': ({'link': 'leg', 'factor': (0.5, 2.0)}, {'mass'}),
    'joint_dynamics': ({'armature': (0.01, 0.1), 'damping': (0.1, 1.0)}, {'armature', 'joint damping'}),
}


def randomize(envs: VectorEnv, name: str, params: Mapping[str, Any], env_ids: Sequence[int]) -> None:
    """Call a randomization for some envs, as the envs do."""
    state, ids = envs.core.state, np.array(env_ids)
    with state.rng.for_envs(ids):
        look_up_term('randomization', name, params)(state, ids)


def test_every_randomization_has_a_test() -> None:
    assert {*RANDOMIZATIONS, 'friction', 'foot_size', 'other_pose'} | ELSEWHERE == set(
        built_in('randomization')
    ) | ELSEWHERE


@pytest.mark.parametrize('name', RANDOMIZATIONS)
def test_a_randomization_changes_what_it_says_in_the_given_envs_only(make_learner: MakeLearner, name: str) -> None:
    params, changed = RANDOMIZATIONS[name]
    envs = make_learner(env_num=4)
    envs.reset()
    before = look(envs)
    randomize(envs, name, params, [1, 3])
    envs.core.state.changed()
    after = look(envs)
    for key in before:
        assert np.array_equal(after[key][[0, 2]], before[key][[0, 2]]), key
        assert np.array_equal(after[key][[1, 3]], before[key][[1, 3]]) == (key not in changed), key
        if key in changed:
            assert not np.array_equal(after[key][1], after[key][3]), key


@pytest.mark.parametrize('name', RANDOMIZATIONS)
def test_other_envs_do_not_feel_it(make_learner: MakeLearner, name: str) -> None:
    terms = [{'term': t} for t in ('joint_positions', 'base_position', 'base_linear_velocity')]
    plain, changed = (make_learner(env_num=2, observations=terms) for _ in range(2))
    for envs in (plain, changed):
        envs.reset()
    randomize(changed, name, RANDOMIZATIONS[name][0], [1])
    actions = np.random.default_rng(0).uniform(-1, 1, (30, 2, 2)).astype(np.float32)
    seen = [np.array([envs.step(row)[0] for row in actions]) for envs in (plain, changed)]
    assert np.array_equal(seen[0][:, 0], seen[1][:, 0])
    assert not np.array_equal(seen[0][:, 1], seen[1][:, 1])


def test_randomized_values_lie_in_their_ranges(make_learner: MakeLearner) -> None:
    plain = make_learner(env_num=100)
    names = ('joint_offset', 'base_pose', 'push', 'gains', 'mass')
    random = make_learner(env_num=100, randomizations=[{'term': n, 'params': RANDOMIZATIONS[n][0]} for n in names])
    for envs in (plain, random):
        envs.reset()
    was, now = look(plain), look(random)

    def fills(values: np.ndarray, low: float, high: float) -> bool:
        rest = 0.1 * (high - low)
        return low - 1e-5 <= values.min() < low + rest and high - rest < values.max() <= high + 1e-5

    assert fills(now['q'] - was['q'], -0.1, 0.1)
    assert fills(now['dq'], -0.5, 0.5)
    assert fills(now['position'][:, 0] - was['position'][:, 0], -0.1, 0.1)
    assert fills(now['position'][:, 1] - was['position'][:, 1], 0.2, 0.3)
    assert np.array_equal(now['position'][:, 2], was['position'][:, 2])
    assert fills(now['velocity'][:, :2], -0.5, 0.5) and not now['velocity'][:, 2].any()
    assert fills(now['stiffness'] / was['stiffness'], 0.8, 1.2)
    assert fills(now['damping'] / was['damping'], 0.5, 1.5)
    assert fills(now['mass'] / was['mass'], 0.5, 2.0)
    half = [
        2 * math.acos(min(1.0, abs(float(a @ b)))) for a, b in zip(now['orientation'], was['orientation'], strict=True)
    ]
    assert fills(np.array(half) / np.linalg.norm(was['orientation'][0]), 0.0, 1.0)


def test_what_was_randomized_starts_from_the_model_in_every_episode(make_learner: MakeLearner) -> None:
    randomizations = [
        {'term': 'gains', 'params': {'stiffness': (1.5, 1.5), 'damping': (0.5, 0.5)}},
        {'term': 'mass', 'params': {'link': 'leg', 'factor': (2.0, 2.0)}},
        {'term': 'joint_offset', 'params': {'position': (0.1, 0.1)}},
        {'term': 'joint_dynamics', 'params': {'armature': (0.25, 0.25), 'damping': (0.5, 0.5)}},
    ]
    envs = make_learner(randomizations=randomizations, max_episode_steps=2)
    envs.reset()
    first = look(envs)
    np.testing.assert_allclose(first['stiffness'], 30.0)
    np.testing.assert_allclose(first['damping'], 0.5)
    np.testing.assert_allclose(first['mass'], 0.6, rtol=1e-6)
    bare = make_learner()
    bare.reset()
    plain = look(bare)
    np.testing.assert_allclose(first['armature'] - plain['armature'], 0.25)
    np.testing.assert_allclose(first['joint damping'] - plain['joint damping'], 0.5)
    np.testing.assert_allclose(first['q'], np.tile(HOME + 0.1, (3, 1)), rtol=1e-6)
    for _ in range(6):
        envs.step(np.zeros((3, 2), np.float32))  # the episodes are at their start again
    again = look(envs)
    for key in first:
        assert np.array_equal(again[key], first[key]), key


@pytest.mark.slow
def test_another_pose_is_taken_by_a_share_of_the_envs(make_learner: MakeLearner) -> None:
    envs = make_learner(env_num=400)
    envs.reset()
    before = look(envs)
    params = {'positions': {'tail': 0.25}, 'rise': 0.1, 'probability': 0.25}
    randomize(envs, 'other_pose', params, range(1, 400))
    envs.core.state.changed()
    after = look(envs)
    chosen = after['q'][:, 1] != before['q'][:, 1]
    assert 65 < chosen.sum() < 135  # a quarter of 399, give or take four standard deviations
    assert not chosen[0]  # was not asked for
    expected = np.stack([before['q'][:, 0], np.where(chosen, 0.25, before['q'][:, 1])], axis=-1)
    np.testing.assert_array_equal(after['q'], expected.astype(np.float32))
    np.testing.assert_allclose(after['position'][:, 2], before['position'][:, 2] + 0.1 * chosen, rtol=1e-6)


def test_joints_stay_within_their_limits(make_learner: MakeLearner) -> None:
    envs = make_learner(randomizations=[{'term': 'joint_offset', 'params': {'position': (5.0, 5.0)}}])
    np.testing.assert_allclose(envs.reset()[0], [[1.2, 1.5]] * 3, rtol=1e-6)


def test_pushes_come_at_their_intervals(make_learner: MakeLearner) -> None:
    interval = (5 * DT, 5 * DT)
    envs = make_learner(
        randomizations=[{'term': 'push', 'params': {'speed': 1.0}, 'interval': interval}],
        observations=[{'term': 'base_linear_velocity'}, {'term': 'base_position'}],
    )
    plain = make_learner(observations=[{'term': 'base_linear_velocity'}, {'term': 'base_position'}])
    still = np.zeros((3, 2), np.float32)
    pushed = []
    for one in (envs, plain):
        one.reset()
        speeds = [one.core.state.base_linear_velocity[:, :2].copy()]
        for _ in range(12):  # free fall: nothing else changes the horizontal speed much
            one.step(still)
            speeds.append(one.core.state.base_linear_velocity[:, :2].copy())
        pushed.append(np.abs(np.diff(speeds, axis=0)).max(axis=(1, 2)))
    extra = pushed[0] > pushed[1] + 0.1
    assert extra.tolist()[:10] == [False] * 4 + [True] + [False] * 4 + [True]
    assert pushed[0].max() < 1.0 + pushed[1].max()


def test_friction_decides_how_far_a_box_slides(make_learner: MakeLearner, hopper: Any, write_model: Any) -> None:
    box = """<worldbody><body name="box"><freejoint/><geom type="box" size="0.2 0.2 0.02" mass="1"/>
        <body name="lid" pos="0 0 0.02"><joint name="lid" axis="0 0 1"/><geom size="0.01" mass="0.01"/></body>
        </body></worldbody>"""
    ice = '<worldbody><geom type="plane" size="9 9 1" friction="0.001 0.001 0.0001"/></worldbody>'
    robot = hopper.update(
        usd_path=write_model('box', box),
        position=(0.0, 0.0, 0.02),
        orientation=None,
        initial_joint_positions={},
        controllers=[hopper.controllers[0].update(joint_names=['lid'])],
    )
    ways = []
    for coefficient in (0.2, 0.4):
        envs = make_learner(
            env_num=2,
            body=robot,
            scene=write_model(f'ice{coefficient}', ice),
            randomizations=[{'term': 'friction', 'params': {'coefficient': (coefficient, coefficient)}}],
        )
        envs.reset()
        envs.core.state.articulation.set_linear_velocity([[1.0, 0.0, 0.0]] * 2)
        for _ in range(40):
            envs.step(np.zeros((2, 1), np.float32))
        ways.append(envs.core.state.base_position[:, 0].copy())
    for way, coefficient in zip(ways, (0.2, 0.4), strict=True):  # v^2 / 2 mu g, less what it takes to settle
        np.testing.assert_allclose(way, 1.0 / (2 * coefficient * 9.81), rtol=0.1)
