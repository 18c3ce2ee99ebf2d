"""Python does not look for garbage while a step of many envs makes what it returns."""

import gc

import pytest

ENVS = 500  # each with more than one dict of dicts: more than Python's threshold of 700 in all


@pytest.fixture
def many_arms(make_env, make_task, make_robot):
    env = make_env(tasks=[make_task(None, robots=[make_robot('arm')])], env_num=ENVS, episode_order='cycle')
    env.reset()
    return env


@pytest.mark.slow
def test_a_step_of_many_envs_looks_for_no_garbage(many_arms):
    looks: list[str] = []
    gc.collect()
    many_arms.step([{}] * ENVS)
    gc.callbacks.append(lambda phase, info: looks.append(phase))
    try:
        many_arms.step([{}] * ENVS)
    finally:
        gc.callbacks.pop()
    assert not looks
    assert gc.isenabled()


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
