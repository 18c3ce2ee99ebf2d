"""Failures of envs: a file is missing, a class raises, physics diverges."""

import json
from typing import Any

import numpy as np
import pytest

from internutopia.config import ControllerCfg, MetricCfg, ObjectCfg, RewardCfg, RobotCfg, SensorCfg
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.sensor.sensor import BaseSensor
from internutopia.core.task import BaseTask

DRIVE = {'arm': {'drive': [0.5, -0.3]}}
armed: set[str] = set()


def blow_up(stage: str) -> None:
    if stage in armed:
        raise RuntimeError(f'boom in {stage}')


@BaseTask.register('BombTask')
class BombTask(BaseTask.tasks['ToyTask']):  # type: ignore[misc]
    def __init__(self, config: Any, scene: Any):
        blow_up('task constructor')
        super().__init__(config, scene)

    def load(self) -> None:
        super().load()
        blow_up('load')

    def post_reset(self) -> None:
        super().post_reset()
        blow_up('post_reset')

    def get_observations(self) -> dict[str, Any]:
        blow_up('get_observations')
        return super().get_observations()


@BaseRobot.register('BombRobot')
class BombRobot(BaseRobot):
    batched = True
    drives = BaseRobot.robots['ToyRobot'].drives

    def __init__(self, config: Any, scene: Any):
        blow_up('robot constructor')
        super().__init__(config, scene)


@BaseController.register('BombController')
class BombController(BaseController):
    def __init__(self, config: Any, robot: Any, scene: Any):
        blow_up('controller constructor')
        super().__init__(config, robot, scene)

    def action_to_control(self, action: Any, env_ids: Any = ...) -> Any:
        raise NotImplementedError


@BaseSensor.register('BombSensor')
class BombSensor(BaseSensor):
    def post_reset(self) -> None:
        blow_up('sensor')

    def get_data(self) -> dict[str, Any]:
        return {}


@pytest.fixture(autouse=True)
def disarm():
    armed.clear()
    yield
    armed.clear()


def arms(obs: list) -> list[np.ndarray]:
    """All numbers of each arm's observation in one array."""
    return [
        np.concatenate([value for value in env_obs['arm'].values() if isinstance(value, np.ndarray)])
        for env_obs in obs
        if env_obs is not None
    ]


# --- while loading ---------------------------------------------------------------------------------------------------


def test_a_missing_file_leaves_everything_as_it_was(make_env, make_task, make_robot, models, tmp_path, assert_same):
    missing = make_task(robots=[make_robot(usd_path=str(tmp_path / 'arn.xml'))])
    tasks = [make_task(max_steps=99), make_task(max_steps=99), missing, make_task('floor', max_steps=99)]

    def start():
        env = make_env(tasks=tasks)
        env.reset()
        env.step([DRIVE] * 2)
        return env

    twin = start()
    expected = [arms(twin.step([DRIVE] * 2)[0]) for _ in range(5)]
    twin.close()
    env = start()
    with pytest.raises(FileNotFoundError, match='arn.xml') as raised:
        env.reset([1, 0])
    assert any('episode 2' in note and 'env 1' in note for note in raised.value.__notes__)
    assert_same([arms(env.step([DRIVE] * 2)[0]) for _ in range(5)], expected)
    with pytest.raises(FileNotFoundError):
        env.reset([0])
    (tmp_path / 'arn.xml').write_text(open(models['arm']).read())  # as soon as the file is there it goes on
    _, info = env.reset()
    assert info[0].robots[0].usd_path.endswith('arn.xml') and info[1].scene_asset_path == models['floor']


@pytest.mark.parametrize(
    'stage',
    [
        'task constructor',
        'load',
        'post_reset',
        'get_observations',
        'robot constructor',
        'controller constructor',
        'sensor',
    ],
)
def test_a_class_that_raises_while_its_env_starts(make_env, make_task, make_robot, assert_same, stage):
    robot = make_robot(
        type='BombRobot',
        controllers=[*make_robot().controllers, ControllerCfg(name='bomb', type='BombController')],
        sensors=[SensorCfg(name='bomb', type='BombSensor')],
    )
    tasks = [make_task(type='BombTask', index=i, max_steps=99, robots=[robot]) for i in range(6)]

    def run(bomb):
        env = make_env(tasks=tasks, env_num=3)
        env.reset()
        env.step([DRIVE] * 3)
        if bomb:
            armed.add(stage)
            with pytest.raises(RuntimeError, match=f'boom in {stage}'):
                env.reset([2, 0])
            armed.clear()
        results = [env.step([DRIVE] * 3) for _ in range(4)]
        seen: list[Any] = [(arms(result[0][1:2]), dict(result[4][1])) for result in results]
        assert [info.index for info in env.reset([0, 2])[1]] == [3, 4]
        seen.append(arms(env.step([DRIVE] * 3)[0]))
        assert [info.index for info in env.reset([1])[1]] == [5]
        env.close()
        return seen

    assert_same(run(True), run(False))


