"""Which actions `step` takes, and what it says about the others."""

from typing import Any

import numpy as np
import pytest

from internutopia.core.robot.robot import BaseRobot

DRIVE = {'arm': {'drive': [0.5, -0.3]}}


@BaseRobot.register('PerEnvArm')
class PerEnvArm(BaseRobot):
    """As the arm of the toys, one object per env."""

    drives = BaseRobot.robots['ToyRobot'].drives


@BaseRobot.register('RecordingArm')
class RecordingArm(PerEnvArm):
    """Keeps the action that it is given, in the way of InternUtopia 2.x's robots."""

    def __init__(self, config: Any, scene: Any):
        super().__init__(config, scene)
        self.received: list[Any] = []

    def apply_action(self, action: dict[str, Any]) -> None:
        self.received.append(action)
        super().apply_action(action)

    def get_obs(self) -> Any:
        obs = super().get_obs()
        obs['received'] = len(self.received)
        return obs


@pytest.fixture(params=['ToyRobot', 'PerEnvArm'])
def env(request, make_env, make_task, make_robot):
    """Three envs that have an arm each, of a batched class or of one object per env."""
    task = make_task(robots=[make_robot(type=request.param)])
    env = make_env(tasks=[task] * 3, env_num=3)
    env.reset()
    env.step([DRIVE] * 3)
    return env


def positions(obs: list) -> np.ndarray:
    return np.array([env_obs['arm']['joint_positions'] for env_obs in obs])


def refused(env: Any, actions: Any, error: type[Exception], *words: str) -> None:
    """`step` raises an error that has all these words in it, and nothing has moved."""
    before, step = positions(env.get_observations()), [e.step for e in env.runner.envs]
    time = env.runner.world.data(0).time
    with pytest.raises(error) as raised:
        env.step(actions)
    for word in words:
        assert word in str(raised.value)
    assert (positions(env.get_observations()) == before).all()
    assert [e.step for e in env.runner.envs] == step and env.runner.world.data(0).time == time


@pytest.mark.parametrize('actions', [None, {}, DRIVE, 'abc', 5, np.zeros((3, 2)), iter([{}, {}, {}])])
def test_an_action_that_is_no_list(env, actions):
    refused(env, actions, ValueError, 'list')


@pytest.mark.parametrize('count', [0, 2, 4])
def test_a_list_of_another_length(env, count):
    refused(env, [{}] * count, ValueError, 'expected 3', f'got {count}')


@pytest.mark.parametrize('action', [[], 'drive', 3, ('arm',), np.zeros(2)])
def test_an_entry_that_is_no_dict(env, action):
    refused(env, [DRIVE, {}, action], ValueError, 'env 2', 'robot name')


@pytest.mark.parametrize('action', [None, [0.5, 0.5], 'drive'])
def test_a_robot_action_that_is_no_dict(env, action):
    refused(env, [DRIVE, {'arm': action}, {}], ValueError, 'env 1', "'arm'", 'controller name')


def test_an_unknown_robot(env):
    refused(env, [DRIVE, {}, {'arms': {}}], KeyError, 'env 2', "'arms'", "did you mean 'arm'?")
    refused(env, [DRIVE, {'xyz': {}}, {}], KeyError, 'env 1', "'xyz'", "known: 'arm'")


def test_an_unknown_controller(env):
    refused(env, [{}, {'arm': {'drives': [0, 0]}}, {}], KeyError, 'env 1', "'arm'", "'drives'", "did you mean 'drive'?")
    refused(env, [{}, {}, {'arm': {'zzz': [0, 0]}}], KeyError, 'env 2', "'zzz'", "'push'")


@pytest.mark.parametrize('controller', ['drive', 'push'])
@pytest.mark.parametrize(
    'action',
    [[0.1], [0.1, 0.2, 0.3], [[0.1, 0.2]], [0.1, np.nan], [np.inf, 0.1], 'ab', None, {'a': 1}, [0.1, None], []],
)
def test_a_controller_action_that_it_cannot_take(env, controller, action):
    refused(
        env, [{}, {'arm': {controller: action}}, {}], ValueError, 'env 1', "robot 'arm'", f"'{controller}'", '2 numbers'
    )


