"""`Env.reset`: which envs get which episodes, and what it returns."""

import numpy as np
import pytest
from env_results import NONE_ROW, indices, row


def test_reset_without_list_resets_all_envs_in_id_order(make_env):
    env = make_env(tasks=5, env_num=4)
    obs, info = env.reset()
    assert isinstance(obs, list) and isinstance(info, list)
    assert len(obs) == 4 and all('arm' in o for o in obs)
    assert indices(info) == [0, 1, 2, 3]


def test_episodes_are_taken_in_list_order(make_env):
    env = make_env(tasks=5, env_num=4)
    assert indices(env.reset([2, 0, 3])[1]) == [0, 1, 2]
    assert {i: c.index for i, c in env.active_task_configs.items()} == {2: 0, 0: 1, 3: 2}
    assert indices(env.reset([1])[1]) == [3]


def test_observation_k_belongs_to_env_k_of_the_list(make_env, make_task, make_robot):
    tasks = [make_task(robots=[make_robot(position=(0.1 * k, 0, 0))]) for k in range(3)]
    obs, _ = make_env(tasks=tasks, env_num=3).reset([1, 2, 0])
    assert [float(o['arm']['position'][0]) for o in obs] == pytest.approx([0.0, 0.1, 0.2])


def test_env_ids_is_another_name_of_reset_list(make_env):
    env = make_env(tasks=4, env_num=2)
    assert indices(env.reset(env_ids=[1])[1]) == [0]
    assert indices(env.reset(reset_list=[0])[1]) == [1]
    with pytest.raises(ValueError, match='not both'):
        env.reset([0], env_ids=[1])
    assert indices(env.reset()[1]) == [2, 3]


@pytest.mark.parametrize(
    'ids', [np.array([1, 0]), (1, 0), range(1, -1, -1), [np.int64(1), np.int32(0)], [np.uint8(1), 0]]
)
def test_any_sequence_of_integers_is_taken(make_env, ids):
    env = make_env(tasks=4, env_num=2)
    assert indices(env.reset(ids)[1]) == [0, 1]
    assert {i: c.index for i, c in env.active_task_configs.items()} == {1: 0, 0: 1}


@pytest.mark.parametrize(
    ('ids', 'named'),
    [
        ([0, 3], '3'),
        ([-1], '-1'),
        ([1.0], '1.0'),
        ([True], 'True'),
        ([np.True_], 'True'),
        (['0'], "'0'"),
        ([None], 'None'),
        ([0, [1]], r'\[1\]'),
        ([2, 1, 2], '2'),
        ([np.int64(1), 1], '1'),
        ('01', "'01'"),
        (1, '1'),
        ([float('nan')], 'nan'),
        (np.array([0.0]), '0.0'),
        ([10**30], '10000'),
    ],
)
def test_a_wrong_env_id_is_named_and_nothing_is_reset(make_env, ids, named):
    env = make_env(tasks=9, env_num=3)
    env.reset()
    before = env.step([{'arm': {'drive': [0.3, 0.1]}}] * 3)
    tasks = dict(env.runner.current_tasks)
    with pytest.raises(ValueError, match=named):
        env.reset(ids)
    assert env.runner.current_tasks == tasks
    assert [info['step'] for info in env.step([None] * 3)[4]] == [info['step'] + 1 for info in before[4]]
    assert indices(env.reset()[1]) == [3, 4, 5]


def test_one_episode_left_goes_to_the_first_in_the_list(make_env):
    env = make_env(tasks=5, env_num=4)
    env.reset()
    obs, info = env.reset([3, 0])
    assert indices(info) == [4, None]
    assert obs[0] is not None and obs[1] is None
    result = env.step([None] * 4)
    assert row(result, 0) == NONE_ROW
    assert row(result, 3)[0] is not None


def test_resetting_a_finished_env_gives_none_again(make_env):
    env = make_env(tasks=2, env_num=2)
    env.reset()
    for _ in range(3):
        assert env.reset([1]) == ([None], [None])
        assert row(env.step([None] * 2), 1) == NONE_ROW
    assert row(env.step([None] * 2), 0)[0] is not None


def test_empty_list_resets_nothing(make_env):
    env = make_env(tasks=3, env_num=2)
    assert env.reset([]) == ([], [])
    env.reset()
    env.step([None, None])
    assert env.reset([]) == ([], [])
    assert [info['step'] for info in env.step([None, None])[4]] == [2, 2]
    assert indices(env.reset([0])[1]) == [2]


def test_more_envs_than_episodes(make_env):
    env = make_env(tasks=1, env_num=3)
    obs, info = env.reset()
    assert indices(info) == [0, None, None]
    assert [o is None for o in obs] == [False, True, True]
    assert env.simulation_app.is_running()
