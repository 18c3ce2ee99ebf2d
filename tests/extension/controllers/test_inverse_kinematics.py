"""Inverse kinematics: the solver against poses that joints are known to reach, the controller under real physics."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

from internutopia.core.gym_env import GymEnv
from internutopia.core.vec_env import Env
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.model.kinematics import (
    POSITION_TOLERANCE,
    ROTATION_TOLERANCE,
    InverseKinematics,
    KinematicChain,
    rotation_vectors,
)
from internutopia.util.rotations import quat_multiply, quat_rotate
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.joint_names import FRANKA_ARM_7
from internutopia_extension.configs.robots import h1_with_hand
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.robots.mocap_controlled_franka import rmpflow_controller_cfg
from internutopia_extension.controllers.inverse_kinematics_controller import InverseKinematicsController
from internutopia_extension.robots.franka import FrankaRobot

DOWN = (0.0, 1.0, 0.0, 0.0)
EXACT = 1e-9  # double precision, with room for a chain of seven joints

Start = Callable[..., Env]


@pytest.fixture
def franka(run: Callable[..., Env]) -> Start:
    """Starts envs with one Franka each; fields of its config, and of the IK controller under `ik`."""

    def start(env_num: int = 1, ik: dict[str, Any] | None = None, **fields: Any) -> Env:
        joints = JointControllerCfg(name='joints', joint_names=FRANKA_ARM_7)
        turn = JointControllerCfg(name='turn', joint_names=FRANKA_ARM_7[:1])
        controllers = [arm_ik_cfg.update(**(ik or {})), gripper_cfg, joints, turn]
        return run(FrankaRobotCfg(controllers=controllers, **fields), env_num=env_num)

    return start


def chain_of(env: Env) -> KinematicChain:
    return env.runner.world.articulation('franka', 0).chain('panda_link0', 'right_gripper', 0)


def engine_of(env: Env) -> tuple[Any, Any]:
    """Model and data of the env."""
    world = env.runner.world
    assert isinstance(world, MujocoWorld)
    return world.model(0), world.data(0)


def controller_of(env: Env) -> InverseKinematicsController:
    [task] = list(env.runner.current_tasks.values())[:1]
    controller = task.robots['franka'].get_controllers()['arm_ik_controller']
    assert isinstance(controller, InverseKinematicsController)
    return controller


def drive(env: Env, targets: Any, steps: int = 150, name: str = 'arm_ik_controller', robot: str = 'franka') -> Any:
    """Sends the same targets again and again; the controller's last observation by env."""
    for _ in range(steps):
        env.step([{robot: {name: target}} for target in targets])
    return [each[robot]['controllers'][name] for each in env.get_observations()]


def test_chain_agrees_with_the_engine(franka: Start) -> None:
    env = franka(scale=(1.5, 1.5, 1.5))
    chain = chain_of(env)
    model, data = engine_of(env)
    rng = np.random.default_rng(0)
    low, high = chain.ranges.T
    positions = rng.uniform(low, high, (4, 7))
    poses = chain.poses(positions)
    jacobians = chain.jacobian(poses)
    body = model.body('robots/franka/right_gripper').id
    for row in range(4):
        data.qpos[:7] = positions[row]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(poses[row, -1, :3, 3], data.xpos[body], atol=EXACT)
        np.testing.assert_allclose(poses[row, -1, :3, :3], data.xmat[body].reshape(3, 3), atol=EXACT)
        expected = np.zeros((6, model.nv))
        mujoco.mj_jacBody(model, data, expected[:3], expected[3:], body)
        np.testing.assert_allclose(jacobians[row], expected[:, :7], atol=EXACT)


