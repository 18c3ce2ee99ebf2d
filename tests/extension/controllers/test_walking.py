"""The policies that come with InternUtopia: robots stand, walk and turn as they are told, and do not fall."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.core.vec_env import Env
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.walkers import WALKERS

STAND, WALK, TURN = (0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.0, 0.5)  # m/s, m/s, rad/s
SECOND = 48  # env steps


@pytest.mark.parametrize('robot', WALKERS)
def test_stands_walks_and_turns(make_env: Callable[..., Env], robot: str) -> None:
    """Each in an env of its own, for two seconds from its home pose."""
    walker = WALKERS[robot]
    assert walker.walking is not None
    config = walker.standing(walker.walking)
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[config])
    env = make_env(tasks=[task] * 3, env_num=3, sim={'physics_dt': '1/240', 'substeps': 5})
    env.reset()
    seconds = [look(env, config.name)]
    for _ in range(2):
        for _ in range(SECOND):
            env.step([{config.name: {'move_by_speed': speeds}} for speeds in (STAND, WALK, TURN)])
        seconds.append(look(env, config.name))
    start, one, two = seconds
    assert (two[:, 2] > 0.8 * start[:, 2]).all(), 'nobody fell'
    assert np.linalg.norm(two[0, :2] - start[0, :2]) < 0.2, 'it stands'
    assert 0.3 < two[1, 0] - one[1, 0] < 0.7 and abs(two[1, 1]) < 0.25
    assert 0.25 < two[2, 3] - one[2, 3] < 0.75
    assert np.linalg.norm(two[2, :2] - start[2, :2]) < 0.3


def look(env: Env, robot: str) -> np.ndarray:
    """Position [m] and yaw [rad] of the robots `(n, 4)`."""
    rows: list[Any] = []
    for obs in env.get_observations():
        w, x, y, z = obs[robot]['orientation']
        rows.append([*obs[robot]['position'], np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))])
    return np.array(rows)
