"""Rules of what a CUDA graph captures, checked where the engine's calls run on Warp's CPU device.

The first time, a call loads its kernels; from the second on a GPU captures it. `capture_rules` makes these later calls
fail by what cannot be captured, or would be done once only: reads of the host, copies from and to it, modules that are
loaded, work of torch, and memory that our code allocates or that outlives the call. What mujoco_warp allocates and
frees within a call becomes nodes of the graph, since Warp's memory pools are on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import warp as wp
from torch.utils._python_dispatch import TorchDispatchMode
from warp._src import context

from internutopia.engines.warp.batch import WarpBatch


@contextmanager
def capture_rules() -> Iterator[list[Any]]:
    """Check all calls of the engine but the first of their kind; gives the names of those that were checked."""
    checked: list[Any] = []
    launch = WarpBatch._launch

    def checking(batch: WarpBatch, key: tuple[Any, ...], call: Callable[[], None], calls: Any = None) -> None:
        if key not in (batch._calls if calls is None else calls):
            launch(batch, key, call, calls)
            return

        def captured() -> None:
            with capturing():
                call()

        launch(batch, key, captured, calls)
        checked.append(key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WarpBatch, '_launch', checking)
        yield checked


@contextmanager
def capturing() -> Iterator[None]:
    """AssertionError for what cannot be captured."""
    alive: set[int] = set()
    allocator: Any = context.CpuDefaultAllocator
    allocate, deallocate, from_data = allocator.allocate, allocator.deallocate, wp.array._init_from_data

    def allocating(self: Any, size: int) -> int:
        caller = _caller()
        assert caller.startswith('mujoco_warp'), f'{caller} allocates in what is captured'
        address = allocate(self, size)
        alive.add(address)
        return address

    def freeing(self: Any, address: int, size: int) -> None:
        alive.discard(address)
        deallocate(self, address, size)

    def uploading(self: Any, data: Any, *args: Any, **named: Any) -> None:
        assert not isinstance(data, np.ndarray | list | tuple), 'an upload in what is captured'
        from_data(self, data, *args, **named)

    with pytest.MonkeyPatch.context() as patch, _NoTorch():
        patch.setattr(allocator, 'allocate', allocating)
        patch.setattr(allocator, 'deallocate', freeing)
        patch.setattr(wp.array, '_init_from_data', uploading)
        patch.setattr(wp.array, 'numpy', _refuse('a read of the host'))
        for name in ('synchronize', 'synchronize_device', 'synchronize_stream'):
            patch.setattr(wp, name, _refuse(name))
        patch.setattr(context.ModuleExec, '__init__', _refuse('a module that is loaded'))
        yield
        assert not alive, 'memory that was allocated in what is captured outlives it'


class _NoTorch(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f'torch computes {function._opname} in what is captured')


def _refuse(what: str) -> Callable[..., Any]:
    def refusing(*_: Any, **__: Any) -> Any:
        raise AssertionError(f'{what} in what is captured')

    return refusing


def _caller() -> str:
    """The module outside Warp that asked for it."""
    frame = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get('__name__')).split('.')[0] == 'warp':
        frame = frame.f_back
    return '' if frame is None else str(frame.f_globals.get('__name__'))
