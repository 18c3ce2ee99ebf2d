"""Python does not look for garbage while a step of many envs makes what it returns."""

import gc
from collections.abc import Callable
from contextlib import closing

import pytest

from internutopia.config import Config
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

ENVS = 500  # each with more than one dict of dicts: more than Python's threshold of 700 in all


@pytest.fixture
def many_arms(make_env, make_task, make_robot):
    env = make_env(tasks=[make_task(None, robots=[make_robot('arm')])], env_num=ENVS, episode_order='cycle')
    env.reset()
    return env


def generations(step: Callable[[], object]) -> list[int]:
    """The generations that Python looks for garbage in during the second of two steps."""
    looks: list[int] = []
    gc.collect()
    step()
    gc.callbacks.append(lambda phase, info: looks.append(info['generation']))
    try:
        step()
    finally:
        gc.callbacks.pop()
    assert gc.isenabled()
    return looks


@pytest.mark.slow
def test_a_step_of_many_envs_looks_for_no_garbage():
    import_extensions()
    task = SingleInferenceTaskCfg(
        scene_asset_path='scenes/empty.xml', robots=[JetbotRobotCfg(controllers=[move_by_speed_cfg])]
    )
    config = Config(task_configs=[task], env_num=ENVS, episode_order='cycle', metrics_save_path='none')
    with closing(Env(config)) as env:
        env.reset()
        assert not generations(lambda: env.step([{}] * ENVS))


@pytest.mark.slow
def test_one_of_envs_with_code_of_their_own_looks_among_new_objects_alone(many_arms):
    """Their observations are copied, so a few more objects live after each step."""
    assert not any(generations(lambda: many_arms.step([{}] * ENVS)))


def test_after_a_refused_step_and_where_nobody_wants_it(many_arms):
    with pytest.raises(KeyError, match='env 7'):
        many_arms.step([{}] * 7 + [{'nobody': {}}] * (ENVS - 7))
    assert gc.isenabled()
    gc.disable()
    try:
        many_arms.step([{}] * ENVS)
        assert not gc.isenabled()
    finally:
        gc.enable()
