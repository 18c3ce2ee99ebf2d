"""Traced arrays: they are passed to batched code in place of numbers, to record what it computes.

A `Traced` is an array with one row, that of any env. Its elements are `Node`s: numpy takes care of shapes, indices and
broadcasting, and of types by its own rules, and each element of a result records how it follows from others. Code that
reads values, or calls a function that no kernel has, raises an `UntraceableError` or another exception.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.rl.compiled.nodes import Node, UntraceableError, constant
from internutopia.util.arrays import HostArrays

_RENAMED = {'true_divide': 'divide', 'abs': 'absolute', 'fabs': 'absolute', 'conjugate': 'positive'}

_PYTHON = bool, int, float  # whose numbers have no type of their own, for numpy


class Traced(np.ndarray):
    """An array of nodes, all of the type `dtype`."""

    element: np.dtype[Any]

    @classmethod
    def of(cls, nodes: Any, dtype: Any) -> Traced:
        """Return a traced array of nodes (an array of objects, or one node) of a type."""
        if not isinstance(nodes, np.ndarray):
            nodes = np.array(nodes, object)
        traced = nodes.view(cls)
        traced.element = np.dtype(dtype)
        return traced

    @override
    def __array_finalize__(self, other: Any) -> None:
        if isinstance(other, Traced):
            self.element = other.element

    @property
    @override
    def dtype(self) -> Any:
        """Type of the numbers."""
        return self.element

    @override
    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        return value if isinstance(value, Traced) else Traced.of(value, self.element)

    @override
    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, nodes_of(cast(value, self.element)))

    @override
    def astype(self, dtype: Any, *_: Any, **__: Any) -> Any:
        return cast(self, np.dtype(dtype))

    @override
    def view(self, dtype: Any = None, type: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the same array, or its 64 bits as two numbers of 32 each, the lower first."""
        if dtype is None:
            return super().view()
        if self.element != np.uint64 or dtype != np.uint32:
            raise UntraceableError(f'{self.element} seen as {dtype}')
        halves = [cast(bits, np.dtype(np.uint32)) for bits in (self, self >> np.uint64(32))]
        return np.stack(halves, axis=-1).reshape(*self.shape[:-1], -1)

    @override
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if method == '__call__':
            result = _called(ufunc, inputs, **options)
        elif method == 'reduce':
            result = _reduced(ufunc, *inputs, **options)
        else:
            raise UntraceableError(f'numpy.{ufunc.__name__}.{method}')
        if out is None:
            return result
        if not isinstance(out[0], Traced):
            raise UntraceableError('traced values cannot be written to an array of numbers')
        out[0][...] = result
        return out[0]

    @override
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        own = _FUNCTIONS.get(function.__name__)
        if own is not None:
            return own(*args, **kwargs)
        return super().__array_function__(function, [np.ndarray], args, kwargs)


def cast(value: Any, dtype: np.dtype[Any]) -> Traced:
    """Return a value, traced or not, as a traced array of a type."""
    if isinstance(value, Traced):
        if value.element == dtype:
            return value
        return Traced.of(_each(lambda node: node.cast(dtype), nodes_of(value)), dtype)
    value = np.asarray(value)
    if value.dtype == object:
        raise UntraceableError('arrays of objects')
    return Traced.of(_each(lambda number: constant(number, dtype), value.astype(dtype).astype(object)), dtype)


def nodes_of(traced: Traced) -> np.ndarray:
    """Return the nodes as a plain array of objects."""
    return np.ndarray.view(traced, np.ndarray)


def _each(function: Callable[..., Node], *arrays: np.ndarray) -> np.ndarray:
    result = np.frompyfunc(function, len(arrays), 1)(*arrays)
    return result if isinstance(result, np.ndarray) else np.array(result, object)


def _kind(value: Any) -> Any:
    """Return the type by which numpy chooses what a function computes with: Python's numbers have none of their own."""
    if type(value) in _PYTHON:
        return type(value)
    return value.element if isinstance(value, Traced) else np.asarray(value).dtype


def _called(ufunc: np.ufunc, inputs: tuple[Any, ...], where: Any = True, casting: str = '', **options: Any) -> Traced:
    if where is not True or options.keys() - {'dtype', 'subok'} or ufunc.nout != 1:
        raise UntraceableError(f'numpy.{ufunc.__name__} with {", ".join(options) or "where"}')
    name = _RENAMED.get(ufunc.__name__, ufunc.__name__)
    if name == 'power' and type(inputs[1]) in _PYTHON and inputs[1] in (2, 0.5):
        return _called(np.square if inputs[1] == 2 else np.sqrt, inputs[:1])  # as numpy does
    if name == 'clip':
        return np.minimum(np.maximum(inputs[0], inputs[1]), inputs[2])
    kinds = [_kind(value) for value in inputs]
    if dtype := options.get('dtype'):
        kinds = [np.dtype(dtype)] * len(kinds)
    if bool in kinds:
        kinds = [np.dtype(bool) if kind is bool else kind for kind in kinds]
    *loop, result = ufunc.resolve_dtypes((*kinds, None))
    values = [cast(value, dtype) for value, dtype in zip(inputs, loop, strict=True)]
    if name == 'positive':
        return values[0]
    return Traced.of(_each(lambda *nodes: Node(name, result, nodes), *map(nodes_of, values)), result)