def test_chain_with_sliding_joints_and_anchors(run: Callable[..., Env], write_model: Callable[..., str]) -> None:
    """Joints that slide, that turn about another point than their link's origin, that do not start at zero."""
    from internutopia_extension.configs.robots.generic import GenericRobotCfg

    path = write_model(
        'crane',
        """<compiler angle="radian"/><worldbody><body name="base" pos="0.1 0.2 0.3" quat="0.8 0 0.6 0">
        <geom size="0.1"/><body name="mast" pos="0 0 0.2"><geom size="0.05"/>
        <joint name="turn" axis="0 1 1" pos="0.1 -0.05 0.02" ref="0.3" range="-2 2"/>
        <joint name="lift" type="slide" axis="1 0 0.5" ref="0.1"/>
        <body name="hook" pos="0.3 0 0.1" quat="0.6 0.8 0 0"><geom size="0.03"/></body></body></body></worldbody>""",
    )
    env = run(GenericRobotCfg(name='crane', usd_path=path, fixed_base=True))
    view = env.runner.world.articulation('crane', 0)
    chain = view.chain('', 'hook', 0)
    model, data = engine_of(env)
    positions = np.random.default_rng(0).uniform(-1, 1, (3, 2))
    poses = chain.poses(positions)
    hook = model.body('robots/crane/hook').id
    for row in range(3):
        data.qpos[:] = positions[row]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(poses[row, -1, :3, 3], data.xpos[hook], atol=EXACT)
        jacobian = np.zeros((6, 2))
        mujoco.mj_jacBody(model, data, jacobian[:3], jacobian[3:], hook)
        np.testing.assert_allclose(chain.jacobian(poses)[row], jacobian, atol=EXACT)


def test_solver_meets_poses_that_joints_can_reach(franka: Start) -> None:
    chain = chain_of(franka())
    rng = np.random.default_rng(1)
    home = np.array([FrankaRobot.home[joint] for joint in FRANKA_ARM_7])
    solver = InverseKinematics(chain, home, np.ones(7, bool))
    targets = chain.poses(home + rng.uniform(-0.6, 0.6, (32, 7)))[:, -1]
    start, turned, search = np.tile(home, (32, 1)), rng.uniform(size=32) < 0.7, np.ones(32, bool)
    positions, met = solver.solve(targets, turned, start, search)
    assert met.all()
    low, high = chain.ranges.T
    assert (positions >= low).all() and (positions <= high).all()
    tips = chain.poses(positions)[:, -1]
    assert np.linalg.norm(tips[:, :3, 3] - targets[:, :3, 3], axis=-1).max() <= POSITION_TOLERANCE
    turns = np.linalg.norm(rotation_vectors(targets[:, :3, :3] @ tips[:, :3, :3].swapaxes(-1, -2)), axis=-1)
    assert turns[turned].max() <= ROTATION_TOLERANCE
    assert turns[~turned].max() > 10 * ROTATION_TOLERANCE  # an orientation that does not count is not followed
    # a row does not depend on those beside it, to the bit
    for row in (slice(0, 1), slice(7, 8)):
        alone, _ = solver.solve(targets[row], turned[row], start[row], search[row])
        np.testing.assert_array_equal(positions[row], alone)


def test_free_joints_drift_home(franka: Start) -> None:
    chain = chain_of(franka())
    home = np.array([FrankaRobot.home[joint] for joint in FRANKA_ARM_7])
    start = home + np.random.default_rng(2).uniform(-0.5, 0.5, (16, 7))
    targets = chain.poses(start)[:, -1]
    targets[:, 2, 3] += 0.05
    free = np.zeros(16, bool)
    positions, met = InverseKinematics(chain, home, np.ones(7, bool)).solve(targets, free, start, free)
    assert met.all()
    distances = [np.linalg.norm(each - home, axis=-1).mean() for each in (start, positions)]
    assert distances[1] < 0.95 * distances[0]


def test_rotation_vectors() -> None:
    rng = np.random.default_rng(0)
    axes = rng.normal(size=(6, 3))
    axes /= np.linalg.norm(axes, axis=-1, keepdims=True)
    angles = np.array([0.0, 1e-7, 1.0, 3.0, np.pi - 1e-9, np.pi])
    matrices = []
    for axis, angle in zip(axes, angles, strict=True):
        quaternion, matrix = np.empty(4), np.empty(9)
        mujoco.mju_axisAngle2Quat(quaternion, axis, angle)
        mujoco.mju_quat2Mat(matrix, quaternion)
        matrices.append(matrix.reshape(3, 3))
    found = rotation_vectors(np.array(matrices))
    found[-1] *= np.sign(found[-1] @ axes[-1])  # half a turn goes either way
    np.testing.assert_allclose(found, axes * angles[:, None], atol=1e-8)


