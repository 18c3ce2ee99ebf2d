"""Actions that are scaled joint by joint."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.rl import VectorEnv

Make = Callable[..., VectorEnv]


def positions(make: Make, scale: Any, action: list[float]) -> np.ndarray:
    envs = make(action={'controller': 'joints', 'scale': scale, 'offset': 'home'})
    obs, _ = envs.reset(seed=0)
    for _ in range(3):
        obs = envs.step(np.tile(np.array(action, np.float32), (3, 1)))[0]
    return obs


@pytest.mark.slow
def test_each_joint_has_its_own_scale(make_learner: Make) -> None:
    one_by_one = positions(make_learner, {'tail': 0.5, 'hip': 0.25}, [1.0, -1.0])
    np.testing.assert_array_equal(one_by_one, positions(make_learner, 0.25, [1.0, -2.0]))
    assert not np.array_equal(one_by_one, positions(make_learner, 0.25, [1.0, -1.0]))


@pytest.mark.parametrize(
    ('scale', 'message'),
    [
        ({'hip': 0.25}, "scale has no factor for joint 'tail' of controller 'joints'"),
        ({'hip': 0.25, 'tail': 0.5, 'hipp': 1.0}, "'joints' drives no joint 'hipp'; did you mean 'hip'"),
        ({'hip': -0.25, 'tail': 0.5}, 'greater than 0'),
    ],
)
def test_wrong_scales_are_refused(make_learner: Make, scale: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_learner(action={'controller': 'joints', 'scale': scale})
