"""Every action of every controller: refused before anything has changed, or followed by a state that is finite.

What lies in the action space of a controller is never refused.
"""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from every_controller import CONTROLLERS, EVERY, config_of, corners, is_taken, registered, space_of
from gymnasium.spaces import Box
from numpy.typing import NDArray

from internutopia.core.robot.robot import BaseRobot
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv

pytestmark = pytest.mark.filterwarnings('error::RuntimeWarning')  # nothing overflows, nothing is divided by zero
STEPS = 3


def finite(obs: dict[str, Any]) -> bool:
    values = ('position', 'orientation', 'joint_positions', 'joint_velocities')
    return all(np.isfinite(obs[value]).all() for value in values)


@pytest.fixture(scope='module')
def probes() -> dict[str, tuple[str, str, Box]]:
    """Results of `probe` by name: several tests ask for each."""
    return {}


@pytest.fixture
def probe(name: str, probes: dict[str, tuple[str, str, Box]], tmp_path: Path) -> tuple[str, str, Box]:
    """Names of the robot and the controller of a test, and the action space."""
    if name not in probes:
        config, robot, controller = config_of(name, tmp_path, 1)
        with closing(Env(config)) as env:
            env.reset()
            probes[name] = robot, controller, space_of(env, robot, controller)
    return probes[name]


def test_every_controller_is_here() -> None:
    assert {config.type for _, config in CONTROLLERS.values()} == registered(), 'give the new one a robot'


@pytest.mark.parametrize('name', EVERY)
def test_what_is_taken_is_followed_alike_by_both_apis(name: str, probe: tuple[str, str, Box], tmp_path: Path) -> None:
    """One corner of the action space in each env: nothing diverges, and lists and arrays lead to the same bits."""
    robot, controller, box = probe
    actions = [action for action in corners(box) if is_taken(action)]
    config, *_ = config_of(name, tmp_path, len(actions))
    with closing(Env(config)) as env, closing(VectorEnv(config)) as envs:
        env.reset()
        envs.reset()
        for _ in range(STEPS):
            obs, _, terminated, truncated, info = env.step([{robot: {controller: each}} for each in actions])
            assert not any(truncated) and not any(terminated), [each.get('error') for each in info]
            stacked = np.stack([np.asarray(each, np.float32).ravel() for each in actions])
            seen, *_, reports = envs.step(stacked)
            assert 'error' not in reports
            assert all(finite(each[robot]) for each in obs)
            np.testing.assert_array_equal(seen, [each[robot]['joint_positions'] for each in obs])


@pytest.mark.parametrize('name', EVERY)
def test_the_array_api_refuses_what_no_engine_takes(name: str, probe: tuple[str, str, Box], tmp_path: Path) -> None:
    _, _, box = probe
    config, *_ = config_of(name, tmp_path, 2)
    with closing(VectorEnv(config)) as envs, closing(VectorEnv(config)) as twin:
        for each in (envs, twin):
            each.reset()
        good = np.zeros((2, *envs.single_action_space.sample().shape))
        for action in corners(box):
            if not is_taken(action):
                bad = good.copy()
                bad[1] = action.ravel()
                with pytest.raises(ValueError, match='action of env 1 is not finite, or beyond 1e'):
                    envs.step(bad)
        np.testing.assert_array_equal(envs.step(good)[0], twin.step(good)[0])


class Raises:
    """Something that is no array."""

    def __array__(self, *args: Any, **options: Any) -> NDArray[Any]:
        raise ValueError('this is none')


