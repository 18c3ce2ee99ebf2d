"""Kernels that a GPU gets are compiled for it without one."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Any

import pytest

wp = pytest.importorskip('warp')
pytest.importorskip('mujoco_warp')

CUDA_KERNELS: Any = runpy.run_path(str(Path(__file__).parents[2] / 'benchmarks' / 'cuda_kernels.py'))
ARCHS = [int(arch) for arch in os.environ.get('INTERNUTOPIA_TEST_ARCHS', '90').split()]  # all: 80 90 100
TASK = 'InternUtopia/CartPole-v0'


@pytest.fixture(scope='module')
def launches() -> Any:
    import internutopia_extension

    internutopia_extension.import_extensions()
    dry = CUDA_KERNELS['DryLaunches']()
    with dry.noting():
        CUDA_KERNELS['run_dry'](TASK)
    return dry


def test_a_dry_run_notes_what_a_gpu_gets(launches: Any) -> None:
    ours = 'internutopia.engines.warp.'
    kernels = {key for (module, _), keys in launches.kernels.items() if module.name.startswith(ours) for key in keys}
    assert {'copy_rows', 'find_bad', 'find_failed', 'find_overflow', '_cast'} <= kernels
    assert len(launches.kernels) > 30
    assert len({block_dim for _, block_dim in launches.kernels}) > 1


@pytest.mark.parametrize('arch', [80, 90, 100])
def test_our_kernels_compile(launches: Any, arch: int) -> None:
    for module, block_dim in launches.kernels:
        if module.name.startswith('internutopia'):
            assert CUDA_KERNELS['compile_module'](module, block_dim, arch) is None


@pytest.mark.nightly
@pytest.mark.parametrize('arch', ARCHS)
def test_all_kernels_of_a_task_compile(launches: Any, arch: int) -> None:
    """Warp keeps what was compiled, so that this takes a minute once."""
    errors = [CUDA_KERNELS['compile_module'](*variant, arch) for variant in launches.kernels]
    assert not any(errors), next(filter(None, errors))


@pytest.mark.slow
def test_what_cannot_be_compiled_is_found() -> None:
    @wp.func_native("""
        #if defined(__CUDA_ARCH__)
        #error there is no such thing on a GPU
        #endif
        """)
    def on_host_only(): ...

    @wp.kernel(module='unique')
    def kernel(values: wp.array(dtype=float)):  # type: ignore[valid-type]
        on_host_only()
        values[wp.tid()] = 1.0

    dry = CUDA_KERNELS['DryLaunches']()
    dry.launch(kernel, 4, [wp.zeros(4, dtype=float, device='cpu')])
    (variant,) = dry.kernels
    assert CUDA_KERNELS['compile_module'](*variant, 90) is not None
