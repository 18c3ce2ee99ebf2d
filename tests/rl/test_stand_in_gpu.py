"""Mistakes that the stand-in for a GPU and the rules of capture catch, each made on purpose."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from captured import capture_rules, capturing
from device_poles import on_device, poles
from stand_in_gpu import no_waiting, stand_in_gpu

from internutopia.config.learning import RewardTermCfg
from internutopia.engines.warp.arrays import HostMirror
from internutopia.engines.warp.batch import WarpBatch
from internutopia.rl.terms import term
from internutopia.util.arrays import AsyncReadback, DeviceArrays, to_host

torch = pytest.importorskip('torch')
wp = pytest.importorskip('warp')

FACTORS = np.array([1.0, 2.0, 3.0], np.float32)
IN_A_TERM: dict[str, tuple[Callable[[Any], Any], str]] = {
    'a copy to the host': (lambda x: x.cpu(), 'a copy between host and device'),
    'to_host': (lambda x: to_host(x), 'a copy between host and device'),
    'numpy': (lambda x: x.numpy(), 'to numpy'),
    'a function of numpy': (lambda x: np.abs(x), 'to numpy'),
    'a constant of numpy': (lambda x: x * FACTORS, 'numpy|ndarray'),
    'a constant of torch': (lambda x: x * torch.from_numpy(FACTORS), 'same device'),
    'an upload': (lambda x: x * torch.tensor([1.0, 2.0, 3.0], device=x.device), 'an upload'),
    'an upload by the maker of arrays': (lambda x: x * DeviceArrays('cuda:0').asarray(FACTORS), 'an upload'),
    'a copy into a tensor': (lambda x: x.copy_(torch.from_numpy(FACTORS)), 'a copy between host and device'),
    'an item': (lambda x: x.sum().item(), 'tells the host a value'),
    'a list': (lambda x: x.tolist(), 'a copy between host and device'),
    'a condition': (lambda x: x if (x > 0).any() else -x, 'tells the host a value'),
    'a number of python': (lambda x: float(x[0]), 'tells the host a value'),
    'nonzero': (lambda x: x.nonzero(), 'tells the host a value'),
    'unique': (lambda x: x.unique(), 'tells the host a value'),
    'a mask as an index': (lambda x: x[x > 0], 'with a mask'),
    'values for a mask': (lambda x: x.__setitem__(x > 0, x[:2]), 'with a mask'),
    'a list as an index': (lambda x: x[[0, 2]], 'an upload'),
    'an index of numpy': (lambda x: x[np.array([0, 2])], 'an upload'),
    'a number for an index': (lambda x: x.__setitem__(x.long(), 1.0), 'an upload of a number'),
}


@pytest.mark.parametrize('name', IN_A_TERM)
def test_a_mistake_in_a_term_is_caught(name: str) -> None:
    mistake, message = IN_A_TERM[name]
    with stand_in_gpu():
        values = DeviceArrays('cuda:0').asarray(np.array([0.0, 1.0, 2.0]))
        with no_waiting(), pytest.raises((AssertionError, RuntimeError, TypeError), match=message):
            mistake(values)


BELOW_TORCH: dict[str, tuple[Callable[[HostMirror], Any], str]] = {
    'a read': (lambda mirror: mirror.read(), 'a wait for the device'),
    'a value to be changed': (lambda mirror: mirror.write(), 'a wait for the device'),
    'an array of the engine': (lambda mirror: mirror.array.numpy(), 'a read of the host'),
    'values for the engine': (lambda mirror: mirror.array.assign(FACTORS), 'an upload to an array'),
    'a wait': (lambda mirror: wp.synchronize(), 'a wait for the device'),
}


@pytest.mark.parametrize('name', [*BELOW_TORCH, 'what was changed'])
def test_a_mistake_with_arrays_of_the_engine_is_caught(name: str) -> None:
    with stand_in_gpu():
        mirror = HostMirror(wp.zeros(3, dtype=float, device='cpu'))
        mirror.write()[:] = 1.0
        if name == 'what was changed':
            mistake, message = (lambda mirror: mirror.tensor()), 'an upload of a mirror'
        else:
            mistake, message = BELOW_TORCH[name]
            mirror.tensor()
        with no_waiting(), pytest.raises(AssertionError, match=message):
            mistake(mirror)


def test_what_may_be_done_is_not_refused() -> None:
    with stand_in_gpu():
        values = DeviceArrays('cuda:0').asarray(np.array([0.0, 1.0, 2.0]))
        index = values.long()
        echo = AsyncReadback()
        with no_waiting():
            values[1] = 5.0
            values[values > 4.0] = 7.0
            values[index[1:]] = values[:2].clone()
            values += torch.tensor(1.0) * np.float32(2.0)
            other = torch.where(values > 2.0, values, torch.zeros(3, device=values.device))
            echo.send(other)
            ((arrived,),) = echo.receive()
        assert values.tolist() == [2.0, 2.0, 9.0] and arrived.tolist() == [0.0, 0.0, 9.0]


def test_a_mistake_is_caught_in_a_step_of_envs() -> None:
    @term('reward', 'mean_by_the_host')
    def mean_by_the_host(state: Any) -> Any:
        return state.joint_positions[:, 0] * state.joint_positions.mean().item()

    config = poles()
    learning = config.task_configs[0].learning
    assert learning is not None
    learning.rewards.append(RewardTermCfg(term='mean_by_the_host', weight=1.0))
    with stand_in_gpu(), closing(on_device(config, 'SameStep')) as envs:
        envs.reset(seed=0)
        actions = torch.zeros(envs.action_space.shape, device=envs.device)
        envs.step(actions)
        with no_waiting(), pytest.raises(Exception, match='tells the host a value'):
            envs.step(actions)


@wp.kernel
def _double(values: wp.array(dtype=float)):  # type: ignore[valid-type]
    values[wp.tid()] *= 2.0  # type: ignore[index]


KEPT: list[Any] = []
WHEN_CAPTURED: dict[str, tuple[Callable[[Any], Any], str]] = {
    'an allocation': (lambda x: wp.zeros(3, dtype=float, device='cpu'), 'allocates'),
    'a clone': (lambda x: wp.clone(x), 'allocates'),
    'an upload': (lambda x: wp.array(FACTORS, dtype=float, device='cpu'), 'an upload'),
    'a read': (lambda x: x.numpy(), 'a read of the host'),
    'a wait': (lambda x: wp.synchronize_device('cpu'), 'synchronize_device'),
    'work of torch': (lambda x: wp.to_torch(x).zero_(), 'torch computes'),
    'a kernel that was not loaded': (lambda x: wp.launch(_double, 3, [x]), 'a module that is loaded'),
}


@pytest.mark.parametrize('name', WHEN_CAPTURED)
def test_a_mistake_in_what_is_captured_is_caught(name: str) -> None:
    mistake, message = WHEN_CAPTURED[name]
    values = wp.zeros(3, dtype=float, device='cpu')
    with pytest.raises(AssertionError, match=message), capturing():
        mistake(values)


def test_a_call_of_the_engine_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_results = WarpBatch._clear_results

    def wasteful(batch: WarpBatch, worlds: Any) -> None:
        KEPT.append(wp.empty(3, dtype=float, device='cpu'))
        clear_results(batch, worlds)

    with closing(on_device(poles(), 'SameStep')) as envs:
        envs.reset(seed=0)
        actions = torch.zeros(envs.action_space.shape)
        envs.step(actions)
        monkeypatch.setattr(WarpBatch, '_clear_results', wasteful)
        with capture_rules(), pytest.raises(Exception, match='allocates in what is captured'):
            envs.step(actions)
