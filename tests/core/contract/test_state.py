"""States of envs: saved, and set again."""

from __future__ import annotations

import copy
import dataclasses
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, ControllerCfg, MetricCfg, RewardCfg, TaskCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.vec_env import Env

STEPS = 20
SIM = {'substeps': 2, 'rendering_interval': 0}  # a frame at each step: only restoring all envs restores the schedule


@BaseController.register('RampedDrive')
class RampedDrive(BaseController):
    """Position targets that are followed step by step: what it commands depends on what it commanded before."""

    batched = True

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.targets = self.state((self.robot.articulation.num_dof,))

    def parse_action(self, action: Any) -> np.ndarray:
        return box_action(action, (self.robot.articulation.num_dof,))

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        action = self.parsed(action, env_ids)
        self.targets[env_ids] = 0.9 * self.targets[env_ids] + 0.1 * action
        return ArticulationAction(joint_positions=self.targets[env_ids])

    def get_obs(self) -> dict[str, Any]:
        return {'targets': self.targets}


@BaseController.register('DitheredPush')
class DitheredPush(BaseController):
    """Efforts with noise of its own; one object per env."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.rng = np.random.default_rng(0)
        self.pushes: list[float] = []

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        push = box_action(action, (self.robot.articulation.num_dof,)) + self.rng.normal()
        self.pushes.append(float(push[0]))
        return ArticulationAction(joint_efforts=push)

    def get_obs(self) -> dict[str, Any]:
        return {'count': len(self.pushes), 'sum': sum(self.pushes)}


@BaseRobot.register('PerEnvToyRobot')
class PerEnvToyRobot(BaseRobot):
    """One object per env."""


CONTROLLERS = [ControllerCfg(name='ramp', type='RampedDrive'), ControllerCfg(name='push', type='DitheredPush')]


@pytest.fixture
def config(make_robot: Any, make_task: Any, make_config: Any) -> Callable[..., Config]:
    """Makes a run in which much goes on: hoppers on two kinds of floor, noise, contacts, metrics and rewards."""
    hopper = make_robot('hopper', position=(0.0, 0.0, 0.32), controllers=CONTROLLERS)
    common: dict[str, Any] = {
        'robots': [hopper],
        'metrics': [MetricCfg(type='ToyMetric', metric_config={})],
        'reward': RewardCfg(reward_type='ToyReward'),
        'max_steps': 500,
    }
    tasks = [make_task(scene=scene, **common) for scene in ('floor', 'crates')]
    return lambda env_num=4, **fields: make_config(
        **{'tasks': tasks * (env_num // 2), 'env_num': env_num, 'seed': 5, 'sim': SIM, **fields}
    )


def actions(env: Env, step: int) -> list[Any]:
    """Commands that change with every step and env."""
    waves = 0.5 * np.sin(0.3 * step + np.arange(env.env_num))
    return [{'hopper': {'ramp': [wave, -wave], 'push': [wave, 0.1]}} for wave in waves]


def run(env: Env, first: int, steps: int = STEPS) -> list[Any]:
    """Results of some steps, and after them all that the physics of the envs depends on."""
    results = [copy.deepcopy(env.step(actions(env, k))) for k in range(first, first + steps)]
    return [*results, *(dict(env.get_state([i]).envs[0].physics.arrays) for i in env.active_task_configs)]


@pytest.mark.nightly
def test_going_on_from_a_saved_state(make_env: Any, config: Any, assert_same: Any) -> None:
    """The same observations, rewards and infos, and the same physics: bit for bit, as often as one likes."""
    env = make_env(config(sim={'substeps': 2}))
    env.reset()
    run(env, 0)
    state = env.get_state()
    expected = run(env, STEPS)
    for _ in range(2):
        env.set_state(state)
        assert_same(run(env, STEPS), expected)


def test_what_was_observed_is_observed_again(make_env: Any, config: Any, assert_same: Any) -> None:
    env = make_env(config())
    env.reset()
    run(env, 0, 5)
    state, before = env.get_state(), env.get_observations()
    metric = env.runner.current_tasks['0'].metrics['ToyMetric']
    run(env, 5, 3)
    env.set_state(state)
    assert_same(env.get_observations(), before)
    assert len(metric.seen) == 5 and env.step(actions(env, 5))[4][0]['step'] == 6


def test_other_envs_are_untouched(make_env: Any, config: Any, assert_same: Any) -> None:
    """Some envs go back in time, the others go on as if nothing had happened."""
    plain = make_env(config())
    plain.reset()
    run(plain, 0, 8)
    expected = [copy.deepcopy(plain.step(actions(plain, k))) for k in range(8, 12)]
    plain.close()
    env = make_env(config())
    env.reset()
    run(env, 0, 5)
    state = env.get_state([2, 1])
    assert state.env_ids == (2, 1) and len(state) == 2
    run(env, 5, 3)
    env.set_state(state)
    for k in range(8, 12):
        now = env.step(actions(env, k))
        for i in (0, 3):
            assert_same([values[i] for values in now], [values[i] for values in expected[k - 8]])
        assert [now[4][i]['step'] for i in (1, 2)] == [k - 2] * 2


def test_into_another_env_of_the_same_task(make_env: Any, config: Any, assert_same: Any) -> None:
    """A state may go to any env that runs the same task config, which then does what the first one did."""
    env = make_env(config())
    env.reset()
    run(env, 0, 7)
    state = env.get_state([0])
    env.set_state(state, [2])
    same = [{'hopper': {'ramp': [0.3, -0.1], 'push': [0.1, 0.2]}}] * 4
    obs: list[Any] = []
    for _ in range(5):
        obs, reward, _, _, info = env.step(same)
        assert_same(obs[2], obs[0])
        assert reward[2] == reward[0] and info[2]['step'] == info[0]['step']
        assert info[2]['task_name'] == '2', 'whose episode it is does not change'
        assert env.runner.envs[2].task.env_id == 2 and env.runner.envs[2].task.name == '2'
    assert not np.array_equal(obs[1]['hopper']['position'], obs[0]['hopper']['position'])


def test_changes_of_the_model_are_part_of_it(make_env: Any, config: Any, assert_same: Any) -> None:
    """Gains and masses of this env alone; also where the state is restored after a reset undid them."""
    env = make_env(config(episode_order='cycle'))
    env.reset()
    hopper = env.runner.current_tasks['1'].robots['hopper']
    hopper.articulation.set_gains(kps=[10.0, 20.0])
    hopper.articulation.body('leg').set_mass(0.7)
    run(env, 0, 5)
    state = env.get_state([1])
    expected = run(env, 5, 5)
    env.reset([0, 1])  # the same task again
    env.set_state(state)
    robot = env.runner.envs[1].task.robots['hopper']
    assert robot.articulation.get_gains()[0].tolist() == [10, 20]
    assert robot.articulation.body('leg').get_mass() == pytest.approx(0.7)
    again = run(env, 5, 5)
    for before, after in zip(expected[:5], again[:5], strict=True):
        assert_same(after[0][1], before[0][1])
    assert_same(again[6], expected[6])


def test_friction_is_part_of_it(make_env: Any, make_config: Any, make_task: Any, make_robot: Any) -> None:
    """A hopper on rough ground is so again after a reset made the ground what it was."""
    hopper = make_robot('hopper', position=(0.0, 0.0, 0.25))
    env = make_env(make_config(tasks=[make_task('floor', robots=[hopper], max_steps=99)], episode_order='cycle'))

    def slide() -> float:
        env.runner.envs[0].task.robots['hopper'].articulation.view.set_root_velocities(np.array([0]), [[2.0, 0.0, 0.0]])
        return [float(env.step([{}, None])[0][0]['hopper']['position'][0]) for _ in range(30)][-1]

    env.reset()
    usual = slide()
    env.reset([0])
    env.runner.envs[0].task.robots['hopper'].articulation.view.set_frictions(np.array([0]), [5.0])
    state = env.get_state([0])
    rough = slide()
    assert rough != usual
    env.reset([0])
    env.set_state(state)
    assert slide() == rough


def _continue(config: Config, data: bytes, out: Any) -> None:
    env = Env(config)
    env.reset()
    env.set_state(pickle.loads(data))
    out.put(run(env, STEPS, 5))
    env.close()


@pytest.mark.slow
def test_in_another_env_object_and_another_process(make_env: Any, config: Any, assert_same: Any) -> None:
    env = make_env(config())
    env.reset()
    run(env, 0)
    data = pickle.dumps(env.get_state())
    expected = run(env, STEPS, 5)
    env.close()
    other = make_env(config(sim={**SIM, 'threads': 2}))
    other.reset()
    other.set_state(pickle.loads(data))
    assert_same(run(other, STEPS, 5), expected)
    other.close()
    context = multiprocessing.get_context('fork')
    out = context.Queue()
    child = context.Process(target=_continue, args=(config(), data, out))
    child.start()
    assert_same(out.get(timeout=300), expected)
    child.join()


def test_an_episode_that_ended(make_env: Any, make_config: Any, make_task: Any, assert_same: Any) -> None:
    """Its last result is repeated; one that ended since goes on."""
    env = make_env(make_config(tasks=[make_task(max_steps=3)], env_num=1))
    env.reset()
    env.step([{}])
    running = env.get_state()
    last = [env.step([{}]) for _ in range(3)][-1]
    ended = env.get_state()
    assert last[2] == [True]
    env.set_state(running)
    assert [env.step([{}])[2][0] for _ in range(2)] == [False, True]
    env.set_state(running)
    env.set_state(ended)
    assert_same(env.step([{}]), last)


def test_a_state_at_the_start_of_an_episode(make_env: Any, config: Any, assert_same: Any) -> None:
    env = make_env(config())
    env.reset()
    state = env.get_state()
    expected = run(env, 0, 5)
    env.set_state(state)
    assert_same(run(env, 0, 5), expected)


def test_a_state_is_a_copy(make_env: Any, config: Any, assert_same: Any) -> None:
    env = make_env(config())
    env.reset()
    state = env.get_state()
    data = pickle.dumps(state)
    run(env, 0, 3)
    env.set_state(state)
    run(env, 0, 3)
    assert_same(vars(pickle.loads(data).envs[0].physics), vars(state.envs[0].physics))
    saved, kept = (each.envs[0].object_state["metric 'ToyMetric'"] for each in (pickle.loads(data), state))
    assert_same(saved, kept)


def test_robots_with_one_object_per_env(
    make_env: Any, make_config: Any, make_task: Any, make_robot: Any, assert_same: Any
) -> None:
    """A batched controller that serves one env only keeps its arrays: others may hold them, too."""
    robot = make_robot('hopper', type='PerEnvToyRobot', controllers=CONTROLLERS)
    env = make_env(make_config(tasks=[make_task(robots=[robot], max_steps=99)] * 2, sim=SIM))
    env.reset()
    run(env, 0, 3)
    state = env.get_state()
    expected = run(env, 3, 3)
    env.set_state(state)
    assert_same(run(env, 3, 3), expected)
    ramp = env.runner.envs[0].task.robots['hopper'].controllers['ramp']
    ramp.reset()
    assert not ramp.targets.any(), 'a reset still reaches them'


def change(config: Config, index: int, **fields: Any) -> Config:
    tasks = list(config.task_configs)
    tasks[index] = tasks[index].update(**fields)
    return config.update(task_configs=tasks)


def test_a_state_that_does_not_fit(make_env: Any, config: Any, tmp_path: Any, make_robot: Any) -> None:
    env = make_env(config())
    env.reset()
    run(env, 0, 3)
    state = env.get_state()

    def refuses(message: str, other: Env, *args: Any) -> None:
        before = [pickle.dumps(s.physics.arrays) for s in other.get_state().envs]
        with pytest.raises(ValueError, match=message):
            other.set_state(*args)
        assert [pickle.dumps(s.physics.arrays) for s in other.get_state().envs] == before

    refuses(
        'another task than the one that the state was taken from; they differ in scene_asset_path',
        env,
        state,
        [1, 0, 3, 2],
    )
    refuses('the state is that of 4 envs, but env_ids names 1', env, state, [0])
    refuses('env_ids: 9 is not an env id', env, state, [9, 1, 2, 3])
    refuses('env_ids: env 1 is listed twice', env, state, [1, 1, 2, 3])
    refuses('set_state takes what get_state returned, got dict', env, {})
    refuses('has version 99, this is version', env, dataclasses.replace(state, version=99))
    env.close()
    other = make_env(change(config(), 3, max_episode_steps=7))
    other.reset()
    refuses('env 3 runs another task .* they differ in max_episode_steps', other, state)
    other.close()
    faster = make_env(config(sim={**SIM, 'substeps': 3}))
    faster.reset()
    refuses('has steps of 0.015 s, the state is that of an env with steps of 0.01 s', faster, state)
    faster.close()
    fewer = make_env(config(env_num=2))
    fewer.reset()
    refuses('taken from env 2, here are 2 envs', fewer, state)


def test_envs_without_an_episode(make_env: Any, config: Any) -> None:
    env = make_env(config(env_num=2))
    assert env.get_state().env_ids == ()
    with pytest.raises(ValueError, match='get_state: env 1 has no episode; reset it first'):
        env.get_state([1])
    env.reset()
    state = env.get_state()
    env.reset([1])
    with pytest.raises(ValueError, match='set_state: env 1 has no episode'):
        env.set_state(state)
    assert env.get_state().env_ids == (0,)
    env.close()
    with pytest.raises(RuntimeError, match='closed'):
        env.get_state()


def test_another_model_under_the_same_name(make_env: Any, make_config: Any, make_task: Any, write_model: Any) -> None:
    """The file was changed between the two runs."""
    body = '<worldbody><geom type="plane" size="{} 9 1"/></worldbody>'
    task: TaskCfg = make_task(scene=write_model('ground', body.format(9)))
    states = []
    for size in (9, 8):
        write_model('ground', body.format(size))
        env = make_env(make_config(tasks=[task], env_num=1))
        env.reset()
        states.append(env.get_state())
        if size == 8:
            with pytest.raises(ValueError, match='env 0: its models are not those that the state was taken from'):
                env.set_state(states[0])
        env.close()
