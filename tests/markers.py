"""Markers of tests: parameters that make one slow, as one of a kind is enough for `make test`, and what one needs."""

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest


def slow_but(*quick: Any, of: Iterable[Any]) -> list[Any]:
    """Parameters of a test, of which all but the first ones given are `slow`; `of` has them all.

    A tuple holds the values of several parameters.
    """
    return [value if value in quick else _slow(value) for value in of]


def _slow(value: Any) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.slow)


def need_physx() -> None:
    """Skip the test where `ovphysx` is not installed; with `CI` set it has to be."""
    if not os.environ.get('CI'):
        pytest.importorskip('ovphysx', reason='ovphysx is not installed, see docs/physx.md')


def need_packages(pip: Sequence[str | Path], *packages: str) -> None:
    """Install packages by a command of pip; skip the test where they cannot be had; with `CI` set they have to be."""
    command = [*pip, 'install', '--quiet', *packages]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        end = pytest.fail if os.environ.get('CI') else pytest.skip
        end(f'{packages} cannot be installed: {installed.stderr.strip()[-200:]}')
