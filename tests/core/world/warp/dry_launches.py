"""Dry run of a CUDA device: which kernels it would be asked to run, on a machine without one.

While it is entered, kernels are noted instead of launched, and code that asks Warp where it runs is told that this is a
GPU: so the kernels are those that a GPU gets, some of which the CPU device never sees. Arrays are on the CPU and keep
the numbers that they have.
"""

# ruff: noqa: TID253  (a stand-in for parts of Warp)

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import warp as wp

_DEFAULT_BLOCK = 256  # threads of a block, where a launch says nothing about it
_Variant = tuple[Any, int]  # a module, and the threads of a block that it is compiled for


class _Gpu:
    """A device that answers as a GPU does; what it does not know it asks Warp's CPU device."""

    is_cuda, is_cpu, sm_count = True, False, 132

    def __init__(self, cpu: Any):
        self._cpu = cpu

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cpu, name)


class DryLaunches:
    """The kernels that were asked for, by the module and the block size that they have to be compiled for."""

    def __init__(self) -> None:
        self.kernels: dict[_Variant, set[str]] = {}

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note kernels instead of launching them."""
        get_device = wp.get_device
        stand_ins = {
            'launch': self._launch,
            'launch_tiled': self._launch,
            'get_suggested_block_size': self._suggest_block_size,
            'get_device': lambda name=None: _Gpu(get_device()) if name is None else get_device(name),
            'is_conditional_graph_supported': lambda: True,
            'capture_while': lambda condition, while_body, stream=None, **arguments: while_body(**arguments),
            'capture_if': _both,
        }
        with pytest.MonkeyPatch.context() as patch:
            for name, stand_in in stand_ins.items():
                patch.setattr(wp, name, stand_in)
            yield

    def _launch(
        self,
        kernel: Any,
        dim: int | Sequence[int],
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        *_: Any,
        block_dim: int | None = None,
        **__: Any,
    ) -> None:
        if not np.prod(dim):
            return
        if kernel.is_generic:
            kernel = kernel.add_overload(kernel.infer_argument_types([*inputs, *outputs]))
        self._note(kernel, block_dim or _DEFAULT_BLOCK)

    def _suggest_block_size(self, kernel: Any, device: Any = None) -> tuple[int, int]:
        self._note(kernel, kernel.module.options['block_dim'])  # it is loaded to be asked
        return _DEFAULT_BLOCK, 2 * _Gpu.sm_count

    def _note(self, kernel: Any, block_dim: int) -> None:
        self.kernels.setdefault((kernel.module, block_dim), set()).add(kernel.key)


def _both(condition: Any, on_true: Callable[[], None], on_false: Callable[[], None] | None = None, **_: Any) -> None:
    on_true()
    if on_false is not None:
        on_false()