def _reduced(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Traced:
    if where is not True or not isinstance(array, Traced):
        raise UntraceableError(f'numpy.{ufunc.__name__}.reduce with where')
    if dtype is None and ufunc is np.add and array.element.kind in 'bi':
        dtype = np.int64  # numpy adds in what an index has
    if dtype is not None:
        array = cast(array, np.dtype(dtype))
    axes = range(array.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for each in sorted((a % array.ndim for a in axes), reverse=True):
        if each == 0 and array.shape[0] == 1 and array.ndim > 0:
            raise UntraceableError(f'numpy.{ufunc.__name__}.reduce over envs')
        parts = np.moveaxis(array, each, 0)
        if not len(parts):
            raise UntraceableError('a reduction of nothing')
        total = functools.reduce(lambda a, b: _called(ufunc, (a, b)), (parts[k] for k in range(len(parts))))
        array = np.expand_dims(total, each) if keepdims else total
    return array if initial is None else _called(ufunc, (array, initial))


def _where(condition: Any, x: Any, y: Any) -> Traced:
    plain = [value if type(value) in _PYTHON else _kind(value) for value in (x, y)]
    dtype = np.result_type(*plain)
    values = cast(condition, np.dtype(bool)), cast(x, dtype), cast(y, dtype)
    return Traced.of(_each(lambda *nodes: Node('where', dtype, nodes), *map(nodes_of, values)), dtype)


def _joined(function: Callable[..., Any]) -> Callable[..., Traced]:
    def join(arrays: Any, axis: int = 0, **options: Any) -> Traced:
        if options:
            raise UntraceableError(f'numpy.{function.__name__} with {", ".join(options)}')
        dtype = np.result_type(*(_kind(array) for array in arrays))
        return Traced.of(function([nodes_of(cast(array, dtype)) for array in arrays], axis=axis), dtype)

    return join


def _broadcast_to(array: Any, shape: Any) -> Traced:
    return Traced.of(np.broadcast_to(nodes_of(array), shape), array.element)


def _full_like(like: Any, value: Any, dtype: Any = None, shape: Any = None, **_: Any) -> Traced:
    dtype = np.dtype(_kind(like) if dtype is None else dtype)
    return cast(np.full(np.shape(like) if shape is None else shape, value), dtype)


def _like(value: float) -> Callable[..., Traced]:
    return lambda like, *args, **options: _full_like(like, value, *args, **options)


def _clip(array: Any, a_min: Any = None, a_max: Any = None, **limits: Any) -> Any:
    low, high = limits.get('min', a_min), limits.get('max', a_max)
    array = array if low is None else np.maximum(array, low)
    return array if high is None else np.minimum(array, high)


def _copyto(target: Any, values: Any, where: Any = True, **_: Any) -> None:
    if not isinstance(target, Traced):
        raise UntraceableError('traced values cannot be written to an array of numbers')
    target[...] = values if where is True else _where(where, values, target)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    'where': _where,
    'broadcast_to': _broadcast_to,
    'stack': _joined(np.stack),
    'concatenate': _joined(np.concatenate),
    'clip': _clip,
    'copyto': _copyto,
    'empty_like': _like(0),
    'zeros_like': _like(0),
    'ones_like': _like(1),
    'full_like': _full_like,
    'result_type': lambda *values: np.result_type(*(_kind(value) for value in values)),
    'astype': lambda array, dtype, **_: cast(array, np.dtype(dtype)),
}


class _Namespace:
    """Numpy, whose functions take traced arrays where they take arrays."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def asarray(self, values: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the array; a copy is one that can be written to."""
        if not isinstance(values, Traced):
            return np.asarray(values, dtype, copy=copy)
        values = values if dtype is None else cast(values, np.dtype(dtype))
        return values.copy() if copy else values


class TracedArrays(HostArrays):
    """Array module of traced arrays; constants stay arrays of numbers."""

    on_device = True  # values cannot be read here, either
    xp = _Namespace()

    @override
    def zeros(self, shape: Any, dtype: str = 'float32') -> Any:
        return cast(np.zeros(shape), np.dtype(dtype))

    @override
    def asarray(self, values: Any, dtype: str | None = None) -> Any:
        return self.xp.asarray(values, dtype)
