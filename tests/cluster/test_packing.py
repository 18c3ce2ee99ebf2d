"""Packing values of envs: whatever goes in comes out, of the same types, in arrays of its own."""

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from ray_toys import same

from internutopia.cluster.packing import pack, stacked, unpack

ARRAYS = arrays.arrays(
    st.sampled_from(['<f4', '<f8', '<i8', '?', '|u1', '<U3']), arrays.array_shapes(min_dims=0, min_side=0, max_side=3)
)
NUMBERS = st.lists(st.integers() | st.floats(allow_nan=False), min_size=15, max_size=18)
LEAVES = (
    NUMBERS
    | NUMBERS.map(tuple)
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | ARRAYS
)
KEYS = st.sampled_from('abc')
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=8,
)


@pytest.mark.nightly
@given(st.lists(VALUES, max_size=5))
def test_what_goes_in_comes_out(values: list[Any]):
    assert same(unpack(pack(values)), values)


@pytest.mark.slow
@given(VALUES, st.integers(1, 4))
def test_equal_values_are_one_group(value: Any, count: int):
    assert len(pack([value] * count).groups) == 1


def test_arrays_at_the_same_place_are_one_array_with_a_row_per_env():
    observations = [{'h1': {'position': np.full(3, i, np.float32), 'sensors': {}, 'render': i == 1}} for i in range(4)]
    (group,) = pack(observations).groups
    assert [type(column) for column in group.columns] == [np.ndarray, list]
    (column, _) = group.columns
    assert isinstance(column, np.ndarray) and column.shape == (4, 3) and column.dtype == np.float32


def test_rows_can_be_written_and_share_nothing_with_what_was_packed():
    packed = pack([np.zeros(3), np.zeros(3)])
    packed.groups[0].columns[0].setflags(write=False)  # as Ray hands them out  # pyright: ignore
    first, second = unpack(packed)
    first += 1.0
    assert second.tolist() == [0, 0, 0]
    assert unpack(packed)[0].tolist() == [0, 0, 0]


def test_values_that_differ_in_form_keep_their_places():
    values = [None, {'a': np.zeros(2)}, None, {'a': np.ones(3)}, {'a': np.ones(2)}]
    assert same(unpack(pack(values)), values)
    assert len(pack(values).groups) == 3


def test_paths_of_any_length_are_of_one_form():
    actions = [{'robot': {'along': [[(float(x), 0.0, 0.0) for x in range(length)]]}} for length in range(20, 40)]
    packed = pack(actions)
    assert same(unpack(packed), actions)
    assert len(packed.groups) == 1 and stacked(packed) is None


def test_actions_of_one_form_are_stacked_as_arrays():
    hands = [[float(i)] * 40 for i in range(4)]
    actions = [
        {'robot': {'legs': [[0.5, i], [1, 2]], 'arm': np.full(3, i), 'gripper': i, 'hands': hands[i]}} for i in range(4)
    ]
    robot = stacked(pack(actions))['robot']
    np.testing.assert_array_equal(robot['legs'], [[[0.5, i], [1, 2]] for i in range(4)])
    np.testing.assert_array_equal(robot['arm'], [[i] * 3 for i in range(4)])
    np.testing.assert_array_equal(robot['gripper'], range(4))
    np.testing.assert_array_equal(robot['hands'], hands)


@pytest.mark.parametrize(
    'actions',
    [
        [{'a': [1.0]}, {'a': [1.0, 2.0]}],
        [{'a': [1.0]}, {'b': [1.0]}],
        [{'a': [1.0, [2.0, 3.0]]}] * 2,
        [{'a': [1.0, None]}] * 2,
        [{'a': 'left'}, {'a': None}],
        [{'a': 10**30}] * 2,
    ],
    ids=['length', 'keys', 'shape', 'none', 'text', 'huge'],
)
def test_actions_that_make_no_arrays_are_not_stacked(actions):
    assert stacked(pack(actions)) is None
