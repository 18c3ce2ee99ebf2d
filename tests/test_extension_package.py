"""A package outside the project, driven through the list API; its classes per env and batched side by side."""

import importlib
import json
import logging
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, RewardCfg, SimConfig
from internutopia.macros import gm

STEPS = 60


@pytest.fixture(scope='module')
def lab() -> Any:
    """The configs of the extension, which has registered its classes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent / 'sample_extension'))
        importlib.import_module('rover_lab').import_extensions()
        yield importlib.import_module('rover_lab.configs')


def rover(lab: ModuleType, kind: str, name: str, **fields: Any) -> Any:
    """A rover that has both kinds of controller and both kinds of sensor, whatever kind it is itself."""
    return lab.RoverCfg(
        type=kind,
        name=name,
        prim_path=f'/{name}',
        controllers=[
            lab.RoverSpeedControllerCfg(name='single'),
            lab.RoverSpeedControllerCfg(name='batch', type='BatchRoverSpeedController'),
        ],
        sensors=[
            lab.DeckSensorCfg(name='deck'),
            lab.DeckSensorCfg(name='batch_deck', type='BatchDeckSensor'),
            lab.DeckSensorCfg(name='off', type='NoSuchSensor', enable=False),
        ],
        **fields,
    )


def config(lab: ModuleType, episodes: int = 6, env_num: int = 4, **fields: Any) -> Config:
    tasks = []
    for k in range(episodes):
        pose = {'position': (0.5 * k, 0.1 * k, 0.0), 'orientation': (1.0, 0.0, 0.0, 0.2 * k)}
        tasks.append(
            lab.RoverTaskCfg(
                robots=[rover(lab, 'Rover', 'one', **pose), rover(lab, 'BatchRover', 'many', **pose)],
                objects=[lab.BeaconCfg(name='beacon', prim_path='/beacon', position=(0.5 * k + 1, 0.1 * k, 0))],
                metrics=[lab.WayMetricCfg(robot_name='one'), lab.WayMetricCfg(robot_name='many', name='way of many')],
                reward=RewardCfg(reward_type='CloserReward', reward_settings={'weight': 2.0}),
                max_steps=STEPS,
            )
        )
    sim = SimConfig(physics_dt=1 / 100, threads=1)
    return Config(
        **{'simulator': sim, 'env_num': env_num, 'metrics_save_path': 'none', 'task_configs': tasks, **fields}
    )


def command(step: int, env_id: int) -> list[float]:
    return [0.5 + 0.1 * np.sin(step), 0.2 * env_id - 0.1, 0.3 * np.cos(0.1 * step)]


def numbers(tree: Any, path: str = '') -> dict[str, Any]:
    """All leaves of an observation by path."""
    if not isinstance(tree, dict):
        return {path: tree}
    return {key: leaf for name, branch in tree.items() for key, leaf in numbers(branch, f'{path}/{name}').items()}


def equal(one: dict[str, Any], many: dict[str, Any]) -> bool:
    """Whether two observations of a rover agree to the bit, kinds of numbers and arrays included."""
    first, second = numbers(one), numbers(many)
    assert first.keys() == second.keys()
    for key, value in first.items():
        other = second[key]
        assert type(value) is type(other), key
        if isinstance(value, np.ndarray):
            assert value.dtype == other.dtype and value.shape == other.shape, key
        assert np.array_equal(value, other), key
    return True


@pytest.mark.parametrize(
    'controllers', [('single', 'batch'), ('batch', 'single'), ('single', 'single'), ('batch', 'batch')]
)
def test_per_env_and_batched_classes_agree_to_the_bit(lab, make_env, controllers):
    env = make_env(config(lab))
    obs, _ = env.reset()
    reward, info, ended = [], [], set()
    for step in range(STEPS + 2):
        for env_obs in obs:
            one, many = env_obs['one'], env_obs['many']
            for robot_obs, name in zip((one, many), controllers, strict=True):
                robot_obs['controllers'] = robot_obs['controllers'][name]  # the one that was commanded
            assert equal(one, many)
            for robot_obs in (one, many):
                assert equal(robot_obs['sensors']['deck'], robot_obs['sensors']['batch_deck'])
        actions = [
            {'one': {controllers[0]: command(step, i)}, 'many': {controllers[1]: command(step, i)}} for i in range(4)
        ]
        obs, reward, terminated, _, info = env.step(actions)
        ended |= {i for i in range(4) if terminated[i]}
    assert ended == {0, 1, 2, 3}
    positions = [env_obs['one']['position'] for env_obs in obs]
    assert all(np.linalg.norm(p - [0.5 * k, 0.1 * k, 0.2]) > 0.2 for k, p in enumerate(positions))
    for i in range(4):
        metrics = info[i]['metrics']
        assert metrics['way']['way'] == metrics['way of many']['way'] > 0.2
        offset = env.runner.world.env_origins[i]
        assert metrics['way']['end'] == pytest.approx(positions[i] + offset, abs=1e-5)
    assert reward == [0.0] * 4


def test_observations_have_all_that_was_asked_for(lab, make_env):
    env = make_env(config(lab))
    obs = env.reset()[0][2]
    assert list(obs) == ['one', 'many']
    for name in ('one', 'many'):
        robot_obs = obs[name]
        assert set(robot_obs['controllers']) == {'single', 'batch'} and set(robot_obs['sensors']) == {
            'deck',
            'batch_deck',
        }
        assert robot_obs['position'] == pytest.approx([1.0, 0.2, 0.2])
        assert robot_obs['to_beacon'] == pytest.approx([1.0, 0.0], abs=1e-6)
        assert type(robot_obs['speed']) is float and type(robot_obs['controllers']['batch']['count']) is int
        assert robot_obs['sensors']['deck']['mast'].dtype == np.float32
    assert list(obs['one'])[:5] == ['position', 'orientation', 'joint_positions', 'joint_velocities', 'speed']


def test_reward_and_end_by_reaching_the_beacon(lab, make_env):
    env = make_env(config(lab, episodes=2, env_num=2))
    env.reset()
    go = {'one': {'single': [2.0, 0.0, 0.0]}, 'many': {'batch': [2.0, 0.0, 0.0]}}
    obs, reward, terminated, _, info = env.step([go, {}])
    while not terminated[0]:
        assert reward[0] == pytest.approx(-2.0 * np.linalg.norm(obs[0]['one']['to_beacon']))
        obs, reward, terminated, _, info = env.step([go, {}])
    assert terminated == [True, False] and info[0]['step'] < STEPS
    assert np.linalg.norm(obs[0]['one']['to_beacon']) < 0.05
    assert reward[1] == pytest.approx(-2.0)


def test_state_is_kept_per_env_and_cleared_by_a_reset(lab, make_env):
    env = make_env(config(lab))
    env.reset()
    act = {'one': {'single': [0, 0, 0], 'batch': [0, 0, 0]}, 'many': {'single': [0, 0, 0], 'batch': [0, 0, 0]}}

    def counts(obs: Any) -> set[int]:
        return {controller['count'] for robot in obs.values() for controller in robot['controllers'].values()}

    obs = [env.step([act, {}, act, act])[0] for _ in range(3)][-1]
    assert [counts(o) for o in obs] == [{3}, {0}, {3}, {3}]
    again = env.reset([2])[0]
    assert counts(again[0]) == {0}
    obs = env.step([act, act, act, {}])[0]
    assert [counts(o) for o in obs] == [{4}, {1}, {1}, {3}]


def test_what_a_class_hands_out_of_its_state_is_copied(lab, make_env):
    env = make_env(config(lab, env_num=2))
    env.reset()

    def last(obs: Any) -> list[np.ndarray]:
        return [c['last'] for robot in obs.values() for c in robot['controllers'].values()]

    both = {'single': [0.1, 0.2, 0.3], 'batch': [0.1, 0.2, 0.3]}
    first = last(env.step([{'one': both, 'many': both}] * 2)[0][0])
    assert [array.tolist() for array in first] == [pytest.approx([0.1, 0.2, 0.3])] * 4
    for array in first:
        array[:] = 9.0
    assert [array.tolist() for array in last(env.step([{}, {}])[0][0])] == [pytest.approx([0.1, 0.2, 0.3])] * 4
    assert all((array == 9.0).all() for array in first)


def test_an_override_sees_the_action_and_unknown_names_reach_it(lab, make_env, caplog):
    env = make_env(config(lab, env_num=2))
    env.reset()
    robot = env.runner.current_tasks['0'].robots['one']
    action = {'one': {'stop': [], 'single': [1.0, 0, 0]}}
    with caplog.at_level(logging.WARNING, 'internutopia'):
        env.step([action, {}])
    assert robot.current_action is action['one']
    assert 'unknown controller stop' in caplog.text
    assert robot.controllers['single'].count == 1
    with pytest.raises(KeyError, match="'stop'"):
        env.step([{'many': {'stop': []}}, {}])
    with pytest.raises(ValueError, match="env 1, robot 'many', controller 'batch': expected 3 numbers"):
        env.step([{}, {'many': {'batch': [1.0]}}])
    with pytest.raises(AssertionError, match='3 elements'):
        env.step([{}, {'one': {'single': [1.0]}}])


def test_handles_of_one_env_on_a_batched_robot(lab, make_env):
    env = make_env(config(lab, env_offset_size=10.0))
    env.reset()
    for env_id, task in enumerate(env.runner.current_tasks.values()):
        one, many = task.robots['one'], task.robots['many']
        for robot in (one, many):
            assert robot.get_pose()[0].shape == (3,)
            assert robot.articulation.get_world_pose()[0][:2] == pytest.approx(
                np.array([0.5, 0.1]) * env_id + task.env_offset[:2], abs=1e-5
            )
            assert robot.articulation.get_joint_positions().shape == (3,)
            assert f'/World/env_{env_id}/robots/{"one" if robot is one else "many"}/deck' in robot._rigid_body_map
        assert task.objects['beacon'].start == pytest.approx([0.5 * env_id + 1, 0.1 * env_id, 0])
        many.apply_action({'batch': [1.0, 0.0, 0.0]})
        one.apply_action({'single': [1.0, 0.0, 0.0]})
        env.step([{}] * 4)
        assert (one.articulation.get_joint_positions() == many.articulation.get_joint_positions()).all()
        assert one.articulation.get_joint_positions()[0] > 0


def test_a_run_that_went_through_json(lab, make_env, tmp_path):
    results = tmp_path / 'results.jsonl'
    original = config(lab, episodes=3, env_num=2, metrics_save_path=results)
    read = Config.model_validate_json(original.model_dump_json())
    assert read.model_dump() == original.model_dump() and type(read.task_configs[0]) is lab.RoverTaskCfg
    assert type((read.task_configs[0].robots[0].controllers or [])[0]) is lab.RoverSpeedControllerCfg
    env = make_env(read)
    env.reset()
    while env.simulation_app.is_running():
        terminated = env.step([{'one': {'batch': [0.1, 0, 0]}}] * 2)[2]
        ids = [i for i, done in enumerate(terminated) if done]
        if ids:
            env.reset(ids)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [line['episode_id'] for line in lines] == [0, 1, 2]
    assert all(line['metrics']['way']['steps'] == STEPS and line['task'] == 'RoverTask' for line in lines)


def test_a_per_env_subclass_of_a_built_in_robot(lab, make_env):
    jetbot = importlib.import_module('internutopia_extension.configs.robots.jetbot')
    scene = gm.ASSET_PATH + '/scenes/empty.usd'
    results = {}
    for kind in ('JetbotRobot', 'LabJetbot'):
        robot = jetbot.JetbotRobotCfg(type=kind, controllers=[jetbot.move_by_speed_cfg, jetbot.move_to_point_cfg])
        task = lab.RoverTaskCfg(type='ToyTask', robots=[robot], scene_asset_path=scene, max_steps=999)
        env = make_env(
            Config(
                simulator=SimConfig(physics_dt=1 / 200), env_num=3, metrics_save_path='none', task_configs=[task] * 3
            )
        )
        env.reset()
        for step in range(40):
            go = {'move_by_speed': [0.3, 0.5]} if step < 20 else {'move_to_point': [(1.0, 1.0, 0.0)]}
            results[kind] = env.step([{'jetbot': go}] * 3)[0][1]['jetbot']
        if kind == 'LabJetbot':
            inside = env.runner.current_tasks['1'].robots['jetbot']
            assert inside.current_action == {'move_to_point': [(1.0, 1.0, 0.0)]}
    world = results['LabJetbot'].pop('world_position')
    assert world == pytest.approx(results['LabJetbot']['position'] + [0, 5, 0])
    assert equal(results['LabJetbot'], results['JetbotRobot'])
    assert results['JetbotRobot']['position'][0] > 0.01
