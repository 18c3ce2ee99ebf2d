"""Observations of the list API: dicts that are filled when they are read, whatever reads them, and stay as they are."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, SimConfig
from internutopia.core.observations import Observation, ObservedRows, OpenedObservation
from internutopia.core.task import BaseTask
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.tasks import SimpleInferenceTask

JETBOT = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg])
DRIVE = {'jetbot': {'move_by_speed': [0.5, 0.3]}}
EXPECTED = {'robot': {'pair': [4.0, 5.0], 'number': 2, 'parts': {}, 'scan': {'hits': [1.0, 1.0]}, 'render': True}}


def unread() -> Observation:
    """Return an observation of env 2 that nobody has read."""
    tree = {
        'pair': np.arange(6.0).reshape(3, 2),
        'number': np.arange(3),
        'parts': {},
        'scan': {'hits': [np.ones(size) for size in range(3)]},
    }
    return Observation.of_envs({'robot': ObservedRows(tree, np.array([0, 2]))}, [2], True)[0]


def plain(value: Any) -> Any:
    """Return a value with lists in place of arrays."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def collected(**values: Any) -> dict[str, Any]:
    """Return keyword arguments."""
    return values


def updated(observation: Observation) -> dict[str, Any]:
    """Return a dict that was updated with an observation."""
    values: dict[str, Any] = {}
    values.update(observation)
    return values


WHOLE: dict[str, Callable[[Observation], Any]] = {
    'call': lambda obs: collected(**obs),
    'comprehension': lambda obs: dict(obs.items()),
    'copy': copy.copy,
    'deepcopy': copy.deepcopy,
    'dict': dict,
    'items': lambda obs: {key: obs[key] for key in obs},
    'json': lambda obs: json.loads(json.dumps(obs, default=np.ndarray.tolist)),
    'json in a list': lambda obs: json.loads(json.dumps([obs], default=np.ndarray.tolist, sort_keys=True))[0],
    'json with indent': lambda obs: json.loads(json.dumps(obs, default=np.ndarray.tolist, indent=1)),
    'method copy': lambda obs: obs.copy(),
    'or': lambda obs: obs | {},
    'pickle': lambda obs: pickle.loads(pickle.dumps(obs)),
    'pickle 0': lambda obs: pickle.loads(pickle.dumps(obs, 0)),
    'popitem': lambda obs: dict([obs.popitem()]),
    'reflected or': lambda obs: {} | obs,
    'unpacked': lambda obs: {**obs},
    'update': updated,
    'values': lambda obs: dict(zip(obs.keys(), obs.values(), strict=True)),
    'zip': lambda obs: dict(zip(obs, obs.values(), strict=True)),
}


@pytest.mark.parametrize('way', WHOLE)
def test_an_observation_is_whole_however_it_is_read(way: str) -> None:
    assert plain(WHOLE[way](unread())) == EXPECTED


def test_single_accesses_of_an_unread_observation() -> None:
    assert isinstance(unread(), dict)
    assert len(unread()) == 1 and list(unread()) == list(reversed(unread())) == ['robot']
    assert 'robot' in unread() and 'other' not in unread() and unread()
    assert plain(unread()['robot']) == plain(unread().get('robot')) == plain(unread().pop('robot')) == EXPECTED['robot']
    assert f'{unread()}' == repr(unread()) == repr(dict(unread()))
    assert unread().setdefault('robot', {})['number'] == 2 and unread().get('other') is None
    with pytest.raises(KeyError, match='other'):
        unread()['other']
    match unread():
        case {'robot': robot}:
            assert plain(robot) == EXPECTED['robot']


def test_an_unread_observation_equals_dicts_and_takes_changes() -> None:
    def unread_number(env_id: int) -> Observation:
        rows = {'robot': ObservedRows({'number': np.arange(3)}, np.arange(3))}
        return Observation.of_envs(rows, [env_id], False)[0]

    same = {'robot': {'number': 1, 'render': False}}
    assert unread_number(1) == same and same == unread_number(1)
    assert unread_number(1) == unread_number(1) != unread_number(2)
    read = unread_number(1)
    assert read['robot'] and read == unread_number(1) == read
    changed = unread_number(1)
    changed['extra'] = 1
    changed |= {'more': 2}
    assert changed == {**same, 'extra': 1, 'more': 2}
    del changed['robot']
    changed.update(last=3)
    assert changed == {'extra': 1, 'more': 2, 'last': 3}
    emptied = unread_number(1)
    emptied.clear()
    assert emptied == {} and not emptied


def test_copies_are_plain_dicts_and_share_nothing_where_they_should_not() -> None:
    observation = unread()
    deep, pickled = copy.deepcopy(observation), pickle.loads(pickle.dumps(observation))
    assert type(deep) is type(pickled) is type(copy.copy(observation)) is dict
    deep['robot']['pair'][:] = -1.0
    assert plain(observation) == EXPECTED
    assert type(observation) is OpenedObservation


@pytest.fixture
def env(request: pytest.FixtureRequest) -> Iterator[Env]:
    import_extensions()
    task = SingleInferenceTaskCfg(robots=[JETBOT], max_episode_steps=3, **getattr(request, 'param', {}))
    config = Config(
        simulator=SimConfig(physics_dt=1 / 60), env_num=3, metrics_save_path='none', task_configs=[task] * 4
    )
    made = Env(config)
    yield made
    made.close()


