"""Terms of arms against known answers, and the tasks made of them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from internutopia.model.kinematics import InverseKinematics
from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia.rl.task_envs import with_learning
from internutopia.rl.terms import look_up_term
from internutopia.rl.training.evaluation import evaluate
from internutopia.rl.training.loading import load_trained
from internutopia.rl.training.tasks import find_task
from internutopia_extension.configs.joint_names import FRANKA_ARM_7
from internutopia_extension.learning_tasks import lift, open_part, reach

TURN = (0.70710678, 0.0, 0.0, 0.70710678)  # a quarter turn to the left


@pytest.fixture
def make_envs() -> Iterator[Callable[..., VectorEnv]]:
    """Makes envs of a task's module; closed after the test."""
    made: list[VectorEnv] = []

    def make(task: Any, num_envs: int = 2, **options: Any) -> VectorEnv:
        made.append(VectorEnv(task.config(num_envs, seed=0, threads=1, **options)))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def call(kind: Any, term: str, /, **params: Any) -> Callable[..., Any]:
    return look_up_term(kind, term, params)


def solve(state: RobotState, point: Any, turned: bool) -> NDArray[np.float64]:
    """Positions of the arm's joints that bring the gripper to a point, pointing to the floor if it is `turned`."""
    chain = state.articulation.view.chain('', 'right_gripper', 0)
    home = state.home[:7].astype(float)
    pose = np.diag([1.0, -1.0, -1.0, 1.0])
    pose[:3, 3] = point
    solver, one = InverseKinematics(chain, home, np.ones(7, bool)), np.ones(1, bool)
    [joints], met = solver.solve(pose[None], one & turned, home[None], one)
    assert met.all() and [state.articulation.dof_names[joint] for joint in chain.joints] == FRANKA_ARM_7
    return joints


def test_terms_of_a_target(make_envs: Callable[..., VectorEnv]) -> None:
    envs = make_envs(reach)
    envs.reset()
    state = envs.core.state
    tip = state.link_position('right_gripper').copy()
    state.commands['target'][:] = tip + [[0.03, 0.0, 0.04], [0.0, 0.0, 0.0]]
    way: dict[str, Any] = {'link': 'right_gripper', 'name': 'target'}
    np.testing.assert_allclose(call('reward', 'target_distance', **way)(state), [0.05, 0.0], atol=1e-6)
    near = call('reward', 'target_near', **way, tolerance=0.05)(state)
    np.testing.assert_allclose(near, [np.exp(-1.0), 1.0], atol=1e-5)
    # turned to the left, what was ahead is on the right
    state.articulation.set_pose(orientation=np.tile(TURN, (2, 1)))
    state.changed()
    turned = state.link_position('right_gripper')
    state.commands['target'][:] = turned + [0.1, 0.0, 0.02]
    offset = call('observation', 'target_offset', **way)(state)
    np.testing.assert_allclose(offset, [[0.0, -0.1, 0.02]] * 2, atol=1e-6)


def test_terms_of_an_object(make_envs: Callable[..., VectorEnv]) -> None:
    envs = make_envs(lift)
    envs.reset()
    state: RobotState = envs.core.state
    cube, tip = state.scene_object('cube'), state.link_position('right_gripper').copy()
    cube.set_poses(np.arange(2), np.array([tip[0] + [0.0, 0.1, 0.0], [0.0, -0.95, 0.1]]))
    state.changed()
    way = {'link': 'right_gripper', 'body': 'cube'}
    np.testing.assert_allclose(call('observation', 'object_offset', **way)(state)[0], [0.0, 0.1, 0.0], atol=1e-6)
    near = call('reward', 'object_near', **way, tolerance=0.1)(state)
    assert near[0] == pytest.approx(np.exp(-1.0), abs=1e-5)
    lifted = call('reward', 'object_lifted', body='cube', low=0.0, high=0.2)(state)
    np.testing.assert_allclose(lifted, [1.0, 0.5], atol=1e-6)
    assert call('termination', 'object_away', body='cube', distance=0.9)(state).tolist() == [False, True]
    with state.rng.for_envs(env_ids := np.array([1])):
        call('randomization', 'place_object', body='cube', x=(0.4, 0.5), y=(0.1, 0.2), z=0.3)(state, env_ids)
    state.changed()
    position = state.object_positions(['cube'])[:, 0]
    np.testing.assert_allclose(position[0], tip[0] + [0.0, 0.1, 0.0], atol=1e-6)
    assert 0.4 <= position[1, 0] <= 0.5 and 0.1 <= position[1, 1] <= 0.2 and position[1, 2] == pytest.approx(0.3)


def test_reaching_is_rewarded(make_envs: Callable[..., VectorEnv]) -> None:
    """Joint targets that bring the gripper to its target earn more than staying at home."""
    point = np.array([0.55, 0.2, 0.3])
    envs = make_envs(reach, low=point.tolist(), high=point.tolist(), max_episode_steps=60)
    obs, _ = envs.reset()
    assert obs.shape == (2, 27) and envs.action_space.shape == (2, 7)
    np.testing.assert_allclose(obs[:, 14:17], [point] * 2, atol=1e-6)
    state = envs.core.state
    joints = solve(state, point, turned=False)
    actions = np.zeros((2, 7), np.float32)
    actions[0] = (joints - state.home[:7]) / 1.25
    total = np.zeros(2)
    for _ in range(40):
        obs, rewards, *_ = envs.step(actions)
        total += rewards
    np.testing.assert_allclose(obs[0, 17:20], 0.0, atol=2e-3)
    assert total[0] > 1.0 > 0.0 > total[1]


