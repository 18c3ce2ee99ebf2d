"""A package written for InternUtopia 2.x on Isaac Sim: its task, robot, sensor, controllers and metric at work."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pytest
from vln_client.evaluator import Evaluator

from internutopia.core.config import Config, SimConfig
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.core.config.robot import ControllerCfg
from internutopia.core.util import is_in_container
from internutopia.core.vec_env import Env
from internutopia.model.importers import LoadOptions
from internutopia.model.importers.load import load_spec
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.sensors import RepCameraCfg

pytest.importorskip('pxr')
FORWARD = {'h1': {'move_by_discrete': [1]}}
LEFT = {'h1': {'move_by_discrete': [2]}}
STOP = {'h1': {'stop': []}}
STEPS = 20  # of an action
WARM_UP = 3  # steps on the spot at first
SIZE = 8.0  # m, between envs


@pytest.fixture
def sensors(configs: ModuleType) -> list[Any]:
    """A panorama, the same class on a camera above, and a built-in camera that is configured as another one."""
    panorama = configs.PanoramaCfg(resolution=[32, 24])
    camera = RepCameraCfg(**panorama.model_dump())
    camera.type = 'ClientCamera'
    above = camera.update(name='topdown_camera_500', prim_path='topdown_camera_500', resolution=(40, 40))
    cloud = RepCameraCfg(
        name='tp_pointcloud', prim_path='logo_link/Camera_pointcloud', resolution=(16, 16), rgba=False, pointcloud=True
    )
    return [camera, above, cloud]


@pytest.fixture
def make_task(configs: ModuleType, robot_usd: str, sensors: list[Any]) -> Callable[..., Any]:
    """Makes a task config: an H1 that walks on a floor and may do so many actions."""
    walk = move_by_speed_cfg.model_dump()
    robot = H1RobotCfg(usd_path=robot_usd)
    robot.type = 'ClientH1'

    def make(actions: int = 2, x: float = 0.0, steps: int = STEPS, cameras: bool = True, **fields: Any) -> Any:
        discrete = configs.DiscreteCfg(steps_per_action=steps, forward_distance=0.1)
        controllers = [
            ControllerCfg(**{**configs.StandStillCfg().model_dump(), 'sub_controllers': [walk]}),
            ControllerCfg(**{**discrete.model_dump(), 'sub_controllers': [walk]}),
            ControllerCfg(**configs.FlashCfg().model_dump()),
        ]
        return configs.PathTaskCfg(
            **{
                'scene_asset_path': 'scenes/empty.xml',
                'robots': [
                    robot.update(position=(x, 0.0, 1.05), controllers=controllers, sensors=sensors if cameras else [])
                ],
                'max_step': actions,
                'check_fall_and_stuck': True,
                'robot_ankle_height': 0.0758,
                'fall_height_threshold': 0.5,
                'warm_up_step': WARM_UP,
                'metrics': [configs.PathMetricCfg(shortest_to_goal_distance=1.0, success_distance=0.5)],
                'data': {
                    'path_key': f'walk_{x}',
                    'instruction': {'instruction_text': 'go'},
                    'start_position': np.array([x, 0.0, 1.05]),
                    'reference_path': np.array([[x, 0.0, 0.0], [x + 0.2, 0.0, 0.0]]),
                },
                'env_num': 2,  # the settings of such a package all go along
                'use_distributed': False,
                **fields,
            }
        )

    return make


@pytest.fixture
def make_env(configs: ModuleType, clean_process: None) -> Iterator[Callable[..., Env]]:
    """Makes an Env; the client is registered after its Config was built."""
    envs: list[Env] = []

    def make(tasks: list[Any], version: str = '3.x', env_num: int = 2) -> Env:
        simulator = SimConfig(
            physics_dt=1 / 200, rendering_dt=1 / 200, rendering_interval=5, use_fabric=False, omni_compat=True
        )
        config = Config(
            simulator=simulator,
            env_num=env_num,
            env_offset_size=SIZE,
            task_configs=tasks,
            metrics_save_path='none',
            compat=version,  # type: ignore[arg-type]
        )
        importlib.import_module('vln_client').import_extensions()
        envs.append(Env(config))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


def evaluate(env: Env, action: dict[str, Any]) -> tuple[Any, dict[str, Any], list[list[Any]]]:
    """Run all episodes with one action: the evaluator, figures by path key, observations at actions' ends by env."""
    results: dict[str, Any] = {}
    seen: list[list[Any]] = [[] for _ in range(env.num_envs)]
    evaluator = Evaluator(
        env,
        act=lambda data: action,
        on_action=lambda env_id, action, obs: seen[env_id].append(obs),
        on_end=lambda env_id, data, figures: results.update({data['path_key']: figures}),
    )
    evaluator.run()
    return evaluator, results, seen


def task_of(env: Env, env_id: int) -> Any:
    return env.runner.current_tasks[env.runner.env_id_to_task_name_map[env_id]]


