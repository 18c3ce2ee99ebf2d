"""`Config.compat='2.x'`: each thing it changes, side by side with the run without it, and that nothing else changes."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.config.learning import LearningCfg
from internutopia.core import gym_env
from internutopia.core.config import Config, ControllerCfg, MetricCfg, RewardCfg, SimConfig
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.objects import UsdObjCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg

import_extensions()

FINISHED = (None, -1.0, True, False, None)
DRIVE = {'arm': {'drive': [0.3, 0.2]}}


@BaseRobot.register('DictArm')
class DictArm(BaseRobot):
    """Takes its dict as it is."""

    fixed_base = True

    def apply_action(self, action: dict[str, Any]) -> None:
        self.got = action


@pytest.fixture
def old(make_env: Callable[..., Env]) -> Callable[..., Env]:
    """Makes an Env with the behaviour of 2.x."""
    return lambda **fields: make_env(compat='2.x', **fields)


def row(result: Any, env_id: int) -> tuple[Any, ...]:
    """One env's part of what `step` returned."""
    return tuple(column[env_id] for column in result)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_finished_envs_say_that_they_terminated(old, make_env):
    env = old(tasks=1, env_num=3)
    assert row(env.step([None] * 3), 1) == FINISHED  # never had an episode
    env.reset()
    result = env.step([None] * 3)
    assert row(result, 1) == row(result, 2) == FINISHED and result[2] == [False, True, True]
    env.reset([0])  # the queue is exhausted
    assert env.step([None] * 3)[2] == [True] * 3
    assert env.get_observations() == [None] * 3
    without = make_env(tasks=1, env_num=3)
    without.reset()
    assert row(without.step([None] * 3), 1) == (None,) * 5


def test_a_loop_until_all_have_terminated_ends(old):
    env = old(tasks=5, env_num=2)
    env.reset()
    info: list[Any] = []
    for _ in range(15):
        _, _, terminated, _, _ = env.step([None] * 2)
        ended = [i for i, done in enumerate(terminated) if done]
        if ended:
            _, info = env.reset(ended)
        if all(terminated) and not any(info):
            break
    else:
        pytest.fail('the loop did not end')
    assert not env.simulation_app.is_running()


def test_no_reward_is_minus_one_and_a_reward_is_what_it_was(old, make_env, make_task):
    tasks = [make_task(max_steps=2), make_task(max_steps=2, reward=RewardCfg(reward_type='ToyReward'))]
    env, without = old(tasks=tasks), make_env(tasks=tasks)
    for each in (env, without):
        each.reset()
    rewards = [[each.step([None] * 2)[1] for _ in range(3)] for each in (env, without)]
    assert rewards[0] == [[-1.0, 1.0], [-1.0, 2.0], [-1.0, 0.0]]
    assert rewards[1] == [[0.0, 1.0], [0.0, 2.0], [0.0, 0.0]]


def test_send_and_recv_report_the_same(old):
    env = old(tasks=1)
    env.reset()
    env.send([None, None], [0, 1])
    *result, ids = env.recv(2)
    assert ids == [0, 1] and row(result, 1) == FINISHED and result[1][0] == -1.0


def test_unknown_names_are_ignored_with_one_warning_each(old, make_env, caplog):
    env, without = old(), make_env()
    for each in (env, without):
        each.reset()
    bad = {'arm': {'stop': [], 'drive': [0.3, 0.2]}, 'arm_1': {'drive': 'nonsense'}}
    for _ in range(3):
        assert row(env.step([bad, bad]), 0)[0]['arm']['joint_positions'].tolist() == (
            row(without.step([DRIVE, DRIVE]), 0)[0]['arm']['joint_positions'].tolist()
        )
    logged = warnings(caplog)
    assert len(logged) == 2
    assert "env 0 has no robot 'arm_1', its action is ignored; did you mean 'arm'?" in logged[0]
    assert "env 0, robot 'arm' has no controller 'stop', its action is ignored; known: 'drive', 'push'" in logged[1]
    with pytest.raises(KeyError):
        without.step([bad, bad])