def test_a_lifted_cube_is_rewarded(make_envs: Callable[..., VectorEnv]) -> None:
    """Down to the cube, fingers closed, up: the task can be solved by its actions, which stay in their range."""
    envs = make_envs(lift, x=(0.5, 0.5), y=(0.1, 0.1))
    obs, _ = envs.reset()
    assert obs.shape == (2, 30) and envs.action_space.shape == (2, 9)
    state = envs.core.state
    rewards = np.zeros(2)
    for height, fingers, steps in ((0.15, 0.0, 30), (0.025, 0.0, 20), (0.025, -1.0, 10), (0.25, -1.0, 30)):
        actions = np.zeros((2, 9), np.float32)
        actions[0, :7] = (solve(state, (0.5, 0.1, height), turned=True) - state.home[:7]) / 1.5
        actions[0, 7:] = fingers
        assert np.abs(actions).max() <= 1.0
        for _ in range(steps):
            _, rewards, *_ = envs.step(actions)
    heights = state.object_positions(['cube'])[:, 0, 2]
    assert heights[0] > 0.23 and heights[1] == pytest.approx(0.025, abs=1e-3)
    assert rewards[0] > 0.3 > 0.03 > rewards[1]


def test_terms_of_a_part(make_envs: Callable[..., VectorEnv]) -> None:
    envs = make_envs(open_part)
    observations, _ = envs.reset()
    assert observations.shape == (2, 30) and envs.action_space.shape == (2, 8)
    state: RobotState = envs.core.state
    handle = state.scene_object('cabinet/drawer').get_poses()[0].copy()
    cabinet = state.object_positions(['cabinet'])[:, 0]
    np.testing.assert_allclose(handle - cabinet, [[-0.042, 0.0, 0.06]] * 2, atol=1e-6)
    assert not np.allclose(cabinet[0], cabinet[1]), 'it stands elsewhere in every episode'
    state.jointed_object('cabinet').set_joint_positions(np.array([1]), np.array([[0.06]]))
    state.changed()
    drawer = {'body': 'cabinet', 'joint': 'drawer'}
    np.testing.assert_allclose(call('observation', 'object_joint', **drawer)(state), [0.0, 0.06], atol=1e-6)
    np.testing.assert_allclose(
        call('reward', 'object_joint_moved', **drawer, low=0.0, high=0.08)(state), [0.0, 0.75], atol=1e-5
    )
    moved = state.scene_object('cabinet/drawer').get_poses()[0] - handle
    np.testing.assert_allclose(moved, [[0.0] * 3, [-0.06, 0.0, 0.0]], atol=1e-6)
    fingers = [state.articulation.get_dof_index(f'panda_finger_joint{k}') for k in (1, 2)]
    state.articulation.set_joint_positions(np.full((2, 2), 0.01), fingers)
    state.changed()
    params = {'link': 'right_gripper', 'body': 'cabinet/drawer', 'joints': ['panda_finger_joint1'], 'opening': 0.04}
    for radius, gripped in ((1.0, 0.75), (0.01, 0.0)):
        grip = call('reward', 'grip', **params, radius=radius)(state)
        np.testing.assert_allclose(grip, [gripped] * 2, atol=1e-5)
    with pytest.raises(ValueError, match="object 'cabinet' has no joint 'draw'; did you mean 'drawer'"):
        state.object_joint('cabinet', 'draw')
    with pytest.raises(KeyError, match="no hinges or slides of an object 'table'"):
        state.object_joint('table', 'drawer')
    with pytest.raises(ValueError, match="there is no part 'door_'; did you mean 'door'"):
        open_part.config(part='door_')


def test_parts_are_seen_alike_by_compiled_terms() -> None:
    outcomes = []
    for compiled in (True, False):
        envs = VectorEnv(with_learning(open_part.config(2, seed=0, threads=1), compiled=compiled))
        envs.reset()
        outcomes.append(envs.step(np.full(envs.action_space.shape, -0.2, np.float32))[:2])
        envs.close()
    for found, expected in zip(*outcomes, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize('part', ['drawer', 'door'])
def test_policies_open_parts(part: str) -> None:
    trained = load_trained(Path(f'robots/franka/open_{part}.onnx'))
    result = evaluate(trained.act, trained.config(16, seed=3, threads=1))
    assert trained.task.id == f'InternUtopia/Franka-Open{part.title()}-v0' and result.metrics['opened'] > 0.95


def test_cubes_lie_elsewhere_in_every_episode(make_envs: Callable[..., VectorEnv]) -> None:
    envs = make_envs(lift, 4, max_episode_steps=2)
    envs.reset()
    places = [envs.core.state.object_positions(['cube'])[:, 0].copy()]
    for _ in range(3):
        envs.step(np.zeros((4, 9), np.float32))
    places.append(envs.core.state.object_positions(['cube'])[:, 0].copy())
    found = np.concatenate(places)
    assert len(np.unique(found[:, 0])) == 8
    assert (np.abs(found[:, 2] - 0.025) < 2e-3).all()


@pytest.mark.parametrize('task', ['Reach', 'Lift', 'OpenDoor'])
def test_tasks_say_how_they_are_trained(task: str) -> None:
    settings = find_task(f'InternUtopia/Franka-{task}-v0').settings(iterations=3)
    assert settings.iterations == 3 and settings.num_envs >= 256