def test_reaches_poses_in_every_env_and_says_so(franka: Start) -> None:
    env = franka(3)
    targets = [
        [(0.5, 0.1, 0.3), DOWN],
        [np.array([0.4, -0.3, 0.4]), None],
        [(0.4, 0.4, 0.1), (0.5, 0.5, 0.5, 0.5)],
    ]
    first = drive(env, targets, steps=1)
    assert [obs['success'] for obs in first] == [True] * 3 and [obs['finished'] for obs in first] == [False] * 3
    last = drive(env, targets)
    for obs, (position, orientation) in zip(last, targets, strict=True):
        assert obs['finished'] is True
        np.testing.assert_allclose(obs['eef_position'], position, atol=2e-3)
        if orientation is not None:
            assert abs(obs['eef_orientation'] @ np.array(orientation)) > 0.9999
    # nothing overshoots its speed, which makes for a straight line in joint space
    assert env.runner.world.articulation('franka', 0).get_joint_velocities().max() < 0.05


def test_moves_no_faster_than_its_joint_speed(franka: Start) -> None:
    env = franka(ik={'joint_speed': 0.5})
    fastest = 0.0
    for _ in range(60):
        obs, *_ = env.step([{'franka': {'arm_ik_controller': [(0.5, 0.3, 0.2), DOWN]}}])
        fastest = max(fastest, float(np.abs(obs[0]['franka']['joint_velocities'][:7]).max()))
    assert 0.4 < fastest < 0.55


@pytest.mark.slow
def test_targets_that_creep_are_met_from_everywhere(franka: Start) -> None:
    """As under a base that sways: the arm, on its way there, may be where the target is not found from."""
    angles = np.deg2rad((-180.0, 0.0, 165.0))
    env = franka(len(angles))
    for goal in ((0.5, 0.3, 0.4), (0.6, 0.0, 0.3)):
        drive(env, [[(0.66 * math.cos(angle), 0.66 * math.sin(angle), 0.2), DOWN] for angle in angles])
        for step in range(50):
            seen = drive(env, [[(goal[0], goal[1] + 5e-5 * step, goal[2]), DOWN]] * len(angles), steps=1)
            assert all(each['success'] for each in seen)


@pytest.mark.slow
def test_a_target_out_of_reach_that_comes_near_is_met(franka: Start) -> None:
    """As from a base that drives there, by a way on which the arm cannot follow it."""
    env = franka()
    first, goal = np.array((0.3 - 1.2 * math.sqrt(0.5), -0.5 + 1.2 * math.sqrt(0.5), 0.15)), np.array((0.3, -0.5, 0.15))
    for share in np.linspace(0.0, 1.0, 120):
        drive(env, [[tuple(first + share * (goal - first)), DOWN]], steps=1)
    assert drive(env, [[tuple(goal), DOWN]], steps=1)[0]['success']


@pytest.mark.slow
def test_a_target_out_of_reach_is_approached_and_never_finished(franka: Start) -> None:
    env = franka(2)
    far = [[(2.0, 0.0, 0.333), None], [(0.5, 0.0, 0.3), None]]
    obs = drive(env, far, steps=250)
    assert [each['success'] for each in obs] == [False, True]
    assert [each['finished'] for each in obs] == [False, True], 'the other env is not disturbed'
    # the arm is stretched out towards it: shoulder at a height of 0.333 m, reach about 0.95 m
    x, y, z = obs[0]['eef_position']
    assert x > 0.92 and abs(y) < 0.01 and abs(z - 0.333) < 0.02


def test_without_a_position_the_joints_stay(franka: Start) -> None:
    env = franka(ik={'joint_speed': 0.5})
    drive(env, [[(0.5, 0.3, 0.2), None]], steps=15)
    before = env.get_observations()[0]['franka']['joint_positions']
    [obs] = drive(env, [[None, None]], steps=60)
    after = env.get_observations()[0]['franka']['joint_positions']
    assert not obs['finished'] and not obs['success']
    assert np.abs(after - before).max() < 0.08  # what the drives lagged behind
    drive(env, [[None, None]], steps=30)
    np.testing.assert_allclose(env.get_observations()[0]['franka']['joint_positions'], after, atol=1e-3)


