"""Cart-poles on `mujoco_warp` with tensors, for tests of envs on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from warp_device import DEVICE

from internutopia.config import Config
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import cart_pole

N = 6


def on_warp(config: Config, **changes: Any) -> Config:
    """The config on `mujoco_warp`."""
    simulator = config.simulator.model_copy(update={'backend': 'mujoco_warp', 'device': DEVICE})
    return config.model_copy(update={'simulator': simulator, **changes})


def poles(num_envs: int = N, **changes: Any) -> Config:
    """Cart-poles that begin alike, and fall soon."""
    config = cart_pole.config(num_envs, 0, start=0.0, force=40.0)
    config.simulator.substeps = 2
    return on_warp(config, **changes)


def pushes(k: int, num_envs: int = N) -> np.ndarray:
    """Actions `(n, 1)` that topple each pole at another time."""
    return (0.2 * (1.0 + np.arange(num_envs)) + 0.01 * k)[:, None].astype(np.float32)


def on_device(config: Config, mode: str = 'NextStep', **options: Any) -> Any:
    """Envs whose arrays are tensors."""
    return VectorEnv(config, autoreset_mode=mode, arrays='torch', **options)


def assert_same(host: Any, device: Any) -> None:
    """Equal arrays, in dicts and tuples, too."""
    if isinstance(host, dict):
        assert host.keys() <= device.keys()
        for name, values in host.items():
            assert_same(values, device[name])
    elif isinstance(host, tuple):
        for values in zip(host, device, strict=True):
            assert_same(*values)
    else:
        assert isinstance(device, torch.Tensor)
        np.testing.assert_allclose(device.cpu().numpy(), host, rtol=1e-5, atol=1e-5)
