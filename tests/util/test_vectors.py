"""Short vectors: the bits of numpy's own sums, whatever the layout, and the same of tensors."""

import numpy as np
import pytest

from internutopia.util.rotations import cross, length, squared_length


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
@pytest.mark.parametrize('size', [1, 2, 3, 4])
def test_lengths_are_numpys_to_the_bit(dtype: type, size: int) -> None:
    vectors = np.random.default_rng(size).normal(size=(50, 2, 6)).astype(dtype)[..., :size]
    before = vectors.copy()
    squares, lengths = squared_length(vectors), length(vectors)
    np.testing.assert_array_equal(squares, np.square(vectors).sum(axis=-1))
    np.testing.assert_array_equal(lengths, np.linalg.vector_norm(vectors, axis=-1))
    np.testing.assert_array_equal(vectors, before)
    assert squares.dtype == lengths.dtype == dtype


def test_cross_products_are_those_of_numpy_and_broadcast() -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 5, 3))
    np.testing.assert_array_equal(cross(a, b), np.cross(a, b))
    np.testing.assert_array_equal(cross(a[0], b), np.cross(a[0], b))
    assert cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])).tolist() == [0.0, 0.0, 1.0]


def test_tensors_give_what_arrays_give() -> None:
    torch = pytest.importorskip('torch')
    a, b = np.random.default_rng(0).normal(size=(2, 5, 3))
    for function, args in ((squared_length, (a,)), (length, (a,)), (cross, (a, b))):
        np.testing.assert_allclose(function(*map(torch.from_numpy, args)).numpy(), function(*args), rtol=1e-12)
