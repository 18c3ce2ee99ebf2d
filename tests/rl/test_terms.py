"""The built-in terms against plain numpy, and what the managers make of terms."""

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from internutopia.core.config.learning import LearningCfg
from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia.rl.terms import (
    KINDS,
    commands,
    curricula,
    look_up_term,
    observations,
    randomizations,
    registered_terms,
    rewards,
    term,
    terminations,
)

MakeLearner = Callable[..., VectorEnv]

DT = 4 / 200  # s, of a step of the envs made here
MODULES: dict[Any, ModuleType] = {
    'observation': observations,
    'reward': rewards,
    'termination': terminations,
    'command': commands,
    'randomization': randomizations,
    'curriculum': curricula,
}
HOME = np.array([0.3, -0.2])  # rad, of the hopper
GOAL = np.array([1.0, 2.0])  # m
SPEED = np.array([0.3, -0.1, 0.5])


def built_in(kind: Any) -> dict[str, Callable[..., Any]]:
    return {name: f for name, f in registered_terms(kind).items() if f.__module__ == MODULES[kind].__name__}


# --- observations, rewards, terminations: values ---------------------------------------------------------------------


@dataclass
class Raw:
    """One env, as its own handles tell; everything in float64 and in the env frame."""

    q: np.ndarray
    dq: np.ndarray
    effort: np.ndarray
    position: np.ndarray
    quaternion: np.ndarray
    v: np.ndarray
    w: np.ndarray
    leg: np.ndarray
    action: np.ndarray
    action_before: np.ndarray
    steps: int

    @property
    def to_base(self) -> np.ndarray:
        """Rotation matrix, env to base frame."""
        w, x, y, z = self.quaternion
        return np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
                [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
                [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
            ]
        )

    @property
    def gravity(self) -> np.ndarray:
        return self.to_base @ [0, 0, -1]

    @property
    def to_goal(self) -> np.ndarray:
        return GOAL - self.position[:2]

    def goal_direction(self) -> list[float]:
        ahead = self.to_base[0]  # the base's x axis
        bearing = math.atan2(self.to_goal[1], self.to_goal[0]) - math.atan2(ahead[1], ahead[0])
        return [math.hypot(*self.to_goal), math.cos(bearing), math.sin(bearing)]

    def goal_speed(self) -> float:
        return float(self.to_goal @ self.v[:2]) / math.hypot(*self.to_goal)


