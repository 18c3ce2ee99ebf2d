"""Contract of `Env.step`, and of an `Env` as a whole, in every state an env can be in."""

import json

import numpy as np
import pytest
from env_results import NONE_ROW, indices, row, run_to_end

# --- step ------------------------------------------------------------------------------------------------------------


def test_a_running_env(make_env):
    env = make_env(tasks=2, env_num=2)
    env.reset()
    result = env.step([{'arm': {'drive': [0.1, 0.2]}}, {}])
    assert isinstance(result, tuple) and all(isinstance(column, list) and len(column) == 2 for column in result)
    obs, reward, terminated, truncated, info = row(result, 1)
    assert isinstance(obs, dict)
    assert type(reward) is float and reward == 0.0
    assert terminated is False and truncated is False
    assert info == {'episode_id': 1, 'task_name': '1', 'step': 1}


def test_observation_of_a_robot(make_env, make_task, make_robot):
    position, orientation = (0.5, -0.25, 1.0), (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
    task = make_task(robots=[make_robot(position=position, orientation=orientation)])
    env = make_env(tasks=[task] * 2, env_num=2)
    obs, _ = env.reset()
    stepped = env.step([{'arm': {'drive': [0.3, -0.2]}}] * 2)[0]
    for arm in (obs[1]['arm'], stepped[1]['arm']):
        assert arm['position'] == pytest.approx(position)  # env frame: no grid offset
        assert arm['orientation'] == pytest.approx(orientation)
        for key, shape in {'position': 3, 'orientation': 4, 'joint_positions': 2, 'joint_velocities': 2}.items():
            assert arm[key].dtype == np.float32 and arm[key].shape == (shape,)
        assert set(arm['controllers']) == {'drive', 'push'}
        assert arm['controllers']['drive']['error'] == pytest.approx(2 * arm['joint_positions'])
        assert arm['sensors'] == {}
        assert arm['render'] is False
    assert stepped[1]['arm']['joint_positions'][0] > 0


def test_observations_are_the_callers_own(make_env, assert_same):
    """Whoever spoils what was returned gets the same from then on as whoever does not."""
    keys = 'position', 'orientation', 'joint_positions', 'joint_velocities'

    def run(spoil):
        env, seen = make_env(tasks=4, env_num=2), []
        obs = env.reset()[0]
        for _ in range(7):  # two steps longer than the episodes
            if spoil:
                for env_obs in (*obs, *env.get_observations()):
                    for key in keys:
                        env_obs['arm'][key][:] = 77.0
                    env_obs['arm']['controllers']['drive']['error'][:] = 77.0
            obs = env.step([{'arm': {'drive': [0.3, 0.1]}}] * 2)[0]
            seen.append([env_obs['arm'][key].copy() for env_obs in obs for key in keys])
        env.close()
        return seen

    assert_same(run(True), run(False))


def test_an_ended_env_repeats_its_last_result_with_reward_zero(make_env, make_task):
    task = make_task(
        reward={'reward_type': 'ToyReward'}, metrics=[{'type': 'ToyMetric'}], max_steps=3, max_episode_steps=3
    )
    env = make_env(tasks=[task, task.update(max_steps=99, max_episode_steps=None)], env_num=2)
    env.reset()
    end = row(run_to_end(env, 3), 0)
    assert end[1:4] == (3.0, True, True)
    assert end[4]['metrics'] == {'ToyMetric': 3}
    state = {key: value.copy() for key, value in end[0]['arm'].items() if isinstance(value, np.ndarray)}
    end[0]['arm'].clear()  # the caller may do with its results what it likes
    end[4]['metrics']['ToyMetric'] = 'spoilt'
    for _ in range(3):
        obs, reward, terminated, truncated, info = row(env.step([{'arm': {'drive': [1, 1]}}] * 2), 0)
        assert (reward, terminated, truncated) == (0.0, True, True)
        assert info == {'episode_id': 0, 'task_name': '0', 'step': 3, 'metrics': {'ToyMetric': 3}}
        for key, value in state.items():
            assert (obs['arm'][key] == value).all()
        info['metrics'].clear()
        obs.clear()
    calls = env.runner.current_tasks['0'].calls
    assert calls.count('is_done') == calls.count('reward') == 3 and calls.count('calculate') == 1


def test_truncation_after_max_episode_steps(make_env, make_task):
    tasks = [make_task(max_steps=99, max_episode_steps=2), make_task(max_steps=99)]
    env = make_env(tasks=tasks, env_num=2)
    env.reset()
    assert env.step([None] * 2)[3] == [False, False]
    _, _, terminated, truncated, info = env.step([None] * 2)
    assert terminated == [False, False] and truncated == [True, False]
    assert 'metrics' in info[0] and 'error' not in info[0] and 'metrics' not in info[1]


def test_before_any_reset_there_is_nothing_to_step(make_env):
    env = make_env(tasks=3, env_num=3)
    for call in (lambda: env.step([None] * 3), lambda: env.send([None], [0])):
        with pytest.raises(RuntimeError, match=r'no env was reset yet; call reset\(\) first'):
            call()
    env.reset([])
    with pytest.raises(RuntimeError, match='no env was reset yet'):
        env.step([None] * 3)
    with pytest.raises(ValueError, match='reset_list'):
        env.reset([7])
    with pytest.raises(RuntimeError, match='no env was reset yet'):
        env.step([None] * 3)
    env.reset()
    assert [info['step'] for info in env.step([None] * 3)[4]] == [1, 1, 1]
    old = make_env(tasks=3, env_num=3, compat='2.x')
    assert old.step([None] * 3)[2] == [True] * 3  # as in 2.x


def test_envs_that_never_got_an_episode_report_nothing(make_env):
    env = make_env(tasks=3, env_num=3)
    env.reset([1])
    result = env.step([None] * 3)
    assert row(result, 0) == row(result, 2) == NONE_ROW
    assert row(result, 1)[0] is not None
    assert [o is None for o in env.get_observations()] == [True, False, True]


def test_order_of_calls_in_a_task(make_env, make_task):
    task = make_task(max_steps=2, reward={'reward_type': 'ToyReward'}, metrics=[{'type': 'ToyMetric', 'name': 'count'}])
    env = make_env(tasks=[task], env_num=1)
    env.reset()
    toy = env.runner.current_tasks['0']
    obs = [env.step([None])[0][0] for _ in range(2)]
    env.step([None])
    assert toy.calls == ['post_reset', 'observe', *['observe', 'is_done', 'reward'] * 2, 'calculate']
    seen = toy.metrics['count'].seen
    assert len(seen) == 2  # the ending step included
    for given, returned in zip(seen, obs, strict=True):
        assert (given['arm']['joint_positions'] == returned['arm']['joint_positions']).all()
    env.reset()
    assert toy.calls[-1] == 'cleanup'


def test_substeps_and_dt(make_env, assert_same):
    def run(steps, **sim):
        env = make_env(tasks=1, env_num=1, sim=sim)
        assert env.get_dt() == 1 / 400
        env.reset()
        seen = [env.step([{'arm': {'drive': [0.5, 0.5]}}])[0][0]['arm']['joint_positions'] for _ in range(steps)]
        assert env.runner.world.times[0] == pytest.approx(4 / 400)
        env.close()
        return seen

    (once,) = run(1, physics_dt='1/400', substeps=4)
    four = run(4, physics_dt=1 / 400)
    assert_same(once, four[3])
    assert not np.allclose(once, four[0])


@pytest.mark.parametrize(('interval', 'period'), [(None, 6), (0, 1), (2, 3)])
def test_rendering_cadence(make_env, make_task, interval, period):
    env = make_env(tasks=[make_task(max_steps=99)], env_num=1, sim={'rendering_interval': interval})
    env.reset()
    rendered = [env.step([None])[0][0]['arm']['render'] for _ in range(12)]
    assert [i + 1 for i, frame in enumerate(rendered) if frame] == list(range(period, 13, period))


def test_a_task_without_robots(make_env, make_task):
    env = make_env(tasks=[make_task('crates', robots=[])], env_num=2)
    obs, _ = env.reset()
    assert obs == [{}, None]
    assert row(env.step([{}, {}]), 0)[0] == {}


# --- task configs ----------------------------------------------------------------------------------------------------


def test_info_is_the_config_as_the_caller_wrote_it(make_env, make_task, make_robot, make_block):
    data = {'path': np.arange(6.0).reshape(2, 3), 'nested': {'goal': [1, 2], 'text': 'x'}}
    task = make_task(
        'floor', robots=[make_robot(name='arm_1')], objects=[make_block('box_2', 1.0)], data=data, note=np.float64(3)
    )
    before = task.model_dump()
    env = make_env(tasks=[task, task, task], env_num=2)
    _, info = env.reset()
    run_to_end(env)
    for config in (*info, task, *env.active_task_configs.values()):
        assert type(config) is type(task)
        for field, value in config.model_dump().items():
            if field != 'data':
                assert value == before[field], field
        assert (config.data['path'] == np.arange(6.0).reshape(2, 3)).all()
        assert config.data['nested'] == {'goal': [1, 2], 'text': 'x'}
    assert info[0] is not task and info[0] is not info[1]


def test_inside_a_task_names_and_paths_are_those_of_the_env(make_env, make_task, make_robot, make_block):
    task = make_task(robots=[make_robot(name='h_1', prim_path='/World/h')], objects=[make_block('box', 1.0)])
    env = make_env(tasks=[task] * 3, env_num=3, env_offset_size=2.5)
    env.reset()
    inside = env.runner.current_tasks['2']
    robot = inside.robots['h_1']
    assert (robot.config.name, robot.config.prim_path) == ('h_1_2', '/World/env_2/robots/World/h')
    assert inside.objects['box'].config.prim_path == '/World/env_2/objects/box'
    assert f'{robot.config.prim_path}/lower' in robot._rigid_body_map
    assert (inside.env_id, inside.name, inside.root_path) == (2, '2', '/World/env_2')
    assert inside.env_offset == [2.5, 0.0, 0.0] and type(inside.env_offset[0]) is float
    assert json.dumps(inside.env_offset)
    assert env.runner.task_name_to_env_id_map == {'0': 0, '1': 1, '2': 2}


def test_what_the_caller_does_to_info_does_not_reach_the_episode(make_env, make_task):
    task = make_task(max_steps=4, data={'goal': np.zeros(3)}, max_episode_steps=9)
    env = make_env(tasks=[task], env_num=1, episode_order='cycle')
    for _ in range(2):
        info = env.reset()[1][0]
        assert (info.data['goal'] == 0).all()
        info.data['goal'][:] = 5.0
        info.max_episode_steps = 1
        info.robots[0].controllers.clear()
        inside = env.runner.current_tasks[next(iter(env.runner.current_tasks))].config
        assert (inside.data['goal'] == 0).all()
        inside.data['goal'][:] = 7.0
        assert env.step([{'arm': {'drive': [0, 0]}}])[3] == [False]
    assert (task.data['goal'] == 0).all() and task.max_episode_steps == 9
    task.data['goal'][:] = 9.0  # the queue holds what the config was when the Env was built
    assert (env.reset()[1][0].data['goal'] == 0).all()


def test_one_config_object_may_stand_for_many_episodes(make_env, make_task):
    task = make_task()
    env = make_env(tasks=[task] * 4, env_num=2)
    env.reset()
    obs, _ = env.reset([0])
    assert list(obs[0]) == ['arm']
    assert env.runner.current_tasks['2'].robots['arm'].config.name == 'arm_0'


# --- life of an Env --------------------------------------------------------------------------------------------------


def test_is_running_until_nothing_is_left(make_env):
    env = make_env(tasks=3, env_num=2)
    assert env.simulation_app.is_running() and not env.finished()
    env.reset()
    run_to_end(env)
    assert env.simulation_app.is_running()  # both ended, one episode waits
    env.reset([0])
    assert env.simulation_app.is_running()
    run_to_end(env)
    assert not env.simulation_app.is_running() and env.finished()
    assert row(env.step([None] * 2), 0)[2] is True  # still there to be read
    assert env.reset() == ([None, None], [None, None])
    assert not env.simulation_app.is_running()


def test_the_usual_loop_runs_every_episode_once(make_env, make_task):
    env = make_env(tasks=[make_task(index=k, max_steps=2 + k % 3) for k in range(7)], env_num=3)
    _, info = env.reset()
    ran, steps = indices(info), 0
    while env.simulation_app.is_running():
        _, _, terminated, truncated, _ = env.step([{}] * 3)
        steps += 1
        ended = [i for i in range(3) if terminated[i] or truncated[i]]
        if ended:
            ran += indices(env.reset(ended)[1])
    assert sorted(i for i in ran if i is not None) == list(range(7))
    assert steps < 20


def test_close_twice_and_calls_afterwards(make_env):
    env = make_env(tasks=3, env_num=2)
    env.reset()
    app = env.simulation_app
    env.close()
    env.close()
    app.close()
    assert app.is_running() is False
    calls = {
        'reset': lambda: env.reset(),
        'step': lambda: env.step([None, None]),
        'get_observations': lambda: env.get_observations(),
        'warm_up': lambda: env.warm_up(1),
        'get_dt': lambda: env.get_dt(),
        'finished': lambda: env.finished(),
    }
    for name, call in calls.items():
        with pytest.raises(RuntimeError, match=f'{name}.*closed'):
            call()


def test_closing_through_the_simulation_app(make_env):
    env = make_env(tasks=2, env_num=2)
    env.simulation_app.close()
    with pytest.raises(RuntimeError, match='closed'):
        env.reset()


def test_get_observations_and_active_task_configs(make_env):
    env = make_env(tasks=3, env_num=2)
    assert env.get_observations() == [None, None] and env.active_task_configs == {}
    env.reset([1])
    obs = env.step([None, {'arm': {'drive': [0.4, 0.4]}}])[0]
    now = env.get_observations()
    assert now[0] is None
    assert (now[1]['arm']['joint_positions'] == obs[1]['arm']['joint_positions']).all()
    assert {i: c.index for i, c in env.active_task_configs.items()} == {1: 0}
    assert env.is_render is None and env.env_num == 2


def test_warm_up_lets_time_pass_without_counting(make_env, make_task):
    env = make_env(tasks=[make_task('floor', robots=[], max_steps=3)], env_num=1)
    env.reset()
    env.warm_up(4)
    assert env.runner.world.times[0] == pytest.approx(4 / 200)
    env.warm_up(4, physics=False)
    assert env.runner.world.times[0] == pytest.approx(4 / 200)
    assert [env.step([{}])[4][0]['step'] for _ in range(3)] == [1, 2, 3]
    for arguments in ({'steps': 0}, {'steps': -1}, {'render': False, 'physics': False}):
        with pytest.raises(ValueError, match='warm_up'):
            env.warm_up(**arguments)


def test_two_envs_in_one_process_do_not_meet(make_env, make_task, make_robot):
    one, two = (make_env(tasks=[make_task(robots=[make_robot(position=(x, 0, 0))])], env_num=1) for x in (1.0, 2.0))
    one.reset()
    two.reset()
    for env, x, target in ((one, 1.0, 0.4), (two, 2.0, -0.4), (one, 1.0, 0.4)):
        obs = env.step([{'arm': {'drive': [target, 0.0]}}])[0][0]['arm']
        assert obs['position'][0] == x and np.sign(obs['joint_positions'][0]) == np.sign(target)
    one.close()
    assert two.step([None])[0][0]['arm']['position'][0] == 2.0
