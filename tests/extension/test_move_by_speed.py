"""Controllers that walk with a policy, on small policies with known weights: when they act, on what, to what effect."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.core.config import ControllerCfg, RobotCfg
from internutopia.core.config.learning import LearningCfg
from internutopia.core.robot.controller import BaseController
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia.rl.policy import Policy
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.controllers.move_by_speed_controller import MoveBySpeedController

WritePolicy = Callable[..., str]
Start = Callable[..., Env]

HOME = [0.3, -0.2]  # rad, hip and tail
PERIOD = 0.5  # s
COMMAND = {'term': 'command', 'params': {'name': 'speed'}}
# The observation: command (3), last action (2), cosine and sine of the clock (2). The hip follows the forward speed and
# the clock, the tail the rotation speed and its own last action.
OBSERVATIONS = [COMMAND, {'term': 'last_action'}, {'term': 'phase', 'params': {'period': PERIOD}}]
WEIGHTS = np.zeros((7, 2))
WEIGHTS[[0, 6], 0] = 1.0, 0.1
WEIGHTS[[2, 4], 1] = -1.0, 0.5
METADATA = {'observations': OBSERVATIONS, 'offset': [0.2, 0.1], 'scale': 0.5}
# What a policy that really walks looks at
SENSES = [
    {'term': 'base_angular_velocity', 'scale': 0.25},
    {'term': 'projected_gravity'},
    COMMAND,
    {'term': 'joint_positions', 'params': {'relative': True, 'joints': ['hip', 'tail']}},
    {'term': 'joint_velocities', 'params': {'joints': ['tail', 'hip']}, 'scale': 0.05, 'clip': 5.0},
    {'term': 'last_action'},
    {'term': 'phase', 'params': {'period': PERIOD}},
]


class Recorder:
    """A policy that remembers what it was asked."""

    def __init__(self, policy: Policy):
        self.path, self.metadata, self._policy = policy.path, policy.metadata, policy
        self.batches: list[np.ndarray] = []

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        self.batches.append(observations.copy())
        return self._policy(observations)


class Walk(MoveBySpeedController):
    """Remembers the targets that it gave each env."""

    batched = True

    def __init__(self, config: Any, robot: Any, scene: Any):
        super().__init__(config, robot, scene)
        self.policy: Any = Recorder(self.policy)
        self.given: dict[int, list[list[float]]] = {}

    def action_to_control(self, action: Any, env_ids: Any = ...) -> Any:
        control = super().action_to_control(action, env_ids)
        ids = np.atleast_1d(self.scene.env_id if env_ids is ... else env_ids)
        for env_id, row in zip(ids.tolist(), np.atleast_2d(control.joint_positions).tolist(), strict=True):
            self.given.setdefault(env_id, []).append(row)
        return control


BaseController.register('Walk')(Walk)
BaseController.register('PerEnvWalk')(type('PerEnvWalk', (MoveBySpeedController,), {}))


@pytest.fixture
def hopper(models: dict[str, str]) -> Callable[..., RobotCfg]:
    """Makes the config of a hopper that walks with a policy."""

    def make(policy: str, controller: str = 'Walk', robot: str = 'GenericRobot', **fields: Any) -> RobotCfg:
        walk = {'name': 'walk', 'type': controller, 'joint_names': ['tail', 'hip'], 'policy_weights_path': policy}
        return GenericRobotCfg(
            type=robot,
            name='hopper',
            usd_path=models['hopper'],
            position=(0.2, -0.1, 0.3),
            orientation=(0.9, 0.2, -0.1, 0.3),
            stiffness=20.0,
            damping=1.0,
            initial_joint_positions={'hip': HOME[0], 'tail': HOME[1]},
            controllers=[ControllerCfg.model_validate(walk | fields)],
        )

    return make


@pytest.fixture
def start(make_env: Callable[..., Env], models: dict[str, str]) -> Start:
    """Starts envs with one robot each, on a floor; `rate` of their steps [1/s]."""

    def start(robot: RobotCfg, env_num: int = 1, rate: float = 240, substeps: int = 1, episodes: int = 9) -> Env:
        task = SingleInferenceTaskCfg(scene_asset_path=models['floor'], robots=[robot])
        sim = {'physics_dt': 1 / (rate * substeps), 'substeps': substeps}
        env = make_env(tasks=[task] * (env_num + episodes), env_num=env_num, sim=sim)
        env.reset()
        return env

    return start


def robot_of(env: Env, env_id: int = 0) -> Any:
    [robot] = env.runner.current_tasks[env.runner.env_id_to_task_name_map[env_id]].robots.values()
    return robot


def walk_of(env: Env) -> Any:
    """The controller that runs for all envs."""
    return robot_of(env).fleet.robot.controllers['walk']


def send(env: Env, *speeds: Any) -> list[Any]:
    """One step; the observations."""
    return env.step([None if speed is None else {'hopper': {'walk': speed}} for speed in speeds])[0]


def expected(commands: list[Any]) -> list[list[float]]:
    """Targets (tail, hip) of the policy for each of its actions since the start of the episode."""
    targets, tail = [], 0.0
    for index, (forward, _, rotation) in enumerate(commands):
        hip = forward + 0.1 * np.sin(2 * np.pi * index / 48 / PERIOD)
        tail = 0.5 * tail - rotation
        targets.append([0.1 + 0.5 * tail, 0.2 + 0.5 * hip])
    return targets


class TestWhenItActs:
    @pytest.mark.parametrize('suffix', ['.onnx', '.pt'])
    def test_every_fifth_step_at_240_hz_with_the_targets_of_the_policy(
        self, start: Start, hopper: Any, write_policy: WritePolicy, suffix: str
    ) -> None:
        env = start(hopper(write_policy([(WEIGHTS, [0, 0])], suffix, **METADATA)))
        commands = [[0.05 * i, 0.0, 0.5 - 0.05 * i] for i in range(16)]  # between its actions nobody listens
        for command in commands:
            send(env, command)
        acted = expected(commands[::5])
        np.testing.assert_allclose(walk_of(env).given[0], np.repeat(acted, 5, axis=0)[:16], atol=1e-6)

    @pytest.mark.parametrize(
        ('rate', 'substeps', 'gaps'), [(240, 1, {5}), (200, 1, {4, 5}), (60, 4, {1, 2}), (48, 5, {1}), (46, 5, {1})]
    )
    def test_at_its_own_rate_on_average(
        self, start: Start, hopper: Any, write_policy: WritePolicy, rate: int, substeps: int, gaps: set[int]
    ) -> None:
        env = start(hopper(write_policy([(np.zeros((3, 2)), [0, 0])])), rate=rate, substeps=substeps)
        calls = []
        for _ in range(3 * rate):
            send(env, [0, 0, 0])
            calls.append(len(walk_of(env).policy.batches))
        acted = np.flatnonzero(np.diff([0, *calls]))
        assert acted[0] == 0 and len(acted) == 3 * min(rate, 48)
        assert set(np.diff(acted).tolist()) == gaps

    def test_once_for_all_envs_of_a_robot(self, start: Start, hopper: Any, write_policy: WritePolicy) -> None:
        env = start(hopper(write_policy([(WEIGHTS, [0, 0])], **METADATA)), env_num=4)
        for _ in range(11):
            send(env, *([0.1 * i, 0, 0] for i in range(4)))
        assert [batch[:, 0].tolist() for batch in walk_of(env).policy.batches] == [
            pytest.approx([0, 0.1, 0.2, 0.3])
        ] * 3

    def test_envs_keep_their_own_clocks_and_memories(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        env = start(hopper(write_policy([(WEIGHTS, [0, 0])], **METADATA)), env_num=3)
        commands = [[0.3, 0.0, 0.2], [-0.2, 0.0, 0.4], [0.1, 0.0, -0.4]]
        for step in range(13):
            if step == 3:
                env.reset([1])
            send(env, *commands)
        given = walk_of(env).given
        for env_id, begin in ((0, 0), (1, 3), (2, 0)):
            wanted = np.repeat(expected([commands[env_id]] * 3), 5, axis=0)[: 13 - begin]
            np.testing.assert_allclose(given[env_id][begin:], wanted, atol=1e-6)
        np.testing.assert_allclose(given[1][:3], expected([commands[1]]) * 3, atol=1e-6)

    def test_an_env_that_sends_nothing_keeps_its_targets_and_acts_at_once_when_it_does(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        env = start(hopper(write_policy([(WEIGHTS, [0, 0])], **METADATA)), env_num=2)
        for step in range(30):
            send(env, [0.3, 0, 0], [0.3, 0, 0] if step in (0, 17, 18, 22) else None)
        hips = [row[1] for row in walk_of(env).given[1]]
        np.testing.assert_allclose(hips[0], 0.2 + 0.15)
        assert hips[0] != hips[1] == hips[2] != hips[3], 'it acts in steps 0, 17 and 22'
        np.testing.assert_allclose([row[1] for row in walk_of(env).given[0]][:5], hips[0])

    def test_it_is_called_at_most_once_a_step_in_envs_slower_than_it(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        with pytest.raises(
            ValueError, match=r"'walk', policy .*: it acts every 0\.02083 s, but an env step lasts 0\.025"
        ):
            start(hopper(write_policy([(np.zeros((3, 2)), [0, 0])])), rate=40, substeps=5)


class TestWhatItSees:
    @pytest.mark.parametrize(('rate', 'substeps'), [(240, 1), (48, 5)])
    def test_the_same_as_in_training(
        self, start: Start, hopper: Any, write_policy: WritePolicy, make_config: Any, rate: int, substeps: int
    ) -> None:
        """Bit for bit the trajectory of the array API under the same policy, from its own observations."""
        rng = np.random.default_rng(0)
        network = [(rng.normal(size=(17, 32)) / 4, rng.normal(size=32)), (rng.normal(size=(32, 2)) / 6, [0.1, -0.1])]
        offset = np.array(HOME, np.float32).tolist()
        path = write_policy(network, observations=SENSES, offset=offset, scale=[0.3, 0.2])
        env = start(hopper(path), env_num=2, rate=rate, substeps=substeps)
        policy = walk_of(env).policy
        command = [0.4, -0.2, 0.6]
        learning = {
            'action': {'controller': 'joints', 'scale': {'hip': 0.3, 'tail': 0.2}, 'offset': 'home'},
            'observations': SENSES,
            'commands': {'speed': {'term': 'uniform', 'params': {'low': command, 'high': command}}},
        }
        joints = JointControllerCfg(name='joints', joint_names=['hip', 'tail'])
        task = env.runner.config.task_configs[0]
        task = task.update(robots=[task.robots[0].update(controllers=[joints])])
        config = make_config(
            tasks=[task], env_num=3, sim={'physics_dt': 1 / 240, 'substeps': 5}, episode_order='cycle', seed=0
        )
        envs = VectorEnv(config, LearningCfg.model_validate(learning))
        seen, _ = envs.reset()
        for step in range(30):
            seen = envs.step(policy(seen))[0]
            obs = [send(env, command, command) for _ in range(5 // substeps)][-1]
            state = envs.core.state
            for values, key in ((state.joint_positions, 'joint_positions'), (state.base_position, 'position')):
                np.testing.assert_array_equal(obs[1]['hopper'][key], values[2], err_msg=f'step {step}')
        assert abs(env.get_observations()[1]['hopper']['position'][2] - 0.3) > 0.05, 'it fell to the ground'
        envs.close()

    def test_results_do_not_depend_on_the_number_of_envs(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        """Bit for bit, with a network as large as those that walk; the last env is the same in all runs."""
        rng = np.random.default_rng(0)
        sizes = (17, 256, 128, 64, 2)
        network = [
            (rng.normal(size=(n, m)) / np.sqrt(n), np.zeros(m)) for n, m in zip(sizes[:-1], sizes[1:], strict=True)
        ]
        for suffix in ('.onnx', '.pt'):
            path = write_policy(network, suffix, observations=SENSES, offset=HOME, scale=0.3)
            runs = []
            for env_num in (1, 2, 7):
                env = start(hopper(path), env_num=env_num, rate=120, substeps=2)
                others = [[0.5, 0.1 * i, -0.3] for i in range(env_num - 1)]
                seen = [send(env, *others, [0.3, 0.0, 0.5])[-1]['hopper'] for _ in range(30)]
                runs.append(np.array([[*obs['position'], *obs['joint_positions']] for obs in seen]))
                assert np.ptp(runs[-1][:, 3:], axis=0).min() > 0.05
            np.testing.assert_array_equal(runs[0], runs[1])
            np.testing.assert_array_equal(runs[0], runs[2])

    @pytest.mark.parametrize(
        ('controller', 'robot'),
        [('Walk', 'PerEnvGenericRobot'), ('PerEnvWalk', 'GenericRobot'), ('PerEnvWalk', 'PerEnvGenericRobot')],
    )
    def test_one_object_per_env_does_the_same(
        self, start: Start, hopper: Any, write_policy: WritePolicy, controller: str, robot: str
    ) -> None:
        """As in packages written for InternUtopia 2: subclasses of built-in classes that are not batched."""
        path = write_policy([(np.eye(17, 2), [0.1, 0])], observations=SENSES, offset=HOME)
        batched, single = (start(hopper(path, *kinds), env_num=3) for kinds in ((), (controller, robot)))
        for step in range(24):
            if step == 7:
                for env in (batched, single):
                    env.reset([1])
            sent = [[0.3, 0, 0], [0, -0.2, 0.5], [0.1, 0, 0] if step % 7 else None]
            for a, b in zip(send(batched, *sent), send(single, *sent), strict=True):
                for key in ('position', 'orientation', 'joint_positions', 'joint_velocities'):
                    np.testing.assert_array_equal(a['hopper'][key], b['hopper'][key])

    def test_two_robots_in_one_env_do_not_mix(
        self, make_env: Any, models: dict[str, str], hopper: Any, write_policy: WritePolicy
    ) -> None:
        path = write_policy([(WEIGHTS, [0, 0])], **METADATA)
        first = hopper(path)
        second = first.update(name='second', prim_path='/second', position=(2.0, 0.0, 0.3))
        task = SingleInferenceTaskCfg(scene_asset_path=models['floor'], robots=[first, second])
        env = make_env(tasks=[task] * 2, env_num=2, sim={'physics_dt': 1 / 240})
        env.reset()
        robots = env.runner.current_tasks['0'].robots
        commands = {'hopper': [0.3, 0.0, 0.2], 'second': [-0.4, 0.0, 0.5]}
        for _ in range(12):
            env.step([{name: {'walk': command} for name, command in commands.items()}] * 2)
        for name, command in commands.items():
            given = robots[name].fleet.robot.controllers['walk'].given
            wanted = np.repeat(expected([command] * 3), 5, axis=0)[:12]
            for env_id in range(2):
                np.testing.assert_allclose(given[env_id], wanted, atol=1e-6)


class TestCommands:
    def test_beyond_the_training_they_are_clamped_with_one_warning(
        self, start: Start, hopper: Any, write_policy: WritePolicy, caplog: pytest.LogCaptureFixture
    ) -> None:
        low, high = [-0.5, -0.2, -1.0], [1.0, 0.2, 1.0]
        path = write_policy([(np.eye(3, 2), [0, 0])], command_low=low, command_high=high)
        env = start(hopper(path), env_num=2, rate=48, substeps=5)
        with caplog.at_level(logging.WARNING, 'internutopia'):
            send(env, high, low)
            assert not caplog.records
            for _ in range(3):
                send(env, [9.0, 9.0, 9.0], [-0.6, 0.0, 0.0])
        assert len(caplog.records) == 1 and 'beyond those that it was trained on are clamped' in caplog.text
        seen = np.array(walk_of(env).policy.batches)
        np.testing.assert_allclose(seen[1:, 0], [high] * 3, rtol=1e-6)
        np.testing.assert_allclose(seen[1:, 1], [[-0.5, 0.0, 0.0]] * 3, rtol=1e-6)

    def test_the_action_space_is_what_it_was_trained_on(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        path = write_policy([(np.eye(3, 2), [0, 0])], command_low=[-0.5, 0.0, -1.0], command_high=[1.0, 0.0, 1.0])
        space = walk_of(start(hopper(path))).action_space()
        assert (space.low.tolist(), space.high.tolist()) == ([-0.5, 0.0, -1.0], [1.0, 0.0, 1.0])

    def test_forward_takes_speeds_by_name(self, start: Start, hopper: Any, write_policy: WritePolicy) -> None:
        env = start(hopper(write_policy([(np.eye(3, 2), [0, 0])]), 'PerEnvWalk'))
        walk = robot_of(env).controllers['walk']
        control = walk.forward(forward_speed=0.2, rotation_speed=0.3, lateral_speed=-0.1)
        assert control.joint_positions == pytest.approx([-0.1, 0.2])  # tail, hip
        assert control.joint_indices.tolist() == [robot_of(env).articulation.get_dof_index(n) for n in ('tail', 'hip')]
        assert walk.get_obs() == {} and walk.get_joint_subset().joint_names == ['tail', 'hip']

    @pytest.mark.parametrize('controller', ['Walk', 'PerEnvWalk'])
    def test_bad_ones_are_named_and_nothing_moves(
        self, start: Start, hopper: Any, write_policy: WritePolicy, controller: str
    ) -> None:
        env = start(hopper(write_policy([(np.eye(3, 2), [0, 0])]), controller), env_num=2)
        before = env.get_observations()
        for bad in ([np.nan, 0, 0], [0, 0, np.inf], [0, 0], [0, 0, 0, 0], None, 'fast'):
            with pytest.raises(ValueError, match="env 1, robot 'hopper', controller 'walk': expected 3 numbers"):
                env.step([{'hopper': {'walk': [1, 0, 0]}}, {'hopper': {'walk': bad}}])
        for was, now in zip(before, env.get_observations(), strict=True):
            np.testing.assert_array_equal(was['hopper']['position'], now['hopper']['position'])

    def test_joints_that_the_policy_does_not_drive_are_held_at_home(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        env = start(hopper(write_policy([(np.eye(3, 1), [0])], joint_names=['hip'], offset=[0.1])), rate=48, substeps=5)
        for _ in range(2):
            send(env, [0.2, 0, 0])
        np.testing.assert_allclose(walk_of(env).given[0], [[HOME[1], 0.1 + 0.2]] * 2, rtol=1e-6)


class TestFiles:
    def test_a_file_of_ones_own_by_a_relative_path(
        self, start: Start, hopper: Any, write_policy: WritePolicy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = Path(write_policy([(np.eye(3, 2), [0.5, 0])], '.pt'))
        monkeypatch.chdir(path.parent.parent)
        env = start(hopper(f'{path.parent.name}/policy.pt'))
        send(env, [0, 0, 0])
        assert walk_of(env).given[0] == [[0.0, 0.5]]

    @pytest.mark.parametrize(
        ('network', 'metadata', 'message'),
        [
            ([(np.eye(3, 3), [0] * 3)], {'joint_names': ['hip', 'tail']}, r'actions of shape \(3,\) for its 2 joints'),
            ([(np.eye(4, 2), [0, 0])], {}, 'it does not take its 3 observations: '),
            ([(np.eye(3, 2), [0, 0])], {'joint_names': ['hip', 'tial']}, "drives joint 'tial', .*did you mean 'tail'"),
            ([(np.eye(3, 2), [0, 0])], {'command_low': [0.0], 'command_high': [1.0]}, 'takes 1 numbers as a command'),
            ([(np.eye(3, 2), [0, 0])], {'observations': [{'term': 'comand'}]}, "no observation term 'comand'"),
            ([(np.eye(3, 2), [0, 0])], {'observations': [{'term': 'command'}]}, "'command' needs 'name'"),
            ([(np.eye(3, 2), [0, 0])], {'step_dt': 0.002}, r'acts every 0\.002 s, but an env step lasts 0\.004167'),
        ],
    )
    @pytest.mark.parametrize('suffix', ['.onnx', '.pt'])
    def test_what_does_not_fit_is_named(
        self,
        start: Start,
        hopper: Any,
        write_policy: WritePolicy,
        suffix: str,
        network: Any,
        metadata: Any,
        message: str,
    ) -> None:
        path = write_policy(network, suffix, **{'offset': [0.0, 0.0], **metadata})
        with pytest.raises(ValueError, match=rf"controller 'walk', policy .*policy{suffix}: .*{message}"):
            start(hopper(path))

    @pytest.mark.parametrize(
        ('metadata', 'message'),
        [
            ({'observations': [{'term': 'command', 'params': {'name': 'go'}}]}, "no command 'go'; commands: speed"),
            (
                {'observations': [{'term': 'joint_positions', 'params': {'joints': ['knee']}}]},
                "no joint 'knee'; joints: hip, tail",
            ),
        ],
    )
    def test_unknown_names_in_observations(
        self, start: Start, hopper: Any, write_policy: WritePolicy, metadata: Any, message: str
    ) -> None:
        with pytest.raises(KeyError, match=message):
            start(hopper(write_policy([(np.eye(3, 2), [0, 0])], **metadata)))

    def test_joint_names_must_be_those_of_the_robot(self, start: Start, hopper: Any, write_policy: WritePolicy) -> None:
        path = write_policy([(np.eye(3, 2), [0, 0])])
        with pytest.raises(KeyError, match="no joint 'leg'; joints: hip, tail"):
            start(hopper(path, joint_names=['tail', 'hip', 'leg']))
        with pytest.raises(ValueError, match="it drives joint 'tail', which is not in joint_names"):
            start(hopper(path, joint_names=['hip']))

    def test_missing_file(self, start: Start, hopper: Any) -> None:
        with pytest.raises(FileNotFoundError, match=r"asset 'nowhere/walk\.onnx' not found; tried:\n"):
            start(hopper('nowhere/walk.onnx'))

    def test_suffix(self, start: Start, hopper: Any, tmp_path: Path) -> None:
        (tmp_path / 'walk.xml').write_text('<walk/>')
        with pytest.raises(ValueError, match=r"suffix '\.xml' is not one of \.onnx, \.pt"):
            start(hopper(str(tmp_path / 'walk.xml')))

    def test_a_policy_without_metadata(self, start: Start, hopper: Any, write_policy: WritePolicy) -> None:
        with pytest.raises(ValueError, match='does not say how to run it'):
            start(hopper(write_policy([(np.eye(3, 2), [0, 0])], with_metadata=False)))
