"""Values of the built-in commands."""

from collections.abc import Callable

import numpy as np
import pytest

from internutopia.rl import VectorEnv

MakeLearner = Callable[..., VectorEnv]


def test_velocity_commands(make_learner: MakeLearner) -> None:
    ranges = {'forward': (0.1, 0.2), 'lateral': (-0.4, -0.3), 'yaw_rate': (0.5, 0.6)}
    envs = make_learner(
        env_num=200,
        commands={'go': {'term': 'velocity', 'params': {**ranges, 'standing': 0.3, 'turning': 0.3}}},
        observations=[{'term': 'command', 'params': {'name': 'go'}}],
    )
    obs, _ = envs.reset()
    standing = (obs == 0).all(axis=-1)
    turning = (obs[:, :2] == 0).all(axis=-1) & ~standing
    assert 35 < standing.sum() < 85 and 35 < turning.sum() < 85
    low, high = np.transpose([ranges['forward'], ranges['lateral'], ranges['yaw_rate']])
    within = (obs >= low - 1e-6) & (obs <= high + 1e-6)
    assert within.all(axis=-1).tolist() == (~standing & ~turning).tolist()
    assert within[turning, 2].all()


@pytest.mark.parametrize(('around', 'center'), [('origin', (0.0, 0.0)), ('robot', (0.2, -0.1))])
def test_goals_lie_on_a_ring(make_learner: MakeLearner, around: str, center: tuple[float, float]) -> None:
    envs = make_learner(
        env_num=50,
        commands={'goal': {'term': 'goal', 'params': {'distance': (1.0, 2.0), 'around': around}}},
        observations=[{'term': 'command', 'params': {'name': 'goal'}}],
    )
    offset = envs.reset()[0] - np.array(center)
    distance = np.linalg.norm(offset, axis=-1)
    assert 1.0 - 1e-6 < distance.min() < 1.2 and 1.8 < distance.max() < 2.0 + 1e-6
    assert (offset.min(axis=0) < -0.5).all() and (offset.max(axis=0) > 0.5).all()
