"""Rotations of torch tensors against those of numpy arrays."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from internutopia.util import rotations

torch = pytest.importorskip('torch')

TOLERANCE = 1e-6  # a few roundings of float32, of numbers up to 3
BATCHES = [(), (1,), (3,), (2, 3)]


def numbers(*shape: int) -> st.SearchStrategy[NDArray[np.float32]]:
    return arrays(np.float32, shape, elements=st.floats(-1.0, 1.0, width=32))


@st.composite
def quaternions(draw: Any, batch: tuple[int, ...]) -> NDArray[np.float32]:
    values = draw(numbers(*batch, 4).filter(lambda q: (np.linalg.norm(q, axis=-1) > 0.1).all()))
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


@st.composite
def calls(draw: Any) -> tuple[str, list[NDArray[np.float32]]]:
    """A function of the module and what it may be called with."""
    batch = draw(st.sampled_from(BATCHES))
    q, v = quaternions(batch), numbers(*batch, 3)
    angle = numbers(*batch).map(lambda values: values * np.float32(9.0))
    kinds: dict[str, list[Any]] = {
        'quat_multiply': [q, q],
        'quat_conjugate': [q],
        'quat_rotate': [q, v],
        'quat_rotate_inverse': [q, v],
        'quat_to_matrix': [q],
        'unit_quat': [q.map(lambda values: values * np.float32(3.0))],
        'yaw_of': [q],
        'yaw_rotate': [angle, numbers(*batch, 2)],
        'quat_from_yaw': [angle],
        'wrap_angle': [angle],
        'cross': [v, v],
        'length': [v],
        'squared_length': [v],
    }
    public = {name for name, value in vars(rotations).items() if getattr(value, '__module__', '') == rotations.__name__}
    assert {name for name in public if not name.startswith('_')} == set(kinds)
    name = draw(st.sampled_from(sorted(kinds)))
    return name, [draw(argument) for argument in kinds[name]]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(calls())
def test_tensors_give_what_arrays_give(call: tuple[str, list[NDArray[np.float32]]]) -> None:
    name, args = call
    function = getattr(rotations, name)
    wanted, got = np.asarray(function(*args)), function(*map(torch.from_numpy, map(np.asarray, args)))
    assert got.numpy().dtype == wanted.dtype
    error = np.abs(got.numpy() - wanted)
    if name in ('yaw_of', 'wrap_angle'):
        error = np.minimum(error, 2.0 * np.pi - error)  # the same angle
    assert error.max(initial=0.0) <= TOLERANCE * (4.0 if name == 'wrap_angle' else 1.0)
    unseen = function(*(torch.empty(np.shape(arg), device='meta') for arg in args))  # there are no values to look at
    assert unseen.is_meta and unseen.shape == got.shape and unseen.dtype == got.dtype


@pytest.mark.parametrize('make', [np.asarray, torch.as_tensor])
def test_a_quaternion_of_any_length_has_a_direction_unless_that_is_zero(make: Any) -> None:
    """Shorter than 1e-15 is zero: its square is nothing that single precision could divide by."""
    lengths = np.array([1.0, 1e10, 1e-14, 1e-16, 1e-30, 1e-45, 0.0, np.nan], np.float32)
    units = rotations.unit_quat(make(lengths[:, None] * np.array([0.6, 0.0, -0.8, 0.0], np.float32)))
    np.testing.assert_allclose(np.asarray(units)[:3], [[0.6, 0.0, -0.8, 0.0]] * 3, atol=TOLERANCE)
    assert np.isnan(np.asarray(units)[3:]).all()


def test_one_vector_is_turned_by_many_quaternions() -> None:
    turns = rotations.quat_from_yaw(torch.tensor([0.0, 0.5 * np.pi]))
    ahead = rotations.quat_rotate(turns, torch.tensor([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(np.asarray(ahead), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], atol=TOLERANCE)
    back = rotations.quat_rotate_inverse(turns, torch.tensor([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(np.asarray(back), [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], atol=TOLERANCE)


def test_many_vectors_of_the_plane_are_rotated_about_the_vertical() -> None:
    yaw = np.array([0.0, 0.5 * np.pi, -0.75 * np.pi])
    vectors = np.random.default_rng(0).normal(size=(4, 3, 2))
    rotated = rotations.yaw_rotate(yaw, vectors)
    in_space = np.concatenate([vectors, np.zeros((4, 3, 1))], axis=-1)
    np.testing.assert_allclose(rotated, rotations.quat_rotate(rotations.quat_from_yaw(yaw), in_space)[..., :2])
    np.testing.assert_allclose(
        rotations.yaw_rotate(np.array(0.5 * np.pi), np.array([1.0, 0.0])), [0.0, 1.0], atol=TOLERANCE
    )
    np.testing.assert_allclose(rotations.yaw_rotate(-yaw, rotated), vectors)