def test_known_controllers_are_checked_as_ever(old):
    env = old()
    env.reset()
    before = env.get_observations()[0]['arm']['joint_positions']
    with pytest.raises(ValueError, match='expected 2 numbers'):
        env.step([{'arm': {'drive': [0.1]}}, None])
    with pytest.raises(ValueError, match='robot name'):
        env.step([3, None])
    assert (env.get_observations()[0]['arm']['joint_positions'] == before).all()


@pytest.mark.parametrize('compat', ['2.x', '3.x'])
def test_a_robot_that_overrides_apply_action_gets_its_dict_as_it_is(make_env, make_task, make_robot, compat, caplog):
    env = make_env(tasks=[make_task(robots=[make_robot(type='DictArm', controllers=[])])], env_num=1, compat=compat)
    env.reset()
    env.step([{'arm': {'stop': []}}])
    assert env.runner.current_tasks['0'].robots['arm'].got == {'stop': []}
    assert not warnings(caplog)


@pytest.mark.parametrize('bad', [7, -1, True, 1.0, '0', None])
def test_a_bad_env_id_gives_none_and_takes_no_episode(old, make_env, bad, caplog):
    env = old(tasks=4, env_num=3)
    obs, info = env.reset([2, bad, 0])
    assert [o is None for o in obs] == [False, True, False]
    assert [None if i is None else i.index for i in info] == [0, None, 1]
    assert list(env.active_task_configs) == [0, 2]
    assert env.reset([bad]) == ([None], [None])
    assert env.reset(env_ids=[1])[1][0].index == 2
    assert len(warnings(caplog)) == 1 and f'{bad!r} is not an env id' in warnings(caplog)[0]
    with pytest.raises(ValueError, match='not an env id'):
        make_env(tasks=4, env_num=3).reset([2, bad, 0])


def test_an_id_named_twice_is_reset_once(old):
    env = old(tasks=4, env_num=3)
    _, info = env.reset([1, 1, 0])
    assert [None if i is None else i.index for i in info] == [0, None, 1]


def test_what_is_no_list_of_ids_stays_an_error(old):
    with pytest.raises(ValueError, match='must be a list of env ids'):
        old().reset(3)


@pytest.mark.parametrize('limit', [{'max_steps': 3}, {'max_steps': 9, 'max_episode_steps': 3}])
def test_metrics_do_not_see_the_ending_step(old, make_env, make_task, limit):
    task = make_task(metrics=[MetricCfg(name='seen', type='ToyMetric')], **limit)
    counts = []
    for make in (old, make_env):
        env = make(tasks=[task], env_num=1)
        env.reset()
        counts.append([env.step([None])[4][0].get('metrics') for _ in range(4)])
    assert counts == [[None, None, {'seen': 2}, {'seen': 2}], [None, None, {'seen': 3}, {'seen': 3}]]


def test_the_environment_variable_switches_it_on(make_env, monkeypatch):
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')
    env = make_env(tasks=1)
    env.reset()
    assert row(env.step([None] * 2), 1) == FINISHED
    env = make_env(tasks=1, compat='3.x')
    env.reset()
    assert env.step([None] * 2)[2] == [False, None]


def run_to_the_end(env: Env) -> None:
    env.reset()
    while env.simulation_app.is_running():
        env.step([None] * env.num_envs)
        env.reset([i for i, held in enumerate(env.runner.envs) if held is not None and held.ended])
    env.close()


def metrics_of(*values: float) -> list[MetricCfg]:
    return [MetricCfg(name=f'm{i}', type='ToyMetric', metric_config={'value': each}) for i, each in enumerate(values)]


