"""Steering: speeds and targets by hand-computed numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.teleoperation.session import Steering
from internutopia.viewer.frames import ArmPose
from internutopia.viewer.robot_controls import RobotControls, VelocityControl

LEVEL = np.array([1.0, 0.0, 0.0, 0.0])
LEFT = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])  # turned by 90 degrees about the vertical
WALKS = VelocityControl('walk', ('forward', 'lateral', 'yaw'), (-0.5, -0.4, -1.0), (1.0, 0.4, 1.0))
DRIVES = VelocityControl('drive', ('forward', 'yaw'), (-0.5, -2.0), (1.0, 2.0))
AT = np.array([0.5, 0.0, 0.3])


def twist(**parts: float) -> Any:
    names = ('forward', 'left', 'up', 'roll', 'pitch', 'yaw')
    return np.array([parts.get(name, 0.0) for name in names])


def arms(frame: Any = LEVEL) -> dict[str, ArmPose]:
    return {'arm': ArmPose((np.zeros(3), frame), (AT, LEVEL))}


@pytest.mark.parametrize(
    ('control', 'wanted', 'speeds'),
    [
        (WALKS, twist(forward=1.0, left=-0.5, yaw=0.5), (1.0, -0.2, 0.5)),
        (WALKS, twist(forward=-1.0, up=1.0), (-0.5, 0.0, 0.0)),
        (DRIVES, twist(forward=0.5, left=1.0), (0.5, 2.0)),  # it cannot go to the left: it turns
    ],
)
def test_a_base_has_parts_of_its_greatest_speeds(control: VelocityControl, wanted: Any, speeds: tuple[float, ...]):
    command = Steering(RobotControls('robot', control)).command(wanted, 0.1, {}, LEVEL)
    assert command.speeds == pytest.approx(speeds)
    actions = command.actions(RobotControls('robot', control))
    assert actions == {control.name: pytest.approx(list(speeds))}


@pytest.mark.parametrize(
    ('frame', 'heading', 'way'),
    [
        (LEVEL, LEVEL, (1.0, 0.0, 0.0)),
        (LEVEL, LEFT, (0.0, 1.0, 0.0)),  # forward is where the robot faces
        (LEFT, LEFT, (1.0, 0.0, 0.0)),  # targets are in its own frame
    ],
)
def test_an_arm_goes_forward_at_a_quarter_metre_per_second(frame: Any, heading: Any, way: tuple[float, ...]):
    steering = Steering(RobotControls('robot', arms=('arm',)))
    steering.begin(arms(frame))
    command = steering.command(twist(forward=1.0), 0.1, arms(frame), heading)
    np.testing.assert_allclose(command.poses['arm'], [*(AT + 0.025 * np.array(way)), *LEVEL], atol=1e-9)


def test_a_target_does_not_run_away_from_an_arm_that_stands():
    steering = Steering(RobotControls('robot', arms=('arm',)))
    steering.begin(arms())
    for _ in range(100):
        steering.command(twist(up=1.0), 0.1, arms(), LEVEL)
    command = steering.command(twist(), 0.1, arms(), LEVEL)
    np.testing.assert_allclose(command.poses['arm'][:3], AT + [0.0, 0.0, 0.1], atol=1e-9)


def test_it_turns_at_a_radian_per_second():
    steering = Steering(RobotControls('robot', arms=('arm',)))
    steering.begin(arms())
    for _ in range(100):
        steering.command(twist(yaw=1.0), 0.01, arms(), LEVEL)
    command = steering.command(twist(), 0.01, arms(), LEVEL)
    np.testing.assert_allclose(command.poses['arm'], [*AT, np.cos(0.5), 0.0, 0.0, np.sin(0.5)], atol=1e-4)


def test_one_part_moves_and_the_others_hold():
    controls = RobotControls('robot', WALKS, arms=('left', 'right'), grippers=('hand',))
    both = {name: arms()['arm'] for name in controls.arms}
    steering = Steering(controls)
    steering.begin(both)
    assert steering.parts == ['base', 'left', 'right'] and steering.part == 'base'
    assert not steering.command(twist(forward=1.0), 0.1, both, LEVEL).poses  # walking moves the arms
    steering.next_part()
    steering.toggle_gripper()
    command = steering.command(twist(up=1.0), 0.1, both, LEVEL)
    assert command.speeds is None and list(command.poses) == ['left']
    actions = command.actions(controls)
    assert actions['walk'] == [0.0, 0.0, 0.0] and actions['hand'] == [-1.0]