def test_a_task_that_fails_to_clean_up_loses_no_episode(make_env, make_task, monkeypatch):
    env = make_env(tasks=[make_task(index=i) for i in range(4)])
    env.reset()
    with monkeypatch.context() as patch:
        patch.setattr(env.runner.current_tasks['0'], 'cleanup', lambda: blow_up('cleanup'))
        armed.add('cleanup')
        with pytest.raises(RuntimeError, match='cleanup'):
            env.reset()
    assert [info.index for info in env.reset()[1]] == [2, 3]


def test_a_joint_that_the_model_lacks(make_env, make_task, make_robot, monkeypatch):
    monkeypatch.setattr(BaseRobot.robots['PassiveRobot'], 'home', {'elbo': 1.0})
    env = make_env(tasks=[make_task(robots=[make_robot(type='PassiveRobot')])], env_num=1)
    with pytest.raises(ValueError, match="'arm' has no joint 'elbo'; did you mean 'elbow'"):
        env.reset()


@pytest.mark.parametrize(
    ('fields', 'words'),
    [
        ({'type': 'ToyTasks'}, ("task type 'ToyTasks'", "'ToyTask'")),
        ({'metrics': [MetricCfg(type='ToyMetrik')]}, ("metric type 'ToyMetrik'", "'ToyMetric'")),
        ({'reward': RewardCfg(reward_type='ToyRewart')}, ("reward type 'ToyRewart'", "'ToyReward'")),
        ({'objects': [ObjectCfg(name='b', prim_path='/b', type='ToyBlok')]}, ("object type 'ToyBlok'", "'ToyBlock'")),
        ({'robots': [RobotCfg(name='r', prim_path='/r', type='ToyRobott')]}, ("robot type 'ToyRobott'", "'ToyRobot'")),
        (
            {'robots': [{'controllers': [ControllerCfg(name='c', type='ToyDriv')]}]},
            ("robot 'arm'", "controller 'c'", "controller type 'ToyDriv'", "'ToyDrive'"),
        ),
        (
            {
                'robots': [
                    {
                        'controllers': [
                            ControllerCfg(
                                name='c', type='ToyDrive', sub_controllers=[ControllerCfg(name='s', type='ToyPusch')]
                            )
                        ]
                    }
                ]
            },
            ("controller 'c'", "controller 's'", "controller type 'ToyPusch'", "'ToyPush'"),
        ),
        (
            {'robots': [{'sensors': [SensorCfg(name='s', type='BombSenser')]}]},
            ("robot 'arm'", "sensor 's'", "sensor type 'BombSenser'", "'BombSensor'"),
        ),
    ],
)
def test_a_type_that_nothing_implements_is_refused_when_the_env_is_built(
    make_env, make_task, make_robot, fields, words
):
    if fields.get('robots') and isinstance(fields['robots'][0], dict):
        fields = {'robots': [make_robot(**fields['robots'][0])]}
    robots = [make_robot(type=robot.type) for robot in fields.get('robots', [make_robot()])]
    good = make_task(robots=[robot.update(type='ToyRobot') for robot in robots])
    tasks = [make_task(**fields)] if robots[0].type != 'ToyRobot' else [good, make_task(**fields)]
    with pytest.raises(ValueError) as raised:
        make_env(tasks=tasks)
    for word in (f'task_configs[{len(tasks) - 1}]', *words):
        assert word in str(raised.value)


def test_a_sensor_that_is_switched_off_is_not_looked_for(make_env, make_task, make_robot):
    off = SensorCfg(name='s', type='NoSuchSensor', enable=False)
    env = make_env(tasks=[make_task(robots=[make_robot(sensors=[off])])], env_num=1)
    assert env.reset()[0][0]['arm']['sensors'] == {}


# --- while running ---------------------------------------------------------------------------------------------------