Case = tuple[str, dict[str, Any], Callable[[Raw], Any]]
OBSERVATIONS: list[Case] = [
    ('joint_positions', {}, lambda r: r.q),
    ('joint_positions', {'relative': True}, lambda r: r.q - HOME),
    ('joint_positions', {'relative': True, 'joints': ['tail']}, lambda r: r.q[1:] - HOME[1:]),
    ('joint_velocities', {}, lambda r: r.dq),
    ('joint_velocities', {'joints': ['tail', 'hip']}, lambda r: r.dq[::-1]),
    ('base_position', {}, lambda r: r.position),
    ('base_height', {}, lambda r: r.position[2]),
    ('base_orientation', {}, lambda r: r.quaternion),
    ('base_linear_velocity', {}, lambda r: r.to_base @ r.v),
    ('base_angular_velocity', {}, lambda r: r.to_base @ r.w),
    ('projected_gravity', {}, lambda r: r.gravity),
    ('last_action', {}, lambda r: r.action),
    ('command', {'name': 'speed'}, lambda r: SPEED),
    ('goal_direction', {'name': 'goal'}, Raw.goal_direction),
    (
        'phase',
        {'period': 0.5},
        lambda r: [math.cos(4 * math.pi * r.steps * DT), math.sin(4 * math.pi * r.steps * DT)],
    ),
    ('link_position', {'link': 'leg'}, lambda r: r.to_base @ (r.leg - r.position)),
    ('constant', {}, lambda r: [1.0]),
    ('constant', {'value': [2.0, 3.0]}, lambda r: [2.0, 3.0]),
]
REWARDS: list[Case] = [
    ('alive', {}, lambda r: 1.0),
    (
        'track_linear_velocity',
        {'name': 'speed', 'tolerance': 0.8},
        lambda r: math.exp(-np.sum((SPEED[:2] - (r.to_base @ r.v)[:2]) ** 2) / 0.64),
    ),
    ('track_yaw_rate', {'name': 'speed'}, lambda r: math.exp(-((SPEED[2] - (r.to_base @ r.w)[2]) ** 2) / 0.25)),
    ('goal_progress', {'name': 'goal'}, Raw.goal_speed),
    ('goal_reached', {'name': 'goal', 'radius': 2.3}, lambda r: float(math.hypot(*r.to_goal) < 2.3)),
    ('height', {'target': 0.4, 'tolerance': 0.2}, lambda r: math.exp(-((r.position[2] - 0.4) ** 2) / 0.04)),
    ('upright', {'tolerance': 0.5}, lambda r: math.exp(-(r.gravity[0] ** 2 + r.gravity[1] ** 2) / 0.25)),
    ('forward_velocity', {}, lambda r: r.v[0]),
    ('action_cost', {}, lambda r: r.action @ r.action),
    ('action_rate_cost', {}, lambda r: np.sum((r.action - r.action_before) ** 2)),
    ('effort_cost', {}, lambda r: r.effort @ r.effort),
    ('joint_velocity_cost', {}, lambda r: r.dq @ r.dq),
    ('posture_cost', {}, lambda r: np.sum((r.q - HOME) ** 2)),
    ('posture_cost', {'joints': ['tail']}, lambda r: (r.q[1] - HOME[1]) ** 2),
    ('joint_limit_cost', {'margin': 1.0}, lambda r: np.maximum(np.abs(r.q) - [0.2, 0.5], 0.0).sum()),
    ('vertical_velocity_cost', {}, lambda r: r.v[2] ** 2),
    ('tilt_rate_cost', {}, lambda r: np.sum((r.to_base @ r.w)[:2] ** 2)),
    ('tilt_cost', {}, lambda r: r.gravity[0] ** 2 + r.gravity[1] ** 2),
    ('height_cost', {'target': 0.3}, lambda r: (r.position[2] - 0.3) ** 2),
]
TERMINATIONS: list[Case] = [
    ('fallen', {'minimum_height': 0.4255}, lambda r: r.position[2] < 0.4255),
    ('tilted', {'limit': 0.45}, lambda r: math.acos(-r.gravity[2]) > 0.45),
    ('height_outside', {'low': 0.4245, 'high': 0.4265}, lambda r: not 0.4245 <= r.position[2] <= 0.4265),
    ('joint_outside', {'joint': 'tail', 'low': -0.5, 'high': 0.2}, lambda r: not -0.5 <= r.q[1] <= 0.2),
    ('goal_reached', {'name': 'goal', 'radius': 2.25}, lambda r: math.hypot(*r.to_goal) < 2.25),
    ('left_area', {'radius': 0.25}, lambda r: math.hypot(*r.position[:2]) > 0.25),
]
# tested in test_gait_terms.py and test_object_terms.py
ELSEWHERE = {'feet_contacts', 'nearest_objects', 'near_objects_cost', 'near_object', 'joint_pose', 'scatter'}
CASES = [
    pytest.param(kind, *case, id=f'{kind}-{case[0]}-{index}')
    for kind, cases in (('observation', OBSERVATIONS), ('reward', REWARDS), ('termination', TERMINATIONS))
    for index, case in enumerate(cases)
]


@pytest.fixture(scope='module')
def tumbling(models: Any, make_config: Any, make_task: Any, hopper: Any) -> Iterator[tuple[RobotState, list[Raw]]]:
    """Five hoppers that have fallen for a while, each driven differently, and what is true of them."""
    task = make_task('floor', robots=[hopper], type='SingleInferenceTask')
    learning = LearningCfg.model_validate(
        {
            'action': {'controller': 'joints'},
            'observations': [{'term': 'joint_positions'}],
            'commands': {
                'goal': {'term': 'uniform', 'params': {'low': GOAL, 'high': GOAL}},
                'speed': {'term': 'uniform', 'params': {'low': SPEED, 'high': SPEED}},
            },
            'randomizations': [
                {'term': 'push', 'params': {'speed': 1.0}},
                {'term': 'joint_offset', 'params': {'velocity': (-3.0, 3.0)}},
            ],
        }
    )
    config = make_config(tasks=[task], env_num=5, sim={'substeps': 4}, episode_order='cycle', seed=3)
    envs = VectorEnv(config, learning)
    envs.reset()
    sent = np.random.default_rng(0).uniform(-1.0, 1.0, (6, 5, 2)).astype(np.float32)
    for actions in sent:
        envs.step(actions)
    raws = []
    for env_id, env in enumerate(envs.core.runner.envs):
        assert env is not None
        arm = env.task.robots['hopper'].articulation
        values = [
            arm.get_joint_positions(),
            arm.get_joint_velocities(),
            arm.get_joint_efforts(),
            *arm.get_pose(),
            arm.get_linear_velocity(),
            arm.get_angular_velocity(),
            arm.body('leg').get_pose()[0],
        ]
        actions = [sent[-1, env_id], sent[-2, env_id]]
        raws.append(Raw(*(np.asarray(value, np.float64) for value in values + actions), steps=6))
    yield envs.core.state, raws
    envs.close()


