"""Kernels of traced functions: the values that numpy gives, and errors for what no kernel can compute."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.rl.compiled.kernel import Inputs, Kernel
from internutopia.rl.compiled.nodes import UntraceableError
from internutopia.rl.env_random import EnvRandom
from internutopia.util.arrays import mix
from internutopia.util.rotations import cross, length, quat_multiply, quat_rotate, quat_rotate_inverse, yaw_of

pytest.importorskip('llvmlite')

ENVS = 37  # some of them computed at once, and the rest one by one
LIBM = 3e-7  # numpy has exp, sin, ... of its own, which differ from those of the C library in the last bit
RNG = np.random.default_rng(3)
Q = RNG.normal(size=(ENVS, 4))
V = RNG.normal(size=(ENVS, 3)).astype(np.float32)
W = RNG.normal(size=(ENVS, 2, 3)).astype(np.float32)
B = RNG.random((ENVS, 3)) > 0.5
K = RNG.integers(-5, 40, (ENVS, 3))
U = RNG.integers(0, 2**63, (ENVS, 2)).astype(np.uint64)

EXACT: dict[str, Callable[..., Any]] = {
    'arithmetic': lambda q, v, w, b, k, u: (v * 2.0 - q[:, 1:] / 3) ** 2 + -v + abs(v) + v**0.5,
    'integers': lambda q, v, w, b, k, u: k * 3 - 1 + (k > 2),
    'types': lambda q, v, w, b, k, u: v * np.float32(0.1) + k,
    'compared': lambda q, v, w, b, k, u: (v > 0.1) & ~b | (k == 3) | (v <= q[:, 1:]),
    'where': lambda q, v, w, b, k, u: np.where(b, v, 0.0),
    'where of numbers': lambda q, v, w, b, k, u: np.where(b, 1.0, -1.0),
    'clip': lambda q, v, w, b, k, u: v.clip(-0.5, 0.5) + v.clip(min=0.0) + np.clip(v, -1.0, None),
    'extremes': lambda q, v, w, b, k, u: np.maximum(v, q[:, 1:]) - np.minimum(v, 0.25),
    'not numbers': lambda q, v, w, b, k, u: np.maximum(np.sqrt(v), np.sqrt(-v)),
    'sums': lambda q, v, w, b, k, u: w.sum(axis=-1) + b.sum(axis=-1, keepdims=True) + w.mean(axis=-1),
    'any and all': lambda q, v, w, b, k, u: np.stack([b.any(axis=-1), b.all(axis=-1), (v > 0).any(axis=-1)], axis=-1),
    'columns': lambda q, v, w, b, k, u: v[:, np.array([2, 0])] + w[..., 1, :2] + v[:, None, 1:].reshape(len(v), 2),
    'joined': lambda q, v, w, b, k, u: np.concat([v, np.stack([v[:, 0], q[:, 1]], axis=-1)], axis=-1),
    'like': lambda q, v, w, b, k, u: np.ones_like(v) + np.full_like(v, 0.5) + np.zeros_like(v[:, :1]),
    'written': lambda q, v, w, b, k, u: add_to(np.zeros_like(v), q[:, 1:]),
    'remainder': lambda q, v, w, b, k, u: np.stack([v % 0.3, v % -0.3], axis=1),
    'cast': lambda q, v, w, b, k, u: np.astype(v * 10, np.int64) + np.astype(b, np.int32) + np.astype(k, np.bool_),
    'rounded': lambda q, v, w, b, k, u: np.floor(v * 3) + np.ceil(v * 3) + np.rint(v * 3) + np.sign(v),
    'rotated': lambda q, v, w, b, k, u: quat_rotate(q, v) + quat_rotate_inverse(q[:, None], w)[:, 1],
    'multiplied': lambda q, v, w, b, k, u: quat_multiply(q, q),
    'crossed': lambda q, v, w, b, k, u: cross(v, w[:, 1]),
    'length': lambda q, v, w, b, k, u: length(w),
    'bits': lambda q, v, w, b, k, u: mix(u).view(np.uint32)[:, :3] >> np.uint32(8),
    'random': lambda q, v, w, b, k, u: EnvRandom(len(u), u[:, 0]).uniform(-1.0, 1.0, (len(u), 3)),
}
BY_LIBRARY: dict[str, Callable[..., Any]] = {
    'exp': lambda q, v, w, b, k, u: np.exp(-v / 0.25),
    'waves': lambda q, v, w, b, k, u: np.sin(v) + np.cos(q[:, 1:]),
    'angles': lambda q, v, w, b, k, u: yaw_of(q) + np.arctan2(v[:, 0], v[:, 1]),
    'power': lambda q, v, w, b, k, u: np.abs(v) ** 1.5,
}
INPUTS = (Q, V, W, B, K, U)


def add_to(total: Any, values: Any) -> Any:
    total += values
    total[:, 0] = values[:, 1]
    return total


def compiled(function: Callable[..., Any], wanted: np.ndarray) -> np.ndarray:
    """What a kernel makes of copies of the arrays, for all envs but the second."""
    inputs, output = Inputs(), np.zeros_like(wanted)
    copies = [array.copy() for array in INPUTS]
    traced = function(*(inputs.add(lambda array=array: array, written=True) for array in copies))
    assert traced.dtype == wanted.dtype
    rows = np.delete(np.arange(ENVS), 1)
    Kernel(inputs, [(traced, lambda: output)]).of_rows(rows, rows)()
    assert not output[1].any()
    return output[rows]


@pytest.mark.parametrize('name', EXACT)
def test_bits_of_numpy(name: str) -> None:
    with np.errstate(invalid='ignore'):
        wanted = EXACT[name](*(array.copy() for array in INPUTS))
    np.testing.assert_array_equal(compiled(EXACT[name], wanted), np.delete(wanted, 1, axis=0))


@pytest.mark.parametrize('name', BY_LIBRARY)
def test_functions_of_the_c_library(name: str) -> None:
    wanted = BY_LIBRARY[name](*INPUTS)
    np.testing.assert_allclose(compiled(BY_LIBRARY[name], wanted), np.delete(wanted, 1, axis=0), rtol=LIBM, atol=LIBM)


def test_what_is_written_to_an_input_is_kept() -> None:
    sums, inputs = np.arange(ENVS, dtype=np.float32), Inputs()
    traced, values = inputs.add(lambda: sums, written=True), inputs.add(lambda: V)
    traced += values[:, 0]
    rows = np.array([0, 4])
    compute = Kernel(inputs).of_rows(rows, rows)
    for _ in range(2):
        compute()
    wanted = np.arange(ENVS, dtype=np.float32)
    wanted[rows] += V[rows, 0]
    wanted[rows] += V[rows, 0]
    np.testing.assert_array_equal(sums, wanted)


def test_another_array_takes_the_place_of_an_input() -> None:
    arrays: list[Any] = [V]
    output = np.zeros((ENVS, 3), np.float32)
    inputs, rows = Inputs(), np.arange(ENVS)
    compute = Kernel(inputs, [(inputs.add(lambda: arrays[-1]) * 2.0, lambda: output)]).of_rows(rows, rows)
    for other in (V + 1.0, np.repeat(V, 2, axis=0)[::2]):
        arrays.append(other)
        compute()
        np.testing.assert_array_equal(output, other * 2.0)
    arrays.append(V.astype(np.float64))
    with pytest.raises(ValueError, match='another layout'):
        compute()


def test_engine_arrays_have_a_row_per_slot() -> None:
    slots, output = np.array([3, 1]), np.zeros(ENVS)
    inputs = Inputs()
    kernel = Kernel(inputs, [(inputs.add(lambda: Q, by_slot=True)[:, 0], lambda: output)])
    kernel.of_rows(np.array([0, 5]), slots)()
    np.testing.assert_array_equal(output[[0, 5]], Q[[3, 1], 0])
    assert not np.delete(output, [0, 5]).any()


@pytest.mark.parametrize('name', BY_LIBRARY)
def test_rows_computed_at_once_have_the_bits_of_single_ones(name: str) -> None:
    inputs = Inputs()
    traced = BY_LIBRARY[name](*map(inputs.add, INPUTS))
    outputs = np.zeros((2, *BY_LIBRARY[name](*INPUTS).shape), traced.dtype)
    kernel = Kernel(inputs, [(traced, lambda: outputs[0])])
    rows = np.arange(ENVS)
    kernel.of_rows(rows, rows)()
    outputs[1], outputs[0] = outputs[0], 0.0
    for row in range(ENVS):
        kernel.of_rows(rows[row : row + 1], rows[row : row + 1])()
    np.testing.assert_array_equal(outputs[0], outputs[1])


@pytest.mark.parametrize(
    'function',
    [
        lambda v: 1.0 if v[0, 0] > 0 else 2.0,
        lambda v: float(v[0, 0]),
        lambda v: np.argsort(v),
        lambda v: v[v > 0],
        lambda v: v[:, v[0, 0]],
        lambda v: v.sum(),
        lambda v: np.cumsum(v, axis=-1),
        lambda v: np.add(np.zeros((1, 3)), v, out=np.zeros((1, 3))),
        lambda v: v.astype(np.float16),
        lambda v: np.linalg.inv(v),
        lambda v: v.__iadd__(1.0),
    ],
)
def test_what_cannot_be_compiled_is_an_error(function: Callable[..., Any]) -> None:
    traced = Inputs().add(lambda: V)
    with pytest.raises((UntraceableError, TypeError, IndexError, ValueError)):
        function(traced)


def test_operations_without_code_are_found_when_they_are_checked() -> None:
    inputs = Inputs()
    value = np.arctanh(inputs.add(lambda: V))
    with pytest.raises(UntraceableError, match='arctanh of float32'):
        inputs.check(value)
