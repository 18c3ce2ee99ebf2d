"""Stand-in for a GPU: tensors that say they are on `cuda:0`, and hold the values of tensors of the host.

`stand_in_gpu` makes torch put its tensors there, and Warp's CPU device look like a GPU to what runs on it: host and
device are apart, and what belongs to Warp is seen as such tensors. What CUDA refuses is refused at any time (arithmetic
with tensors of the host, `.numpy()`). `no_waiting` refuses in addition whatever makes the host wait, or copies from one
side to the other: uploads, `.cpu()`, `.item()`, shapes that depend on values (`nonzero`, an index that is a mask).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from warp_device import DEVICE

torch = pytest.importorskip('torch')
modes = pytest.importorskip('torch.utils._python_dispatch')
overrides = pytest.importorskip('torch.overrides')
tree_map, tree_leaves = torch.utils._pytree.tree_map, torch.utils._pytree.tree_leaves

GPU = torch.device('cuda:0')
_HOST = torch.device('cpu')
_INSIDE = torch.device('meta')  # what the stand-in is to torch's own code, which has no guard for CUDA here
_WAITS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
_INDEXED = {'index', 'index_put_'}  # which have these tags, and only need them if an index is a mask
_TAKES_BOTH = {'copy_', *_INDEXED}  # operations between host and device
_refused = False  # whether what makes the host wait is an error
_pinned: set[int] = set()  # memory of the host that copies need not wait for, by its address


class GpuTensor(torch.Tensor):
    """A tensor on the stand-in; `values` is the one of the host that has its numbers."""

    values: Any

    @staticmethod
    def __new__(cls, values: Any) -> GpuTensor:
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=_INSIDE,
            dispatch_device=True,
        )
        tensor.values = values
        return tensor

    @property
    def device(self) -> Any:
        return GPU

    @property
    def is_cuda(self) -> bool:
        return True

    def numpy(self, **_: Any) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy it to host memory")

    __array__ = numpy

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __setitem__(self, index: Any, value: Any) -> None:
        indices = index if isinstance(index, tuple) else (index,)
        if isinstance(value, torch.Tensor):
            super().__setitem__(index, value)
        elif any(isinstance(each, torch.Tensor | list) for each in indices):
            super().__setitem__(index, torch.tensor(value, dtype=self.dtype))  # as CUDA does: a number of the host
        else:
            self[index].fill_(value)

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.ops.prim.device.default:
            return _INSIDE
        name = function._opname
        _check_operation(function, name, args, kwargs)
        to_host = 'device' in kwargs and kwargs['device'] == _HOST
        if kwargs.pop('pin_memory', False):
            result = function(*tree_map(_values, args), **tree_map(_values, kwargs))
            _pinned.add(result.data_ptr())
            return result
        if kwargs.get('device') is not None:
            kwargs['device'] = _HOST
        result = function(*tree_map(_values, args), **tree_map(_values, kwargs))
        if to_host:
            return result
        known = {id(each.values): each for each in tree_leaves((args, kwargs)) if isinstance(each, GpuTensor)}
        known |= {id(each): each for each in tree_leaves((args, kwargs)) if type(each) is torch.Tensor}

        def shown(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return known[id(value)] if id(value) in known else GpuTensor(value)

        return tree_map(shown, result)


class _OnGpu(overrides.TorchFunctionMode):
    """Makes what is asked for on a GPU on the stand-in."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function is torch.device or not any(_names_gpu(value) for value in (*args, *kwargs.values())):
            return function(*args, **kwargs)
        source = args[0] if args else None
        if isinstance(source, GpuTensor):
            args = tuple(value for value in args if not _names_gpu(value))
            kwargs = {name: value for name, value in kwargs.items() if not _names_gpu(value)}
            unchanged = len(args) == 1 and all(value is None for value in kwargs.values())
            return source if unchanged else function(*args, **kwargs)
        if function in (torch.tensor, torch.asarray, torch.as_tensor, torch.Tensor.to):
            _check(False, 'an upload')
        args = tuple(_HOST if _names_gpu(value) else value for value in args)
        kwargs = {name: _HOST if _names_gpu(value) else value for name, value in kwargs.items()}
        return GpuTensor(function(*args, **kwargs).clone())


