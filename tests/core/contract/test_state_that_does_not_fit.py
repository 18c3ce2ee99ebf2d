"""States that do not fit, or that a class of an extension fails to load: no env has changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.config import ControllerCfg, MetricCfg, TaskCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.runner.state import EnvState, SceneState
from internutopia.core.task import BaseMetric
from internutopia.core.vec_env import Env

RAMP = "robot 'hopper' (all envs), controller 'ramp'"
PUSH = "robot 'hopper', controller 'push'"
METRIC = "metric 'Fussy'"


@BaseController.register('CountedRamp')
class CountedRamp(BaseController):
    """Batched: targets that grow, and how often they did."""

    batched = True

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.targets = self.state((self.robot.articulation.num_dof,))
        self.counts = self.state((), 0, np.int64)

    def parse_action(self, action: Any) -> np.ndarray:
        return np.asarray(action, np.float32)

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        self.targets[env_ids] += 0.01 * self.parsed(action, env_ids)
        self.counts[env_ids] += 1
        return ArticulationAction(joint_positions=self.targets[env_ids])


@BaseController.register('KeptPush')
class KeptPush(BaseController):
    """For one env: the last effort."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.effort = self.state((self.robot.articulation.num_dof,))

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        self.effort[...] = action
        return ArticulationAction(joint_efforts=self.effort)


@BaseMetric.register('Fussy')
class Fussy(BaseMetric):
    """Counts steps, and loads its state in its own way; what it ends with for a number below zero is `failure`."""

    failure: BaseException = RuntimeError()

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.seen = [0]

    def update(self, obs: dict[str, Any]) -> None:
        self.seen[0] += 1

    def calc(self) -> int:
        return self.seen[0]

    def save_state(self, env_ids: Any = ...) -> Any:
        return self.seen[0]

    def load_state(self, state: Any, env_ids: Any = ...) -> None:
        self.seen[0] = -1  # half-way
        if state < 0:
            raise self.failure
        self.seen[0] = state

    def check_state(self, state: Any, env_ids: Any = ...) -> None:
        if isinstance(state, str):
            raise ValueError(f'{state!r} is not a number of steps')


@pytest.fixture
def env(make_env: Callable[..., Env], make_robot: Any, make_task: Callable[..., TaskCfg]) -> Env:
    controllers = [ControllerCfg(name='ramp', type='CountedRamp'), ControllerCfg(name='push', type='KeptPush')]
    hopper = make_robot('hopper', position=(0.0, 0.0, 0.32), controllers=controllers)
    fussy = MetricCfg(type='Fussy', metric_config={})
    env = make_env(tasks=[make_task('floor', robots=[hopper], metrics=[fussy], max_steps=99)] * 2)
    env.reset()
    return env


def drive(env: Env, steps: int) -> None:
    for k in range(steps):
        env.step([{'hopper': {'ramp': [0.1 * k, i], 'push': [0.01, 0.0]}} for i in range(2)])


def with_second(state: SceneState, **fields: Any) -> SceneState:
    """A state with other fields of its second env."""
    return dataclasses.replace(state, envs=(state.envs[0], dataclasses.replace(state.envs[1], **fields)))


def with_object(name: str, change: Callable[[Any], Any]) -> Callable[[EnvState], dict[str, Any]]:
    """Another state of an object."""
    return lambda env: {'object_state': {**env.object_state, name: change(env.object_state[name])}}


def with_arrays(change: Callable[[str, np.ndarray], Any]) -> Callable[[EnvState], dict[str, Any]]:
    """Other arrays of physics; None leaves one out."""

    def make(env: EnvState) -> dict[str, Any]:
        changed = {name: change(name, array) for name, array in env.physics.arrays.items()}
        arrays = {name: array for name, array in changed.items() if array is not None}
        return {'physics': dataclasses.replace(env.physics, arrays=arrays)}

    return make


