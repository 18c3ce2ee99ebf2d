"""H1 with hands as a robot of an env: it is H1, and its hands can be commanded besides."""

from collections.abc import Callable

import numpy as np
import pytest

from internutopia.core.vec_env import Env
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.joint_names import H1_19
from internutopia_extension.configs.robots import h1_with_hand
from internutopia_extension.robots.legged import H1Robot, H1WithHandRobot

HEIGHT = 0.981  # m, of the pelvis at home
HANDS = JointControllerCfg(name='hands', joint_names=['left_hand_joint', 'R_index_proximal_joint'])


@pytest.fixture
def env(run: Callable[..., Env], h1_policy: str) -> Env:
    """One H1 with hands that stands on the floor."""
    walk = h1_with_hand.move_by_speed_cfg.update(policy_weights_path=h1_policy)
    controllers = [walk, h1_with_hand.right_arm_joint_controller_cfg, HANDS]
    return run(h1_with_hand.H1WithHandRobotCfg(position=(0.0, 0.0, HEIGHT), controllers=controllers))


def robot_of(env: Env) -> H1WithHandRobot:
    [robot] = next(iter(env.runner.current_tasks.values())).robots.values()
    assert isinstance(robot, H1WithHandRobot)
    return robot


def positions(robot: H1WithHandRobot) -> dict[str, float]:
    return dict(zip(robot.articulation.dof_names, robot.articulation.get_joint_positions().tolist(), strict=True))


@pytest.mark.slow
def test_body_is_driven_and_posed_as_h1(env: Env) -> None:
    robot = robot_of(env)
    names = robot.articulation.dof_names
    assert len(names) == 45 and set(H1_19) < set(names)
    stiffness, damping = robot.articulation.get_gains()
    for joint, kp, kd in zip(names, stiffness, damping, strict=True):
        if joint in H1_19:
            assert (kp, kd) == H1Robot.drives.gains(joint)
        assert kp > 0 and kd > 0
    assert {j: q for j, q in positions(robot).items() if q} == pytest.approx(H1Robot.home)
    obs = env.get_observations()[0]['h1_with_hand']
    np.testing.assert_allclose(obs['position'], [0, 0, HEIGHT], atol=1e-6)
    assert robot.get_robot_base().name.endswith('/pelvis')
    assert robot.get_robot_ik_base().name.endswith('/torso_link')
    assert robot.get_ankle_height() == pytest.approx(0.07, abs=0.002)  # the ankle is 7 cm above the sole


def test_runs_a_policy_of_h1_and_moves_its_hands(env: Env) -> None:
    robot = robot_of(env)
    robot.articulation.set_pose((0.0, 0.0, 50.0))  # so high that 2 s of free fall take it nowhere: balance is no matter
    arm = [0.3, -0.2, 0.0, 0.2]
    action = {'move_by_speed': (0.0, 0.0, 0.0), 'right_arm_joint_controller': [arm], 'hands': [[1.0, 1.2]]}
    for _ in range(100):
        env.step([{'h1_with_hand': action}])
    reached = positions(robot)
    for joint, target in zip(h1_with_hand.right_arm_joint_controller_cfg.joint_names, arm, strict=True):
        assert reached[joint] == pytest.approx(target, abs=0.06)
    assert reached['left_hand_joint'] == pytest.approx(1.0, abs=0.05)
    assert reached['R_index_proximal_joint'] == pytest.approx(1.2, abs=0.05)
    assert reached['R_index_intermediate_joint'] == pytest.approx(0.0, abs=0.02)  # a joint of its own