def test_after_a_refused_list_no_env_has_been_commanded(make_env):
    env, twin = make_env(tasks=2), make_env(tasks=2)
    for each in (env, twin):
        each.reset()
    with pytest.raises(ValueError, match='env 1'):
        env.step([DRIVE, {'arm': {'drive': [0.5]}}])
    for _ in range(4):
        assert (positions(env.step([None] * 2)[0]) == positions(twin.step([None] * 2)[0])).all()


@pytest.mark.parametrize(
    'nonsense', [5, 'x', {'nobody': {}}, {'arm': 3}, {'arm': {'nothing': 1}}, {'arm': {'drive': []}}]
)
def test_actions_for_envs_that_do_not_run_are_not_looked_at(make_env, make_task, nonsense):
    env = make_env(tasks=[make_task(max_steps=1), make_task()], env_num=3)
    env.reset()
    env.step([{}, {}, nonsense])
    result = [env.step([nonsense, DRIVE, nonsense]) for _ in range(3)][-1]
    assert [o is None for o in result[0]] == [False, False, True]
    assert result[4][0]['step'] == 1 and result[4][1]['step'] == 4


@pytest.mark.parametrize('nothing', [{}, None, {'arm': {}}])
def test_without_a_new_command_targets_stay(env, nothing):
    env.step([DRIVE] * 3)
    ends = positions([env.step([nothing, DRIVE, nothing])[0] for _ in range(2)][-1])
    assert (ends[0] == ends[1]).all() and (ends[2] == ends[1]).all()


@pytest.mark.parametrize('kind', ['ToyRobot', 'PerEnvArm'])
def test_the_last_controller_of_an_action_wins(make_env, make_task, make_robot, kind):
    controllers = [{'name': name, 'type': 'ToyDrive'} for name in ('a', 'b')]
    task = make_task(robots=[make_robot(type=kind, controllers=controllers)])
    env = make_env(tasks=[task] * 4, env_num=4)
    env.reset()
    up, down = [0.5, 0.5], [-0.5, -0.5]
    sent = [{'a': up, 'b': down}, {'b': down, 'a': up}, {'b': up, 'a': down}, {'a': down, 'b': up}]
    moved = positions(env.step([{'arm': action} for action in sent])[0])
    assert (moved[0] == moved[2]).all() and (moved[1] == moved[3]).all()
    assert (moved[0] < 0).all() and (moved[1] > 0).all()


def test_controllers_of_an_action_add_up(env):
    first = {'arm': {'drive': [0.5, 0.0], 'push': [0.0, 20.0]}}
    other = {'arm': {'push': [0.0, 20.0], 'drive': [0.5, 0.0]}}
    obs = env.step([first, other, {'arm': {'drive': [0.5, 0.0]}}])[0]
    moved = positions(obs)
    assert (moved[0] == moved[1]).all()  # different targets: the order makes no difference
    assert moved[0][1] > moved[2][1]  # and both are in force


def test_a_robot_that_overrides_apply_action_gets_the_dict_as_it_is(make_env, make_task, make_robot):
    task = make_task(robots=[make_robot(type='RecordingArm')])
    env = make_env(tasks=[task] * 2, env_num=2)
    env.reset()
    actions: list[Any] = [{'arm': {'stop': [], 'drive': [0.5, 0.5]}}, {'arm': ['anything']}]
    with pytest.raises(AttributeError):  # its own code is given a list and hands it on
        env.step(actions)
    received = [task.robots['arm'].received for task in env.runner.current_tasks.values()]
    assert received == [[actions[0]['arm']], [actions[1]['arm']]]
    moved = positions(env.step([{'arm': {'stop': []}}, {}])[0])
    assert moved[0][0] > 0 and moved[1][0] == 0
    assert [o['arm']['received'] for o in env.get_observations()] == [2, 1]


def test_a_tuple_of_actions_will_do(env):
    assert len(env.step((DRIVE, None, {}))[0]) == 3


def test_what_was_sent_is_what_was_checked(env):
    """The caller may use its arrays again as soon as they were sent."""
    start, sent = env.get_state(), [np.array(DRIVE['arm']['drive']) for _ in range(3)]
    env.send([{'arm': {'drive': each}} for each in sent], [0, 1, 2])
    for each in sent:
        each[:] = np.nan
    ends = positions(env.recv(3)[0])
    env.set_state(start)
    assert (positions(env.step([DRIVE] * 3)[0]) == ends).all()
