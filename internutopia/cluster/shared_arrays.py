"""Shared arrays: named arrays in memory that several processes of one machine have.

The memory has no name in the file system: it is handed over as a file descriptor, and the kernel frees it with the last
process that has it, however that one ends.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ALIGNMENT = 64  # bytes, a cache line


@dataclass(frozen=True)
class ArrayField:
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class SharedArrays(Mapping[str, NDArray[Any]]):
    """Arrays by name, zero at first.

    Args:
        fields: which there are.
        fd: file descriptor of the memory, from another process; None makes it.

    Attributes:
        fd: file descriptor of the memory; -1 when it was given back.
    """

    fd: int = -1

    def __init__(self, fields: Mapping[str, ArrayField], fd: int | None = None):
        offsets, size = {}, 0
        for name, field in fields.items():
            offsets[name] = size
            size += -(-math.prod(field.shape) * field.dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        self.fd = os.memfd_create('internutopia') if fd is None else fd
        if fd is None:
            os.ftruncate(self.fd, size)
        memory = mmap.mmap(self.fd, size)
        self.fields = dict(fields)
        self._arrays = {
            name: np.ndarray(field.shape, field.dtype, memory, offsets[name]) for name, field in fields.items()
        }

    def __del__(self) -> None:
        self.close()

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def close(self) -> None:
        """Give back the file descriptor; the arrays stay as long as they are referenced."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
