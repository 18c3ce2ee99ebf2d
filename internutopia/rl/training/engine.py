"""Physics engine of envs and its device: the options `--backend` and `--device`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from internutopia.config import Config
from internutopia.util.imports import install_hint

BACKENDS = ('mujoco', 'mujoco_warp', 'physx')


@dataclass(frozen=True)
class Engine:
    """A backend on a device, such as `'cuda:0'`; see `choose_engine`."""

    backend: str
    device: str

    @property
    def tensor_device(self) -> str | None:
        """Device on which a policy computes on tensors; None if it computes in numpy."""
        return self.device if self.backend == 'mujoco_warp' or self.device != 'cpu' else None

    def __str__(self) -> str:
        return f'{self.backend} on {self.device}'

    @classmethod
    def of(cls, config: Config) -> Self:
        """Return the engine that the envs of a config run on."""
        return cls(config.simulator.backend, config.simulator.device)

    def of_rank(self, rank: int) -> Engine:
        """Return the engine of one of several processes: all share the CPU, and take one GPU each, from this one on.

        ValueError if there is no such GPU.
        """
        if self.device == 'cpu':
            return self
        kind, _, index = self.device.partition(':')
        engine = choose_engine(self.backend, f'{kind}:{int(index or 0) + rank}')
        assert engine is not None
        return engine

    def compute(self, config: Config) -> Config:
        """Return the same envs on this engine."""
        simulator = config.simulator.update(backend=self.backend, device=self.device)
        return config.model_copy(update={'simulator': simulator})


def choose_engine(backend: str | None = None, device: str | None = None) -> Engine | None:
    """Return the requested engine; None if none is, and envs run as in their config.

    Args:
        backend: one of `BACKENDS`; None means what is made for the device.
        device: `'cpu'`, or a GPU such as `'cuda:0'`; None means the CPU.

    ValueError for a backend or device that there is not, or a backend that does not compute on the device.
    """
    if backend is None and device is None:
        return None
    device = {None: 'cpu', 'cuda': 'cuda:0'}.get(device, device)
    assert device is not None
    backend = backend or ('mujoco' if device == 'cpu' else 'mujoco_warp')
    if backend not in BACKENDS:
        raise ValueError(f'backend {backend!r} is not one of {", ".join(map(repr, BACKENDS))}')
    if not re.fullmatch(r'cpu|cuda:\d+', device):
        raise ValueError(f"device {device!r}: expected 'cpu', or a GPU such as 'cuda:0'")
    if device != 'cpu':
        if backend == 'mujoco':
            raise ValueError(
                f"device {device!r}: backend {backend!r} computes on the CPU; backend 'mujoco_warp' uses a GPU"
            )
        _check_cuda(device)
    return Engine(backend, device)


def _check_cuda(device: str) -> None:
    """Raise ValueError that names the available devices, unless torch can use a GPU."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f'device {device!r} needs torch ({error}): {install_hint("gpu")}') from error
    found = [f'cuda:{index} ({torch.cuda.get_device_name(index)})' for index in range(torch.cuda.device_count())]
    if int(device.removeprefix('cuda:')) < len(found):
        return
    if found:
        there = f'the GPUs here are {", ".join(found)}'
    elif torch.version.cuda is None:
        there = f'torch {torch.__version__} is made for the CPU alone, install one for CUDA (https://pytorch.org)'
    else:
        there = f'torch {torch.__version__} (CUDA {torch.version.cuda}) finds no GPU with a driver'
    raise ValueError(f"device {device!r} cannot be used: {there}; device 'cpu' is always available")
