"""Contract of `VectorEnv`: spaces, ends, results, seeds, masks and mistakes."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from cart_poles import actions_of, carts, outcome_of
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole, h1_stand, jetbot_goal

import_extensions()

MakeVectorEnv = Callable[..., VectorEnv]
AUTORESETS = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


# --- spaces ----------------------------------------------------------------------------------------------------------


def test_spaces(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(num_envs=3)
    assert isinstance(envs, gym.vector.VectorEnv) and envs.num_envs == 3 and envs.render_mode is None
    assert envs.single_observation_space == gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    assert envs.single_action_space == gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    assert envs.observation_space == gym.vector.utils.batch_space(envs.single_observation_space, 3)
    assert envs.action_space == gym.vector.utils.batch_space(envs.single_action_space, 3)
    assert envs.critic_size == 4


def test_actions_without_scale_have_the_limits_of_the_controller(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(jetbot_goal.config(2, 0, threads=1))
    limits = np.array([1.0, 4.0], np.float32)
    assert envs.single_action_space == gym.spaces.Box(-limits, limits)
    assert envs.action_space == gym.vector.utils.batch_space(envs.single_action_space, 2)


@pytest.mark.slow
def test_critic_sees_more(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(h1_stand.config(2, 0, threads=1))
    obs, _ = envs.reset(seed=0)
    critic = envs.critic_observations()
    assert obs.shape == (2, 63) and critic.shape == (2, envs.critic_size) == (2, 67)
    np.testing.assert_array_equal(critic[:, :63], obs)
    np.testing.assert_allclose(critic[:, -1], h1_stand.PELVIS_HEIGHT, atol=0.01)


def test_observations_are_the_callers_own(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env()
    first, _ = envs.reset(seed=0)
    kept = first.copy()
    second, *_ = envs.step(np.ones((3, 1), np.float32))
    np.testing.assert_array_equal(first, kept)
    second[:] = np.nan
    assert np.isfinite(envs.step(np.ones((3, 1), np.float32))[0]).all()


def test_pictures_of_each_env_if_told_so(make_vector_env: MakeVectorEnv, opengl: None) -> None:
    assert make_vector_env(num_envs=2).render() == (None, None)
    envs = make_vector_env(num_envs=2, render_mode='rgb_array')
    assert not any(picture.any() for picture in envs.render())  # no episode yet
    envs.reset()
    first, second = envs.render()
    assert first.shape == second.shape == (480, 640, 3) and first.any()
    assert envs.metadata['render_fps'] == 50


# --- how episodes follow each other ----------------------------------------------------------------------------------


def test_what_starts_anew_ignores_the_action(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(num_envs=2, max_episode_steps=2)
    envs.reset(seed=0)
    action = np.ones((2, 1), np.float32)
    envs.step(action)
    obs, _, _, truncated, info = envs.step(action)
    assert truncated.all() and obs.any() and info['episode_id'].tolist() == [0, 1]
    obs, rewards, terminated, truncated, info = envs.step(action)
    assert not obs.any() and not rewards.any() and not (terminated | truncated).any()
    assert info['episode_id'].tolist() == [2, 3] and 'episode_return' not in info


# --- results of episodes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize('mode', AUTORESETS[:2])
def test_return_and_length(make_vector_env: MakeVectorEnv, mode: AutoresetMode) -> None:
    envs = make_vector_env(num_envs=3, autoreset_mode=mode, max_episode_steps=25)
    envs.reset(seed=0)
    seen = 0
    returns, lengths, waiting = np.zeros(3), np.zeros(3, int), np.zeros(3, bool)
    for action in actions_of(envs, 80):
        _, rewards, terminated, truncated, info = envs.step(action)
        returns += rewards
        lengths += ~waiting
        ended = terminated | truncated
        report = info['final_info'] if mode is AutoresetMode.SAME_STEP and ended.any() else info
        if ended.any():
            np.testing.assert_allclose(report['episode_return'][ended], returns[ended], rtol=1e-6)
            np.testing.assert_array_equal(report['episode_length'][ended], lengths[ended])
            seen += ended.sum()
        returns[ended], lengths[ended] = 0.0, 0
        waiting = ended if mode is AutoresetMode.NEXT_STEP else waiting
    assert seen > 5


@pytest.mark.parametrize('mode', AUTORESETS[:2])
def test_record_episode_statistics(make_vector_env: MakeVectorEnv, mode: AutoresetMode) -> None:
    envs = RecordEpisodeStatistics(make_vector_env(num_envs=3, autoreset_mode=mode, max_episode_steps=20))
    envs.reset(seed=0)
    for action in actions_of(envs, 70):
        _, _, terminated, truncated, info = envs.step(action)
        ended = terminated | truncated
        if ended.any():
            own = info['final_info'] if mode is AutoresetMode.SAME_STEP else info
            np.testing.assert_array_equal(info['episode']['l'][ended], own['episode_length'][ended])
            np.testing.assert_allclose(info['episode']['r'][ended], own['episode_return'][ended], rtol=1e-5)
    assert envs.episode_count > 6


@pytest.mark.parametrize('mode', AUTORESETS[:2])
def test_infos_as_a_list(make_vector_env: MakeVectorEnv, mode: AutoresetMode) -> None:
    envs = DictInfoToList(make_vector_env(num_envs=2, autoreset_mode=mode, max_episode_steps=3))
    _, infos = envs.reset(seed=0)
    assert infos == [{'active': True, 'episode_id': 0}, {'active': True, 'episode_id': 1}]
    for _ in range(3):
        *_, infos = envs.step(np.ones((2, 1), np.float32))
    ended: list[Any] = [info['final_info'] for info in infos] if mode is AutoresetMode.SAME_STEP else infos
    assert [info['episode_length'] for info in ended] == [3, 3]
    assert 'error' not in ended[0]


# --- seeds -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=st.one_of(st.integers(0, 2**31 - 1), st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=3)))
def test_same_seed_same_trajectories(seed: Any) -> None:
    outcomes = []
    envs = VectorEnv(carts(start=0.05, max_episode_steps=10))
    actions = actions_of(envs, 15)
    for _ in range(2):
        first, _ = envs.reset(seed=seed)
        outcomes.append([first, *outcome_of(envs, actions)])
    for one, other in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(envs.reset()[0], outcomes[0][0]), 'no seed, no repetition'
    envs.close()


def test_different_seeds_differ(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(start=0.05)
    firsts = [envs.reset(seed=seed)[0] for seed in (0, 1, [0, 1, 2], [0, 1, 3])]
    assert len({first.tobytes() for first in firsts}) == 4


def test_no_seed_per_env_is_no_seed(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(start=0.05)
    first, _ = envs.reset(seed=[None, None, None])
    assert not np.array_equal(first, envs.reset(seed=[None, None, None])[0])


# --- masks -----------------------------------------------------------------------------------------------------------


def test_reset_of_some_envs_leaves_the_others(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(autoreset_mode=AutoresetMode.DISABLED, num_envs=4)
    twin = make_vector_env(autoreset_mode=AutoresetMode.DISABLED, num_envs=4)
    for each in (envs, twin):
        each.reset(seed=0)
    actions = actions_of(envs, 12)
    before = outcome_of(envs, actions[:6])[0][-1]
    outcome_of(twin, actions[:6])
    mask = np.array([False, True, False, True])
    obs, info = envs.reset(options={'reset_mask': mask})
    np.testing.assert_array_equal(obs[~mask], before[~mask])
    assert not obs[mask].any() and info['episode_id'].tolist() == [0, 4, 2, 5]
    for action in actions[6:]:
        np.testing.assert_array_equal(envs.step(action)[0][~mask], twin.step(action)[0][~mask])


@pytest.mark.parametrize('mode', AUTORESETS)
@pytest.mark.parametrize('delay', [0, 2])
def test_envs_that_go_on_keep_what_was_seen(make_vector_env: MakeVectorEnv, mode: AutoresetMode, delay: int) -> None:
    config = carts(num_envs=4, start=0.05, max_episode_steps=5)
    learning = config.task_configs[0].learning
    assert learning is not None
    noisy = [term.update(noise=0.01, delay=delay) for term in learning.terms(privileged=False)]
    envs = make_vector_env(
        config, learning.update(observations=noisy, critic_observations=noisy[:1]), autoreset_mode=mode
    )
    obs, _ = envs.reset(seed=0)
    for steps, some in ((0, [0]), (2, [1, 2]), (3, [0, 2, 3])):
        for action in actions_of(envs, steps):
            obs, *_ = envs.step(action)
        reset, kept = np.isin(np.arange(4), some), obs.copy()
        obs[:] = np.nan  # it is the caller's own
        obs, _ = envs.reset(options={'reset_mask': reset})
        np.testing.assert_array_equal(obs[~reset], kept[~reset])
        assert (obs[reset] != kept[reset]).all() and np.isfinite(obs).all()
        np.testing.assert_array_equal(envs.critic_observations()[:, :4], obs)


def test_envs_without_an_episode_keep_zeros(make_vector_env: MakeVectorEnv) -> None:
    config = carts(num_envs=3, order='once', tasks=4, max_episode_steps=2)
    envs = make_vector_env(config, autoreset_mode=AutoresetMode.DISABLED)
    only, _ = envs.reset(options={'reset_mask': np.array([False, True, False])})
    assert not only.any()
    envs.reset(options={'reset_mask': np.array([True, False, True])})
    outcome_of(envs, np.ones((2, 3, 1), np.float32))
    obs, info = envs.reset(options={'reset_mask': np.array([True, True, False])})
    assert info['active'].tolist() == [True, False, True]
    assert obs[2].all(), 'it ended and was not reset yet'
    assert not obs[1].any()
    obs, _ = envs.reset(options={'reset_mask': np.array([False, False, True])})
    assert not obs[1:].any()


def test_ended_envs_wait_for_a_reset(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=1)
    envs.reset(seed=0)
    action = np.zeros((3, 1), np.float32)
    envs.step(action)
    with pytest.raises(ValueError, match=r'envs \[0, 1, 2\] have ended: reset them first'):
        envs.step(action)
    envs.reset(options={'reset_mask': np.array([True, False, False])})
    with pytest.raises(ValueError, match=r'envs \[1, 2\]'):
        envs.step(action)
    envs.reset(options={'reset_mask': np.array([False, True, True])})
    assert envs.step(action)[3].all()


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('mode', AUTORESETS)
def test_an_env_that_diverges_is_terminated(make_vector_env: MakeVectorEnv, mode: AutoresetMode) -> None:
    envs, twin = (make_vector_env(autoreset_mode=mode) for _ in range(2))
    for each in (envs, twin):
        each.reset(seed=0)
    action = np.full((3, 1), 0.1, np.float32)
    last = [each.step(action) for each in (envs, twin)][0][0]
    others = np.array([0, 2])
    envs.core.state.articulation.set_joint_velocities([[0.0, 1e12]], env_ids=np.array([1]))
    obs, rewards, terminated, truncated, info = envs.step(action)
    expected = twin.step(action)
    assert terminated.tolist() == [False, True, False] and not truncated.any() and rewards[1] == 0.0
    report = info['final_info'] if mode is AutoresetMode.SAME_STEP else info
    np.testing.assert_array_equal((info['final_obs'] if mode is AutoresetMode.SAME_STEP else obs)[1], last[1])
    assert report['failed'].tolist() == [False, True, False] and report['_failed'].all()
    assert 'diverged' in report['error'][1] and report['_error'].tolist() == [False, True, False]
    np.testing.assert_array_equal(obs[others], expected[0][others])
    assert np.isfinite(obs).all() and np.isfinite(info.get('final_obs', 0.0)).all()
    if mode is AutoresetMode.DISABLED:
        envs.reset(options={'reset_mask': terminated})
    for _ in range(3):
        obs, _, terminated, _, info = envs.step(action)
        assert np.isfinite(obs).all() and not terminated.any() and 'error' not in info and not info['failed'].any()
        np.testing.assert_array_equal(obs[others], twin.step(action)[0][others])


def test_robots_must_be_alike(make_vector_env: MakeVectorEnv) -> None:
    config = carts(num_envs=2)
    other = config.task_configs[0].model_copy(deep=True)
    other.robots[0].usd_path = cart_pole.model_file(pole_length=2.0)
    different = config.model_copy(update={'task_configs': [config.task_configs[0], other]})
    with pytest.raises(ValueError, match=r"one robot model and configuration .* 'cart_pole' differs"):
        make_vector_env(different).reset(seed=0)


def test_tasks_must_learn_the_same() -> None:
    config = carts(num_envs=2)
    other = config.task_configs[0].model_copy(deep=True)
    assert other.learning is not None
    other.learning.rewards = []
    with pytest.raises(ValueError, match=r'task_configs\[1\]\.learning differs'):
        VectorEnv(config.model_copy(update={'task_configs': [config.task_configs[0], other]}))
    other.learning = None
    with pytest.raises(ValueError, match=r'task_configs\[0\]\.learning is missing'):
        VectorEnv(config.model_copy(update={'task_configs': [other]}))