@pytest.mark.slow
@pytest.mark.parametrize('version', ['3.x', '2.x'])
def test_episodes_run_to_their_end_under_the_evaluator(make_env, make_task, opengl, version):
    env = make_env([make_task(1), make_task(5, x=1.0, steps=STEPS // 2), make_task(3, x=2.0)], version)
    evaluator, results, _ = evaluate(env, FORWARD)
    assert {name: result['steps'] for name, result in results.items()} == {
        'walk_0.0': WARM_UP + STEPS,
        'walk_1.0': WARM_UP + 5 * STEPS // 2,  # an action done twice while the other env does it once
        'walk_2.0': STEPS // 2 + 3 * STEPS,  # stands while the other env does one
    }
    for result in results.values():
        assert result['fail_reason'] == ''
        assert 0 < result['TL'] < 1
    # the second one waits, without another episode, for the last action of the other env
    assert evaluator.waited > STEPS // 2
    assert evaluator.resets == [[0], [1], [0]]


@pytest.mark.slow
def test_observations_of_the_task(make_env, make_task, opengl):
    env = make_env([make_task(2)] * 2)
    evaluator, _, seen = evaluate(env, LEFT)
    assert evaluator.resets == [[0, 1]]
    first = [robots[0] for robots in seen]
    for env_id, robot in enumerate(first):
        assert (robot['globalgps'].dtype, robot['globalgps'].shape) == (np.float64, (3,))
        assert robot['globalrotation'].dtype == np.float32
        assert abs(robot['globalgps'][1]) < 1  # not in the world: env 1 is 8 m away
        assert robot['rgb'].shape == (24, 32, 3) and robot['rgb'].dtype == np.uint8
        assert robot['rgb'].std() > 0
        assert robot['depth'].shape == (24, 32, 1) and 0 < robot['depth'].min() <= robot['depth'].max() <= 1
        assert robot['topdown_rgb'].shape == (40, 40, 3)
        np.testing.assert_allclose(robot['topdown_at'][:2], robot['globalgps'][:2], atol=0.05)
        np.testing.assert_allclose(robot['topdown_at'][2], robot['globalgps'][2] + 0.75, atol=0.05)
        assert env_id in (0, 1) and isinstance(robot['render'], bool)
    np.testing.assert_allclose(first[0]['depth'], first[1]['depth'], atol=1e-3)


@pytest.mark.parametrize(('version', 'updates'), [('3.x', 2), ('2.x', 1)])
def test_a_name_that_is_no_controller_reaches_the_robot_and_ends_the_episode(make_env, make_task, version, updates):
    env = make_env([make_task(cameras=False)] * 3, version)
    env.reset()
    obs, _, terminated, _, info = env.step([STOP, FORWARD])
    assert terminated == [True, False]
    assert obs[0]['h1']['finish_action'] and json.dumps(obs[0]['h1']['metrics'])
    # the task has updated its metric itself; the env does so after it, but in 2.x not at the end
    assert obs[0]['h1']['metrics']['path'][0]['steps'] == 1
    assert info[0]['metrics']['path'][0]['steps'] == updates
    again, _, still, _, _ = env.step([STOP, FORWARD])
    assert still[0] is True
    assert again[0]['h1']['metrics'] == obs[0]['h1']['metrics']
    assert env.reset([0])[1][0].data['path_key'] == 'walk_0.0'
    env.step([STOP, STOP])
    assert env.reset([0, 1])[1] == [None, None]
    terminated = env.step([STOP, FORWARD])[2]  # without an episode, actions do not matter
    assert terminated == [True if version == '2.x' else None] * 2


def test_flash_is_there_at_once(make_env, make_task):
    env = make_env([make_task(9, x=0.5, cameras=False)] * 2)
    env.reset()
    robot = task_of(env, 1).robots['h1']
    for action, offset, yaw in (([2], (0, 0), 15), ([1], (0.25 * np.cos(np.pi / 12), 0.25 * np.sin(np.pi / 12)), 15)):
        before = robot.articulation.get_world_pose()[0]
        obs, *_ = env.step([None, {'h1': {'move_by_flash': action}}])
        after, orientation = robot.articulation.get_world_pose()
        np.testing.assert_allclose((after - before)[:2], offset, atol=0.01)  # it may fall for one step
        assert np.degrees(2 * np.arctan2(orientation[3], orientation[0])) == pytest.approx(yaw, abs=1)
        assert obs[1]['h1']['finish_action'] is True
    np.testing.assert_allclose(robot.articulation.get_joint_positions(), 0, atol=0.05)


def test_a_fall_ends_the_episode_with_its_reason(make_env, make_task):
    env = make_env([make_task(9, cameras=False)] * 2)
    env.reset()
    lying = [np.cos(np.pi / 4), 0, np.sin(np.pi / 4), 0]
    task_of(env, 0).robots['h1'].articulation.set_world_pose([0, 0, 0.3], lying)
    obs, _, terminated, _, _ = env.step([FORWARD, FORWARD])
    assert terminated == [True, False]
    assert obs[0]['h1']['fail_reason'] == 'fall'
    assert json.loads(json.dumps(obs[0]['h1']['metrics']))['path'][0]['fail_reason'] == 'fall'


def test_what_the_task_and_the_robot_find_when_they_are_loaded(make_env, make_task):
    env = make_env([make_task(x=1.5, cameras=False)] * 2)
    env.reset()
    task = task_of(env, 1)
    assert (task.env_id, task.root_path, task.env_offset) == (1, '/World/env_1', [0.0, SIZE, 0.0])
    assert [type(value) for value in task.env_offset] == [float] * 3
    position, orientation = task.loaded_at['h1']
    np.testing.assert_allclose(position, [1.5, SIZE, 1.05], atol=1e-5)
    np.testing.assert_allclose(orientation, [1, 0, 0, 0], atol=1e-6)
    robot = task.robots['h1']
    assert robot.config.prim_path == '/World/env_1/robots/h1'
    assert robot._torso_link.name == '/World/env_1/robots/h1/torso_link'
    assert robot._imu_link.get_world_pose()[0][1] == pytest.approx(SIZE, abs=0.1)
    assert robot.get_ankle_height() < 0.3
    assert task.metrics['path'].task_config.data['start_position'].tolist() == [1.5, 0.0, 1.05]


@pytest.mark.parametrize(
    ('camera', 'ahead', 'up'),
    [
        ('torso_link/h1_pano_camera_0', [1, 0, 0], [0, 0, 1]),
        ('logo_link/Camera_pointcloud', [0.5**0.5, 0, -(0.5**0.5)], [0.5**0.5, 0, 0.5**0.5]),
        ('topdown_camera_500', [0, 0, -1], [0, 1, 0]),
    ],
)
def test_the_cameras_of_the_robot_have_their_directions(robot_usd, camera, ahead, up):
    """A camera of USD looks along -z, with +y up in the picture; the robot faces +x."""
    model = load_spec(Path(robot_usd), LoadOptions(short_names=True)).compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    name = next(name for i in range(model.ncam) if (name := model.camera(i).name).endswith(camera))
    _, upwards, backwards = data.camera(name).xmat.reshape(3, 3).T
    np.testing.assert_allclose((-backwards, upwards), (ahead, up), atol=1e-6)


def test_lights_of_the_task_are_on_the_stage(make_env, make_task):
    env = make_env([make_task(cameras=False)] * 3)
    env.reset()
    stage = sys.modules['omni.usd'].get_context().get_stage()
    lamp = stage.GetPrimAtPath('/World/env_1/up_disk_light')
    assert lamp.GetAttribute('xformOp:translate').Get() == (0, SIZE, -3)
    assert lamp.GetAttribute('inputs:radius').Get() == 50
    assert stage.GetPrimAtPath('/World/env_1/robots/h1/torso_link/h1_pano_camera_0').GetTypeName() == 'Camera'
    env.step([STOP, STOP])
    env.reset([1])  # the new task defines its lights anew
    assert stage.GetPrimAtPath('/World/env_1/up_disk_light').GetAttribute('inputs:radius').Get() == 50


def test_configs_survive_what_such_packages_do_to_them(make_task, configs):
    task = make_task(scene_asset_path=None)
    walk: Any = task.robots[0].controllers[1]
    assert (walk.steps_per_action, walk.rotation_angle) == (STEPS, 15)
    assert walk.sub_controllers[0].policy_weights_path == move_by_speed_cfg.policy_weights_path
    assert isinstance(walk.sub_controllers[0], ControllerCfg) and type(walk) is ControllerCfg
    for twin in (copy.deepcopy(task), pickle.loads(pickle.dumps(task)), task.update(max_step=2)):
        np.testing.assert_array_equal(twin.data['reference_path'], task.data['reference_path'])
        assert twin.data['reference_path'] is not task.data['reference_path']
        assert twin.env_num == 2 and twin.robots[0].type == 'ClientH1'
    task.type = 'AnotherTask'
    assert task.model_dump()['type'] == 'AnotherTask'
    moved = task.robots[0].update(position=[1, 2, 3], orientation=[0, 0, 0, 1])
    assert task.robots[0].position == (0.0, 0.0, 1.05)
    assert (moved.position, moved.orientation) == ((1, 2, 3), (0, 0, 0, 1))
    assert isinstance(is_in_container(), bool)


def test_a_run_of_the_client_can_be_distributed(make_task):
    keys = {'type': 'ray', 'proc_num': 2, 'gpu_num_per_proc': 0.5, 'head_address': None, 'working_dir': '.'}
    config = Config(simulator=SimConfig(), env_num=2, env_offset_size=100, task_configs=[make_task()])
    assert config.metrics_save_path == 'console'
    spread = config.distribute(RayDistributionCfg(**keys))
    task: Any = pickle.loads(pickle.dumps(spread)).task_configs[0]
    np.testing.assert_array_equal(task.data['start_position'], [0.0, 0.0, 1.05])


def test_settings_of_such_packages_are_tolerated_with_the_switch(monkeypatch, caplog):
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')
    settings: dict[str, Any] = {'headless': True, 'dataset': object(), 'rank': 0, 'world_size': 1}
    assert SimConfig(**settings).headless is True
    assert "has no field 'dataset'" in caplog.text
