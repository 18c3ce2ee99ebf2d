"""Worlds on `ovphysx` on a GPU: with tensors, or with arrays on the host.

Tests run them on the device `'cpu'`; what was run on a GPU, and what not since, is in `docs/physx.md`.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
import warp as wp
from typing_extensions import override

from internutopia.config import PhysxCfg
from internutopia.engines.physx.device_batch import PhysxDeviceEnvBatch, check_contacts
from internutopia.engines.physx.device_stage import DeviceStage
from internutopia.engines.physx.ovphysx_world import ENGINE
from internutopia.engines.physx.physx_scene import physx_scene
from internutopia.engines.physx.stage import StageLayout
from internutopia.engines.warp.device import WarpDeviceWorld
from internutopia.engines.warp.env_batch import WarpEnvBatch
from internutopia.engines.warp.model import warp_scene
from internutopia.engines.warp.world import WarpWorld
from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import SceneSpec


class PhysxGpuWorld(WarpWorld):
    """Envs on PhysX on a device; what envs read and write is on the host."""

    engine = ENGINE

    def __init__(self, *args: Any, buffers: PhysxCfg | None = None, **kwargs: Any):
        """`buffers`: `SimConfig.physx`. Other arguments: see `WarpWorld`."""
        super().__init__(*args, **kwargs)
        self._buffers = buffers or PhysxCfg()

    @override
    def prepare(self, scene: SceneSpec) -> CompiledScene:
        """Compile a scene; NotImplementedError also for what PhysX cannot do."""
        compiled = super().prepare(scene)
        check_contacts(physx_scene(compiled).shared_layout)
        return compiled

    @override
    def _new_env_batch(self, scene: CompiledScene, capacity: int) -> WarpEnvBatch:
        if self._device.is_cuda:  # one order for what kernels, torch and PhysX do
            wp.set_stream(wp.stream_from_torch(torch.cuda.current_stream(str(self._device))), self._device)
        return PhysxDeviceEnvBatch(scene, capacity, self._device, self._open_stage)

    def _open_stage(self, layout: StageLayout, slots: int) -> DeviceStage:
        spacing = float(np.abs(self.env_origins[1]).max()) if self.env_num > 1 else 0.0
        return DeviceStage(layout, slots, str(self._device), spacing, self._buffers)

    @override
    def _structure(self, scene: CompiledScene) -> bytes:
        parts = warp_scene(scene).structure + physx_scene(scene).structure
        return hashlib.blake2b(parts, digest_size=16).digest()


class PhysxDeviceWorld(PhysxGpuWorld, WarpDeviceWorld):
    """Envs on PhysX on a device; what envs read and write are tensors."""
