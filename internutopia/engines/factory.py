"""World factory: the implementation that a config selects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import SimConfig
from internutopia.engines.base import World
from internutopia.model.scene_cache import SCENES
from internutopia.util.imports import install_hint
from internutopia.util.log import warn_once


def create_world(
    config: SimConfig, env_num: int, env_origins: NDArray[np.float64], device_arrays: bool = False
) -> World:
    """Create the world of `config.backend`.

    With `device_arrays`, a `DeviceWorld` whose arrays are torch tensors, if the backend has one.

    ValueError for a backend or device that there is not, ImportError for a package that is not installed.
    """
    arguments = (env_num, env_origins, float(config.physics_dt), config.substeps, config.threads, config.render_quality)
    engine = {
        'max_timestep': float(config.max_timestep),
        'contact': config.contact,
        'asset_limits': config.asset_limits,
    }
    SCENES.capacity = int(config.scene_cache)
    if not config.headless and config.backend != 'isaac_sim':
        warn_once(
            'SimConfig.headless=False: backend %r does not open a window. `internutopia run --viewer` and '
            '`internutopia.viewer.attach(env)` show envs live in a browser, Env.render() returns images',
            config.backend,
        )
    if config.backend in ('physx', 'isaac_sim') and (left_out := config.contact.model_dump(exclude_none=True)):
        warn_once('SimConfig.contact: backend %r has no counterpart of %s', config.backend, ', '.join(left_out))
    if config.backend == 'mujoco_warp':
        try:
            from internutopia.engines.warp.world import WarpWorld

            if device_arrays:
                from internutopia.engines.warp.device import WarpDeviceWorld as WarpWorld
        except ModuleNotFoundError as error:
            if error.name not in ('mujoco_warp', 'warp', 'torch'):
                raise
            raise ImportError(f"backend 'mujoco_warp' needs the package {error.name}: {install_hint('gpu')}") from error
        raytrace = config.renderer == 'raytrace' or (config.renderer == 'auto' and config.device != 'cpu')
        return WarpWorld(*arguments, **engine, device=config.device, raytrace=raytrace)
    if config.backend == 'isaac_sim':
        from internutopia.engines.isaac.world import IsaacWorld

        return IsaacWorld(config, *arguments, **engine)
    if config.backend == 'physx':
        return _physx_world(config, device_arrays, *arguments, **engine)
    if config.device != 'cpu':
        raise ValueError(
            f"SimConfig.device={config.device!r}: backend 'mujoco' runs on the CPU; use device='cpu', "
            "or backend='mujoco_warp' for a GPU"
        )
    _check_renderer(config)
    from internutopia.engines.mujoco.world import MujocoWorld

    return MujocoWorld(*arguments, **engine)


def _check_renderer(config: SimConfig) -> None:
    if config.renderer == 'raytrace':
        raise ValueError(
            f"SimConfig.renderer='raytrace': backend {config.backend!r} renders with OpenGL; use 'opengl' or 'auto', "
            "or backend='mujoco_warp' for ray tracing"
        )


def _physx_world(config: SimConfig, device_arrays: bool, *arguments: Any, **engine: Any) -> World:
    try:
        if config.device == 'cpu':
            _check_renderer(config)
            from internutopia.engines.physx.ovphysx_world import OvphysxWorld

            return OvphysxWorld(*arguments, **engine)
        from internutopia.engines.physx.device_world import PhysxDeviceWorld, PhysxGpuWorld

        on_gpu = PhysxDeviceWorld if device_arrays else PhysxGpuWorld
        raytrace = config.renderer != 'opengl'
        return on_gpu(*arguments, **engine, device=config.device, raytrace=raytrace, buffers=config.physx)
    except ModuleNotFoundError as error:
        if error.name not in ('ovphysx', 'ovstage', 'mujoco_warp', 'warp', 'torch'):
            raise
        extra = 'physx' if error.name in ('ovphysx', 'ovstage') else 'gpu'
        raise ImportError(f"backend 'physx' needs the package {error.name}: {install_hint(extra)}") from error
