"""Stand-in for Isaac Sim: its Python modules with their recorded signatures, on this project's CPU engine.

`install` puts the modules of one version into `sys.modules`, for one test. It has what the adapter calls, with the
behaviour that is known of Isaac Sim (github.com/isaac-sim/IsaacSim, Apache-2.0, tags v5.0.0, v5.1.0 and v6.0.1) where
an adapter could go wrong:

- rows of a view are not in the order of envs, joints are those nearer to the root first, velocities are those of
  centres of mass; setting joint positions or velocities sets their targets, and in 5.x efforts of some joints are the
  only ones;
- poses are those of the world; all envs are stepped and reset together;
- links follow joints and roots that are set with the next step;
- what is stopped goes back to where the stage has it; 6.x makes two steps before anybody can look;
- a view that was made before the stage was changed, or physics stopped, cannot be used;
- of what lies below the base of a replication only the clones are there, each as its source says;
- the time step is kept as a whole number of steps per second;
- there is one World, and closing the app ends the process.

Robots and scenes are MJCF files: what Isaac Sim would do with a USD file of the same thing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from internutopia.engines.isaac import launch, usd_assets
from isaac_sim import app, cameras, cloner, experimental, managers, objects, prims, utils
from isaac_sim.recorded import recording
from isaac_sim.simulator import Simulator, start

_CORE: dict[str, Mapping[str, Any]] = {
    'isaacsim': {'SimulationApp': app.SimulationApp},
    'isaacsim.core.api': {'World': app.World},
    'isaacsim.core.api.objects': {
        'DynamicCuboid': objects.DynamicCuboid,
        'FixedCuboid': objects.FixedCuboid,
        'VisualCuboid': objects.VisualCuboid,
    },
    'isaacsim.core.prims': {
        'Articulation': prims.Articulation,
        'RigidPrim': prims.RigidPrim,
        'XFormPrim': prims.XFormPrim,
    },
    'isaacsim.core.utils.extensions': vars(utils.extensions),
    'isaacsim.core.utils.prims': vars(utils.prims),
    'isaacsim.core.utils.stage': vars(utils.stage),
    'isaacsim.core.cloner': {'GridCloner': cloner.GridCloner},
    'isaacsim.sensors.camera': {'CameraView': cameras.CameraView},
}
_NEW: dict[str, Mapping[str, Any]] = {
    'isaacsim.core.experimental.prims': {
        'Articulation': experimental.Articulation,
        'GeomPrim': experimental.GeomPrim,
        'RigidPrim': experimental.RigidPrim,
        'XformPrim': experimental.XformPrim,
    },
    'isaacsim.core.experimental.objects': {'Camera': cameras.Camera, 'Cube': experimental.Cube},
    'isaacsim.core.experimental.utils.app': vars(managers.app),
    'isaacsim.core.experimental.utils.stage': vars(managers.stage),
    'isaacsim.core.simulation_manager': {'SimulationManager': managers.SimulationManager},
    'isaacsim.core.rendering_manager': {'RenderingManager': managers.RenderingManager},
    'isaacsim.sensors.experimental.rtx': {'TiledCameraSensor': cameras.TiledCameraSensor},
}


def install(monkeypatch: pytest.MonkeyPatch, version: str, old_names: bool = False) -> Simulator:
    """Let the running test find Isaac Sim of a version, `'5.1.0'` or `'6.0.1'`, in its Python.

    With `old_names`, what it has is called `omni.isaac...`, as in 4.x. The adapter has no app yet, takes MJCF files as
    if they were USD, and what it wants done at the end of the process is kept in `Simulator.at_exit`.
    """
    simulator = start(version)
    monkeypatch.setattr(launch, '_app', None)
    monkeypatch.setattr(launch, 'atexit', SimpleNamespace(register=simulator.at_exit.append))
    monkeypatch.setattr(usd_assets, 'ASSET_SUFFIXES', (*usd_assets.USD_SUFFIXES, '.xml'))
    modules = _CORE if simulator.legacy else {**_CORE, **_NEW}
    contents = {f'{name}.{key}': value for name, values in modules.items() for key, value in values.items()}
    contents = {name: value for name, value in contents.items() if not name.rpartition('.')[2].startswith('_')}
    if old_names:
        contents = {
            name.replace(new, old): value
            for old, new in recording()['aliases'].items()
            for name, value in contents.items()
            if name == new or name.startswith(f'{new}.')
        }
    for name, value in contents.items():
        module, _, own = name.rpartition('.')
        setattr(_module(monkeypatch, module), own, getattr(value, '__func__', value))
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
