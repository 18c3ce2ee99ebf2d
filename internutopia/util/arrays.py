"""Array functions for numpy on the host and torch on a device, in the same code.

Batched code asks `namespace_of(array)` for the functions that suit an array: numpy itself, or torch under numpy's
names (`array_api_compat`). On a device nothing may depend on values on the way: no `if array.any()`, no `.item()`, no
index that is a mask; each would make the host wait. `masked_assign` writes where a mask is True.

Counters that are `STEP` apart give a sequence of independent numbers, so each row of an array may have its own. On a
device, counters are int64 tensors of the same 64 bits: torch has no arithmetic of uint64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from internutopia.util.imports import install_hint

if TYPE_CHECKING:
    import torch

STEP = np.uint64(0x9E3779B97F4A7C15)  # between the counters of a sequence


def mix(x: Any) -> Any:
    """Return 64 random bits for each counter, uint64; int64 for those of a device."""
    if not isinstance(x, np.ndarray):
        x = (x ^ shift(x, 30)) * signed(0xBF58476D1CE4E5B9)
        x = (x ^ shift(x, 27)) * signed(0x94D049BB133111EB)
        return x ^ shift(x, 31)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def shift(x: Any, places: int) -> Any:
    """Shift the bits to the right, zeros from the left; of signed numbers, too."""
    return (x >> places) & ((1 << (64 - places)) - 1)


def signed(bits: int) -> int:
    """Return 64 bits as a signed number, int64."""
    return int(bits) - ((int(bits) >> 63) << 64)


def namespace_of(array: Any) -> Any:
    """Return the module whose functions take this array; numpy for numbers and lists, too."""
    return torch_namespace() if hasattr(array, 'detach') else np


def is_tensor(array: Any) -> bool:
    """Return True for a torch tensor."""
    return hasattr(array, 'detach')


def is_traced(array: Any) -> bool:
    """Return True for an array of `rl.compiled`, which notes what is done to it and holds no numbers yet."""
    return hasattr(array, 'element')


@cache
def torch_namespace() -> Any:
    """Return torch with numpy's names. ImportError with the pip command."""
    try:
        import array_api_compat.torch as xp
    except ImportError as error:
        raise ImportError(f'device arrays need torch ({error}): {install_hint("gpu")}') from error
    return xp


def masked_assign(target: Any, mask: Any, values: Any) -> None:
    """Assign `target[mask] = values[mask]` in place: `mask` is bool `(n,)` or None for all rows; `values` has all."""
    if isinstance(target, np.ndarray):
        np.copyto(target, values, where=True if mask is None else expand_mask(mask, target))
    elif mask is None:
        target[...] = values
    elif is_tensor(values):
        import torch

        torch.where(expand_mask(mask, target), values.to(target.dtype), target, out=target)  # one launch
    else:
        target.masked_fill_(expand_mask(mask, target), values)


def to_host(array: Any) -> Any:
    """Return a numpy array of the same values; the host waits for a device to compute them."""
    return array.detach().cpu().numpy() if is_tensor(array) else array


def check_alike(arrays: Any, own: Sequence[np.ndarray]) -> None:
    """Raise ValueError unless these are numpy arrays of the same shapes and types as some others."""
    expected = [(array.shape, array.dtype) for array in own]
    given = [(each.shape, each.dtype) if isinstance(each, np.ndarray) else type(each) for each in arrays]
    if given != expected:
        raise ValueError(f'expected arrays {expected}, got {given}')


def expand_mask(mask: Any, target: Any) -> Any:
    """Return a mask of rows with the axes that it needs to broadcast against an array."""
    return mask.reshape(mask.shape + (1,) * (target.ndim - 1)) if target.ndim > 1 else mask


def torch_views(values: Any) -> Any:
    """Return the same with tensors of the same memory in place of numpy arrays, except for those of objects."""
    if isinstance(values, np.ndarray):
        return values if values.dtype.hasobject else torch_namespace().from_numpy(values)
    if isinstance(values, tuple):
        return tuple(torch_views(value) for value in values)
    if isinstance(values, dict):
        return {name: torch_views(value) for name, value in values.items()}
    return values


class ArrayMaker(ABC):
    """Makes arrays of one kind.

    Attributes:
        on_device: whether the host would have to wait for a value.
        xp: functions for the arrays.
        double: type of what is computed in double precision before it goes to the engine.
    """

    on_device: bool
    xp: Any
    double: str

    @abstractmethod
    def zeros(self, shape: Any, dtype: str = 'float32') -> Any:
        """Return zeros; `dtype` is a name that numpy and torch share."""

    @abstractmethod
    def asarray(self, values: Any, dtype: str | None = None) -> Any:
        """Return the values as an array, not copied if they are one; avoid it in every step where it uploads."""

    @abstractmethod
    def constant(self, values: Any) -> Any:
        """Return numbers, a tuple of them or tuples of tuples as a float32 array that is made once."""

    @abstractmethod
    def arange(self, n: int) -> Any:
        """Return 0, 1, ..., n - 1; on a device made once."""

    @abstractmethod
    def index(self, ids: Any) -> Any:
        """Return indices into an array, as an array; uploaded once."""

    @abstractmethod
    def random(self, seed: Any) -> Any:
        """Return a random number generator; `seed` is a number, a sequence of numbers or None."""