SPOILT: dict[str, tuple[Callable[[EnvState], dict[str, Any]], str]] = {
    'shape of an array': (with_object(RAMP, lambda s: [s[0][:, :1], *s[1:]]), r"'ramp': expected arrays \[\(\(1, 2\)"),
    'broadcastable': (with_object(RAMP, lambda s: [s[0][:1, :1], *s[1:]]), r"'ramp': expected arrays"),
    'type of an array': (with_object(RAMP, lambda s: [s[0], s[1].astype(float)]), r"'ramp': expected arrays .*int64"),
    'an array is missing': (with_object(RAMP, lambda s: s[:1]), r"'ramp': expected arrays"),
    'no arrays': (with_object(RAMP, lambda s: 5), r"'ramp': .*int"),
    'array of one env': (
        with_object(PUSH, lambda s: {**s, '_states': [(np.zeros(3), 0.0)]}),
        r"'push': expected arrays",
    ),
    'no attributes': (with_object(PUSH, lambda s: [1, 2]), r"'push': expected its attributes by name, got list"),
    'no data': (with_object(PUSH, lambda s: {**s, 'x': object()}), r"'push': 'x' is not a saved attribute"),
    'of the place': (
        with_object('task', lambda s: {**s, 'env_id': 7}),
        r"task: 'env_id' is not a saved attribute",
    ),
    'a hook objects': (with_object(METRIC, lambda s: 'many'), r"metric 'Fussy': 'many' is not a number of steps"),
    'type of an attribute': (
        with_object('task', lambda s: {**s, 'work': 'yes'}),
        r"the state was changed: \.object_state\['task'\]\['work'\] is str, and was bool when the state was taken",
    ),
    'not finite in a list': (
        with_object(PUSH, lambda s: {**s, '_states': [(np.full(2, np.nan, np.float32), s['_states'][0][1])]}),
        r"'push'\\?\"\]\['_states'\]\[0\]\[0\] is .* not finite, and was ndarray of float32 \(2,\)",
    ),
    'no object': (lambda env: {'object_state': {}}, r'has other objects .*: metric'),
    'no objects': (lambda env: {'object_state': None}, r'see object_state'),
    'shape in physics': (
        with_arrays(lambda name, a: np.zeros((7, *a.shape))),
        r'in another way than what saved it: .*time',
    ),
    'type in physics': (with_arrays(lambda name, a: a.astype(np.complex64)), r'in another way than what saved it'),
    'no arrays in physics': (with_arrays(lambda name, a: a.tolist()), r'in another way than what saved it'),
    'missing in physics': (with_arrays(lambda name, a: None if name == 'time' else a), r'what saved it: time'),
    'not finite': (with_arrays(lambda name, a: a * np.float32('nan') if name == 'time' else a), r'not finite, in time'),
    'unknown in physics': (
        lambda env: {'physics': dataclasses.replace(env.physics, arrays={**env.physics.arrays, 'more': np.zeros(1)})},
        r'what saved it: more',
    ),
    'no physics': (lambda env: {'physics': None}, r'see physics'),
    'no result': (lambda env: {'last': None}, r'see last'),
    'ended': (lambda env: {'ended': 1}, r'see ended'),
    'step': (lambda env: {'step': -1}, r'step=-1'),
    'noise': (lambda env: {'noise_key': 2**64}, r'noise_key=18446744073709551616'),
}


@pytest.mark.parametrize('spoil, message', SPOILT.values(), ids=SPOILT)
def test_what_does_not_fit_one_env_changes_none(
    env: Env, assert_same: Any, spoil: Callable[[EnvState], dict[str, Any]], message: str
) -> None:
    drive(env, 2)
    saved = env.get_state()
    drive(env, 2)
    before = env.get_state()
    with pytest.raises(ValueError, match=rf'set_state: env 1.*{message}') as caught:
        env.set_state(with_second(saved, **spoil(saved.envs[1])))
    assert getattr(caught.value, 'env_id', None) == 1
    compare(env.get_state(), before, assert_same)


@pytest.mark.parametrize(
    'fields, message',
    [
        ({'env_ids': (0, 5)}, 'taken from env 5, here are 2 envs'),
        ({'env_ids': (0, '1')}, 'taken from env 1, here are 2 envs'),
        ({'env_ids': (1, 1)}, r'names an env twice: \[1, 1\]'),
        ({'env_ids': (1,)}, 'is that of 2 envs, but env_ids names 1'),
        ({'step_count': -3}, 'step_count=-3 of the state is not a number of steps'),
    ],
)
def test_what_does_not_fit_at_all_changes_nothing(
    env: Env, assert_same: Any, fields: dict[str, Any], message: str
) -> None:
    before = env.get_state()
    with pytest.raises(ValueError, match=message):
        env.set_state(dataclasses.replace(before, **fields))
    compare(env.get_state(), before, assert_same)


@pytest.mark.parametrize(
    'error, type_of_error, message',
    [
        (RuntimeError('broken'), RuntimeError, '^broken$'),
        (KeyboardInterrupt('broken'), KeyboardInterrupt, '^broken$'),
        (ValueError('broken'), ValueError, r"env 1: metric 'Fussy': its state cannot be loaded \(ValueError: broken\)"),
        (OverflowError('broken'), ValueError, r"env 1: metric 'Fussy': .* \(OverflowError: broken\)"),
        (AttributeError('broken'), ValueError, r"env 1: metric 'Fussy': .* \(AttributeError: broken\)"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, BaseException) else '',
)
def test_a_hook_that_fails_half_way_leaves_all_as_it_was(
    env: Env,
    assert_same: Any,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    type_of_error: type[BaseException],
    message: str,
) -> None:
    monkeypatch.setattr(Fussy, 'failure', error)
    drive(env, 2)
    saved = env.get_state()
    drive(env, 3)
    before = env.get_state()
    spoilt = with_second(saved, **with_object(METRIC, lambda s: -1)(saved.envs[1]))
    with pytest.raises(type_of_error, match=message):
        env.set_state(spoilt)
    compare(env.get_state(), before, assert_same)
    metrics: list[Any] = [task.metrics['Fussy'] for task in env.runner.current_tasks.values()]
    assert [metric.seen for metric in metrics] == [[5], [5]]
    env.set_state(saved)
    compare(env.get_state(), saved, assert_same)


def compare(one: SceneState, other: SceneState, assert_same: Any) -> None:
    """Two states are the same."""
    assert one.step_count == other.step_count
    for each, its in zip(one.envs, other.envs, strict=True):
        assert_same(dict(each.physics.arrays), dict(its.physics.arrays))
        assert (each.step, each.ended, each.noise_key) == (its.step, its.ended, its.noise_key)
        assert_same(each.last, its.last)
        assert_same(dict(each.object_state), dict(its.object_state))
