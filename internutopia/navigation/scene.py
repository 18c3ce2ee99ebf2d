"""Starting scene: the compiled model of a file or task without its robots, in the state that episodes begin with."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.config.task import TaskCfg
from internutopia.core.task.scene_builder import scene_spec
from internutopia.model.compiled import CompiledScene
from internutopia.model.part_boxes import geom_bounds
from internutopia.model.scene_cache import SCENES
from internutopia.model.spec import SceneSpec

_TIMESTEP = 0.005  # s; nothing is stepped


SceneFile = str | os.PathLike[str] | TaskCfg | SceneSpec


def spec_of(scene: SceneFile) -> SceneSpec:
    """Return the spec of a scene, without robots."""
    if isinstance(scene, SceneSpec):
        return replace(scene, robots=())
    task = scene if isinstance(scene, TaskCfg) else TaskCfg(scene_asset_path=os.fspath(scene))
    return scene_spec(task.model_copy(update={'robots': []}))


@dataclass(frozen=True)
class StartingScene:
    """A scene when an episode starts.

    Attributes:
        name: of its file.
        compiled: the scene.
        data: its state, positions computed.
    """

    name: str
    compiled: CompiledScene
    data: mujoco.MjData

    @classmethod
    def load(cls, scene: SceneFile) -> StartingScene:
        """Load the scene of a file, found like `scene_asset_path`, a task or a spec. Errors as for `SceneCache.get`."""
        spec = spec_of(scene)
        compiled = SCENES.get(spec, _TIMESTEP)
        return cls(spec.asset or 'the scene', compiled, compiled.data_at_start(spec))

    def box(self, geoms: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lowest and highest corner `(3,)` of a box around some geoms [m], env frame."""
        boxes = np.array([geom_bounds(self.compiled.model, self.data, geom, 0) for geom in geoms.tolist()])
        return boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)