class HostArrays(ArrayMaker):
    """Array maker for numpy arrays."""

    on_device = False
    xp = np
    double = 'float64'
    asarray: Any = staticmethod(np.asarray)
    arange: Any = staticmethod(np.arange)
    random: Any = staticmethod(np.random.default_rng)

    @override
    def zeros(self, shape: Any, dtype: str = 'float32') -> Any:
        return np.zeros(shape, dtype)

    @override
    def constant(self, values: Any) -> Any:
        return _constant(values)

    @override
    def index(self, ids: Any) -> Any:
        return np.asarray(ids, np.intp)


class DeviceArrays(ArrayMaker):
    """Array maker for torch tensors on a device."""

    on_device = True
    double = 'float32'  # the engine computes no better

    def __init__(self, device: str):
        self.xp = torch_namespace()
        self.device: torch.device = self.xp.device(device)
        self._constants: dict[Any, Any] = {}

    @override
    def zeros(self, shape: Any, dtype: str = 'float32') -> Any:
        return self.xp.zeros(shape, dtype=getattr(self.xp, dtype), device=self.device)

    @override
    def asarray(self, values: Any, dtype: str | None = None) -> Any:
        if not isinstance(values, self.xp.Tensor):
            values = np.asarray(values)
            if dtype is None and values.dtype == np.float64:
                dtype = 'float32'
        return self.xp.asarray(values, dtype=None if dtype is None else getattr(self.xp, dtype), device=self.device)

    @override
    def constant(self, values: Any) -> Any:
        if values not in self._constants:
            self._constants[values] = self.asarray(values, 'float32')
        return self._constants[values]

    @override
    def arange(self, n: int) -> Any:
        return self.index(range(n))

    @override
    def index(self, ids: Any) -> Any:
        if isinstance(ids, self.xp.Tensor):
            return ids
        if isinstance(ids, range):
            key: Any = ids
        else:
            ids = np.asarray(ids, np.int64)
            key = ids.shape, ids.tobytes()
        if key not in self._constants:
            self._constants[key] = self.asarray(ids, 'int64')
        return self._constants[key]

    @override
    def random(self, seed: Any) -> DeviceRandom:
        return DeviceRandom(int(np.random.default_rng(seed).integers(2**63)), self.device)


@cache
def _constant(values: Any) -> Any:
    array = np.asarray(values, np.float32)
    array.flags.writeable = False
    return array


class AsyncReadback:
    """Asynchronous copies of tensors to the host, which does not wait for them."""

    def __init__(self) -> None:
        self._sent: deque[tuple[Any, list[Any]]] = deque()

    def send(self, *tensors: Any) -> None:
        """Start copying tensors to the host, as they are now in the order of the device's work."""
        if tensors[0].device.type == 'cpu':
            self._sent.append((None, [tensor.clone() for tensor in tensors]))
            return
        import torch

        copies = [torch.empty_like(tensor, device='cpu', pin_memory=True) for tensor in tensors]
        for copy, tensor in zip(copies, tensors, strict=True):
            copy.copy_(tensor, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        self._sent.append((event, copies))

    def receive(self, wait: bool = False) -> Iterator[list[np.ndarray]]:
        """Yield the copies that arrived since the last call, in the order of `send`; with `wait`, all of them."""
        while self._sent:
            event, copies = self._sent[0]
            if event is not None and not event.query():
                if not wait:
                    return
                event.synchronize()
            self._sent.popleft()
            yield [copy.numpy() for copy in copies]


class DeviceRandom:
    """Random numbers on a torch device: the part of `numpy.random.Generator` that batched code uses, float32."""

    def __init__(self, seed: int, device: torch.device):
        import torch

        self._torch = torch
        self.device = device
        self._generator = torch.Generator(device).manual_seed(seed)
        self._bounds: dict[Any, torch.Tensor] = {}

    def for_envs(self, env_ids: Any) -> AbstractContextManager[None]:
        """Return a context in which numbers are sampled for these envs: here they are always sampled for all."""
        return nullcontext()

    def random(self, size: Any = ()) -> torch.Tensor:
        """Sample uniformly from [0, 1)."""
        return self._torch.rand(_shape(size), generator=self._generator, device=self.device)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = ()) -> torch.Tensor:
        """Sample uniformly from [low, high); numbers, sequences or tensors that broadcast against `size`."""
        low, high = self._on_device(low), self._on_device(high)
        return low + (high - low) * self.random(size)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = ()) -> torch.Tensor:
        """Sample from the normal distribution with mean `loc` and standard deviation `scale`."""
        noise = self._torch.randn(_shape(size), generator=self._generator, device=self.device)
        return self._on_device(loc) + self._on_device(scale) * noise

    def integers(self, low: int, high: int | None = None, size: Any = ()) -> torch.Tensor:
        """Sample integers from [low, high), or from [0, low) without `high`."""
        first, end = (0, low) if high is None else (low, high)
        return self._torch.randint(first, end, _shape(size), generator=self._generator, device=self.device)

    def _on_device(self, value: Any) -> Any:
        """Return numbers as they are; sequences as tensors, which are uploaded once."""
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if not isinstance(value, Sequence):
            return value
        key = repr(value)
        if key not in self._bounds:
            self._bounds[key] = self._torch.tensor(value, dtype=self._torch.float32, device=self.device)
        return self._bounds[key]


def _shape(size: Any) -> tuple[int, ...]:
    return (size,) if isinstance(size, int) else tuple(size)
