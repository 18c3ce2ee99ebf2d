"""Errors about one env: they carry its id, and are what they were before they did."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.util.errors import EnvError, EnvKeyError, EnvValueError


@pytest.mark.parametrize(
    ('bad', 'kind'),
    [
        ('go', ValueError),
        ({'nobody': {}}, KeyError),
        ({'arm': 3}, ValueError),
        ({'arm': {'nothing': [0.0]}}, KeyError),
        ({'arm': {'drive': [np.nan, 0.0]}}, ValueError),
    ],
)
def test_a_bad_action_says_which_env_it_was_for(make_env: Callable[..., Any], bad: Any, kind: type) -> None:
    env = make_env(tasks=3, env_num=3)
    env.reset()
    with pytest.raises(kind) as caught:
        env.step([{}, {}, bad])
    assert isinstance(caught.value, EnvError)
    assert caught.value.env_id == 2 and 'env 2' in str(caught.value)


def test_a_wrong_state_says_which_env_it_does_not_fit(make_env: Callable[..., Any]) -> None:
    env = make_env(tasks=1, env_num=2)
    env.reset()
    with pytest.raises(EnvValueError, match='env 1 has no episode') as caught:
        env.get_state([0, 1])
    assert caught.value.env_id == 1


def test_they_can_be_sent_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(EnvKeyError(5, "env 5 has no robot 'h2'")))
    assert isinstance(error, EnvKeyError) and isinstance(error, KeyError)
    assert (error.env_id, error.args) == (5, ("env 5 has no robot 'h2'",))