class _Numbers(modes.TorchDispatchMode):
    """Makes the numbers on the stand-in that torch's own code makes tensors of."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get('device') == _INSIDE:
            _check(function._opname != '_to_copy' or isinstance(args[0], GpuTensor), 'an upload')
            kwargs['device'] = _HOST
            return GpuTensor(function(*tree_map(_values, args), **kwargs))
        return function(*args, **kwargs)


class _Generator(torch.Generator):
    """A source of random numbers of the host, whatever device is asked for."""

    def __new__(cls, device: Any = None) -> _Generator:
        return super().__new__(cls)


class _Network:
    """A network of TorchScript, whose inside is not looked at."""

    def __init__(self, network: Any):
        self._network = network
        self.eval, self.buffers = network.eval, network.buffers

    def __call__(self, observations: GpuTensor) -> GpuTensor:
        return GpuTensor(self._network(observations.values))


class _Event:
    """An event of CUDA: what was asked for before it is done."""

    def record(self) -> None: ...

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        _check(False, 'a wait for an event')


@contextmanager
def stand_in_gpu() -> Iterator[None]:
    """Torch has a GPU, and worlds on Warp's CPU device take it for theirs."""
    import warp as wp

    from internutopia.engines.warp import arrays, device
    from internutopia.util.arrays import DeviceArrays

    to_torch, load = wp.to_torch, torch.jit.load

    def load_there(file: Any, map_location: Any, **options: Any) -> Any:
        network = load(file, map_location=_HOST, **options)
        return _Network(network) if _names_gpu(map_location) else network

    with pytest.MonkeyPatch.context() as patch, _OnGpu(), _Numbers():
        patch.setattr(wp, 'to_torch', lambda array, **options: GpuTensor(to_torch(array, **options)))
        patch.setattr(arrays, 'shares_memory', lambda device: False)
        patch.setattr(device, 'DeviceArrays', lambda _: DeviceArrays(str(GPU)))
        patch.setattr(torch, 'Generator', _Generator)
        patch.setattr(torch.jit, 'load', load_there)
        patch.setattr(torch.cuda, 'Event', _Event)
        _refuse_waits_of_warp(patch)
        yield


def _refuse_waits_of_warp(patch: pytest.MonkeyPatch) -> None:
    """What Warp would copy between host and device, or wait for, is refused likewise."""
    import warp as wp

    from internutopia.engines.warp.arrays import HostMirror

    def refused(function: Any, what: str) -> Any:
        def checking(*args: Any, **options: Any) -> Any:
            _check(False, what)
            return function(*args, **options)

        return checking

    for name in ('synchronize', 'synchronize_device', 'synchronize_stream'):
        patch.setattr(wp, name, refused(getattr(wp, name), 'a wait for the device'))
    patch.setattr(wp.array, 'numpy', refused(wp.array.numpy, 'a read of the host'))
    patch.setattr(wp.array, 'assign', refused(wp.array.assign, 'an upload to an array'))
    upload = HostMirror.upload

    def uploading(mirror: HostMirror) -> None:
        _check(not mirror._written, 'an upload of a mirror')
        upload(mirror)

    patch.setattr(HostMirror, 'upload', uploading)


@contextmanager
def no_waiting() -> Iterator[None]:
    """AssertionError for what copies between host and device, or makes the host wait."""
    with _refusing(True):
        yield


@contextmanager
def on_a_gpu() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Gives what makes waiting for a GPU an error; where there is none, a stand-in takes its place."""

    @contextmanager
    def no_waiting_here() -> Iterator[None]:
        torch.cuda.set_sync_debug_mode('error')
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode('default')

    if DEVICE == 'cpu':
        with stand_in_gpu():
            yield no_waiting
    else:
        yield no_waiting_here


@contextmanager
def engine() -> Iterator[None]:
    """What stands for the engine may do all that within `no_waiting`."""
    with _refusing(False):
        yield


@contextmanager
def _refusing(refused: bool) -> Iterator[None]:
    global _refused
    before, _refused = _refused, refused
    try:
        yield
    finally:
        _refused = before


def _check_operation(function: Any, name: str, args: Any, kwargs: Any) -> None:
    """Refuse an operation on tensors of which some are on the stand-in."""
    on_host = [
        value for value in tree_leaves((args, kwargs)) if type(value) is torch.Tensor and value.ndim
    ]  # a single number of the host goes along with an operation
    if name == 'copy_' and _refused:
        target, source, *waiting = args
        free = type(target) is torch.Tensor and target.data_ptr() in _pinned and waiting == [True]
        _check(not on_host or free, 'a copy between host and device')
    elif name in _INDEXED:
        _check(not on_host, 'an upload')
        masks = any(index is not None and index.dtype == torch.bool for index in args[1])
        one_for_all = name == 'index_put_' and not args[2].ndim
        _check(one_for_all or not masks, f'{name} with a mask counts it')
        _check(masks or not one_for_all or isinstance(args[2], GpuTensor), 'an upload of a number')
    elif on_host and name not in _TAKES_BOTH:
        raise RuntimeError(f'Expected all tensors to be on the same device: {name} of a tensor of the host')
    else:
        _check(not _WAITS & set(function.tags), f'{name} tells the host a value')
        to_host = name == '_to_copy' and kwargs.get('device') == _HOST
        _check(not to_host, 'a copy between host and device')


def _check(allowed: bool, what: str) -> None:
    if _refused and not allowed:
        raise AssertionError(what)


def _names_gpu(value: Any) -> bool:
    return isinstance(value, str | torch.device) and str(value).startswith('cuda')


def _values(value: Any) -> Any:
    return value.values if isinstance(value, GpuTensor) else value
