"""GPU world: `mujoco_warp`, one batch per model structure; it runs on the CPU device, too, slowly.

The engine computes with 32-bit floats. What envs read and write is on the host: on CUDA each array that is read is
copied once per step. On the CPU device results are bitwise identical each time, and do not depend on the env id; on
CUDA the engine's sums come in any order.
"""

from __future__ import annotations

import re
from typing import Any

import mujoco_warp
import warp as wp
from typing_extensions import override

from internutopia.engines.batched.cameras import MujocoCameraView
from internutopia.engines.batched.world import BatchedWorld
from internutopia.engines.warp.cameras import WarpCameraView
from internutopia.engines.warp.env_batch import WarpEnvBatch
from internutopia.engines.warp.model import warp_scene
from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import SceneSpec

wp.config.log_level = max(wp.config.log_level, wp.LOG_WARNING)  # else it prints which kernels it loads


class WarpWorld(BatchedWorld):
    """Envs on a Warp device; cameras of models are ray traced if `raytrace`. Other arguments: see `BatchedWorld`."""

    engine = f'mujoco_warp {mujoco_warp.__version__}'

    def __init__(self, *args: Any, device: str, raytrace: bool = False, **kwargs: Any):
        self._device = open_device(device)
        self._raytrace = raytrace
        super().__init__(*args, **kwargs)

    @override
    def prepare(self, scene: SceneSpec) -> CompiledScene:
        """Compile a scene; ValueError also for what the engine has no code for."""
        compiled = super().prepare(scene)
        warp_scene(compiled)
        return compiled

    @override
    def _new_env_batch(self, scene: CompiledScene, capacity: int) -> WarpEnvBatch:
        return WarpEnvBatch(scene, capacity, self._device)

    @override
    def _new_camera_view(self, name: str) -> MujocoCameraView:
        return WarpCameraView(self, name, self._device) if self._raytrace else super()._new_camera_view(name)

    @override
    def _structure(self, scene: CompiledScene) -> bytes:
        return warp_scene(scene).structure


def open_device(name: str) -> wp.Device:
    """Return the device of a name, `'cpu'` or `'cuda:0'`. ValueError if there is none."""
    if not re.fullmatch(r'cpu|cuda:\d+', name):
        raise ValueError(f"SimConfig.device={name!r}: expected 'cpu' or a GPU such as 'cuda:0'")
    found = [device.alias for device in wp.get_cuda_devices()]
    if name not in ('cpu', *found):
        raise ValueError(
            f'SimConfig.device={name!r}: there is no such device; '
            + (f'CUDA devices here: {", ".join(found)}' if found else 'no CUDA device with its driver was found here')
            + "; device='cpu' needs none"
        )
    return wp.get_device(name)