@pytest.mark.parametrize('reference', ['world', 'robot', 'arm_base'])
def test_frames_of_reference(franka: Start, reference: str) -> None:
    position, orientation = np.array([1.0, -0.5, 0.2]), np.array([0.8, 0.0, 0.0, 0.6])
    env = franka(ik={'reference': reference}, position=position, orientation=orientation)
    local, down = np.array([0.45, 0.2, 0.3]), np.array(DOWN)
    target = local if reference != 'world' else position + quat_rotate(orientation, local)
    turn = down if reference != 'world' else quat_multiply(orientation, down)
    [obs] = drive(env, [[target, turn]])
    assert obs['finished']
    np.testing.assert_allclose(obs['eef_position'], target, atol=2e-3)
    world, _ = controller_of(env).robot.articulation.body('right_gripper').get_pose()
    np.testing.assert_allclose(world[0], position + quat_rotate(orientation, local), atol=2e-3)


def test_starts_from_where_another_controller_left_the_arm(franka: Start) -> None:
    env = franka()
    drive(env, [[(0.5, 0.0, 0.4), DOWN]])
    pose = [0.8, 0.3, 0.2, -1.8, 0.1, 2.0, 0.5]
    for _ in range(100):
        env.step([{'franka': {'joints': [pose]}}])
    env.step([{'franka': {'arm_ik_controller': [(0.5, 0.0, 0.4), DOWN]}}])
    [commanded] = env.get_observations()[0]['franka']['joint_action']
    np.testing.assert_allclose(commanded['joint_positions'], pose, atol=0.031)  # 1.5 rad/s for a step of 1/50 s


def test_only_named_joints_move(franka: Start) -> None:
    env = franka(ik={'joint_names': FRANKA_ARM_7[:4]})
    [obs] = drive(env, [[(0.5, 0.2, 0.4), None]])
    assert obs['finished']
    home = [FrankaRobot.home[joint] for joint in FRANKA_ARM_7[4:]]
    np.testing.assert_allclose(env.get_observations()[0]['franka']['joint_positions'][4:7], home, atol=2e-3)


def test_makes_up_for_joints_that_others_move(franka: Start) -> None:
    env = franka(ik={'joint_names': FRANKA_ARM_7[1:]})
    target = (0.45, 0.1, 0.4)
    for angle in np.linspace(0.0, -0.6, 120):  # another controller turns the whole arm
        env.step([{'franka': {'turn': [[angle]], 'arm_ik_controller': [target, None]}}])
    [obs] = drive(env, [[target, None]], steps=40)
    assert obs['finished']
    assert env.get_observations()[0]['franka']['joint_positions'][0] == pytest.approx(-0.6, abs=1e-2)


def test_arm_of_a_humanoid_that_falls(run: Callable[..., Env]) -> None:
    """The arm base of H1 with hands is its torso, wherever that is."""
    ik = h1_with_hand.right_arm_ik_controller_cfg.update(reference='arm_base')
    env = run(h1_with_hand.H1WithHandRobotCfg(position=(0.0, 0.0, 50.0), controllers=[ik]))
    target = (0.25, -0.25, 0.1)
    obs = drive(env, [[target, None]], 90, ik.name, 'h1_with_hand')
    np.testing.assert_allclose(obs[0]['eef_position'], target, atol=0.03)  # its drives are soft


