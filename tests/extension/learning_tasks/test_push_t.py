"""Push-T: coverage against known areas, and pushes of a T that nothing holds but dry friction."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.rl import VectorEnv
from internutopia.rl.terms import look_up_term
from internutopia.rl.training.evaluation import evaluate
from internutopia.rl.training.loading import load_trained
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import push_t

import_extensions()
QUARTER = np.pi / 4


@pytest.fixture
def envs() -> Iterator[VectorEnv]:
    made = VectorEnv(push_t.config(1, seed=0, threads=1))
    made.reset()
    yield made
    made.close()


def put(envs: VectorEnv, **joints: float) -> Any:
    state = envs.core.state
    columns = [state.articulation.get_dof_index(name) for name in joints]
    state.articulation.set_joint_positions(np.array([list(joints.values())]), columns)
    state.changed()
    return state


@pytest.mark.parametrize(
    ('x', 'y', 'turn', 'coverage'),
    [
        (0.0, 0.0, 0.0, 1.0),
        (0.0, 0.0, 2 * np.pi, 1.0),
        # along the bar by a quarter of it: three quarters of the bar, and none of a stem of its width
        (0.03 * np.cos(QUARTER), 0.03 * np.sin(QUARTER), 0.0, 0.09 * 0.03 / 0.0063),
        (0.15, 0.15, 0.0, 0.0),
    ],
)
def test_coverage(envs: VectorEnv, x: float, y: float, turn: float, coverage: float) -> None:
    state = put(envs, tee_x=x, tee_y=y, tee_yaw=QUARTER + turn)
    assert look_up_term('metric', 'tee_coverage', {})(state)[0] == pytest.approx(coverage, abs=0.03)
    ends = look_up_term('termination', 'tee_covered', {'share': 0.9})(state)
    assert ends.tolist() == [coverage > 0.9]


def test_a_pusher_moves_the_t_as_far_as_it_goes(envs: VectorEnv) -> None:
    """Pushed through its centre of mass it does not turn; when the pusher leaves, it soon comes to rest."""
    state = put(envs, tee_x=0.0, tee_y=0.0, tee_yaw=np.pi, pusher_x=0.0, pusher_y=-0.09)
    joints = {name: k for k, name in enumerate(state.articulation.dof_names)}
    for _ in range(5):
        envs.step(np.array([[0.0, 1.0]], np.float32))
    pushed = state.joint_positions[0].copy()
    assert pushed[joints['pusher_y']] == pytest.approx(-0.09 + 5 * 0.03, abs=0.01)
    assert pushed[joints['tee_y']] == pytest.approx(pushed[joints['pusher_y']] + 0.055714, abs=3e-3)
    assert abs(pushed[joints['tee_yaw']] - np.pi) < 0.05 and abs(pushed[joints['tee_x']]) < 2e-3
    rests = []
    for _ in range(3):
        envs.step(np.array([[0.0, -1.0]], np.float32))
        rests.append(float(state.joint_positions[0, joints['tee_y']]))
    slid = 0.3**2 / (2 * 0.3 / 0.1)  # m, at most: from 0.3 m/s, by a friction of 0.3 N on 0.1 kg
    assert pushed[joints['tee_y']] < rests[0] < pushed[joints['tee_y']] + slid
    assert rests[1:] == pytest.approx(rests[:1] * 2, abs=1e-3)


def test_the_policy_pushes_it_home() -> None:
    trained = load_trained(Path('robots/push_t/push.onnx'))
    assert evaluate(trained.act, trained.config(32, seed=3, threads=1)).metrics['success'] > 0.8


def test_episodes_begin_with_the_pusher_beside_a_t_anywhere() -> None:
    envs = VectorEnv(push_t.config(64, seed=0, threads=1))
    observations, _ = envs.reset()
    assert observations.shape == (64, 13) and envs.action_space.shape == (64, 2)
    np.testing.assert_allclose(np.linalg.norm(observations[:, 6:8], axis=1), 1.15, atol=1e-3)  # dm
    assert np.ptp(observations[:, 2]) > 1.5 and observations[:, 4].min() < -0.8
    envs.close()
