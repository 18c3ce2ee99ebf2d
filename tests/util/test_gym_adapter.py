import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internutopia.compat.v2.core_util import gym_adapter


def test_joint_order_known_answer():
    adapter = gym_adapter(['a', 'b', 'c'], ['c', 'a', 'b'])
    assert adapter.gym2sim(np.array([1.0, 2.0, 3.0])).tolist() == [3.0, 1.0, 2.0]
    assert adapter.sim2gym(np.array([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]])).tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@given(st.permutations([f'joint_{index}' for index in range(6)]))
def test_joint_order_there_and_back(names):
    adapter = gym_adapter(sorted(names), names)
    values = np.arange(6.0)
    result = adapter.sim2gym(adapter.gym2sim(values))
    assert result.tolist() == values.tolist()
    assert not np.shares_memory(result, values)


def test_joint_order_of_a_subset():
    assert gym_adapter.rearange_order(np.array([1, 2, 3]), ['a', 'b', 'c'], ['c', 'a']).tolist() == [3, 1]


def test_wrong_joints_are_named():
    with pytest.raises(ValueError, match="no joint 'left_kneee' .*did you mean 'left_knee'"):
        gym_adapter.rearange_order(np.zeros(1), ['left_knee'], ['left_kneee'])
    with pytest.raises(ValueError, match=r'expected 1 joint values, got an array of shape \(2,\)'):
        gym_adapter.rearange_order(np.zeros(2), ['left_knee'], ['left_knee'])