@pytest.mark.parametrize(('kind', 'name', 'params', 'expected'), CASES)
def test_value(tumbling: Any, kind: Any, name: str, params: dict[str, Any], expected: Callable[[Raw], Any]) -> None:
    state, raws = tumbling
    value = np.asarray(look_up_term(kind, name, params)(state))
    wanted = np.array([expected(raw) for raw in raws])
    assert value.shape == wanted.shape
    np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)
    if kind == 'termination':
        assert value.dtype == bool
        assert value.any() and not value.all(), 'the case does not tell envs apart'


@pytest.mark.parametrize(
    ('kind', 'cases'), [('observation', OBSERVATIONS), ('reward', REWARDS), ('termination', TERMINATIONS)]
)
def test_every_built_in_term_has_a_case(kind: Any, cases: list[Case]) -> None:
    assert {name for name, _, _ in cases} | ELSEWHERE == set(built_in(kind)) | ELSEWHERE


@pytest.mark.parametrize(('kind', 'name'), [(kind, name) for kind in KINDS for name in built_in(kind)])
def test_every_term_says_what_it_is(kind: Any, name: str) -> None:
    function = built_in(kind)[name]
    text = inspect.getdoc(function) or ''
    assert text.endswith('.') and len(text) > 10
    if kind == 'observation':
        assert '`(n,' in text, 'the shape'
    assert all(p.annotation is not inspect.Parameter.empty for p in inspect.signature(function).parameters.values())


def test_every_observation_reward_and_end_works_on_h1(make_config: Any, make_task: Any) -> None:
    from internutopia_extension.configs.robots.h1 import H1RobotCfg, joint_controller

    robot = H1RobotCfg(position=(0.0, 0.0, 0.99), controllers=[joint_controller])
    renamed = {'leg': 'left_ankle_link', 'tail': 'torso_joint', 'hip': 'left_knee_joint'}
    learning: dict[str, Any] = {
        'action': {'controller': 'joint_controller', 'scale': 0.1, 'offset': 'home'},
        'commands': {'goal': {'term': 'goal', 'params': {'distance': (1.0, 2.0)}}, 'speed': {'term': 'velocity'}},
    }
    for key, cases in (('observations', OBSERVATIONS), ('rewards', REWARDS)):
        learning[key] = [{'term': name, 'params': rename(params, renamed)} for name, params, _ in cases]
    learning['terminations'] = [{'term': name, 'params': rename(params, renamed)} for name, params, _ in TERMINATIONS]
    task = make_task('floor', robots=[robot], type='SingleInferenceTask')
    config = make_config(tasks=[task], env_num=2, sim={'substeps': 4}, episode_order='cycle')
    envs = VectorEnv(config, LearningCfg.model_validate(learning))
    obs, _ = envs.reset()
    assert obs.shape == (2, 110) and np.isfinite(obs).all()
    assert np.isfinite(envs.step(envs.action_space.sample())[1]).all()
    envs.close()


