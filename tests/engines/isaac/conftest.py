"""Isaac Sim as the stand-in of `tests/isaac_sim`, which needs `ovphysx`; with `CI` set it has to be installed."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import isaac_sim
import pytest
from isaac_sim.simulator import Simulator
from markers import slow_but


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests on PhysX with the slow ones, which `make test-slow` installs it for."""
    missing = importlib.util.find_spec('ovphysx') is None and not os.environ.get('CI')
    for item in items:
        if Path(__file__).parent in item.path.parents and 'make_isaac' in getattr(item, 'fixturenames', ()):
            item.add_marker(pytest.mark.slow)
            if missing:
                item.add_marker(pytest.mark.skip(reason='ovphysx is not installed, see docs/physx.md'))


@pytest.fixture(params=slow_but('6.0.1', of=['5.0.0', '5.1.0', '6.0.1']))
def simulator(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    """Isaac Sim of a version."""
    return isaac_sim.install(monkeypatch, request.param)


@pytest.fixture
def make_isaac(make_env: Any, make_config: Any, simulator: Simulator) -> Any:
    """Makes an Env on Isaac Sim, of the arguments of `make_config`."""
    sim = {'backend': 'isaac_sim', 'rendering_interval': 2}

    def make(tasks: Any, env_num: int, options: Any = (), **fields: Any) -> Any:
        return make_env(make_config(tasks, env_num, {**sim, **dict(options)}, **fields))

    return make
