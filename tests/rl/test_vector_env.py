"""Contract of `VectorEnv`: numbering of steps, ends, restarts, seeds, masks and mistakes."""

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from internutopia.core.config import Config
from internutopia.core.config.learning import LearningCfg
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole, h1_stand, jetbot_goal

import_extensions()

Make = Callable[..., VectorEnv]
AUTORESETS = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


def carts(num_envs: int = 3, order: str = 'cycle', tasks: int = 1, **options: Any) -> Config:
    """Cart-poles that all start upright and at rest, unless told otherwise."""
    config = cart_pole.config(num_envs, 0, **{'start': 0.0, 'threads': 1, **options})
    return config.model_copy(update={'episode_order': order, 'task_configs': config.task_configs * tasks})


def scenes(*paths: str, num_envs: int) -> Config:
    """H1 without randomness in several scenes, in turn."""
    configs = [h1_stand.config(num_envs, 0, scene=path, randomize=False, threads=1) for path in paths]
    return configs[0].model_copy(update={'task_configs': [config.task_configs[0] for config in configs]})


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes a VectorEnv of a config, or of the arguments of `carts`; closed after the test."""
    made: list[VectorEnv] = []

    def make_one(
        config: Config | None = None,
        learning: LearningCfg | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        render_mode: str | None = None,
        **fields: Any,
    ) -> VectorEnv:
        config = config or carts(**fields)
        made.append(VectorEnv(config, learning, autoreset_mode=autoreset_mode, render_mode=render_mode))
        return made[-1]

    yield make_one
    for envs in made:
        envs.close()


def actions_of(envs: gym.vector.VectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    """Pushes that differ between envs, so that poles fall at different times."""
    rng = np.random.default_rng(seed)
    shape = envs.action_space.shape
    assert shape is not None
    return rng.uniform(-1.0, 1.0, (steps, *shape)).astype(np.float32)


def outcome_of(envs: VectorEnv, actions: np.ndarray) -> list[np.ndarray]:
    """Observations, rewards, terminated, truncated of all steps."""
    return [np.stack(column) for column in zip(*(envs.step(action)[:4] for action in actions), strict=True)]


# --- spaces ----------------------------------------------------------------------------------------------------------


def test_spaces(make: Make) -> None:
    envs = make(num_envs=3)
    assert isinstance(envs, gym.vector.VectorEnv) and envs.num_envs == 3 and envs.render_mode is None
    assert envs.single_observation_space == gym.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    assert envs.single_action_space == gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    assert envs.observation_space == gym.vector.utils.batch_space(envs.single_observation_space, 3)
    assert envs.action_space == gym.vector.utils.batch_space(envs.single_action_space, 3)
    assert envs.critic_size == 4


def test_actions_without_scale_have_the_limits_of_the_controller(make: Make) -> None:
    envs = make(jetbot_goal.config(2, 0, threads=1))
    limits = np.array([1.0, 4.0], np.float32)
    assert envs.single_action_space == gym.spaces.Box(-limits, limits)
    assert envs.action_space == gym.vector.utils.batch_space(envs.single_action_space, 2)


def test_critic_sees_more(make: Make) -> None:
    envs = make(h1_stand.config(2, 0, threads=1))
    obs, _ = envs.reset(seed=0)
    critic = envs.critic_observations()
    assert obs.shape == (2, 63) and critic.shape == (2, envs.critic_size) == (2, 67)
    np.testing.assert_array_equal(critic[:, :63], obs)
    np.testing.assert_allclose(critic[:, -1], h1_stand.PELVIS_HEIGHT, atol=0.01)


def test_observations_are_the_callers_own(make: Make) -> None:
    envs = make()
    first, _ = envs.reset(seed=0)
    kept = first.copy()
    second, *_ = envs.step(np.ones((3, 1), np.float32))
    np.testing.assert_array_equal(first, kept)
    second[:] = np.nan
    assert np.isfinite(envs.step(np.ones((3, 1), np.float32))[0]).all()


def test_pictures_of_each_env_if_told_so(make: Make, opengl: None) -> None:
    with pytest.raises(ValueError, match="'human': expected 'rgb_array' or None"):
        VectorEnv(carts(), render_mode='human')
    assert make(num_envs=2).render() == (None, None)
    envs = make(num_envs=2, render_mode='rgb_array')
    assert not any(picture.any() for picture in envs.render())  # no episode yet
    envs.reset()
    first, second = envs.render()
    assert first.shape == second.shape == (480, 640, 3) and first.any()
    assert envs.metadata['render_modes'] == ['rgb_array'] and envs.metadata['render_fps'] > 0


# --- how episodes follow each other ----------------------------------------------------------------------------------


def test_what_starts_anew_ignores_the_action(make: Make) -> None:
    envs = make(num_envs=2, max_episode_steps=2)
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
def test_return_and_length(make: Make, mode: AutoresetMode) -> None:
    envs = make(num_envs=3, autoreset_mode=mode, max_episode_steps=25)
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
def test_record_episode_statistics(make: Make, mode: AutoresetMode) -> None:
    envs = RecordEpisodeStatistics(make(num_envs=3, autoreset_mode=mode, max_episode_steps=20))
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
def test_infos_as_a_list(make: Make, mode: AutoresetMode) -> None:
    envs = DictInfoToList(make(num_envs=2, autoreset_mode=mode, max_episode_steps=3))
    _, infos = envs.reset(seed=0)
    assert infos == [{'active': True, 'episode_id': 0}, {'active': True, 'episode_id': 1}]
    for _ in range(3):
        *_, infos = envs.step(np.ones((2, 1), np.float32))
    ended: list[Any] = [info['final_info'] for info in infos] if mode is AutoresetMode.SAME_STEP else infos
    assert [info['episode_length'] for info in ended] == [3, 3]
    assert 'error' not in ended[0]


# --- seeds -----------------------------------------------------------------------------------------------------------


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


def test_different_seeds_differ(make: Make) -> None:
    envs = make(start=0.05)
    firsts = [envs.reset(seed=seed)[0] for seed in (0, 1, [0, 1, 2], [0, 1, 3])]
    assert len({first.tobytes() for first in firsts}) == 4


def test_no_seed_per_env_is_no_seed(make: Make) -> None:
    envs = make(start=0.05)
    first, _ = envs.reset(seed=[None, None, None])
    assert not np.array_equal(first, envs.reset(seed=[None, None, None])[0])


# --- masks -----------------------------------------------------------------------------------------------------------


def test_reset_of_some_envs_leaves_the_others(make: Make) -> None:
    envs = make(autoreset_mode=AutoresetMode.DISABLED, num_envs=4)
    twin = make(autoreset_mode=AutoresetMode.DISABLED, num_envs=4)
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
def test_envs_that_go_on_keep_what_was_seen(make: Make, mode: AutoresetMode, delay: int) -> None:
    config = carts(num_envs=4, start=0.05, max_episode_steps=5)
    learning = config.task_configs[0].learning
    assert learning is not None
    noisy = [term.update(noise=0.01, delay=delay) for term in learning.observations]
    envs = make(config, learning.update(observations=noisy, critic_observations=noisy[:1]), autoreset_mode=mode)
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


def test_envs_without_an_episode_keep_zeros(make: Make) -> None:
    config = carts(num_envs=3, order='once', tasks=4, max_episode_steps=2)
    envs = make(config, autoreset_mode=AutoresetMode.DISABLED)
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


def test_ended_envs_wait_for_a_reset(make: Make) -> None:
    envs = make(autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=1)
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


# --- the end of the queue --------------------------------------------------------------------------------------------


@pytest.mark.parametrize('mode', AUTORESETS)
def test_envs_without_an_episode_are_masked(make: Make, mode: AutoresetMode) -> None:
    envs = make(num_envs=2, order='once', tasks=3, max_episode_steps=4, autoreset_mode=mode)
    _, info = envs.reset(seed=0)
    assert info['active'].all()
    action = np.ones((2, 1), np.float32)
    for _ in range(3):
        envs.step(action)
    *_, truncated, info = envs.step(action)
    assert truncated.all()
    if mode is AutoresetMode.NEXT_STEP:
        obs, _, _, _, info = envs.step(action)
    elif mode is AutoresetMode.DISABLED:
        obs, info = envs.reset()
    assert info['active'].tolist() == [True, False] and info['_episode_id'].tolist() == [True, False]
    for step in range(4):
        action[1] = np.nan  # nobody listens
        obs, rewards, terminated, truncated, info = envs.step(action)
        assert not obs[1].any() and rewards[1] == 0.0 and not (terminated | truncated)[1]
        assert truncated[0] == (step == 3) and rewards[0] > 0.0
    if mode is AutoresetMode.DISABLED:
        _, info = envs.reset()
    elif mode is AutoresetMode.NEXT_STEP:
        *_, info = envs.step(action)
    assert not info['active'].any()
    obs, rewards, terminated, truncated, info = envs.step(np.zeros((2, 1), np.float32))
    assert not obs.any() and not rewards.any() and not (terminated | truncated).any()


def test_more_envs_than_episodes(make: Make) -> None:
    envs = make(num_envs=4, order='once', tasks=2)
    obs, info = envs.reset(seed=0)
    assert info['active'].tolist() == [True, True, False, False] and obs.shape == (4, 4)
    assert envs.step(np.ones((4, 1), np.float32))[1].tolist() == pytest.approx([0.02, 0.02, 0.0, 0.0])


# --- independence ----------------------------------------------------------------------------------------------------


def test_a_row_does_not_depend_on_the_number_of_envs(make: Make) -> None:
    many = make(scenes('scenes/empty.xml', num_envs=8))
    one = make(scenes('scenes/empty.xml', num_envs=1))
    np.testing.assert_array_equal(many.reset(seed=0)[0][3:4], one.reset(seed=0)[0])
    actions = actions_of(many, 60)
    for got, expected in zip(outcome_of(many, actions), outcome_of(one, actions[:, 3:4]), strict=True):
        np.testing.assert_array_equal(got[:, 3:4], expected)


def test_different_scenes_side_by_side(make: Make) -> None:
    paths = ('scenes/empty.xml', 'scenes/rooms.xml', 'scenes/obstacles.usda')
    envs = make(scenes(*paths, num_envs=3))
    envs.reset(seed=0)
    actions = actions_of(envs, 10)
    together = outcome_of(envs, actions)
    for env_id, path in enumerate(paths):
        alone = make(scenes(path, num_envs=1))
        alone.reset(seed=0)
        for got, expected in zip(together, outcome_of(alone, actions[:, env_id : env_id + 1]), strict=True):
            np.testing.assert_array_equal(got[:, env_id : env_id + 1], expected)


def test_scenes_change_between_episodes(make: Make) -> None:
    config = scenes('scenes/empty.xml', 'scenes/rooms.xml', num_envs=1)
    for task in config.task_configs:
        task.max_episode_steps = 2
    envs = make(config, autoreset_mode=AutoresetMode.SAME_STEP)
    obs, _ = envs.reset(seed=0)
    for episode_id in (0, 0, 1, 1, 2):
        assert envs.core.episode_ids.tolist() == [episode_id]
        obs, *_ = envs.step(np.zeros((1, 19), np.float32))
        assert np.isfinite(obs).all()


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('mode', AUTORESETS)
def test_an_env_that_diverges_is_truncated(make: Make, mode: AutoresetMode) -> None:
    envs, twin = (make(autoreset_mode=mode) for _ in range(2))
    for each in (envs, twin):
        each.reset(seed=0)
    action = np.full((3, 1), 0.1, np.float32)
    for each in (envs, twin):
        each.step(action)
    others = np.array([0, 2])
    envs.core.state.articulation.set_joint_velocities([[0.0, 1e12]], env_ids=np.array([1]))
    obs, rewards, terminated, truncated, info = envs.step(action)
    expected = twin.step(action)
    assert truncated.tolist() == [False, True, False] and not terminated.any() and rewards[1] == 0.0
    report = info['final_info'] if mode is AutoresetMode.SAME_STEP else info
    assert 'diverged' in report['error'][1] and report['_error'].tolist() == [False, True, False]
    np.testing.assert_array_equal(obs[others], expected[0][others])
    assert np.isfinite(obs).all() and np.isfinite(info.get('final_obs', 0.0)).all()
    if mode is AutoresetMode.DISABLED:
        envs.reset(options={'reset_mask': truncated})
    for _ in range(3):
        obs, _, _, truncated, info = envs.step(action)
        assert np.isfinite(obs).all() and not truncated.any() and 'error' not in info
        np.testing.assert_array_equal(obs[others], twin.step(action)[0][others])


def test_robots_must_be_alike(make: Make) -> None:
    config = carts(num_envs=2)
    other = config.task_configs[0].model_copy(deep=True)
    other.robots[0].usd_path = cart_pole.model_file(pole_length=2.0)
    different = config.model_copy(update={'task_configs': [config.task_configs[0], other]})
    with pytest.raises(ValueError, match=r"one robot model and configuration .* 'cart_pole' differs"):
        make(different).reset(seed=0)


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
