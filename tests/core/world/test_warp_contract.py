"""The contract of `Env` holds on `mujoco_warp`, too: the tests of the contract and of saved states, run once more."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warp_device import DEVICE

from internutopia.core.config import Config

for _module in ('test_vec_env_contract', 'test_state', 'test_env_state_machine'):
    _names = runpy.run_path(str(Path(__file__).parents[1] / f'{_module}.py'))
    globals().update({name: value for name, value in _names.items() if name.startswith('test_') or name == 'config'})


@pytest.fixture(scope='session')
def make_config(make_config: Callable[..., Config]) -> Callable[..., Config]:
    """The configs of the other tests on this engine."""

    def make(tasks: Any = 2, env_num: int = 2, sim: dict[str, Any] | None = None, **fields: Any) -> Config:
        return make_config(tasks, env_num, {'backend': 'mujoco_warp', 'device': DEVICE, **(sim or {})}, **fields)

    return make
