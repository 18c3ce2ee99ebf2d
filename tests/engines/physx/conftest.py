"""Worlds on PhysX by both of its hosts, where `ovphysx` is installed; with `CI` set it has to be."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import isaac_sim
import numpy as np
import pytest

from internutopia.config import SimConfig
from internutopia.core.runner.grid import env_origins
from internutopia.engines.physx.world import PhysxWorld
from internutopia.model.spec import ObjectSpec, RobotSpec, SceneSpec

DT = 1 / 240
_NEEDING = {'make_world', 'make_device_world', 'physx_script'}  # PhysX


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests on PhysX with the slow ones, which `make test-slow` installs it for."""
    missing = importlib.util.find_spec('ovphysx') is None and not os.environ.get('CI')
    for item in items:
        if Path(__file__).parent in item.path.parents and _NEEDING & {*getattr(item, 'fixturenames', ())}:
            item.add_marker(pytest.mark.slow)
            if missing:
                item.add_marker(pytest.mark.skip(reason='ovphysx is not installed, see docs/physx.md'))


@pytest.fixture(params=['ovphysx', 'isaac_sim'])
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Host of PhysX: `ovphysx`, or the stand-in for Isaac Sim."""
    if request.param == 'isaac_sim':
        isaac_sim.install(monkeypatch, '6.0.1')
    return request.param


@pytest.fixture
def make_world(host: str) -> Iterator[Callable[..., Any]]:
    """Makes worlds of `env_num` envs, closed after the test."""
    from internutopia.engines.isaac.world import IsaacWorld
    from internutopia.engines.physx.ovphysx_world import OvphysxWorld

    worlds: list[PhysxWorld] = []

    def make(env_num: int = 1, dt: float = DT, substeps: int = 1, threads: int = 1) -> PhysxWorld:
        arguments = env_num, env_origins(env_num, 5.0), dt, substeps, threads
        isaac = functools.partial(IsaacWorld, SimConfig(backend='isaac_sim'))
        worlds.append((OvphysxWorld if host == 'ovphysx' else isaac)(*arguments))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def start(make_world: Callable[..., Any], models: dict[str, str]) -> Callable[..., Any]:
    """Starts a world with these robots and objects in each of its envs."""

    def start(
        *robots: RobotSpec,
        objects: tuple[ObjectSpec, ...] = (),
        scene: str | None = 'floor',
        env_num: int = 1,
        **fields: Any,
    ) -> Any:
        world = make_world(env_num, **fields)
        spec = SceneSpec(models.get(scene, scene) if scene else None, robots=robots, objects=objects)
        handle = world.prepare(spec)
        world.load({env_id: (handle, spec) for env_id in range(env_num)})
        return world

    return start


@pytest.fixture
def run() -> Callable[..., None]:
    """Steps all envs of a world for some seconds."""

    def run(world: Any, seconds: float) -> None:
        for _ in range(round(seconds / world.step_dt)):
            assert not world.step(np.arange(world.env_num))

    return run