def test_results_are_metrics_alone_in_a_file_that_starts_empty(old, make_task, tmp_path):
    file = tmp_path / 'results.jsonl'
    file.write_text('of an earlier run\n{"torn')
    tasks = [make_task(max_steps=2, metrics=metrics_of(1.5, float('nan'))), make_task(max_steps=3, metrics=[])]
    env = old(tasks=tasks, env_num=1, metrics_save_path=file)
    assert file.read_bytes() == b''
    run_to_the_end(env)
    assert file.read_text() == '{"m0": 1.5, "m1": null}\n{}\n'
    run_to_the_end(old(tasks=tasks[:1], env_num=1, metrics_save_path=file))
    assert file.read_text() == '{"m0": 1.5, "m1": null}\n'


def test_results_on_the_console_are_metrics_alone(old, make_task, capsys):
    run_to_the_end(old(tasks=[make_task(max_steps=1, metrics=metrics_of(1.5))], env_num=1, metrics_save_path='console'))
    assert capsys.readouterr().out == '{\n    "m0": 1.5\n}\n'


def test_a_config_that_does_not_work_costs_no_results(old, make_task, tmp_path):
    file = tmp_path / 'results.jsonl'
    file.write_text('of an earlier run\n')
    with pytest.raises(ValueError, match='Unknown'):
        old(tasks=[make_task(type='Unknown')], metrics_save_path=file)
    assert file.read_text() == 'of an earlier run\n'


def test_a_file_that_another_run_writes_to_is_left_alone(old, make_env, make_task, tmp_path):
    file = tmp_path / 'results.jsonl'
    tasks = [make_task(max_steps=1)]
    first = make_env(tasks=tasks, env_num=1, metrics_save_path=file)
    with pytest.raises(BlockingIOError, match='another run writes to this file'):
        old(tasks=tasks, env_num=1, metrics_save_path=file)
    run_to_the_end(first)
    assert file.read_text().startswith('{"episode_id": 0')


def test_a_run_that_can_be_resumed_writes_what_it_writes_without_the_switch(old, make_task, tmp_path):
    file = tmp_path / 'results.jsonl'
    tasks = [make_task(max_steps=1, metrics=metrics_of(1.5))] * 2
    env = old(tasks=tasks, env_num=1, metrics_save_path=file, resume=True)
    env.reset()
    env.step([None])
    env.close()
    run_to_the_end(old(tasks=tasks, env_num=1, metrics_save_path=file, resume=True))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(line['episode_id'], line['metrics']) for line in lines] == [(0, {'m0': 1.5}), (1, {'m0': 1.5})]


def test_unknown_fields_of_sim_config_are_ignored_with_one_warning_each(make_task, monkeypatch, caplog):
    task = make_task()
    with pytest.raises(ValidationError, match="no field 'dataset'"):
        SimConfig(physics_dt=1 / 200, dataset='r2r')  # pyright: ignore[reportCallIssue]
    settings: Any = {'physics_dt': 1 / 200, 'dataset': 'r2r', 'headles': True}
    config = Config(simulator=settings, task_configs=[task], compat='2.x')
    assert config.simulator == SimConfig(physics_dt=1 / 200)
    assert len(warnings(caplog)) == 2 and "no field 'headles', it is ignored; did you mean 'headless'" in caplog.text
    with pytest.raises(ValidationError, match="no field 'dataset'"):
        Config(simulator=settings, task_configs=[task])
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')
    assert SimConfig(**settings) == SimConfig(physics_dt=1 / 200)
    with pytest.raises(ValidationError, match='physics_dt'):
        SimConfig(physics_dt=-1)
    with pytest.raises(ValidationError, match="no field 'env_nun'"):
        Config(env_nun=2, task_configs=[task])  # pyright: ignore[reportCallIssue]