def rename(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: rename(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [rename(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


# --- the managers: observations --------------------------------------------------------------------------------------


def run(envs: VectorEnv, steps: int, seed: int = 7) -> np.ndarray:
    """Observations `(steps + 1, n, k)` under random actions, from a reset on."""
    rng = np.random.default_rng(seed)
    seen = [envs.reset()[0]]
    for _ in range(steps):
        seen.append(envs.step(rng.uniform(-1, 1, envs.action_space.shape).astype(np.float32))[0])
    return np.array(seen)


@pytest.mark.parametrize('delay', [1, 3])
def test_a_delayed_observation_is_that_of_so_many_steps_ago(make_learner: MakeLearner, delay: int) -> None:
    envs = make_learner(
        observations=[{'term': 'joint_positions'}, {'term': 'joint_positions', 'delay': delay}], max_episode_steps=6
    )
    seen = run(envs, 13)  # steps 7 and 14 of the row start new episodes
    now, late = seen[..., :2], seen[..., 2:]
    for start in (0, 7):
        for step in range(7):
            assert np.array_equal(late[start + step], now[start + max(0, step - delay)])


def test_a_reset_of_some_envs_leaves_the_delay_of_the_others(make_learner: MakeLearner) -> None:
    envs = make_learner(
        observations=[{'term': 'joint_positions'}, {'term': 'joint_positions', 'delay': 2}], autoreset_mode='Disabled'
    )
    now = run(envs, 4)[..., :2]
    obs, _ = envs.reset(options={'reset_mask': np.array([True, False, False])})
    assert np.array_equal(obs[1:, 2:], now[2, 1:])
    assert np.array_equal(obs[0, 2:], obs[0, :2])
    obs = envs.step(np.zeros((3, 2), np.float32))[0]
    assert np.array_equal(obs[1:, 2:], now[3, 1:])


def test_noise_is_bounded_and_seeded(make_learner: MakeLearner) -> None:
    terms = [{'term': 'joint_positions'}, {'term': 'joint_positions', 'noise': 0.1}]
    first, again, other = (run(make_learner(observations=terms, seed=seed), 20) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert np.array_equal(first[..., :2], other[..., :2]) and not np.array_equal(first, other)
    noise = first[..., 2:] - first[..., :2]
    assert np.abs(noise).max() <= 0.1 + 1e-6
    assert np.abs(noise).max() > 0.09 and abs(noise.mean()) < 0.02


def test_clip_comes_before_scale(make_learner: MakeLearner) -> None:
    envs = make_learner(
        observations=[{'term': 'constant', 'params': {'value': [3.0, -3.0, 0.5]}, 'clip': 1, 'scale': 2}]
    )
    assert envs.reset()[0].tolist() == [[2.0, -2.0, 1.0]] * 3


def test_critic_sees_the_observation_and_more(make_learner: MakeLearner) -> None:
    envs = make_learner(critic_observations=[{'term': 'base_height'}, {'term': 'base_height', 'delay': 1}])
    heights = []
    for step in range(4):
        obs = envs.step(np.zeros((3, 2), np.float32))[0] if step else envs.reset()[0]
        heights.append(envs.core.state.base_position[:, 2].copy())
        for _ in range(2):  # looking does not change what is seen
            seen = envs.critic_observations()
            assert np.array_equal(seen, np.column_stack([obs, heights[step], heights[max(0, step - 1)]]))


def test_noise_of_the_critic_is_drawn_once_per_step(make_learner: MakeLearner) -> None:
    envs = make_learner(critic_observations=[{'term': 'base_height', 'noise': 0.1}])
    envs.reset()
    shown = []
    for _ in range(3):
        shown.append(envs.critic_observations())
        assert np.array_equal(envs.critic_observations(), shown[-1])
        envs.step(np.zeros((3, 2), np.float32))
    assert len(np.unique([seen[:, -1] for seen in shown])) == 9
    before = envs.critic_observations()
    envs.reset(options={'reset_mask': np.array([True, False, False])})
    after = envs.critic_observations()
    assert np.array_equal(after[1:], before[1:]) and after[0, -1] != before[0, -1]


def test_critic_sees_nothing_before_the_first_reset(make_learner: MakeLearner) -> None:
    envs = make_learner(critic_observations=[{'term': 'base_height'}])
    with pytest.raises(RuntimeError, match='reset the envs first'):
        envs.critic_observations()


# --- rewards and ends ------------------------------------------------------------------------------------------------


def test_rewards_are_weighed_by_the_length_of_a_step(make_learner: MakeLearner) -> None:
    envs = make_learner(
        rewards=[
            {'term': 'alive', 'weight': 3.0},
            {'term': 'action_cost', 'weight': -0.5},
            {'term': 'action_rate_cost', 'weight': -1.0},
        ]
    )
    envs.reset()
    actions = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]], np.float32)
    squares = np.array([0.0, 1.0, 5.0])
    np.testing.assert_allclose(envs.step(actions)[1], DT * (3.0 - 0.5 * squares - squares), rtol=1e-6)
    np.testing.assert_allclose(envs.step(actions)[1], DT * (3.0 - 0.5 * squares), rtol=1e-6)


def test_an_end_is_an_outcome_or_a_cut(make_learner: MakeLearner) -> None:
    fallen = {'term': 'fallen', 'params': {'minimum_height': 0.4}}
    for truncates in (False, True):
        envs = make_learner(terminations=[{**fallen, 'truncates': truncates}])
        terminated, truncated, info = run_episode(envs)
        assert terminated.all() == (not truncates) and truncated.all() == truncates
        assert (envs.core.state.base_position[:, 2] < 0.4).all()
        assert info['episode_length'].tolist() == [round(math.sqrt(0.2 / 9.81) / DT)] * 3  # 0.1 m of free fall


# --- commands --------------------------------------------------------------------------------------------------------


def test_commands_are_drawn_anew_in_time(make_learner: MakeLearner) -> None:
    uniform = {'term': 'uniform', 'params': {'low': [-1, 0], 'high': [1, 2]}}
    envs = make_learner(
        commands={'often': {**uniform, 'resample_time': 5 * DT}, 'once': uniform},
        observations=[{'term': 'command', 'params': {'name': name}} for name in ('often', 'once')],
    )
    seen = run(envs, 20)
    changes = (np.diff(seen, axis=0) != 0).all(axis=1)  # (steps, 4); all envs together
    assert np.flatnonzero(changes[:, 0]).tolist() == np.flatnonzero(changes[:, 1]).tolist() == [4, 9, 14, 19]
    assert not changes[:, 2:].any()
    assert (seen >= [-1, 0, -1, 0]).all() and (seen <= [1, 2, 1, 2]).all()
    assert not np.array_equal(envs.reset()[0][:, 2:], seen[-1, :, 2:])


def test_a_step_is_judged_by_the_command_that_was_seen_before_it(make_learner: MakeLearner) -> None:
    envs = make_learner(
        commands={'x': {'term': 'uniform', 'params': {'low': [0.0], 'high': [1.0]}, 'resample_time': DT}},
        observations=[{'term': 'command', 'params': {'name': 'x'}}],
        rewards=[{'term': 'rewarded_command', 'weight': 1 / DT}],
    )
    obs, _ = envs.reset()
    for _ in range(3):
        before = obs
        obs, reward, *_ = envs.step(np.zeros((3, 2), np.float32))
        np.testing.assert_allclose(reward, before[:, 0], rtol=1e-6)
        assert not np.array_equal(obs, before)


@term('reward')
def rewarded_command(state: RobotState) -> Any:
    """The command itself."""
    return state.command('x')[:, 0]


def test_velocity_commands(make_learner: MakeLearner) -> None:
    ranges = {'forward': (0.1, 0.2), 'lateral': (-0.4, -0.3), 'yaw_rate': (0.5, 0.6)}
    envs = make_learner(
        env_num=200,
        commands={'go': {'term': 'velocity', 'params': {**ranges, 'standing': 0.3, 'turning': 0.3}}},
        observations=[{'term': 'command', 'params': {'name': 'go'}}],
    )
    obs, _ = envs.reset()
    standing = (obs == 0).all(axis=-1)
    turning = (obs[:, :2] == 0).all(axis=-1) & ~standing
    assert 35 < standing.sum() < 85 and 35 < turning.sum() < 85
    low, high = np.transpose([ranges['forward'], ranges['lateral'], ranges['yaw_rate']])
    within = (obs >= low - 1e-6) & (obs <= high + 1e-6)
    assert within.all(axis=-1).tolist() == (~standing & ~turning).tolist()
    assert within[turning, 2].all()


@pytest.mark.parametrize(('around', 'center'), [('origin', (0.0, 0.0)), ('robot', (0.2, -0.1))])
def test_goals_lie_on_a_ring(make_learner: MakeLearner, around: str, center: tuple[float, float]) -> None:
    envs = make_learner(
        env_num=50,
        commands={'goal': {'term': 'goal', 'params': {'distance': (1.0, 2.0), 'around': around}}},
        observations=[{'term': 'command', 'params': {'name': 'goal'}}],
    )
    offset = envs.reset()[0] - np.array(center)
    distance = np.linalg.norm(offset, axis=-1)
    assert 1.0 - 1e-6 < distance.min() < 1.2 and 1.8 < distance.max() < 2.0 + 1e-6
    assert (offset.min(axis=0) < -0.5).all() and (offset.max(axis=0) > 0.5).all()


# --- randomizations --------------------------------------------------------------------------------------------------


def look(envs: VectorEnv) -> dict[str, np.ndarray]:
    """What randomizations change."""
    state = envs.core.state
    gains = state.articulation.get_gains()
    return {
        'q': state.joint_positions.copy(),
        'dq': state.joint_velocities.copy(),
        'position': state.articulation.get_pose()[0].copy(),
        'orientation': state.articulation.get_pose()[1].copy(),
        'velocity': state.articulation.get_linear_velocity().copy(),
        'stiffness': gains[0].copy(),
        'damping': gains[1].copy(),
        'mass': state.articulation.view.body('leg').get_masses().copy(),
    }


RANDOMIZATIONS: dict[str, tuple[dict[str, Any], set[str]]] = {
    'joint_offset': ({'position': (-0.1, 0.1), 'velocity': (-0.5, 0.5)}, {'q', 'dq'}),
    'base_pose': ({'x': (-0.1, 0.1), 'y': (0.2, 0.3), 'yaw': (-1.0, 1.0)}, {'position', 'orientation'}),
    'push': ({'speed': 0.5}, {'velocity'}),
    'gains': ({'stiffness': (0.8, 1.2), 'damping': (0.5, 1.5)}, {'stiffness', 'damping'}),
    'mass': ({'link': 'leg', 'factor': (0.5, 2.0)}, {'mass'}),
}


def test_every_randomization_has_a_test() -> None:
    assert {*RANDOMIZATIONS, 'friction'} | ELSEWHERE == set(built_in('randomization')) | ELSEWHERE


@pytest.mark.parametrize('name', RANDOMIZATIONS)
def test_a_randomization_changes_what_it_says_in_the_given_envs_only(make_learner: MakeLearner, name: str) -> None:
    params, changed = RANDOMIZATIONS[name]
    envs = make_learner(env_num=4)
    envs.reset()
    before = look(envs)
    look_up_term('randomization', name, params)(envs.core.state, np.array([1, 3]))
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
    look_up_term('randomization', name, RANDOMIZATIONS[name][0])(changed.core.state, np.array([1]))
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
    ]
    envs = make_learner(randomizations=randomizations, max_episode_steps=2)
    envs.reset()
    first = look(envs)
    np.testing.assert_allclose(first['stiffness'], 30.0)
    np.testing.assert_allclose(first['damping'], 0.5)
    np.testing.assert_allclose(first['mass'], 0.6, rtol=1e-6)
    np.testing.assert_allclose(first['q'], np.tile(HOME + 0.1, (3, 1)), rtol=1e-6)
    for _ in range(6):
        envs.step(np.zeros((3, 2), np.float32))  # the episodes are at their start again
    again = look(envs)
    for key in first:
        assert np.array_equal(again[key], first[key]), key


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


# --- curriculum ------------------------------------------------------------------------------------------------------


def test_levels_follow_how_long_episodes_last(make_learner: MakeLearner) -> None:
    survival = {'term': 'survival', 'params': {'long': 0.5, 'short': 0.2, 'step': 0.4}}
    assert set(built_in('curriculum')) == {'survival'}
    long = make_learner(curricula=[survival], max_episode_steps=25, env_num=2)  # 0.5 s
    for levels in (0.4, 0.8, 1.0):
        run_episode(long)
        np.testing.assert_allclose(long.core.state.levels, levels, rtol=1e-6)
    short = make_learner(curricula=[survival], max_episode_steps=9, env_num=2)  # 0.18 s
    short.reset()
    short.core.state.levels[:] = [0.9, 0.1]
    run_episode(short)
    np.testing.assert_allclose(short.core.state.levels, [0.5, 0.0], atol=1e-6)


def test_a_seed_starts_the_curriculum_anew(make_learner: MakeLearner) -> None:
    envs = make_learner(
        curricula=[{'term': 'survival', 'params': {'long': 0.1, 'short': 0.05}}], max_episode_steps=10, env_num=2
    )
    run_episode(envs)
    envs.reset()
    assert envs.core.state.levels.all(), 'an episode that was not played to its end does not count'
    envs.reset(seed=1)
    assert not envs.core.state.levels.any()
    envs.step(np.zeros((2, 2), np.float32))


def run_episode(envs: VectorEnv) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Let episodes start and stay at rest until some end: which, and what the last step told."""
    envs.reset()
    while True:
        _, _, terminated, truncated, info = envs.step(np.zeros((envs.num_envs, 2), np.float32))
        if (terminated | truncated).any():
            return terminated, truncated, info


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'observations': [{'term': 'joint_position'}]}, "no observation term 'joint_position'; did you mean"),
        ({'rewards': [{'term': 'up'}]}, "no reward term 'up'"),
        ({'terminations': [{'term': 'fell'}]}, "no termination term 'fell'"),
        ({'commands': {'go': {'term': 'speed'}}}, "no command term 'speed'"),
        ({'randomizations': [{'term': 'masses'}]}, "no randomization term 'masses'; did you mean 'mass'"),
        ({'curricula': [{'term': 'survive'}]}, "no curriculum term 'survive'"),
        ({'rewards': [{'term': 'height', 'params': {'targt': 1}}]}, "'height' takes no 'targt'; did you mean 'target'"),
        ({'rewards': [{'term': 'height'}]}, "reward term 'height' needs 'target'"),
        ({'randomizations': [{'term': 'mass', 'params': {'link': 'leg'}}]}, "'mass' needs 'factor'"),
        (
            {'observations': [{'term': 'wrong_rows'}]},
            r"observation term 'wrong_rows' must return \(1, k\), got shape \(7, 1\)",
        ),
        ({'rewards': [{'term': 'wrong_reward'}]}, r"reward term 'wrong_reward' must return \(3,\), got shape \(3, 2\)"),
        ({'terminations': [{'term': 'wrong_end'}]}, r"termination term 'wrong_end' must return \(3,\), got shape \(\)"),
        (
            {'commands': {'go': {'term': 'wrong_command'}}},
            r"'wrong_command' must return \(1, k\) for 1 envs, got \(2,\)",
        ),
        (
            {'commands': {'go': {'term': 'goal', 'params': {'distance': (1, 2), 'around': 'here'}}}},
            "must be 'origin' or 'robot', got 'here'",
        ),
        ({'action': {'controller': 'joint'}}, "no batched controller 'joint'; did you mean 'joints'"),
        ({'robot': 'hoper'}, "has no robot 'hoper'; did you mean 'hopper'"),
    ],
)
def test_mistakes_are_named(make_learner: MakeLearner, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        envs = make_learner(**fields)
        envs.reset()
        envs.step(np.zeros((3, 2), np.float32))


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'observations': [{'term': 'command', 'params': {'name': 'x'}}]}, "no command 'x'; commands: none"),
        ({'rewards': [{'term': 'posture_cost', 'params': {'joints': ['knee']}}]}, "no joint 'knee'; joints: hip, tail"),
        ({'observations': [{'term': 'link_position', 'params': {'link': 'foot'}}]}, 'foot'),
    ],
)
def test_unknown_names_are_named(make_learner: MakeLearner, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(KeyError, match=message):
        envs = make_learner(**fields)
        envs.reset()
        envs.step(np.zeros((3, 2), np.float32))


@term('observation')
def wrong_rows(state: RobotState) -> Any:
    """Of a shape that no observation has."""
    return np.zeros(7)


@term('reward')
def wrong_reward(state: RobotState) -> Any:
    """Of a shape that no reward has."""
    return np.zeros((state.env_num, 2))


@term('termination')
def wrong_end(state: RobotState) -> Any:
    """One answer for all envs."""
    return False


@term('command')
def wrong_command(state: RobotState, env_ids: Any) -> Any:
    """Of a shape that no command has."""
    return np.zeros(2)


def test_kinds_are_named() -> None:
    with pytest.raises(ValueError, match="no term of kind 'rewards'; did you mean 'reward'"):
        term('rewards')  # type: ignore[arg-type]


def test_a_term_registered_again_replaces_the_built_in_one() -> None:
    built_in_term = registered_terms('reward')['alive']
    try:
        term('reward', 'alive')(lambda state: 5)
        assert look_up_term('reward', 'alive', {})(None) == 5
    finally:
        term('reward', 'alive')(built_in_term)
