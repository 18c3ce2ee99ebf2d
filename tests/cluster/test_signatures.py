"""Signatures of actions: what is covered is sure to be taken by controllers that check signatures only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from internutopia.cluster.packing import SignatureCache, pack
from internutopia.core.robot.controller import BaseController, box_action
from internutopia_extension import import_extensions

DTYPES = ['<f2', '<f4', '<f8', '<i8', '?', '<U1', 'O']
NUMBERS = (
    st.floats(-5, 5)
    | st.integers(-5, 5)
    | st.sampled_from([np.nan, np.inf, 1e10, 2e10, 1e39, 10**400, True, None, 'x'])
)
VALUES = (
    st.none()
    | st.lists(st.floats(-5, 5), min_size=2, max_size=2)
    | st.lists(NUMBERS, max_size=3)
    | st.tuples(NUMBERS, NUMBERS)
    | arrays.arrays(
        st.sampled_from(['<f2', '<f4', '<f8', '<i8', '?', '<U1', 'O']), st.sampled_from([(2,), (1, 2), (3,)])
    )
)
ACTIONS = st.none() | st.just({}) | VALUES.map(lambda value: {'arm': {'drive': value}})


def taken(action: Any) -> bool:
    """Whether a controller of two joints takes it."""
    if not action:
        return True
    try:
        box_action(action['arm']['drive'], (2,))
    except ValueError:
        return False
    return True


@pytest.mark.slow
@given(st.lists(st.lists(ACTIONS, min_size=2, max_size=2), max_size=12))
def test_what_is_covered_is_taken(steps: list[list[Any]]):
    cache = SignatureCache()
    for actions in steps:
        packed = pack(actions)
        if cache.covers(packed, [0, 0]):
            assert all(map(taken, actions)), actions
        if all(map(taken, actions)):
            cache.add(packed, [0, 0])


@given(st.sampled_from([2, 40]).flatmap(lambda n: st.tuples(*[st.lists(st.floats(-5, 5), min_size=n, max_size=n)] * 2)))
def test_numbers_of_a_known_signature_are_covered_in_envs_of_their_task_alone(pair: tuple[list[float], list[float]]):
    first, second = pair
    cache = SignatureCache()
    cache.add(pack([{'arm': {'drive': first}}]), [3])
    assert cache.covers(pack([{'arm': {'drive': second}}] * 2), [3, 3])
    assert not cache.covers(pack([{'arm': {'drive': second}}] * 2), [3, 4])
    assert not cache.covers(pack([{'leg': {'drive': second}}]), [3])
    assert not cache.covers(pack([{'arm': {'drive': [*second, 0.0]}}]), [3])
    assert not cache.covers(pack([{'arm': {'drive': tuple(second)}}]), [3])
    assert not cache.covers(pack([{'arm': {'drive': np.array(second)}}]), [3])


def test_paths_of_known_lengths_are_covered():
    cache = SignatureCache()
    paths = [[(0.0, float(i)) for i in range(length)] for length in (20, 30)]
    cache.add(pack([{'h1': {'along': [path]}} for path in paths]), [0, 0])
    assert cache.covers(pack([{'h1': {'along': [path]}} for path in paths]), [0, 0])
    paths[1][3] = (0.0, math.nan)
    assert not cache.covers(pack([{'h1': {'along': [path]}} for path in paths]), [0, 0])


@pytest.mark.parametrize('dtype', [np.float16, np.float32, np.float64])
@pytest.mark.parametrize('number', [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_never_covered(dtype: type[np.floating], number: float):
    cache = SignatureCache()
    cache.add(pack([{'arm': {'drive': np.ones(2, dtype)}}]), [0])
    assert cache.covers(pack([{'arm': {'drive': np.zeros(2, dtype)}}]), [0])
    assert not cache.covers(pack([{'arm': {'drive': np.array([0.0, number], dtype)}}]), [0])


@pytest.mark.parametrize(
    ('controller', 'form_only'),
    [('JointController', True), ('DifferentialDriveController', True), ('RotateController', False), ('ToyPush', False)],
)
def test_a_controller_that_looks_at_values_says_so(controller: str, form_only: bool):
    import_extensions()
    assert BaseController.controllers[controller].checks_signature_only() is form_only


def test_a_subclass_that_checks_more_is_not_taken_for_its_base_class():
    import_extensions()
    base = BaseController.controllers['JointController']
    stricter = type('Stricter', (base,), {'parse_action': lambda self, action: base.parse_action(self, action)})
    assert not stricter.checks_signature_only()
