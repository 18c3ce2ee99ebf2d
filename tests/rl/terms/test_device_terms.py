"""Built-in terms on torch tensors: the values that it has on numpy arrays, and nothing that needs the host.

Where there is no GPU, tensors of a stand-in are put to the test (`stand_in_gpu.py`).
"""

import copy
import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from stand_in_gpu import engine, no_waiting, stand_in_gpu
from term_cases import BUILT_IN, CASES, ENVS, EVERY_CASE, MOTION

from internutopia.core.robot.articulation import IArticulation
from internutopia.engines.views import ArticulationView, BodyView
from internutopia.rl.state import RobotState
from internutopia.rl.terms import look_up_term, registered_terms
from internutopia.util.arrays import ArrayMaker, DeviceArrays, HostArrays, to_host

torch = pytest.importorskip('torch')

TOLERANCE = 1e-6  # float32 on a device, where the host computes in float64


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
        return functools.partial(self._read, value) if callable(value) else value

    def _read(self, getter: Callable[..., Any], *args: Any) -> Any:
        with engine():
            on_host = [to_host(each) for each in args]
        return self._shown(getter(*on_host))


class SameNumbers:
    """The random numbers of the host, as arrays of another kind."""

    def __init__(self, arrays: ArrayMaker):
        self._arrays, self._rng = arrays, np.random.default_rng(7)

    def for_envs(self, env_ids: Any) -> AbstractContextManager[None]:
        return nullcontext()

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._arrays.asarray(self._rng.uniform(to_host(low), to_host(high), size))

    def normal(self, size: Any = None) -> Any:
        return self._arrays.asarray(self._rng.normal(size=size))


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
    if kind in ('observation', 'reward', 'termination', 'metric'):
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


@pytest.fixture
def motion(tmp_path: Path) -> str:
    """A motion file of the robot: it moves, turns and wags for a second."""
    time = np.linspace(0.0, 1.0, 31)
    still = np.zeros_like(time)
    np.savez(
        file := tmp_path / 'motion.npz',
        rate=30.0,
        joint_names=['tail', 'hip'],
        joint_positions=np.stack([0.4 * np.sin(5.0 * time), -0.2 * time], axis=-1),
        base_positions=np.stack([0.5 * time, still, 0.4 + 0.1 * time], axis=-1),
        base_orientations=np.stack([np.cos(time / 2), still, still, np.sin(time / 2)], axis=-1),
        link_names=['leg', 'tail'],
        link_positions=np.stack([still, still, still - 0.3, 0.1 * time, still, still], axis=-1).reshape(31, 2, 3),
    )
    return str(file)


@pytest.mark.parametrize('kind', ['observation', 'reward', 'termination', 'metric', 'randomization'])
def test_motion_terms_on_tensors(host: RobotState, motion: str, kind: Any) -> None:
    names = [name for name, function in registered_terms(kind).items() if function.__module__ == MOTION]
    assert names
    for name in names:
        test_values_on_tensors(host, kind, name, {'file': motion})
        test_no_term_waits_for_the_host(host, kind, name, {'file': motion})


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