def test_what_is_kept_unread_shows_the_step_that_it_is_of(env: Env) -> None:
    """Two runs of the same actions: one reads at once, one after later steps, the end, a reset and the close."""
    first, _ = env.reset()
    twin = Env(env.config)
    read = [copy.deepcopy(twin.reset()[0])]
    kept = [first]
    for _ in range(4):
        kept.append(env.step([DRIVE] * 3)[0])
        read.append(copy.deepcopy(twin.step([DRIVE] * 3)[0]))
    assert type(kept[1][0]) is Observation
    started, _ = env.reset([1, 0])
    assert started[1] is None  # the queue had one more episode
    env.close()
    twin.close()
    for mine, its in zip(kept, read, strict=True):
        for each, other in zip(mine, its, strict=True):
            np.testing.assert_equal(dict(each), other)
    assert kept[1][0]['jetbot']['position'][0] < kept[3][0]['jetbot']['position'][0]
    np.testing.assert_equal(dict(kept[3][2]), dict(kept[4][2]))  # ended: its last one again
    assert kept[3][2]['jetbot'] is not kept[4][2]['jetbot']


def test_writing_into_an_observation_changes_no_other(env: Env) -> None:
    env.reset()
    obs = env.step([DRIVE] * 3)[0]
    again = env.get_observations()
    obs[0]['jetbot']['position'][:] = 7.0
    assert (again[0]['jetbot']['position'] < 1.0).all() and (obs[1]['jetbot']['position'] < 1.0).all()
    assert (env.get_observations()[0]['jetbot']['position'] < 1.0).all()
    assert obs[0]['jetbot']['position'].dtype == np.float32


@BaseTask.register('ObservingTask')
class ObservingTask(SimpleInferenceTask):
    """Task that observes env by env."""

    def get_observations(self) -> dict[str, Any]:
        return dict(super().get_observations())


@pytest.mark.parametrize('env', [{}, {'type': 'ObservingTask'}], indirect=True)
@pytest.mark.parametrize('steps', [0, 1])
def test_what_a_user_does_to_an_observation_is_not_its_last_valid_one(env: Env, steps: int) -> None:
    obs, _ = env.reset()
    for _ in range(steps):
        obs = env.step([DRIVE] * 3)[0]
    before = copy.deepcopy(obs[1])
    before['jetbot'].pop('render')
    obs[1]['jetbot']['position'][:] = 7.0
    obs[1]['jetbot']['controllers'].clear()
    del obs[1]['jetbot']['orientation']
    obs[1]['more'] = 1
    env.set_state(env.get_state())
    robot = env.runner.slot(1).task.robots['jetbot']
    robot.articulation.set_joint_velocities(np.full(2, 1e12))
    obs, _, terminated, _, _ = env.step([DRIVE] * 3)
    assert terminated == [False, True, False]
    obs[1]['jetbot'].pop('render')
    np.testing.assert_equal(dict(obs[1]), before)


def test_own_hooks_are_called_once_per_step_as_the_task_defines_them() -> None:
    import_extensions()
    calls: list[tuple[str, int]] = []

    @BaseTask.register('CountingTask')
    class CountingTask(SimpleInferenceTask):
        def get_observations(self) -> dict[str, Any]:
            calls.append(('observe', self.env_id))
            return {**super().get_observations(), 'extra': {'env': self.env_id}}

        def is_done(self) -> bool:
            calls.append(('done', self.env_id))
            return len(calls) > 8

    task = SingleInferenceTaskCfg(type='CountingTask', robots=[JETBOT])
    env = Env(Config(env_num=2, metrics_save_path='none', task_configs=[task] * 2))
    env.reset()
    calls.clear()
    env.step([DRIVE] * 2)
    assert calls == [('observe', 0), ('done', 0), ('observe', 1), ('done', 1)]
    obs, _, terminated, _, _ = env.step([None] * 2)
    assert obs[1]['extra'] == {'env': 1, 'render': False} and terminated == [False, False]
    assert env.step([{}] * 2)[2] == [True, True]
    env.close()


@pytest.mark.parametrize(
    ('actions', 'message'),
    [
        ([DRIVE, {'jetbot': {'move_by_speed': [0.1]}}, DRIVE], "env 1, robot 'jetbot', controller 'move_by_speed'"),
        ([DRIVE, DRIVE, {'jetbot': {'move_by_speed': [np.nan, 0.0]}}], 'env 2, .*not finite'),
        ([DRIVE, {'jetbo': {}}, DRIVE], "env 1 has no robot 'jetbo'"),
        ([{'jetbot': {'move': [0.1]}}] * 3, "env 0: robot 'jetbot' has no controller 'move'"),
        ([DRIVE, DRIVE, 7], 'env 2: expected'),
        ([DRIVE, {'jetbot': 5}, DRIVE], "env 1, robot 'jetbot': expected"),
    ],
)
def test_actions_of_one_form_and_of_many_name_the_env_at_fault(env: Env, actions: list[Any], message: str) -> None:
    before, _ = env.reset()
    with pytest.raises((ValueError, KeyError), match=message):
        env.step(actions)
    for each, now in zip(before, env.get_observations(), strict=True):
        np.testing.assert_equal(now['jetbot']['position'], each['jetbot']['position'])
