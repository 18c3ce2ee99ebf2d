"""Spacing of envs, so that their scenes do not overlap in pictures.

Envs never touch, however near they stand: only pictures of all of them show that their scenes overlap.
"""

from __future__ import annotations

import math
from typing import TypeVar
from weakref import WeakSet

import numpy as np

from internutopia.config import Config, DistributedConfig
from internutopia.core.task.scene_builder import scene_spec
from internutopia.engines.base import SceneHandle
from internutopia.model.asset_files import limited_by
from internutopia.model.compiled import CompiledScene
from internutopia.model.scene_bounds import SceneBounds
from internutopia.model.scene_cache import SCENES
from internutopia.util import log
from internutopia.util.conventions import conventions_of

ConfigT = TypeVar('ConfigT', bound=Config)

_SMALLEST = 5.0  # m, also between scenes with nothing but a ground
_GAP = 0.5  # m


class SceneReach:
    """Extent of a set of scenes, any two of which may be neighbours.

    Attributes:
        length: the shortest distance [m] between envs at which they do not overlap; 0 if there are none.
    """

    def __init__(self) -> None:
        self.length = 0.0
        self._low, self._high = np.full(2, np.inf), np.full(2, -np.inf)  # of all scenes, env frame [m]
        self._known: WeakSet[CompiledScene] = WeakSet()
        self._warned = False

    @property
    def spacing(self) -> float:
        """Suggested distance [m]: with a gap, in steps of half a metre."""
        return max(math.ceil(2.0 * (self.length + _GAP)) / 2.0, _SMALLEST)

    def add(self, scene: SceneHandle) -> None:
        """Add a scene; robots, objects and endless grounds do not count."""
        if not isinstance(scene, CompiledScene) or scene in self._known:
            return
        self._known.add(scene)
        box = SceneBounds(scene).box
        if box is not None:
            low, high = box
            self._low, self._high = np.minimum(self._low, low[:2]), np.maximum(self._high, high[:2])
            self.length = float((self._high - self._low).max())

    def warn_of_overlap(self, spacing: float) -> None:
        """Warn, once, if scenes overlap at this distance [m]."""
        if spacing < self.length and not self._warned:
            self._warned = True
            log.warning(
                "Config.env_offset_size=%g m: scenes are up to %.3g m wide and overlap in pictures; %g or 'auto' sets "
                'them apart',
                *(spacing, self.length, self.spacing),
            )


def with_spacing(config: ConfigT) -> ConfigT:
    """Return the config with a number for `env_offset_size='auto'`, the same for all processes of a run.

    FileNotFoundError, ValueError: the scene of a task cannot be read.
    """
    if config.env_offset_size != 'auto':
        return config
    distribution = config.distribution_config if isinstance(config, DistributedConfig) else None
    reach = SceneReach()
    if config.env_num > 1 or (distribution is not None and distribution.proc_num > 1):
        for index, task in {id(task): (i, task) for i, task in enumerate(config.task_configs)}.values():
            try:
                model = scene_spec(task.model_copy(update={'robots': [], 'objects': []}))
                if model.asset is not None:
                    model = conventions_of(config.compat)(config).scene(model)
                    with limited_by(config.simulator.asset_limits):
                        reach.add(SCENES.get(model, float(config.simulator.physics_dt)))
            except Exception as error:
                error.add_note(f"while computing env_offset_size='auto' for the scene of task_configs[{index}]")
                raise
    return config.model_copy(update={'env_offset_size': reach.spacing})
