"""Episodes of a `VectorEnv`: the end of the queue, scenes side by side and in turn."""

from collections.abc import Callable

import numpy as np
import pytest
from cart_poles import actions_of, outcome_of
from gymnasium.vector import AutoresetMode

from internutopia.config import Config
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import h1_stand

import_extensions()

MakeVectorEnv = Callable[..., VectorEnv]
AUTORESETS = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]


def scenes(*paths: str, num_envs: int) -> Config:
    """H1 without randomness in several scenes, in turn."""
    configs = [h1_stand.config(num_envs, 0, scene=path, randomize=False, threads=1) for path in paths]
    return configs[0].model_copy(update={'task_configs': [config.task_configs[0] for config in configs]})


# --- the end of the queue --------------------------------------------------------------------------------------------


@pytest.mark.parametrize('mode', AUTORESETS)
def test_envs_without_an_episode_are_masked(make_vector_env: MakeVectorEnv, mode: AutoresetMode) -> None:
    envs = make_vector_env(num_envs=2, order='once', tasks=3, max_episode_steps=4, autoreset_mode=mode)
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


def test_more_envs_than_episodes(make_vector_env: MakeVectorEnv) -> None:
    envs = make_vector_env(num_envs=4, order='once', tasks=2)
    obs, info = envs.reset(seed=0)
    assert info['active'].tolist() == [True, True, False, False] and obs.shape == (4, 4)
    assert envs.step(np.ones((4, 1), np.float32))[1].tolist() == pytest.approx([0.02, 0.02, 0.0, 0.0])


# --- independence ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_row_does_not_depend_on_the_number_of_envs(make_vector_env: MakeVectorEnv) -> None:
    many = make_vector_env(scenes('scenes/empty.xml', num_envs=8))
    one = make_vector_env(scenes('scenes/empty.xml', num_envs=1))
    np.testing.assert_array_equal(many.reset(seed=0)[0][3:4], one.reset(seed=0)[0])
    actions = actions_of(many, 60)
    for got, expected in zip(outcome_of(many, actions), outcome_of(one, actions[:, 3:4]), strict=True):
        np.testing.assert_array_equal(got[:, 3:4], expected)


@pytest.mark.slow
def test_different_scenes_side_by_side(make_vector_env: MakeVectorEnv) -> None:
    paths = ('scenes/empty.xml', 'scenes/rooms.xml', 'scenes/obstacles.usda')
    envs = make_vector_env(scenes(*paths, num_envs=3))
    envs.reset(seed=0)
    actions = actions_of(envs, 10)
    together = outcome_of(envs, actions)
    for env_id, path in enumerate(paths):
        alone = make_vector_env(scenes(path, num_envs=1))
        alone.reset(seed=0)
        for got, expected in zip(together, outcome_of(alone, actions[:, env_id : env_id + 1]), strict=True):
            np.testing.assert_array_equal(got[:, env_id : env_id + 1], expected)


def test_scenes_change_between_episodes(make_vector_env: MakeVectorEnv) -> None:
    config = scenes('scenes/empty.xml', 'scenes/rooms.xml', num_envs=1)
    for task in config.task_configs:
        task.max_episode_steps = 2
    envs = make_vector_env(config, autoreset_mode=AutoresetMode.SAME_STEP)
    obs, _ = envs.reset(seed=0)
    for episode_id in (0, 0, 1, 1, 2):
        assert envs.core.episode_ids.tolist() == [episode_id]
        obs, *_ = envs.step(np.zeros((1, 19), np.float32))
        assert np.isfinite(obs).all()