def diverge_by_state(env: Any) -> None:
    env.runner.current_tasks['1'].robots['arm'].articulation.set_joint_positions([1e12, 0.0])


def diverge_by_velocity(env: Any) -> None:
    env.runner.current_tasks['1'].robots['arm'].articulation.set_joint_velocities([1e12, 0.0])


def diverge_by_effort(env: Any) -> None:
    env.runner.current_tasks['1'].robots['arm'].articulation.set_joint_efforts([1e30, 0.0])


@pytest.mark.parametrize('diverge', [diverge_by_state, diverge_by_velocity, diverge_by_effort])
@pytest.mark.parametrize('threads', [1, 2])
def test_an_env_that_diverges_is_terminated_and_the_others_go_on(make_env, make_task, assert_same, diverge, threads):
    tasks = [make_task(max_steps=20, metrics=[{'type': 'ToyMetric'}]) for _ in range(4)]

    def run(diverges):
        """Observations of the others before env 1 starts again, and of all envs afterwards."""
        env = make_env(tasks=tasks, env_num=3, sim={'threads': threads})
        env.reset()
        last = arms(env.step([DRIVE] * 3)[0][1:2])
        if diverges:
            diverge(env)
        seen = []
        for step in range(4):
            obs, reward, terminated, truncated, info = env.step([DRIVE] * 3)
            seen.append(arms([obs[0], obs[2]]))
            assert terminated == [False, diverges, False] and 'error' not in info[0] and 'failed' not in info[0]
            assert truncated == [False] * 3
            if diverges:
                assert reward[1] == 0.0 and info[1]['failed'] and 'diverged' in info[1]['error']
                assert step or info[1]['metrics'] == {'ToyMetric': 1}
                np.testing.assert_equal(arms(obs[1:2]), last)
        env.reset([1])
        for _ in range(3):
            obs, _, terminated, _, _ = env.step([DRIVE] * 3)
            seen.append(arms(obs))
            assert terminated == [False] * 3
        env.close()
        return seen

    assert_same(run(True), run(False))


def test_an_error_of_the_engine_itself(make_env, monkeypatch):
    env = make_env(tasks=2)
    env.reset()
    batch, slot = env.runner.world.batch(1)
    from mujoco.batch import SimulationError

    def fail(*args: Any) -> None:
        raise SimulationError(np.array([slot]), 'out of memory')

    monkeypatch.setattr(batch, 'step', fail)
    monkeypatch.setattr(batch, 'error', lambda slot: 'out of memory')
    _, _, terminated, truncated, info = env.step([None] * 2)
    assert terminated == [False, True] and truncated == [False, False]
    assert info[1]['failed'] and 'out of memory' in info[1]['error']


def test_divergence_during_warm_up(make_env):
    env = make_env(tasks=2)
    env.reset()
    diverge_by_state(env)
    env.warm_up(3)
    _, _, terminated, truncated, info = env.step([None] * 2)
    assert (terminated, truncated) == ([False, True], [False, False])
    assert 'diverged' in info[1]['error'] and 'error' not in info[0]


def test_with_the_2x_switch_an_env_that_diverges_is_cut(make_env):
    env = make_env(tasks=2, compat='2.x')
    env.reset()
    diverge_by_state(env)
    _, _, terminated, truncated, info = env.step([{}] * 2)
    assert (terminated, truncated) == ([False, False], [False, True]) and 'diverged' in info[1]['error']


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_nothing_is_put_where_it_cannot_be(make_env, make_task, make_block, bad):
    """A state that no body can have is refused by what would put it there; the env goes on as its twin does."""

    def start():
        env = make_env(tasks=[make_task(objects=[make_block('block', mass=1.0)], max_steps=99)] * 2)
        env.reset()
        return env

    twin = start()
    wanted = [arms(twin.step([DRIVE] * 2)[0]) for _ in range(3)]
    twin.close()  # Isaac Sim has one stage
    env = start()
    arm = env.runner.current_tasks['1'].robots['arm'].articulation
    block = env.runner.get_obj('block', 1)
    wrong = [
        (arm.set_joint_positions, [bad, 0.0], 'joint positions'),
        (arm.set_joint_velocities, [0.0, bad], 'joint velocities'),
        (lambda value: arm.set_pose(orientation=value), [1.0, 0.0, bad, 0.0], 'orientation'),
        (lambda value: arm.set_pose(value), [0.0, 0.0, bad], 'position'),
        (lambda value: arm.set_gains(kps=value), bad, 'stiffness'),
        (block.set_pose, [bad, 0.0, 1.0], 'position'),
        (lambda value: block.set_pose(orientation=value), [bad, 0.0, 0.0, 0.0], 'orientation'),
        (block.set_linear_velocity, [0.0, bad, 0.0], 'linear velocity'),
        (block.set_angular_velocity, [0.0, 0.0, bad], 'angular velocity'),
    ]
    for setter, values, quantity in wrong:
        name = 'block' if setter in [row[0] for row in wrong[5:]] else 'arm'
        with pytest.raises(ValueError, match=f"^env 1: {quantity} of '{name}' must be finite, got .*(nan|inf)"):
            setter(values)
    with pytest.raises(ValueError, match="^env 1: orientation of 'block' is a quaternion of length zero"):
        block.set_pose(orientation=[0.0] * 4)
    for expected in wanted:
        np.testing.assert_equal(arms(env.step([DRIVE] * 2)[0]), expected)


