"""Built-in controllers: against their laws written out in plain Python, and batched against one object per env."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internutopia.config import Config, RobotCfg
from internutopia.config.robot import MimicCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.vec_env import Env
from internutopia.util.rotations import quat_from_yaw
from internutopia_extension.configs.controllers import DifferentialDriveControllerCfg, JointControllerCfg
from internutopia_extension.configs.robots import jetbot
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.controllers.ground_controllers import MoveToPointBySpeedController, RotateController
from internutopia_extension.controllers.move_along_path_points_controller import MoveAlongPathPointsController

Run = Callable[..., Any]
MakeBuiltin = Callable[..., RobotCfg]

COORDINATES = st.floats(-3, 3, width=32)  # of the precision that poses have
PATHS = [
    [(1.0, 0.0, 0.0), (1.0, 1.0, 0.3)],
    [(0.4, 0.0, 0.0), (0.5, 0.1, 0.0), (0.6, 0.3, 0.0), (0.0, 0.0, 0.0)],
    [(-1.0, 0.5, 0.0)],
]
ACTIONS: dict[tuple[str, str], list[Any]] = {
    ('jetbot', 'move_by_speed'): [[0.3, 0.0], (0.1, -1.0), np.array([-0.2, 2.0])],
    ('jetbot', 'move_to_point'): [[(1, 1, 5)], [np.array([-1.0, 0.2, 0.0])], ([0.02, 0.0, 0.0],)],
    ('jetbot', 'move_along_path'): [[path] for path in PATHS],
    ('jetbot', 'move_along_path_ahead'): [[path] for path in PATHS],
    ('jetbot', 'rotate'): [[(0.0, 0.0, 0.0, 1.0)], [quat_from_yaw(np.array(-1.0))], [(0.3, 0.0, 0.0, 0.3)]],
    ('h1', 'joint_controller'): [[np.linspace(-0.2, 0.2, 19)], [], [None, [0.1] * 19]],
    ('h1', 'move_by_speed'): [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0, 0.5, -1]],
    ('h1', 'move_along_path'): [[path] for path in PATHS],
    ('h1', 'rotate'): [[(0.0, 0.0, 0.0, 1.0)], [(1.0, 0.0, 0.0, 0.0)], [(1.0, 0.0, 0.0, 0.1)]],
    ('h1', 'recover'): [[(1, 2, 1.2)], [(1, 2, 0), (0, 0, 0, 1)], [np.array([0.0, 0.0, 0.0])]],
    ('arm', 'joints'): [[[0.5, 1.0]], [None, [1.0, -1.0]], [[0.1, 0.2], [0.0, 0.3]]],
    ('arm', 'recover'): [[(1, 2, 0)], [(0, 0, 2), (1, 0, 0, 1)], [(0, 0, 0)]],
    ('motor_arm', 'actuators'): [[0.1, -0.1], (9, 0), np.zeros(2)],
    ('motor_arm', 'recover'): [[(1, 2, 0)], [(0, 0, 2), (1, 0, 0, 1)], [(0, 0, 0)]],
}


@pytest.mark.parametrize(('robot', 'controller'), ACTIONS)
def test_batched_equals_one_object_per_env(run: Run, make_builtin: MakeBuiltin, robot: str, controller: str) -> None:
    """Bit for bit, with different actions in every env, some envs without one, and one env reset in between."""
    actions = ACTIONS[robot, controller]
    pair = [run(make_builtin(robot, per_env=per_env), env_num=3, episodes=4) for per_env in (False, True)]
    assert_same(*(env.get_observations() for env in pair))
    for step in range(40):
        sent: list[Any] = [{robot: {controller: actions[(env_id + step // 15) % 3]}} for env_id in range(3)]
        if step % 5 == 4:
            sent[step % 3] = {}
        assert_same(*(env.step(sent)[0] for env in pair))
        if step == 20:
            assert_same(*(env.reset([1])[0] for env in pair))


@pytest.mark.parametrize('per_env', [False, True])
@pytest.mark.parametrize('robot', ['jetbot', 'h1', 'arm', 'motor_arm'])
def test_observations_have_the_same_structure_from_reset_on(
    run: Run, make_builtin: MakeBuiltin, robot: str, per_env: bool
) -> None:
    env = run(make_builtin(robot, per_env=per_env))
    first = structure(env.get_observations()[0])
    for name, controller in ACTIONS:
        if name == robot:
            obs = env.step([{robot: {controller: ACTIONS[name, controller][0]}}])[0][0]
            if controller.startswith('move_along_path'):  # None before the first action
                first[robot]['controllers'][controller]['current_point'] = np.ndarray
            assert structure(obs) == first


@pytest.mark.parametrize(('robot', 'controller'), ACTIONS)
def test_samples_of_the_action_space_are_actions(
    run: Run, make_builtin: MakeBuiltin, robot: str, controller: str
) -> None:
    env = run(make_builtin(robot))
    space = env.runner.envs[0].task.robots[robot].batch.robot.controllers[controller].action_space()
    space.seed(0)
    for _ in range(5):
        obs, *_ = env.step([{robot: {controller: space.sample()}}])
        assert obs[0] is not None and np.isfinite(obs[0][robot]['position']).all()


@pytest.fixture(scope='module')
def jetbot_controllers(make_builtin: MakeBuiltin) -> Iterator[dict[str, Any]]:
    """The controllers of a Jetbot that is alone in its env, to be called directly."""
    robot = make_builtin('jetbot', per_env=True)
    env = Env(Config(metrics_save_path='none', task_configs=[SingleInferenceTaskCfg(robots=[robot])]))
    env.reset()
    yield robot_of(env, 'jetbot').controllers
    env.close()


class TestDifferentialDrive:
    def test_wheel_velocities_follow_the_formula_at_scale(self, run: Run, make_builtin: MakeBuiltin) -> None:
        drive = DifferentialDriveControllerCfg(name='drive', wheel_radius=0.03, wheel_base=0.1)
        env = run(make_builtin('jetbot', per_env=True, scale=(2.0, 2.0, 2.0), controllers=[drive]))
        control = robot_of(env, 'jetbot').controllers['drive'].forward(forward_speed=0.6, rotation_speed=1.5)
        # radius 0.06 m, base 0.2 m: (2 * 0.6 -+ 1.5 * 0.2) / 0.12
        np.testing.assert_allclose(control.joint_velocities, [7.5, 12.5])

    def test_drives_at_the_commanded_speed(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('jetbot'), env_num=2, substeps=10)
        obs = steps(
            env, 40, [{'jetbot': {'move_by_speed': [0.3, 0.0]}}, {'jetbot': {'move_by_speed': [0.0, 0.5]}}]
        )  # 2 s
        straight, turned = (o['jetbot'] for o in obs)
        np.testing.assert_allclose(straight['position'][:2], [0.6, 0.0], atol=0.02)
        np.testing.assert_allclose(yaw(turned['orientation']), 1.0, atol=0.03)


class TestMoveToPoint:
    @given(
        start=st.tuples(COORDINATES, COORDINATES),
        goal=st.tuples(COORDINATES, COORDINATES, COORDINATES),
        heading=st.floats(-3.1, 3.1),
        threshold=st.floats(0.0, 2.0),
    )
    def test_speeds_follow_the_law(
        self, jetbot_controllers: dict[str, Any], start: Any, goal: Any, heading: float, threshold: float
    ) -> None:
        controller: MoveToPointBySpeedController = jetbot_controllers['move_to_point']
        control = controller.forward(
            start_position=np.array([*start, 0.7], np.float32),
            start_orientation=quat_from_yaw(np.array(heading, np.float32)),
            goal_position=goal,
            forward_speed=0.8,
            rotation_speed=2.5,
            threshold=threshold,
        )
        distance = math.dist(start, goal[:2])
        error = wrapped(math.atan2(goal[1] - start[1], goal[0] - start[0]) - heading)
        if distance > 1e-3 and abs(distance - threshold) > 1e-3 and abs(error) < math.pi - 1e-3:
            np.testing.assert_allclose(
                speeds(control), point_law(distance, error, 0.8, 2.5, threshold), rtol=1e-3, atol=1e-4
            )
        assert np.isfinite(speeds(control)).all()

    def test_at_the_goal_it_stands(self, jetbot_controllers: dict[str, Any]) -> None:
        controller: MoveToPointBySpeedController = jetbot_controllers['move_to_point']
        here = np.zeros(3, np.float32), np.array([1, 0, 0, 0], np.float32)
        assert speeds(controller.forward(*here, goal_position=(0, 0, 9))).tolist() == [0, 0]
        assert np.isfinite(speeds(controller.forward(*here, goal_position=(0, 0, 0), threshold=0.0))).all()
        assert controller.goal_position.tolist() == [0, 0, 0]
        assert controller.last_threshold == 0

    def test_angle_is_positive_to_the_left(self) -> None:
        left = MoveToPointBySpeedController.get_angle([1, 1, 0], quat_from_yaw(np.array(0.5)), [1, 3, 7])
        assert left == pytest.approx(math.pi / 2 - 0.5)
        backward = MoveToPointBySpeedController.get_angle([0, 0, 0], [1, 0, 0, 0], [-1, 0, 0])
        assert backward == pytest.approx(math.pi)

    def test_arrives(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('jetbot'), env_num=2, substeps=10)
        goals = [(0.8, 0.3, 0.0), (-0.5, 0.5, 0.0)]
        obs = steps(env, 120, [{'jetbot': {'move_to_point': [goal]}} for goal in goals])  # 6 s
        for o, goal in zip(obs, goals, strict=True):
            assert o['jetbot']['controllers']['move_to_point'] == {'finished': True}
            assert math.dist(o['jetbot']['position'][:2], goal[:2]) < 0.1

    def test_new_episode_forgets_the_goal(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('jetbot'), env_num=2, episodes=3)
        obs, *_ = env.step([{'jetbot': {'move_to_point': [(0, 0, 0)]}}] * 2)
        assert [o['jetbot']['controllers']['move_to_point']['finished'] for o in obs] == [True, True]
        env.reset([1])
        finished = [o['jetbot']['controllers']['move_to_point']['finished'] for o in env.get_observations()]
        assert finished == [True, False]


for _cls in MoveToPointBySpeedController, RotateController, MoveAlongPathPointsController:
    BaseController.register(f'Mine{_cls.__name__}')(type(f'Mine{_cls.__name__}', (_cls,), {'batched': True}))


@BaseController.register('Alone')
class Alone(MoveToPointBySpeedController):
    def forward(self, *args: Any, **kwargs: Any) -> ArticulationAction:
        return ArticulationAction()


@pytest.mark.parametrize(
    ('controller', 'subs', 'error'),
    [
        (jetbot.move_to_point_cfg, [], 'forward_speed, rotation_speed; it has none: set `sub_controllers`'),
        (jetbot.rotate_cfg, [jetbot.move_to_point_cfg], "missing a required argument: 'start_position'"),
        (jetbot.move_along_path_cfg, [jetbot.move_by_speed_cfg], "unexpected keyword argument 'start_position'"),
    ],
)
def test_a_wrong_sub_controller_is_named_at_the_start(controller: Any, subs: list[Any], error: str) -> None:
    for type_ in controller.type, f'Mine{controller.type}':  # a subclass that calls it in the same way
        robot = jetbot.JetbotRobotCfg(controllers=[controller.update(sub_controllers=subs, type=type_)])
        env = Env(Config(task_configs=[SingleInferenceTaskCfg(robots=[robot])], metrics_save_path='none'))
        with pytest.raises(ValueError, match=f"robot 'jetbot', controller '{controller.name}': it needs .*{error}"):
            env.reset()
        env.close()


def test_a_subclass_may_call_another_sub_controller() -> None:
    """One that has a `forward` of its own is not checked."""
    robot = jetbot.JetbotRobotCfg(controllers=[jetbot.move_to_point_cfg.update(type='Alone', sub_controllers=[])])
    env = Env(Config(task_configs=[SingleInferenceTaskCfg(robots=[robot])], metrics_save_path='none'))
    env.reset()
    env.close()


class TestRotate:
    @given(
        start=st.floats(-3.1, 3.1),
        goal=st.floats(-3.1, 3.1),
        threshold=st.floats(0.0, 1.0),
        length=st.floats(0.01, 100),
    )
    def test_speeds_follow_the_law(
        self, jetbot_controllers: dict[str, Any], start: float, goal: float, threshold: float, length: float
    ) -> None:
        controller: RotateController = jetbot_controllers['rotate']
        control = controller.forward(
            quat_from_yaw(np.array(start, np.float32)), length * quat_from_yaw(np.array(goal)), 2.5, threshold
        )
        error = wrapped(goal - start)
        expected = 0.0 if abs(error) < threshold else 2.5 * max(-1.0, min(1.0, error))
        if abs(abs(error) - threshold) > 1e-3 and abs(error) < math.pi - 1e-3:
            np.testing.assert_allclose(speeds(control), [0.0, expected], atol=1e-4)
        assert np.isfinite(speeds(control)).all()

    def test_only_yaw_counts(self) -> None:
        tilted = np.array([math.cos(0.2), math.sin(0.2), 0.0, 0.0])
        assert RotateController.get_delta_z_rot(tilted, [1, 0, 0, 0]) == pytest.approx(0.0)
        assert RotateController.get_delta_z_rot([1, 0, 0, 0], quat_from_yaw(np.array(-0.3))) == pytest.approx(-0.3)

    def test_turns_to_the_goal(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('jetbot'), env_num=2, substeps=10)
        goals = [(0.0, 0.0, 0.0, 1.0), quat_from_yaw(np.array(-1.0))]
        obs = steps(env, 80, [{'jetbot': {'rotate': [goal]}} for goal in goals])  # 4 s
        for o, goal in zip(obs, (math.pi, -1.0), strict=True):
            assert o['jetbot']['controllers']['rotate'] == {'finished': True}
            assert abs(wrapped(yaw(o['jetbot']['orientation']) - goal)) < 0.02


class TestMoveAlongPath:
    @pytest.mark.parametrize('per_env', [False, True])
    def test_goes_on_restarts_and_finishes_as_the_law_says(
        self, run: Run, make_builtin: MakeBuiltin, per_env: bool
    ) -> None:
        """Robots are put near points of their path; a plain Python follower predicts what they report."""
        env = run(make_builtin('jetbot', per_env=per_env), env_num=3)
        rng = np.random.default_rng(0)
        followers, sent = [Follower(threshold=0.1) for _ in range(3)], [PATHS[0]] * 3
        for step in range(60):
            for env_id, follower in enumerate(followers):
                if step % 9 == env_id:
                    sent[env_id] = PATHS[rng.integers(3)]
                near = sent[env_id][min(follower.index, len(sent[env_id]) - 1)]
                position = np.array([near[0], near[1], 0.03]) + [*rng.uniform(-0.12, 0.12, 2), 0.0]
                robot_of(env, 'jetbot', env_id).articulation.set_pose(position)
                follower.follow(sent[env_id], position)
            obs, *_ = env.step([{'jetbot': {'move_along_path': [list(path)]}} for path in sent])
            for o, follower in zip(obs, followers, strict=True):
                report = o['jetbot']['controllers']['move_along_path']
                assert report['current_index'] == follower.index
                assert report['total_points'] == len(follower.path)
                np.testing.assert_allclose(report['current_point'], [*follower.path[follower.index][:2], 0.0])
                assert report['finished'] is follower.finished(o['jetbot']['position'])

    def test_a_list_changed_in_place_is_a_new_path(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('jetbot'))
        path = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
        assert self._index(env, path) == 1
        assert self._index(env, path) == 1
        path[0][0] = 0.5
        assert self._index(env, path) == 0

    def test_a_new_episode_starts_the_same_path_anew(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('jetbot'), episodes=2)
        path = [[0.0, 0.0, 0.0], [0.01, 0.0, 0.0], [1.0, 0.0, 0.0]]
        assert self._index(env, path) == 1
        assert self._index(env, path) == 2
        obs, _ = env.reset()
        report = obs[0]['jetbot']['controllers']['move_along_path']
        assert report == {'current_index': 0, 'current_point': None, 'total_points': 0, 'finished': False}
        assert self._index(env, path) == 1

    def test_observed_points_are_copies(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('jetbot'))
        action = [{'jetbot': {'move_along_path': [[(1, 2, 3)]]}}]
        env.step(action)[0][0]['jetbot']['controllers']['move_along_path']['current_point'][:] = 9.0
        obs, *_ = env.step(action)
        assert obs[0]['jetbot']['controllers']['move_along_path']['current_point'].tolist() == [1, 2, 0]

    def test_speeds_and_threshold_are_its_own(self, jetbot_controllers: dict[str, Any]) -> None:
        controller: MoveAlongPathPointsController = jetbot_controllers['move_along_path']
        here = np.zeros(3, np.float32), np.array([1, 0, 0, 0], np.float32)
        control = controller.forward(*here, [(2.0, 0.0, 0.0)], forward_speed=0.3, rotation_speed=1.0, threshold=0.5)
        np.testing.assert_allclose(speeds(control), [0.3, 0.0], atol=1e-6)
        assert controller.sub_controllers[0].last_threshold == 0.5
        assert controller.current_path_point.tolist() == [2, 0, 0]

    @staticmethod
    def _index(env: Any, path: list[list[float]]) -> int:
        obs, *_ = env.step([{'jetbot': {'move_along_path': [path]}}])
        return obs[0]['jetbot']['controllers']['move_along_path']['current_index']


class TestJointController:
    def test_targets_are_reached_in_the_order_of_the_names(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('arm'), env_num=2, substeps=10)
        env.step([{'arm': {'joints': [[0.3, -0.2]]}}, {'arm': {'joints': [None, None]}}])
        obs = steps(env, 60, [{'arm': {'joints': []}}, {}])
        # joint order of the robot: shoulder, elbow
        np.testing.assert_allclose(obs[0]['arm']['joint_positions'], [-0.2, 0.3], atol=1e-3)
        np.testing.assert_allclose(obs[1]['arm']['joint_positions'], [0.5, 0.0], atol=1e-3)

    def test_a_joint_that_mimics_another_one_follows_it(self, run: Run, make_builtin: MakeBuiltin) -> None:
        arm = make_builtin('arm')
        mimic = {'elbow': MimicCfg(multipliers={'shoulder': -0.5}, offset=0.1)}
        joints = JointControllerCfg(name='joints', joint_names=['shoulder'], mimic=mimic)
        env = run(arm.update(controllers=[joints]), env_num=2, substeps=10)
        obs = steps(env, 60, [{'arm': {'joints': [[0.4]]}}, {'arm': {'joints': [None]}}])
        np.testing.assert_allclose(obs[0]['arm']['joint_positions'], [0.4, -0.1], atol=1e-3)
        np.testing.assert_allclose(obs[1]['arm']['joint_positions'], [0.5, 0.0], atol=1e-3)  # as they were

    def test_a_joint_mimics_only_what_is_driven(self, run: Run, make_builtin: MakeBuiltin) -> None:
        mimic = {'elbow': MimicCfg(multipliers={'sholder': 1.0})}
        joints = JointControllerCfg(name='joints', joint_names=['shoulder'], mimic=mimic)
        with pytest.raises(KeyError, match="'elbow' mimics joint 'sholder', which is not driven.*mean 'shoulder'"):
            run(make_builtin('arm').update(controllers=[joints]))

    def test_a_velocity_alone_moves_on_from_the_current_position(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('arm'), substeps=1)
        obs = steps(env, 100, [{'arm': {'joints': [None, [0.4, 0.0]]}}])  # 0.5 s
        arm = obs[0]['arm']
        np.testing.assert_allclose(arm['joint_velocities'], [0.0, 0.4], atol=0.02)
        np.testing.assert_allclose(arm['joint_positions'], [0.5, 0.2], atol=0.02)


class TestRecover:
    @pytest.mark.parametrize('per_env', [False, True])
    def test_stands_at_rest_in_its_home_pose(self, run: Run, make_builtin: MakeBuiltin, per_env: bool) -> None:
        env = run(make_builtin('h1', per_env=per_env), env_num=2)
        fall = {'h1': {'joint_controller': [np.full(19, 0.3), np.full(19, 0.5)]}}
        for _ in range(25):
            env.step([fall, fall])
        turned = (math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5))
        obs, *_ = env.step([{'h1': {'recover': [(1.0, 2.0, 0.0)]}}, {'h1': {'recover': [(0.0, 0.0, 1.3), turned]}}])
        poses = [((1.0, 2.0, 1.0), (1.0, 0.0, 0.0, 0.0)), ((0.0, 0.0, 1.3), turned)]
        for env_id, (position, orientation) in enumerate(poses):
            robot, seen = robot_of(env, 'h1', env_id), obs[env_id]['h1']
            home = [robot.home.get(name, 0.0) for name in robot.articulation.dof_names]
            # four substeps of 5 ms later: it has fallen 2 mm and its joints have hardly moved
            np.testing.assert_allclose(seen['position'], position, atol=0.003)
            np.testing.assert_allclose(seen['orientation'], orientation, atol=0.003)
            np.testing.assert_allclose(seen['joint_positions'], home, atol=0.01)
            np.testing.assert_allclose(robot.articulation.get_linear_velocity(), [0, 0, -0.2], atol=0.05)


class TestActuators:
    def test_controls_are_those_of_the_model_and_clipped(self, run: Run, make_builtin: MakeBuiltin) -> None:
        env = run(make_builtin('motor_arm'), env_num=2, substeps=1)
        env.step([{'motor_arm': {'actuators': [0.2, 0.1]}}, {'motor_arm': {'actuators': [9.0, -0.1]}}])
        efforts = [robot_of(env, 'motor_arm', i).articulation.get_joint_efforts() for i in range(2)]
        np.testing.assert_allclose(efforts, [[0.2, 0.2], [0.5, -0.2]], rtol=1e-6)


class Follower:
    """The path law in plain Python."""

    def __init__(self, threshold: float):
        self.threshold = threshold
        self.path: list[tuple[float, ...]] = []
        self.index = 0

    def follow(self, path: list[tuple[float, ...]], position: Any) -> None:
        if path != self.path:
            self.path, self.index = path, 0
        if self._near(position) and self.index < len(path) - 1:
            self.index += 1

    def finished(self, position: Any) -> bool:
        return self.index == len(self.path) - 1 and self._near(position)

    def _near(self, position: Any) -> bool:
        return math.dist(position[:2], self.path[self.index][:2]) < self.threshold


def point_law(distance: float, error: float, speed: float, rotation: float, threshold: float) -> tuple[float, float]:
    if distance < threshold:
        return 0.0, 0.0
    if distance < 2 * threshold:
        speed *= (distance / (2 * threshold)) ** 3
    speed *= (1 - 2 * abs(error) / math.pi) ** 3 if abs(error) < math.pi / 2 else 0.0
    return speed, rotation * (error if abs(error) < 1 else math.copysign(1, error))


def speeds(control: Any) -> np.ndarray:
    """Forward and rotation speed of a Jetbot from its wheel velocities."""
    left, right = control.joint_velocities
    drive = jetbot.move_by_speed_cfg
    return np.array([(left + right) * drive.wheel_radius / 2, (right - left) * drive.wheel_radius / drive.wheel_base])


def steps(env: Any, count: int, actions: list[Any]) -> list[Any]:
    """Step with the same actions; the last observations."""
    for _ in range(count - 1):
        env.step(actions)
    return env.step(actions)[0]


def robot_of(env: Any, name: str, env_id: int = 0) -> Any:
    """An env's own robot object."""
    return env.runner.current_tasks[env.runner.env_id_to_task_name_map[env_id]].robots[name]


def wrapped(angle: float) -> float:
    return math.atan2(math.sin(angle), math.cos(angle))


def yaw(orientation: Any) -> float:
    w, x, y, z = (float(v) for v in orientation)
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


def structure(tree: Any) -> Any:
    """Keys and types of an observation."""
    return {key: structure(value) for key, value in tree.items()} if isinstance(tree, dict) else type(tree)


def assert_same(a: Any, b: Any) -> None:
    """Equal values, types and shapes all the way down."""
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(a, list | tuple):
        assert len(a) == len(b)
        for item_a, item_b in zip(a, b, strict=True):
            assert_same(item_a, item_b)
    elif not hasattr(a, 'model_dump'):
        assert type(a) is type(b) and a == b