def test_trajectories_ended_envs_and_info_are_those_without_the_switch(old, make_env):
    envs = [make(tasks=3, seed=0) for make in (old, make_env)]
    for env in envs:
        env.reset()
    for _ in range(7):  # episodes end after 5
        one, other = (env.step([DRIVE] * 2) for env in envs)
        for env_id in range(2):
            (obs, _, *rest), (other_obs, _, *other_rest) = row(one, env_id), row(other, env_id)
            assert rest == other_rest
            for key in ('joint_positions', 'joint_velocities', 'position', 'orientation'):
                assert (obs['arm'][key] == other_obs['arm'][key]).all()


# --- gym_env ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def make_gym(make_config: Callable[..., Config]) -> Callable[..., gym_env.Env]:
    return lambda **fields: gym_env.Env(make_config(env_num=1, **fields))


def test_a_gym_env_without_reward_gives_zero_and_ends_with_the_queue(make_gym):
    env = make_gym(tasks=1, compat='2.x')
    assert env.step({}) == ({}, 0.0, False, False, None)
    env.reset()
    results = [env.step({'drive': [0.3, 0.2], 'stop': []}) for _ in range(6)]
    assert [reward for _, reward, *_ in results] == [0.0] * 6
    assert [terminated for _, _, terminated, *_ in results] == [False] * 4 + [True] * 2
    assert env.reset() == (None, None)
    assert env.step({}) == FINISHED
    env.close()


def test_observations_of_a_gym_env_are_the_robots_own_in_every_episode(make_gym, make_task, make_robot):
    def task(name: str) -> Any:
        return make_task(robots=[make_robot(controllers=[ControllerCfg(name=name, type='ToyDrive')])])

    env = make_gym(tasks=[task('left'), task('right')], compat='2.x')
    seen = [list(env.reset()[0]['controllers']) for _ in range(2)]
    assert seen == [['left'], ['right']]
    obs, *_ = env.step({'right': [0.5, 0.0]})
    assert list(obs['controllers']) == ['right'] and obs['sensors'] == {} and obs['render'] is False
    assert np.shape(obs['position']) == (3,)
    env.close()


def test_a_gym_env_without_robots_observes_nothing(make_gym, make_task):
    env = make_gym(tasks=[make_task(robots=[])], compat='2.x')
    assert env.reset()[0] == {} and env.step({})[:2] == ({}, 0.0)
    env.close()


# --- scenes ----------------------------------------------------------------------------------------------------------

BLOCK = """#usda 1.0
(%s
upAxis = "Z"
defaultPrim = "block")
def Cube "block" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    double size = 200
}
"""
CENTIMETRES, METRES, SILENT = 'metersPerUnit = 0.01', 'metersPerUnit = 1', ''


@pytest.mark.parametrize(
    ('header', 'scale', 'top', 'top_of_2x'),
    [
        (CENTIMETRES, 1.0, 1.0, 1.0),
        (CENTIMETRES, 0.01, 0.01, 1.0),
        (CENTIMETRES, 0.03, 0.03, 3.0),
        (METRES, 1.0, 100.0, 100.0),
        (METRES, 0.01, 1.0, 1.0),
        (METRES, 0.03, 3.0, 3.0),
        (SILENT, 1.0, 1.0, 1.0),  # USD takes it for centimetres
        (SILENT, 0.01, 0.01, 1.0),
        (SILENT, 0.03, 0.03, 3.0),
    ],
)
def test_a_scale_other_than_one_is_of_raw_lengths(
    make_env, make_task, make_robot, tmp_path, header, scale, top, top_of_2x
):
    """A hopper falls onto a block of 200 units, whose top is half of that above the origin."""
    path = tmp_path / 'block.usda'
    path.write_text(BLOCK % header)
    for compat, expected in (('3.x', top), ('2.x', top_of_2x)):
        hopper = make_robot('hopper', type='PassiveRobot', position=(0.0, 0.0, expected + 0.4), controllers=[])
        task = make_task(str(path), scene_scale=(scale,) * 3, robots=[hopper])
        env = make_env(tasks=[task], env_num=1, sim={'substeps': 300}, compat=compat)
        env.reset()
        assert env.runner.world.model(0).geom('scene//block').size.tolist() == pytest.approx([expected] * 3)
        height = env.step([None])[0][0]['hopper']['position'][2]
        if expected >= 1:  # else it falls off
            assert expected < height < expected + 0.3


