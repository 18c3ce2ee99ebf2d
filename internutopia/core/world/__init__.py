"""Physics worlds. `base` is the contract; `create_world` picks the implementation that a config asks for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from internutopia.core.config import SimConfig
from internutopia.core.world.base import ArticulationView, BodyView, World

__all__ = ['ArticulationView', 'BodyView', 'World', 'create_world']


def create_world(config: SimConfig, env_num: int, offsets: NDArray[np.float64]) -> World:
    """The world of `config.backend`.

    ValueError for a backend or device that there is not, ImportError for a package that is not installed.
    """
    arguments = (env_num, offsets, float(config.physics_dt), config.substeps, config.threads, config.render_quality)
    if config.backend == 'mujoco_warp':
        try:
            from internutopia.core.world.warp import WarpWorld
        except ModuleNotFoundError as error:
            if error.name not in ('mujoco_warp', 'warp'):
                raise
            raise ImportError(
                f"backend 'mujoco_warp' needs the package {error.name}: pip install 'internutopia[gpu]'"
            ) from error
        return WarpWorld(*arguments, device=config.device)
    if config.backend != 'mujoco':
        raise ValueError(
            f'SimConfig.backend={config.backend!r} is not implemented in this version; '
            "use backend='mujoco' (CPU) or 'mujoco_warp' (GPU)"
        )
    if config.device != 'cpu':
        raise ValueError(
            f"SimConfig.device={config.device!r}: backend 'mujoco' runs on the CPU; use device='cpu', "
            "or backend='mujoco_warp' for a GPU"
        )
    from internutopia.core.world.mujoco import MujocoWorld

    return MujocoWorld(*arguments)