def nonsense(box: Box) -> Iterator[Any]:
    """What might be given for an action; much of it is wrong."""
    zeros = np.zeros(box.shape)
    rows, flat = zeros.tolist(), [0.0] * zeros.size
    yield from (None, [], [[]], [[[]]], [[[[]]]], (), {}, {'a': 1}, set(), 'abc', b'ab', '', 1, 1.5, 1j, object())
    yield from ([None], [None] * 2, [None] * 7, [10**400] * zeros.size, [1e400] * zeros.size, range(3), iter(flat))
    yield from ([Fraction(1, 2)] * zeros.size, [datetime.timedelta(1)] * zeros.size, Raises(), [Raises()], lambda: 0)
    yield from (np.zeros(0), np.zeros(()), np.array(None), np.zeros((1,) * 40), np.zeros(box.shape, 'i4,f4'))
    yield from (zeros.astype(kind) for kind in (object, str, complex, 'S', 'M8[s]', 'm8[s]', np.longdouble, bool))
    yield from (rows, tuple(rows), [rows], [[rows]], [rows, 'x'], [rows, None], [None, rows], [rows] * 10, flat, [flat])
    yield from (np.zeros((2, *box.shape)), np.zeros((3, *box.shape)), memoryview(b'abc'), bytearray(b'ab'))
    yield from ([(1e-30, 0, 0, 0)], [(0, 0, 0, 1e-45)], [np.zeros(3), np.zeros(4)], [np.zeros(3), (0, 1e-30, 0, 0)])
    yield from ([[(0, 0, 0)], [(1, 1, 1)]], [[(0, 0, 0), (1, 1)]], ['open'], ['ajar'], 'open', [['open']])
    for action in corners(box):
        yield action
        yield action.tolist()


@pytest.fixture(params=[False, True], ids=['batched', 'per_env'])
def env_of_a_kind(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Env, str, str]]:
    """Three envs with a robot of a batched class, or of one object per env."""
    batched_type = CONTROLLERS[name][0].model_fields['type'].default
    own_type = f'OnePerEnv{batched_type}'
    if own_type not in BaseRobot.robots:
        BaseRobot.register(own_type)(type(own_type, (BaseRobot.robots[batched_type],), {}))
    config, robot, controller = config_of(name, tmp_path, 3, own_type if request.param else None)
    with closing(Env(config)) as env:
        env.reset()
        yield env, robot, controller


@pytest.mark.parametrize('name', EVERY)
def test_nonsense_is_refused_by_name_or_followed(env_of_a_kind: tuple[Env, str, str]) -> None:
    env, robot, controller = env_of_a_kind
    box = space_of(env, robot, controller)
    where = f'env 1, robot {robot!r}, controller {controller!r}: '

    def step(action: Any) -> tuple[list[Any], ...]:
        return env.step([{robot: {controller: box.high}}, {robot: {controller: action}}, {}])

    refused: dict[int, Any] = {}
    for index, action in enumerate(nonsense(box)):
        try:
            obs, _, _, truncated, info = step(action)
        except ValueError as error:
            assert str(error).startswith(where), (action, error)
            refused[index] = action
        else:
            assert not any(truncated), (action, info)
            assert all(finite(each[robot]) for each in obs), action
    env.reset([1])  # what was followed may have ended its episode: targets of 1000 rad let simulations diverge
    before = pickle.dumps(env.get_state())
    for index, action in enumerate(nonsense(box)):  # made anew, as some can be read once
        if index in refused:
            with pytest.raises(ValueError, match='env 1, robot'):
                step(action)
    assert pickle.dumps(env.get_state()) == before, 'what is refused changes nothing'
    arrays = [action for action in refused.values() if isinstance(action, np.ndarray) and action.shape == box.shape]
    assert not any(action.dtype.kind in 'biuf' and is_taken(action) for action in arrays), 'of the action space'


@pytest.mark.parametrize('name', ['jetbot-rotate'])
def test_a_goal_of_no_length_is_none(env_of_a_kind: tuple[Env, str, str]) -> None:
    """The robot that was turning stops, whatever speeds its wheels had been told."""
    env, robot, controller = env_of_a_kind
    goals = [np.zeros((1, 4)), np.full((1, 4), 1e-30), [env.get_observations()[2][robot]['orientation']]]
    for action in ([[(0.0, 0.0, 0.0, 1.0)]] * 3, goals, goals):
        obs, *_ = env.step([{robot: {controller: each}} for each in action])
    wheels = [each[robot]['joint_velocities'] for each in obs]
    np.testing.assert_array_equal(wheels[:2], wheels[2:] * 2)
    assert [each[robot]['controllers'][controller]['finished'] for each in obs] == [False, False, True]
