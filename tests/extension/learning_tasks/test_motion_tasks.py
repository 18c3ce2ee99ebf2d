"""Terms of motion tracking against known answers, and the policy that follows a motion."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.rl import VectorEnv
from internutopia.rl.task_envs import with_learning
from internutopia.rl.terms import look_up_term
from internutopia.rl.terms.motion import read_motion
from internutopia.rl.training.evaluation import evaluate
from internutopia.rl.training.loading import load_trained
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import track_motion

import_extensions()
SQUAT, WALK = track_motion.MOTIONS['squat'], track_motion.MOTIONS['walk']
MakeEnvs = Callable[..., VectorEnv]


@pytest.fixture
def make_envs() -> Iterator[MakeEnvs]:
    """Makes reset envs whose episodes begin exactly in a motion; closed after the test."""
    made: list[VectorEnv] = []

    def make(motion: str, num_envs: int = 4) -> VectorEnv:
        start = {'term': 'motion_start', 'params': {'file': track_motion.MOTIONS.get(motion, motion)}}
        config = with_learning(track_motion.config(num_envs, 0, motion=motion, threads=1), randomizations=[start])
        made.append(VectorEnv(config))
        made[-1].reset(seed=0)
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def reward(envs: VectorEnv, name: str, file: str = SQUAT, **params: Any) -> Any:
    envs.core.state.changed()
    return look_up_term('reward', name, {'file': file} | params)(envs.core.state)


@pytest.mark.parametrize('motion', ['squat', 'walk'])
def test_an_episode_begins_in_the_motion(make_envs: MakeEnvs, motion: str) -> None:
    envs = make_envs(motion)
    heights = envs.core.state.base_position[:, 2]
    assert len(set(heights.tolist())) > 1, 'not all at the same time of it'
    for name in ('joints', 'joint_velocities', 'base_position', 'base_orientation', 'base_velocity', 'links'):
        value = reward(envs, f'motion_{name}', track_motion.MOTIONS[motion])
        np.testing.assert_allclose(value, 1.0, atol=2e-3, err_msg=name)


def test_rewards_fall_with_the_distance(make_envs: MakeEnvs) -> None:
    envs = make_envs('squat')
    robot = envs.core.state.articulation
    position, joints = robot.get_pose()[0].copy(), robot.get_joint_positions().copy()
    robot.set_pose(position + [0.0, 0.3, 0.0], np.tile([np.cos(0.2), 0.0, 0.0, np.sin(0.2)], (4, 1)))
    robot.set_joint_positions(joints + 0.3)
    for name, tolerance in (('joints', 0.3), ('base_position', 0.3), ('base_orientation', 0.4)):
        value = reward(envs, f'motion_{name}', tolerance=tolerance)
        np.testing.assert_allclose(value, np.exp(-1.0), atol=2e-3, err_msg=name)
    assert (reward(envs, 'motion_links') < 0.95).all()
    state = envs.core.state
    error = look_up_term('metric', 'motion_base_error', {'file': SQUAT})(state)
    np.testing.assert_allclose(error, 0.3, atol=1e-4)
    for distance, tilt, lost in ((0.4, 0.5, False), (0.2, 0.5, True), (0.4, 0.3, True)):
        params = {'file': SQUAT, 'distance': distance, 'tilt': tilt}
        assert (look_up_term('termination', 'motion_lost', params)(state) == lost).all()


def test_what_is_observed_is_the_next_frame(make_envs: MakeEnvs, tmp_path: Path) -> None:
    """A motion that moves ahead at 0.5 m/s and turns at 1 rad/s, while one joint goes at 0.2 rad/s, for two seconds."""
    squat, time = read_motion(SQUAT), np.arange(21) / 10.0
    joints = np.tile(squat.joint_positions[0], (21, 1))
    joints[:, 0] += 0.2 * time
    zeros = 0.0 * time
    values: dict[str, Any] = squat._asdict() | {
        'rate': 10.0,
        'joint_positions': joints,
        'base_positions': np.stack([0.5 * time, zeros, zeros + 0.98], axis=-1),
        'base_orientations': np.stack([np.cos(time / 2), zeros, zeros, np.sin(time / 2)], axis=-1),
        'link_positions': np.tile(squat.link_positions[0], (21, 1, 1)),
    }
    np.savez(file := tmp_path / 'turn.npz', **values)
    envs = make_envs(str(file))
    state = envs.core.state
    np.testing.assert_allclose(state.base_angular_velocity, [[0.0, 0.0, 1.0]] * 4, atol=2e-2)
    np.testing.assert_allclose(state.base_linear_velocity, [[0.5, 0.0, 0.0]] * 4, atol=1e-2)
    now = state.base_position[:, 0] / 0.5  # s
    reference = look_up_term('observation', 'motion_reference', {'file': str(file)})(state)
    first = squat.joint_names[0]
    home = state.home[state.dof_indices([first])]
    np.testing.assert_allclose(reference[:, 0], joints[0, 0] - home + 0.2 * (now + 0.02), atol=1e-4)
    np.testing.assert_allclose(reference[:, 19], 0.2 * 0.05, atol=1e-4)
    anchor = look_up_term('observation', 'motion_anchor', {'file': str(file)})(state)
    ahead = 0.01 * np.stack([np.cos(now), -np.sin(now)], axis=-1)  # in the frame of a base that has turned by now
    np.testing.assert_allclose(anchor[:, :2], ahead, atol=1e-3)
    turn = [np.cos(0.02), np.sin(0.02), 0.0, -np.sin(0.02), np.cos(0.02), 0.0]
    np.testing.assert_allclose(anchor[:, 3:], [turn] * 4, atol=1e-3)


def test_wrong_motions_are_refused(tmp_path: Path) -> None:
    values: Any = read_motion(SQUAT)._asdict()
    for name, change, message in (
        ('missing', {'link_names': None}, 'has no link_names'),
        ('shapes', {'base_positions': values['base_positions'][:5]}, r'must be .*got .*\(5, 3\)'),
    ):
        file = tmp_path / f'{name}.npz'
        kept: Any = {key: value for key, value in (values | change).items() if value is not None}
        np.savez(file, **kept)
        with pytest.raises(ValueError, match=message):
            read_motion(str(file))
    values['joint_names'] = ['knee', *values['joint_names'][1:]]
    np.savez(file := tmp_path / 'joint.npz', **values)
    with pytest.raises(ValueError, match=r"motion file .*joint.npz': there is no joint 'knee'"):
        VectorEnv(track_motion.config(motion=str(file), threads=1))


@pytest.mark.parametrize('motion', ['squat', 'walk'])
def test_policies_follow_motions_to_the_end(motion: str) -> None:
    trained = load_trained(Path(f'robots/h1/{motion}.onnx'))
    result = evaluate(trained.act, trained.config(4, seed=3, threads=1))
    assert result.terminated == 0.0
    assert result.metrics['link_error'] < 0.04 and result.metrics['base_error'] < 0.1
