"""Built-in terms on torch tensors: the values that it has on numpy arrays, and nothing that needs the host.

Where there is no GPU, tensors of a stand-in are put to the test (`stand_in_gpu.py`).
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stand_in_gpu import engine, no_waiting, stand_in_gpu

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.util.arrays import ArrayMaker, DeviceArrays, HostArrays, to_host
from internutopia.core.world.base import ArticulationView, BodyView
from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia.rl.terms import KINDS, look_up_term, registered_terms
from internutopia_extension.robots.generic import GenericRobot

torch = pytest.importorskip('torch')

ENVS = 5
TOLERANCE = 1e-6  # float32 on a device, where the host computes in float64
OBJECTS = ('a', 'b', 'c')
GO: dict[str, Any] = {'name': 'go'}
GOAL: dict[str, Any] = {'name': 'goal'}
TIP: dict[str, Any] = {'link': 'leg'}
GAIT: dict[str, Any] = {**GO, 'period': 0.8, 'offsets': [0.1, 0.6]}
# parameters of all terms that need some or that do more with them; one term may come several times
CASES: dict[tuple[str, str], list[dict[str, Any]]] = {
    ('observation', 'joint_positions'): [{}, {'relative': True, 'joints': ['tail']}],
    ('observation', 'joint_velocities'): [{}, {'joints': ['tail', 'hip']}],
    ('observation', 'command'): [GO],
    ('observation', 'goal_direction'): [GOAL],
    ('observation', 'phase'): [{'period': 0.7}],
    ('observation', 'link_position'): [TIP],
    ('observation', 'constant'): [{}, {'value': [2.0, 3.0]}],
    ('observation', 'height_scan'): [{'forward': [0.0, 0.3], 'left': [-0.1, 0.1]}],
    ('observation', 'nearest_objects'): [{'objects': OBJECTS, 'count': 2}],
    ('observation', 'target_offset'): [{**TIP, 'name': 'target'}],
    ('observation', 'object_offset'): [{**TIP, 'body': 'a'}],
    ('reward', 'track_linear_velocity'): [GO, {**GO, 'final': 0.2}],
    ('reward', 'track_yaw_rate'): [GO, {**GO, 'final': 0.2}],
    ('reward', 'goal_progress'): [GOAL],
    ('reward', 'goal_reached'): [{**GOAL, 'radius': 1.5}],
    ('reward', 'height'): [{'target': 0.3}],
    ('reward', 'posture_cost'): [{}, {'joints': ['tail']}],
    ('reward', 'joint_limit_cost'): [{'margin': 1.0}],
    ('reward', 'height_cost'): [{'target': 0.3}],
    ('reward', 'near_objects_cost'): [{'objects': OBJECTS, 'distance': 2.0}],
    ('reward', 'target_distance'): [{**TIP, 'name': 'target'}],
    ('reward', 'target_near'): [{**TIP, 'name': 'target', 'tolerance': 0.5}],
    ('reward', 'object_near'): [{**TIP, 'body': 'a', 'tolerance': 0.5}],
    ('reward', 'object_lifted'): [{'body': 'a', 'low': 0.0, 'high': 0.2}],
    ('reward', 'gait_contact'): [GAIT],
    ('reward', 'swing_height_cost'): [{**GAIT, 'height': 0.08, 'ground': 0.05}],
    ('reward', 'swing_bend_cost'): [{**GAIT, 'joints': ['hip', 'tail'], 'bend': 0.5}],
    ('reward', 'feet_near_cost'): [{'distance': 1.0}],
    ('termination', 'fallen'): [{'minimum_height': 0.2}],
    ('termination', 'tilted'): [{'limit': 0.5}],
    ('termination', 'height_outside'): [{'low': 0.1, 'high': 0.2}],
    ('termination', 'joint_outside'): [{'joint': 'tail', 'low': -0.2, 'high': 0.2}],
    ('termination', 'goal_reached'): [{**GOAL, 'radius': 1.5}],
    ('termination', 'left_area'): [{'radius': 0.25}],
    ('termination', 'near_object'): [{'objects': OBJECTS, 'distance': 1.0}],
    ('termination', 'object_away'): [{'body': 'a', 'distance': 1.0}],
    ('command', 'uniform'): [{'low': [0.0, -1.0], 'high': [1.0, 2.0]}],
    ('command', 'velocity'): [{}, {'standing': 0.3, 'turning': 0.4}, {'standing': 0.3, 'by_level': True}],
    ('command', 'position'): [{'low': [0.0, -1.0, 0.0], 'high': [1.0, 2.0, 0.5]}],
    ('command', 'goal'): [
        {'distance': (1.0, 2.0)},
        {'distance': (1.0, 2.0), 'around': 'robot', 'avoid': OBJECTS, 'clearance': 0.5},
    ],
    ('curriculum', 'survival'): [{'long': 0.3, 'short': 0.1}],
    ('curriculum', 'performance'): [{'reward': 'alive', 'duration': 0.3, 'high': 0.6, 'low': 0.4}],
    ('randomization', 'joint_offset'): [{'position': (-2.0, 2.0), 'velocity': (-1.0, 1.0)}],
    ('randomization', 'base_pose'): [{'x': (-1.0, 1.0), 'z': (0.0, 0.2), 'yaw': (-3.0, 3.0)}],
    ('randomization', 'terrain_pose'): [{'x': [0.0, 2.0], 'y': [1.0], 'spread': 0.3, 'by_level': True}],
    ('randomization', 'push'): [{'speed': 1.0}, {'speed': 1.0, 'by_level': True}],
    ('randomization', 'gains'): [{'stiffness': (0.5, 2.0), 'damping': (0.5, 2.0)}],
    ('randomization', 'mass'): [{**TIP, 'factor': (0.5, 2.0)}],
    ('randomization', 'foot_size'): [{'length': (0.5, 1.0), 'width': (0.2, 1.0)}],
    ('randomization', 'friction'): [{'coefficient': (0.5, 2.0)}],
    ('randomization', 'joint_pose'): [{'positions': {'tail': (0.1, 0.3), 'hip': (-0.2, 0.2)}}],
    ('randomization', 'scatter'): [{'objects': OBJECTS, 'distance': (1.0, 2.0)}],
    ('randomization', 'place_object'): [{'body': 'a', 'x': (0.0, 1.0), 'y': (-1.0, 0.0), 'z': 0.3}],
}
ELSEWHERE = {('observation', 'camera'), ('observation', 'sensor')}  # need a world that takes pictures, a sensor
BUILT_IN: list[tuple[Any, str]] = [
    (kind, name)
    for kind in KINDS
    for name, function in registered_terms(kind).items()
    if function.__module__.startswith('internutopia.') and (kind, name) not in ELSEWHERE
]
EVERY_CASE = [
    pytest.param(kind, name, params, id=f'{kind}-{name}-{index}')
    for kind, name in BUILT_IN
    for index, params in enumerate(CASES.get((kind, name), [{}]))
]


@BaseRobot.register('FootedHopper')
class FootedHopper(GenericRobot):
    batched = True
    feet = ('leg', 'tail')


@pytest.fixture(scope='module')
def host(models: Any, make_config: Any, make_task: Any, make_block: Any, hopper: Any) -> Iterator[RobotState]:
    """Robots beside three boxes that fell for a while, each driven differently, and stand still since."""
    from internutopia.core.config.learning import LearningCfg

    places = [(1.0, 0.0, 0.1), (0.0, 2.0, 0.1), (-0.5, 0.0, 0.1)]
    blocks = [make_block(name, mass=1.0, position=place) for name, place in zip(OBJECTS, places, strict=True)]
    robot = hopper.update(type='FootedHopper')
    task = make_task('floor', robots=[robot], objects=blocks, type='SingleInferenceTask')
    learning = {
        'action': {'controller': 'joints'},
        'observations': [{'term': 'joint_positions'}],
        'commands': {
            'go': {'term': 'velocity', 'params': {'standing': 0.0}},
            'goal': {'term': 'goal', 'params': {'distance': (1.0, 2.0)}},
            'target': {'term': 'uniform', 'params': {'low': [-0.5] * 3, 'high': [0.5] * 3}},
        },
        'randomizations': [
            {'term': 'push', 'params': {'speed': 1.0}},
            {'term': 'joint_offset', 'params': {'velocity': (-3.0, 3.0)}},
        ],
    }
    config = make_config(tasks=[task], env_num=ENVS, sim={'substeps': 4}, episode_order='cycle', seed=3)
    envs = VectorEnv(config, LearningCfg.model_validate(learning))
    envs.reset()
    rng = np.random.default_rng(0)
    for actions in rng.uniform(-1.0, 1.0, (20, ENVS, 2)).astype(np.float32):
        envs.step(actions)
    state = envs.core.state
    state.steps[:] = rng.integers(1, 40, ENVS)
    state.levels[:] = rng.uniform(size=ENVS)
    state.reward_sums['alive'] = rng.uniform(0.0, 0.3, ENVS).astype(np.float32)
    state.commands['go'][0] = 0.0
    assert state.feet_contacts.any() and not state.feet_contacts.all()
    yield state
    envs.close()


class Mirror:
    """A view or an articulation whose arrays are of another kind; its setters only note what they get."""

    def __init__(self, host: Any, arrays: ArrayMaker, calls: list[Any]):
        self._host, self._arrays, self._calls = host, arrays, calls

    def __getattr__(self, name: str) -> Any:
        if name.startswith('set_'):
            return lambda *args, **named: self._calls.append((name, args, named))
        return self._shown(getattr(self._host, name))

    def _shown(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            with engine():
                return self._arrays.asarray(value.copy())
        if isinstance(value, tuple):
            return tuple(self._shown(part) for part in value)
        if isinstance(value, IArticulation | ArticulationView | BodyView):
            return Mirror(value, self._arrays, self._calls)
        return (lambda *args: self._shown(value(*args))) if callable(value) else value


class SameNumbers:
    """The random numbers of the host, as arrays of another kind."""

    def __init__(self, arrays: ArrayMaker):
        self._arrays, self._rng = arrays, np.random.default_rng(7)

    def for_envs(self, env_ids: Any) -> AbstractContextManager[None]:
        return nullcontext()

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._arrays.asarray(self._rng.uniform(to_host(low), to_host(high), size))


def mirrored(host: RobotState, arrays: ArrayMaker, rng: Any) -> tuple[RobotState, list[Any]]:
    """The same state in arrays of another kind, and what setters are called with."""
    calls: list[Any] = []
    world = SimpleNamespace(
        env_num=host.env_num, arrays=arrays, body=lambda *key: Mirror(host.world.body(*key), arrays, calls)
    )
    state = RobotState(world, host.step_dt, rng, host.actions.shape[1])  # type: ignore[arg-type]
    for name in ('steps', 'actions', 'last_actions', 'levels'):
        setattr(state, name, arrays.asarray(getattr(host, name).copy()))
    for name in ('commands', 'reward_sums'):
        getattr(state, name).update({key: arrays.asarray(value.copy()) for key, value in getattr(host, name).items()})
    robot: Any = copy.copy(host.robot)
    robot.articulation = Mirror(host.robot.articulation, arrays, calls)
    state.bind(robot, 0)
    return state, calls


def outcome(kind: Any, function: Callable[..., Any], state: RobotState, calls: list[Any]) -> Any:
    """What a term of any kind says about all envs, or does to them."""
    if kind in ('observation', 'reward', 'termination'):
        return function(state)
    env_ids = state.xp.arange(ENVS, device=state.levels.device)
    calls.clear()
    value = function(state, env_ids)
    return {'command': value, 'curriculum': state.levels, 'randomization': list(calls)}[kind]


def assert_same(got: Any, wanted: Any) -> None:
    """Nested values with tensors here and arrays there."""
    if isinstance(wanted, np.ndarray):
        assert isinstance(got, torch.Tensor) and got.dtype.is_floating_point == (wanted.dtype.kind == 'f')
        np.testing.assert_allclose(got.numpy(), wanted, rtol=TOLERANCE, atol=TOLERANCE)
    elif isinstance(wanted, dict):
        assert_same(list(got.items()), list(wanted.items()))
    elif isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            assert_same(one, other)
    else:
        assert got == wanted


def test_every_built_in_term_has_its_parameters_here() -> None:
    assert set(CASES) <= set(BUILT_IN), 'a term that is gone'
    for kind, name in BUILT_IN:
        for params in CASES.get((kind, name), [{}]):
            look_up_term(kind, name, params)  # ValueError if one is missing


@pytest.mark.parametrize(('kind', 'name', 'params'), EVERY_CASE)
def test_values_on_tensors(host: RobotState, kind: Any, name: str, params: dict[str, Any]) -> None:
    function = look_up_term(kind, name, params)
    on_host, on_torch = (mirrored(host, arrays, SameNumbers(arrays)) for arrays in (HostArrays(), DeviceArrays('cpu')))
    assert_same(outcome(kind, function, *on_torch), outcome(kind, function, *on_host))


@pytest.mark.parametrize(('kind', 'name', 'params'), EVERY_CASE)
def test_no_term_waits_for_the_host(host: RobotState, kind: Any, name: str, params: dict[str, Any]) -> None:
    with stand_in_gpu():
        arrays = DeviceArrays('cuda:0')
        state, calls = mirrored(host, arrays, arrays.random(0))
        function = look_up_term(kind, name, params)
        outcome(kind, function, state, calls)  # uploads what is constant
        state.changed()
        with no_waiting():
            outcome(kind, function, state, calls)
