"""Kernels that are compiled are counted in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

wp = pytest.importorskip('warp')

from internutopia.engines.warp.arrays import compiling_shown  # noqa: E402
from internutopia.util import progress  # noqa: E402


@wp.kernel(module='unique')
def first(values: wp.array(dtype=float)):  # type: ignore[valid-type]
    values[wp.tid()] = 1.0


@wp.kernel(module='unique')
def second(values: wp.array(dtype=float)):  # type: ignore[valid-type]
    values[wp.tid()] += 2.0


@pytest.fixture
def values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    wp.init()
    monkeypatch.setattr(wp.config, 'kernel_cache_dir', str(tmp_path))
    monkeypatch.setattr(wp.config, 'log_level', wp.LOG_WARNING)
    return wp.zeros(3, dtype=float, device='cpu')


@pytest.mark.slow
@pytest.mark.parametrize('terminal', [True, False])
def test_a_bar_counts_the_modules_that_are_compiled(
    values: Any, terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv('FORCE_COLOR' if terminal else 'NO_COLOR', '1')  # with the former, rich takes it for a terminal
    monkeypatch.setattr(progress, 'DELAY', 0.0)
    logger, level = wp.get_logger(), wp.config.log_level
    with compiling_shown(values.device):
        for kernel in (first, second, second):
            kernel.module.unload()
            wp.launch(kernel, 3, [values], device='cpu')
    assert values.numpy().tolist() == [5.0] * 3
    assert wp.get_logger() is logger and wp.config.log_level == level
    out, err = capsys.readouterr()
    assert not out
    assert ('compiling kernels for cpu' in err and '2/?' in err and '3/?' not in err) if terminal else not err
