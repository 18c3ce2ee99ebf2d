"""Values of the built-in observations, rewards and terminations against plain numpy."""

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from built_in_terms import ELSEWHERE, MODULES, built_in

from internutopia.config.learning import LearningCfg
from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia.rl.terms import (
    look_up_term,
)

DT = 4 / 200  # s, of a step of the envs made here
HOME = np.array([0.3, -0.2])  # rad, of the hopper
GOAL = np.array([1.0, 2.0])  # m
SPEED = np.array([0.3, -0.1, 0.5])


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
    ('left_area', {'radius': 0.25}, lambda r: float(math.hypot(*r.position[:2]) > 0.25)),
    ('height', {'target': 0.4, 'tolerance': 0.2}, lambda r: math.exp(-((r.position[2] - 0.4) ** 2) / 0.04)),
    ('upright', {'tolerance': 0.5}, lambda r: math.exp(-(r.gravity[0] ** 2 + r.gravity[1] ** 2) / 0.25)),
    ('uprightness', {}, lambda r: (1 - r.gravity[2]) / 2),
    ('risen', {'height': 0.5}, lambda r: min(r.position[2] / 0.5, 1.0) * ((1 - r.gravity[2]) / 2) ** 2),
    (
        'upright_posture',
        {'tolerance': 0.5, 'joints': ['tail']},
        lambda r: math.exp(-((r.q[1] - HOME[1]) ** 2) / 0.25) * ((1 - r.gravity[2]) / 2) ** 4,
    ),
    ('forward_velocity', {}, lambda r: r.v[0]),
    ('action_cost', {}, lambda r: r.action @ r.action),
    ('action_rate_cost', {}, lambda r: np.sum((r.action - r.action_before) ** 2)),
    ('effort_cost', {}, lambda r: r.effort @ r.effort),
    ('power_cost', {}, lambda r: np.abs(r.effort * r.dq).sum()),
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


@pytest.mark.parametrize(('kind', 'name'), [(kind, name) for kind in MODULES for name in built_in(kind)])
def test_every_term_says_what_it_is(kind: Any, name: str) -> None:
    function = built_in(kind)[name]
    text = inspect.getdoc(function) or ''
    assert text.endswith('.') and len(text) > 10
    if kind == 'observation':
        assert '`(n,' in text, 'the shape'
    assert all(p.annotation is not inspect.Parameter.empty for p in inspect.signature(function).parameters.values())


@pytest.mark.slow
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
