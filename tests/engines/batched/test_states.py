"""States of many envs at once are those of each env, to the bit."""

from typing import Any

import numpy as np
import pytest


def check_states(world: Any, env_ids: list[int]) -> dict[int, Any]:
    """Compare the states of envs at once with those of each; returns what seldom changes, by env id."""
    models = {}
    for states in world.get_states(np.array(env_ids)):
        for row, (env_id, model) in enumerate(zip(states.env_ids.tolist(), states.models, strict=True)):
            models[env_id] = model
            own = world.get_state(env_id)
            arrays = {**{name: rows[row] for name, rows in states.arrays.items()}, **model.arrays}
            assert model.model == own.model
            assert arrays.keys() == own.arrays.keys()
            for name, array in own.arrays.items():
                assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape), name
                np.testing.assert_array_equal(arrays[name], array, name)
    assert sorted(models) == sorted(env_ids)
    return models


@pytest.fixture
def env(make_env, make_task, make_robot) -> Any:
    """Arms in four envs, of which two are in the same scene."""
    tasks = [make_task(scene, robots=[make_robot()], max_steps=999) for scene in (None, 'floor', 'crates', 'floor') * 2]
    env = make_env(tasks=tasks, env_num=4)
    env.reset()
    return env


def test_they_are_those_of_each_env(env):
    """Also when models change, and envs go; what did not change stays the same object."""
    world = env.runner.world
    arms = [env.runner.slot(i).task.robots['arm'].articulation for i in range(4)]
    first = check_states(world, [0, 1, 2, 3])
    env.step([{'arm': {'drive': [0.5, -0.3]}}] * 4)
    assert all(model is first[i] for i, model in check_states(world, [0, 1, 2, 3]).items())
    arms[1].set_gains([60.0, 60.0])
    arms[2].body('lower').set_mass(9.0)
    first = check_states(world, [0, 1, 2, 3])
    arms[1].set_gains([70.0, 80.0])
    changed = check_states(world, [0, 1, 2, 3])
    assert [changed[i] is first[i] for i in range(4)] == [True, False, True, True]
    env.step([None] * 4)
    assert all(model is changed[i] for i, model in check_states(world, [1, 2, 3]).items())
    env.reset([1])  # another episode, in which gains are as they were
    again = check_states(world, [0, 1, 3])
    assert again[0] is first[0] and again[3] is first[3]