def test_per_env_controllers_do_the_same(franka: Start, run: Callable[..., Env]) -> None:
    from internutopia.core.robot.robot import BaseRobot

    BaseRobot.register('PerEnvFranka')(type('PerEnvFranka', (FrankaRobot,), {}))
    batched = franka(2)
    single = run(FrankaRobotCfg(type='PerEnvFranka', controllers=[arm_ik_cfg, gripper_cfg]), env_num=2)
    targets = [[(0.5, 0.1, 0.3), DOWN], [(0.4, -0.2, 0.4), None]]
    for env in (batched, single):
        drive(env, targets, steps=20)
    for one, other in zip(batched.get_observations(), single.get_observations(), strict=True):
        np.testing.assert_array_equal(one['franka']['joint_positions'], other['franka']['joint_positions'])
        for key in ('eef_position', 'success', 'finished'):
            values = [each['franka']['controllers']['arm_ik_controller'][key] for each in (one, other)]
            np.testing.assert_array_equal(*values)
        assert one['franka']['joint_action'] == other['franka']['joint_action']


@pytest.mark.parametrize('tiny', [0.0, -0.0, 1e-16, 1e-30, 1e-45])
def test_an_array_whose_orientation_has_no_length_leaves_it_open(franka: Start, tiny: float) -> None:
    env = franka(2)
    array = np.array([0.5, 0.1, 0.4, tiny, 0.0, 0.0, tiny], np.float32)
    obs = [env.step([{'franka': {'arm_ik_controller': t}} for t in (array, [array[:3], None])])[0] for _ in range(5)][
        -1
    ]
    np.testing.assert_equal(obs[0], obs[1])
    assert obs[0]['franka']['controllers']['arm_ik_controller']['success']


@pytest.mark.parametrize(
    ('action', 'message'),
    [
        ([(0.5, 0.0, np.nan), None], 'not finite'),
        ([(0.5, 0.0), None], '3 numbers .end-effector position.*got shape'),
        ([(0.5, 0.0, 0.4), (0, 0, 0, 0)], 'length zero'),
        ([(0.5, 0.0, 0.4), (1e-30, 0, 0, 0)], 'length zero'),
        ([None, (0, 0, 1e-45, 0)], 'length zero'),
        ([(0.5, 0.0, 1e25), None], r'a value that is beyond 1e\+10'),
        ([(0.5, 0.0, 0.4)], 'expected .end-effector position, orientation'),
        ('forward', 'expected .end-effector position, orientation'),
        (np.array([0.5, np.nan, 0.4, 1.0, 0.0, 0.0, 0.0]), 'not finite'),
    ],
)
def test_bad_targets_are_refused_before_anything_moves(franka: Start, action: Any, message: str) -> None:
    env = franka(2)
    before = env.get_observations()
    with pytest.raises(ValueError, match=f"env 1, robot 'franka', controller 'arm_ik_controller': .*{message}"):
        env.step([{'franka': {'arm_ik_controller': target}} for target in ([(0.5, 0.0, 0.4), None], action)])
    for one, other in zip(before, env.get_observations(), strict=True):
        np.testing.assert_array_equal(one['franka']['joint_positions'], other['franka']['joint_positions'])


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'end_effector_frame_name': 'right_griper'}, "no link 'right_griper'; did you mean 'right_gripper'"),
        ({'end_effector_frame_name': 'panda_link0'}, "no joint moves link 'panda_link0'"),
        ({'joint_names': ['panda_joint9']}, "no joint 'panda_joint9' moves link 'right_gripper'; did you mean"),
    ],
)
def test_mistakes_in_the_config_are_named(franka: Start, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        franka(ik=fields)


def test_rmpflow_says_what_to_use_instead(run: Callable[..., Env]) -> None:
    message = (
        "'rmpflow_controller': controller type 'RMPFlowController' .* not available: an InverseKinematicsController"
    )
    with pytest.raises(ValueError, match=message):
        run(FrankaRobotCfg(controllers=[rmpflow_controller_cfg]))


def test_spaces(make_config: Callable[..., Any]) -> None:
    from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

    robot = FrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg])
    env = GymEnv(make_config(tasks=[SingleInferenceTaskCfg(robots=[robot])], env_num=1))
    assert isinstance(env.action_space, gymnasium.spaces.Dict)
    obs, _ = env.reset(seed=0)
    assert obs in env.observation_space
    env.action_space.seed(0)
    for _ in range(2):
        obs, *_ = env.step(env.action_space.sample())
        assert obs in env.observation_space
    env.close()
