"""Launch of Isaac Sim: the installed version, the names of its API, and the start of its app.

This is the only module that imports Isaac Sim, and only inside functions. Its names of 6.x replace those of 5.x:
`load_names` takes the newest set that is complete.

Signatures: github.com/isaac-sim/IsaacSim (Apache-2.0), tags v5.0.0, v5.1.0 and v6.0.1.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import re
import sys
from types import SimpleNamespace
from typing import Any

from internutopia.config import SimConfig
from internutopia.engines.isaac.app import IsaacSim, LegacySim
from internutopia.util import log

VERSIONS = '5.0, 5.1 and 6.0'
_LIVESTREAM = 'omni.kit.livestream.webrtc'
_TENSORS = {'create_simulation_view': 'omni.physics.tensors:create_simulation_view'}
# What each set of names calls the things that are used, `module:attribute`; newest first
NAMES: dict[str, dict[str, str]] = {
    'experimental': {
        'app': 'isaacsim.core.experimental.utils.app:',
        'stage': 'isaacsim.core.experimental.utils.stage:',
        'SimulationManager': 'isaacsim.core.simulation_manager:SimulationManager',
        'RenderingManager': 'isaacsim.core.rendering_manager:RenderingManager',
        **_TENSORS,
    },
    'isaacsim': {
        'World': 'isaacsim.core.api:World',
        'extensions': 'isaacsim.core.utils.extensions:',
        'stage': 'isaacsim.core.utils.stage:',
        **_TENSORS,
    },
}
# Names that live in extensions which are loaded only where images are captured
CAMERAS: dict[str, str] = {
    'experimental': 'isaacsim.sensors.experimental.rtx:TiledCameraSensor',
    'isaacsim': 'isaacsim.sensors.camera:CameraView',
}
_app: Any = None  # Isaac Sim's app lives as long as the process: a second world uses the first one's


def start_isaac_sim(config: SimConfig, dt: float) -> IsaacSim:
    """Start the app, unless it runs, and pick the names.

    ImportError, naming versions and the way to install, if there is no Isaac Sim. ValueError for a device or renderer
    that it does not have.
    """
    global _app
    if config.renderer != 'auto':
        raise ValueError(f"SimConfig.renderer={config.renderer!r}: backend 'isaac_sim' renders with RTX; use 'auto'")
    if not re.fullmatch(r'cpu|cuda(:\d+)?', config.device):
        raise ValueError(f"SimConfig.device={config.device!r}: backend 'isaac_sim' runs on 'cpu' or 'cuda:<number>'")
    if _app is None:
        _app = _start_app(config)
    generation, names = load_names()
    sim = IsaacSim if generation == 'experimental' else LegacySim
    return sim(names, functools.partial(look_up, CAMERAS[generation]), dt, config)


def load_names() -> tuple[str, SimpleNamespace]:
    """Return the newest set of names that is available, and the objects of its names."""
    missing: list[str] = []
    for generation, table in NAMES.items():
        try:
            return generation, SimpleNamespace(**{name: look_up(place) for name, place in table.items()})
        except (ImportError, AttributeError) as error:
            missing.append(str(error))
    raise ImportError(f'this Isaac Sim is none of {VERSIONS}; missing in their names: {"; ".join(missing)}')


def look_up(place: str) -> Any:
    """Resolve a `module:attribute`; the module itself without an attribute."""
    module, _, attribute = place.partition(':')
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def _start_app(config: SimConfig) -> Any:
    """Start Isaac Sim's app; it has to run before anything else of Isaac Sim can be imported."""
    try:
        app_class = look_up('isaacsim:SimulationApp')
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"backend 'isaac_sim' needs Isaac Sim ({VERSIONS}) in this Python: "
            "pip install 'isaacsim[all]==5.1.0', with NVIDIA's package index as --extra-index-url"
        ) from error
    gpu = int(config.device.partition(':')[2] or 0)
    # several GPUs in one renderer are not faster for small images, and break tiled ones
    launch_config = {'multi_gpu': False, 'active_gpu': gpu, 'physics_gpu': gpu}
    launch_config['headless'] = config.headless or config.webrtc
    arguments, sys.argv = sys.argv, sys.argv[:1]  # else Isaac Sim takes those of this program for its own
    try:
        app = app_class(launch_config=launch_config)
    finally:
        sys.argv = arguments
    atexit.register(app.close)
    if config.webrtc:
        app.set_setting('/app/window/drawMouse', True)
        _, names = load_names()
        enable = getattr(names, 'extensions', None) or names.app
        enable.enable_extension(_LIVESTREAM)
    if config.native:
        log.warning('SimConfig.native is deprecated and has no effect: stream with SimConfig.webrtc')
    return app
