"""Named groups of observations: dicts of arrays and pictures, histories, noise, and groups for critics only."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from cart_poles import carts
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from internutopia.config.learning import LearningCfg, ObservationGroupCfg, ObservationTermCfg, PictureGroupCfg
from internutopia.rl import SingleEnv, VectorEnv
from internutopia.rl.buffers import FlatBuffers
from internutopia.rl.task_envs import with_learning
from internutopia_extension.configs.sensors import MountedCameraCfg

W, H = 16, 12
LIMIT = 7  # steps of an episode
POSITIONS, VELOCITIES = ObservationTermCfg(term='joint_positions'), ObservationTermCfg(term='joint_velocities')


def grouped(groups: dict[str, Any], num_envs: int = 3, **options: Any) -> Any:
    """Cart-poles that show these groups; their cameras, which are fixed to the carts, look up the pole."""
    config = carts(num_envs, max_episode_steps=LIMIT, start=0.05, **options)
    camera = MountedCameraCfg(name='front', prim_path='cart/front', resolution=(W, H), translation=(0.0, -2.0, 0.5))
    camera = camera.update(orientation=(0.7071068, 0.7071068, 0.0, 0.0))
    tasks = [
        task.model_copy(update={'robots': [robot.update(sensors=[camera]) for robot in task.robots]})
        for task in config.task_configs
    ]
    return with_learning(config.model_copy(update={'task_configs': tasks}), observations=groups)


def vector_env(config: Any, **options: Any) -> Any:
    """A `VectorEnv`, whose types know arrays only."""
    return VectorEnv(config, **options)


def flat(num_envs: int = 3, **options: Any) -> Any:
    return carts(num_envs, max_episode_steps=LIMIT, start=0.05, **options)


def test_groups_are_a_dict_of_the_same_numbers() -> None:
    named = vector_env(grouped({'joints': [POSITIONS], 'rates': [VELOCITIES], 'critic': [POSITIONS]}))
    plain = vector_env(flat())
    space = named.single_observation_space
    assert isinstance(space, spaces.Dict) and set(space) == {'joints', 'rates'} and space['joints'].shape == (2,)
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (3 * LIMIT, 3, 1)).astype(np.float32)
    obs, expected = named.reset(seed=1)[0], plain.reset(seed=1)[0]
    for action in actions:
        assert obs in named.observation_space
        np.testing.assert_array_equal(np.concatenate([obs['joints'], obs['rates']], axis=1), expected)
        assert set(named.critic_observations()) == {'joints', 'rates', 'critic'}
        np.testing.assert_array_equal(named.critic_observations()['critic'], obs['joints'])
        obs, expected = named.step(action)[0], plain.step(action)[0]
    named.close()
    plain.close()


def test_the_two_usual_names_alone_give_what_lists_give() -> None:
    learning = carts().task_configs[0].learning
    assert learning is not None
    named = learning.update(observations={'policy': [POSITIONS], 'critic': [VELOCITIES]})
    assert named == learning.update(observations=[POSITIONS], critic_observations=[VELOCITIES])


@pytest.mark.parametrize('compiled', [False, True])
@pytest.mark.parametrize('mode', ['NextStep', 'SameStep'])
def test_a_history_holds_the_last_steps_of_the_episode(mode: str, compiled: bool) -> None:
    terms = {
        'side': ObservationGroupCfg(terms=[POSITIONS, VELOCITIES], history_length=3),
        'stack': ObservationGroupCfg(terms=[POSITIONS, VELOCITIES], history_length=3, stacked=True),
        'critic/past': ObservationGroupCfg(terms=[POSITIONS], history_length=2),
    }
    envs = vector_env(with_learning(grouped(terms), compiled=compiled), autoreset_mode=mode)
    plain = vector_env(with_learning(flat(), compiled=compiled), autoreset_mode=mode)
    assert envs.single_observation_space['stack'].shape == (3, 4)
    obs, now = envs.reset(seed=1)[0], plain.reset(seed=1)[0]
    past = [[row] * 3 for row in now]
    ended = np.zeros(3, bool)
    pushes = np.array([[1.0], [0.0], [-0.4]], np.float32)  # poles fall at different times, or time runs out
    for step in range(4 * LIMIT):
        for i in range(3):
            np.testing.assert_array_equal(obs['stack'][i], past[i])
            np.testing.assert_array_equal(obs['side'][i], np.concatenate(past[i]))
        if step % 5 == 0:  # critics remember what nobody read
            critic = envs.critic_observations()['critic/past']
            np.testing.assert_array_equal(critic, [np.concatenate(row[1:])[[0, 1, 4, 5]] for row in past])
        obs, _, _, _, info = envs.step(pushes)
        now, _, terminated, truncated, expected = plain.step(pushes)
        over = terminated | truncated
        started = over if mode == 'SameStep' else ended
        if mode == 'SameStep' and over.any():
            np.testing.assert_array_equal(info['final_obs']['stack'][over, -1], expected['final_obs'][over])
        past = [[row] * 3 if started[i] else [*past[i][1:], row] for i, row in enumerate(now)]
        ended = over
    assert len({row[0][0] for row in past}) == 3
    envs.close()
    plain.close()


def test_noise_is_switched_by_the_group() -> None:
    noisy = POSITIONS.update(noise=0.5)
    groups = {
        'noisy': ObservationGroupCfg(terms=[noisy], history_length=2),
        'true': ObservationGroupCfg(terms=[noisy], noise=False),
    }
    with closing(vector_env(grouped(groups))) as envs:
        first, _ = envs.reset(seed=0)
        assert np.abs(first['true']).max() <= 0.05 < np.abs(first['noisy'][:, :2] - first['true']).max()
        second, *_ = envs.step(np.zeros((3, 1), np.float32))
        np.testing.assert_array_equal(second['noisy'][:, :2], first['noisy'][:, 2:])  # was measured so


@pytest.mark.slow
@pytest.mark.parametrize('layout, shape', [('hwc', (H, W, 6)), ('chw', (6, H, W))])
def test_pictures_are_uint8_of_the_chosen_layout(layout: Any, shape: tuple[int, ...], opengl: None) -> None:
    groups = {
        'policy': [POSITIONS],
        'camera/front': PictureGroupCfg(camera='front', layout=layout, history_length=2),
        'camera/depth': PictureGroupCfg(camera='front', data='depth', max_depth=4.0),
        'critic': [VELOCITIES],
    }
    with closing(vector_env(grouped(groups), autoreset_mode='SameStep')) as envs:
        space = envs.single_observation_space
        assert isinstance(space, spaces.Dict) and space['camera/front'] == spaces.Box(0, 255, shape, np.uint8)
        obs, _ = envs.reset(seed=0)
        last = obs
        for _ in range(2 * LIMIT):
            assert obs in envs.observation_space
            axis = -1 if layout == 'hwc' else 1
            old, new = np.split(obs['camera/front'], 2, axis)
            np.testing.assert_array_equal(old, np.split(last['camera/front'], 2, axis)[1])
            assert new.std() > 5.0, 'there is something to see'
            last, (obs, _, terminated, truncated, info) = obs, envs.step(np.zeros((3, 1), np.float32))
            if (terminated | truncated).any():
                assert info['final_obs']['camera/front'].dtype == np.uint8
                last = obs  # in all envs an episode began: the first picture is repeated
        assert 0 < obs['camera/depth'].min() < 255


@pytest.mark.slow
def test_one_env_alone(opengl: None) -> None:
    groups = {'policy': [POSITIONS, VELOCITIES], 'camera': PictureGroupCfg(camera='front')}
    env = SingleEnv(grouped(groups, 1))
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize(
    'observations, message',
    [
        ({'critic': [POSITIONS]}, 'a group for the policy is missing'),
        ({'policy': ObservationGroupCfg(terms=[POSITIONS]), 'b': []}, None),
        ({'camera': {'camera': 'front', 'layout': 'whc'}}, "'hwc' or 'chw'"),
        ({'policy': {'terms': []}}, 'at least 1 item'),
    ],
)
def test_mistakes_are_named(observations: dict[str, Any], message: str | None) -> None:
    learning = carts().task_configs[0].learning
    assert learning is not None
    if message is None:
        LearningCfg.model_validate({**learning.model_dump(), 'observations': observations})
        return
    with pytest.raises(ValueError, match=message):
        learning.update(observations=observations)


def test_forms_with_one_array_say_so() -> None:
    config = grouped({'a': [POSITIONS], 'b': [VELOCITIES]})
    with pytest.raises(
        ValueError, match=r"FlatBuffers has one array of observations, and these are groups: \['a', 'b'\]"
    ):
        FlatBuffers(config)