@pytest.mark.parametrize('scale', [1.0, 0.5])
def test_a_file_that_states_no_units_is_as_it_is_written(make_env, make_task, make_robot, tmp_path, scale):
    """A slab, as scene, robot and object: neither turned nor shrunk, as `Usd.Stage.CreateNew` leaves it."""
    slab = tmp_path / 'slab.usda'
    slab.write_text("""#usda 1.0
(defaultPrim = "slab")
def Cube "slab" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {
    double size = 2
    double3 xformOp:scale = (2, 3, 4)
    uniform token[] xformOpOrder = ["xformOp:scale"]
}
""")
    robot = make_robot(name='rock', usd_path=str(slab), controllers=[], scale=(scale,) * 3)
    thing = UsdObjCfg(name='thing', prim_path='/thing', usd_path=str(slab), position=(50, 0, 0), scale=(scale,) * 3)
    task = make_task(str(slab), scene_scale=(scale,) * 3, robots=[robot], objects=[thing])
    env = make_env(tasks=[task], env_num=1, compat='2.x')
    env.reset()
    model = env.runner.world.model(0)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for name in 'scene//slab', 'robots/rock//slab', 'objects/thing//slab':
        geom = model.geom(name).id
        half = np.abs(data.geom_xmat[geom].reshape(3, 3)) @ model.geom_size[geom]
        assert half.tolist() == pytest.approx([2 * scale, 3 * scale, 4 * scale])


def test_robots_and_objects_are_scaled_alike(make_env, make_task, make_robot, tmp_path):
    body = (BLOCK % CENTIMETRES).replace('["', '["PhysicsRigidBodyAPI", "')
    (tmp_path / 'block.usda').write_text(body)
    path = str(tmp_path / 'block.usda')
    robot = make_robot(name='rock', usd_path=path, controllers=[])
    thing = UsdObjCfg(name='thing', prim_path='/thing', usd_path=path, position=(9, 0, 0))
    sizes = {}
    for compat in ('3.x', '2.x'):
        for scale in (1.0, 0.02):
            scales = {'scale': (scale,) * 3}
            task = make_task(robots=[robot.update(**scales)], objects=[thing.update(**scales)])
            env = make_env(tasks=[task], env_num=1, compat=compat)
            env.reset()
            model = env.runner.world.model(0)
            sizes[compat, scale] = [
                float(model.geom(name).size[0]) for name in ('robots/rock//block', 'objects/thing//block')
            ]
    assert sizes == {
        ('3.x', 1.0): pytest.approx([1.0, 1.0]),
        ('3.x', 0.02): pytest.approx([0.02, 0.02]),
        ('2.x', 1.0): pytest.approx([1.0, 1.0]),
        ('2.x', 0.02): pytest.approx([2.0, 2.0]),
    }


def test_the_array_api_has_no_2x_behaviour(make_config, make_task, models, tmp_path, monkeypatch):
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')
    (tmp_path / 'block.usda').write_text(BLOCK % CENTIMETRES)
    joints = JointControllerCfg(name='joints', joint_names=['hip', 'tail'])
    hopper = GenericRobotCfg(name='hopper', usd_path=models['hopper'], position=(0, 0, 3), controllers=[joints])
    task = make_task(str(tmp_path / 'block.usda'), scene_scale=(0.02,) * 3, robots=[hopper], type='SingleInferenceTask')
    learning = {'action': {'controller': 'joints'}, 'observations': [{'term': 'joint_positions'}]}
    env = VectorEnv(make_config(tasks=[task], env_num=1), LearningCfg.model_validate(learning))
    env.reset()
    world: Any = env.core.runner.world
    assert world.model(0).geom('scene//block').size.tolist() == pytest.approx([0.02] * 3)
    env.close()
