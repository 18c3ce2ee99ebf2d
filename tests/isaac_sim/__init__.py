"""Stand-in for Isaac Sim: its Python modules with their recorded signatures, on PhysX itself by `ovphysx`.

`install` puts the modules of one version into `sys.modules`, for one test. It has what the backend calls, with the
behaviour that is known of Isaac Sim (github.com/isaac-sim/IsaacSim, Apache-2.0, tags v5.0.0, v5.1.0 and v6.0.1;
github.com/NVIDIA-Omniverse/PhysX, BSD-3) where a backend could go wrong:

- rows of a view are not in the order of its paths; poses are those of the world;
- all envs are stepped together, in the time step of the stage, which is kept as a whole number of steps per second;
- what is stopped goes back to where the stage has it; 6.x makes two steps before anybody can look;
- a view that was made before physics stopped cannot be used;
- cameras see what is on the stage and nothing else; there is no picture before the first frame;
- there is one World, and closing the app ends the process.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from internutopia.engines.isaac import launch
from isaac_sim import app, cameras, tensors
from isaac_sim.simulator import Simulator, start

_TENSORS = {'omni.physics.tensors': {'create_simulation_view': tensors.create_simulation_view}}
_MODULES: dict[bool, dict[str, Mapping[str, Any]]] = {
    True: {
        'isaacsim': {'SimulationApp': app.SimulationApp},
        'isaacsim.core.api': {'World': app.World},
        'isaacsim.core.utils.extensions': {'enable_extension': app.enable_legacy_extension},
        'isaacsim.core.utils.stage': app.stage_functions('isaacsim.core.utils.stage'),
        'isaacsim.sensors.camera': {'CameraView': cameras.CameraView},
        **_TENSORS,
    },
    False: {
        'isaacsim': {'SimulationApp': app.SimulationApp},
        'isaacsim.core.experimental.utils.app': {
            name: getattr(app, name) for name in ('play', 'stop', 'update_app', 'enable_extension')
        },
        'isaacsim.core.experimental.utils.stage': app.stage_functions('isaacsim.core.experimental.utils.stage'),
        'isaacsim.core.simulation_manager': {'SimulationManager': app.SimulationManager},
        'isaacsim.core.rendering_manager': {'RenderingManager': app.RenderingManager},
        'isaacsim.sensors.experimental.rtx': {'TiledCameraSensor': cameras.TiledCameraSensor},
        **_TENSORS,
    },
}


def install(monkeypatch: pytest.MonkeyPatch, version: str) -> Simulator:
    """Let the running test find Isaac Sim of a version, `'5.1.0'` or `'6.0.1'`, in its Python.

    The backend has no app yet, and what it wants done at the end of the process is kept in `Simulator.at_exit`.
    """
    simulator = start(version)
    monkeypatch.setattr(launch, '_app', None)
    monkeypatch.setattr(launch, 'atexit', SimpleNamespace(register=simulator.at_exit.append))
    for module, values in _MODULES[simulator.legacy].items():
        for name, value in values.items():
            setattr(_module(monkeypatch, module), name, value)
    return simulator


def _module(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    """The module of that name, with the packages that it is in."""
    if name in sys.modules:
        return sys.modules[name]
    module = ModuleType(name)
    module.__path__ = []
    monkeypatch.setitem(sys.modules, name, module)
    package, _, own = name.rpartition('.')
    if package:
        setattr(_module(monkeypatch, package), own, module)
    return module
