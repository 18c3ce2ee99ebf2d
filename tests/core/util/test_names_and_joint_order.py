import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internutopia.core import util
from internutopia.core.util import did_you_mean, has_display, is_in_container, log, remove_suffix
from internutopia.core.util.gym import gym_adapter


@pytest.mark.parametrize(
    ('name', 'expected'), [('h1_0', 'h1'), ('h1_1_12', 'h1_1'), ('h1', 'h1'), ('h1_', 'h1_'), ('h_1a', 'h_1a')]
)
def test_remove_suffix(name, expected):
    assert remove_suffix(name) == expected


def test_did_you_mean_offers_close_matches_or_everything():
    assert did_you_mean('frank', ['h1', 'franka']) == "did you mean 'franka'?"
    assert did_you_mean('spot', ['h1', 'franka']) == "known: 'franka', 'h1'"
    assert did_you_mean(3, []) == 'known: none'


def test_log_is_the_projects_logger():
    assert log is logging.getLogger('internutopia')


def test_display_is_what_the_session_announces(monkeypatch):
    monkeypatch.setattr(util.sys, 'platform', 'linux')
    monkeypatch.delenv('DISPLAY', raising=False)
    monkeypatch.delenv('WAYLAND_DISPLAY', raising=False)
    assert not has_display()
    monkeypatch.setenv('DISPLAY', ':0')
    assert has_display()


def test_kubernetes_counts_as_a_container(monkeypatch):
    monkeypatch.setenv('KUBERNETES_SERVICE_HOST', '10.0.0.1')
    assert is_in_container()


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