@pytest.mark.parametrize('value', [float('nan'), np.array([1.0, 2.0]), None, float('inf')])
def test_a_reward_is_a_finite_number(make_env, make_task, monkeypatch, value):
    env = make_env(tasks=[make_task(reward={'reward_type': 'ToyReward'})] * 2)
    env.reset()
    monkeypatch.setattr(env.runner.current_tasks['1'].reward, 'calc', lambda: value)
    with pytest.raises(ValueError, match=r'reward ToyReward: calc\(\) must return a finite number, got') as raised:
        env.step([None] * 2)
    assert raised.value.__notes__ == ['in env 1, step 1 of episode 1']


def test_a_metric_that_is_not_finite_is_said(make_env, make_task, monkeypatch, caplog):
    task = make_task(metrics=[{'type': 'ToyMetric', 'name': 'share'}], max_steps=1)
    env = make_env(tasks=[task] * 2)
    env.reset()
    metric = env.runner.current_tasks['1'].metrics['share']
    monkeypatch.setattr(metric, 'calc', lambda: {'of': [1.0, np.float32('nan')]})
    info = env.step([None] * 2)[4]
    assert np.isnan(info[1]['metrics']['share']['of'][1])
    assert [each for each in caplog.messages if 'share' in each] == [
        "metric 'share' returned numbers that are not finite: results contain null instead"
    ]


def test_a_mistake_in_a_metric_says_where(make_env, make_task, monkeypatch):
    env = make_env(tasks=[make_task(metrics=[{'type': 'ToyMetric', 'name': 'share'}], max_steps=1)] * 2)
    env.reset()
    monkeypatch.setattr(env.runner.current_tasks['1'].metrics['share'], 'calc', lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        env.step([None] * 2)
    assert raised.value.__notes__ == ['in env 1, at the end of episode 1']


def test_a_mistake_in_user_code_says_where(make_env, monkeypatch):
    env = make_env(tasks=2)
    env.reset()
    task = env.runner.current_tasks['1']
    monkeypatch.setattr(task, 'is_done', lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised:
        env.step([None] * 2)
    assert raised.value.__notes__ == ['in env 1, step 1 of episode 1']


@pytest.mark.parametrize('fails', ['is_done', 'metric'])
def test_a_mistake_in_one_env_costs_no_result_of_others(make_env, make_task, monkeypatch, tmp_path, fails):
    tasks = [make_task(metrics=[{'type': 'ToyMetric', 'name': 'updates'}], max_steps=1)] * 3
    env = make_env(tasks=tasks, env_num=3, metrics_save_path=str(tmp_path / 'results.jsonl'))
    env.reset()
    task = env.runner.current_tasks['0']
    with monkeypatch.context() as patch:
        patch.setattr(*((task, 'is_done') if fails == 'is_done' else (task.metrics['updates'], 'calc')), lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            env.step([None] * 3)
    lines = [json.loads(line) for line in (tmp_path / 'results.jsonl').read_text().splitlines()]
    assert [(line['env_id'], line['steps'], line['metrics']) for line in lines] == [
        (1, 1, {'updates': 1}),
        (2, 1, {'updates': 1}),
    ]
    _, _, terminated, _, info = env.step([None] * 3)
    assert terminated[1:] == [True, True] and [each['step'] for each in info[1:]] == [1, 1]
