"""Commands and files of controllers that walk with a policy: what is clamped, held and refused."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from walking_hopper import HOME, robot_of, send, walk_of

from internutopia.config import RobotCfg
from internutopia.core.vec_env import Env
from internutopia.util.errors import EnvValueError

WritePolicy = Callable[..., str]
Start = Callable[..., Env]
MakeBuiltin = Callable[..., RobotCfg]


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
        assert (
            "controller 'walk' of robot 'hopper': its action commands a forward speed of 9 m/s in env 0" in caplog.text
        )
        assert f'policy {Path(path).name} was trained on -0.5 to 1' in caplog.text
        seen = np.array(walk_of(env).policy.batches)
        np.testing.assert_allclose(seen[1:, 0], [high] * 3, rtol=1e-6)
        np.testing.assert_allclose(seen[1:, 1], [[-0.5, 0.0, 0.0]] * 3, rtol=1e-6)

    def test_of_controllers_above_it_only_the_speed_ahead_is_warned_of(
        self, run: Start, make_builtin: MakeBuiltin, caplog: pytest.LogCaptureFixture
    ) -> None:
        """They are made to turn as fast as the robot can."""
        robot = make_builtin('h1')
        fast = {'move_along_path': {'forward_speed': 9.0}}
        for changes, warnings in ({}, 0), (fast, 1):
            controllers = [each.update(**changes.get(each.name, {})) for each in robot.controllers or []]
            env = run(robot.update(controllers=controllers))
            caplog.clear()
            for goal in (-1.0, 0.0, 0.0), (5.0, 0.0, 0.0):
                env.step([{'h1': {'move_along_path': [[goal]]}}])
            assert caplog.text.count("controller 'move_along_path' commands a forward speed") == warnings
            assert len(caplog.records) == warnings

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

    def test_a_policy_that_gives_nan_stops_its_env_by_name(
        self, start: Start, hopper: Any, write_policy: WritePolicy
    ) -> None:
        path = write_policy([(np.full((3, 2), [3e38, 0.0]), [0, 0])])
        env = start(hopper(path), env_num=2, rate=48, substeps=5)
        send(env, [0.5, 0.0, 0.0], [0.0, 0.0, 0.0])
        with pytest.raises(
            EnvValueError, match=r"env 1: controller 'walk', policy .*: its action for joint 'hip' is inf"
        ):
            send(env, [0.0, 0.0, 0.0], [1.0, 0.2, 0.0])


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
            (
                {'observations': [{'term': 'command', 'params': {'name': 'go'}}]},
                "there is no command 'go'; known: 'speed'",
            ),
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
        with pytest.raises(ValueError, match='it has no metadata'):
            start(hopper(write_policy([(np.eye(3, 2), [0, 0])], with_metadata=False)))
