"""Session: episodes in which a person steers a robot.

Each episode ends by its task, or on a signal of the person: as a success or a failure, with that as its result, or
discarded, without a result, and is then started again.

A twist moves one part of the robot at a time: its base, by speeds, or the target of an arm, which stays where it was
moved to. Forward is where the robot's root faces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from internutopia.core.episodes import Episode
from internutopia.core.vec_env import Env
from internutopia.teleoperation.device import Device, DeviceInput, Signal, Twist
from internutopia.util.rotations import quat_conjugate, quat_from_yaw, quat_multiply, quat_rotate, unit_quat, yaw_of
from internutopia.viewer.env_view import access_to
from internutopia.viewer.frames import ArmPose
from internutopia.viewer.robot_controls import RobotCommand, RobotControls
from internutopia.viewer.viewer import Viewer

BASE = 'base'
_ARM_SPEED = 0.25  # m/s, at most
_ARM_TURN_SPEED = 1.0  # rad/s, at most
_LEAD = (
    0.1  # m: how far a target may be from its end effector, so that it does not run away from an arm that cannot follow
)


class Steering:
    """Steering of one robot.

    Args:
        controls: controls of the robot.

    Attributes:
        parts: its movable parts: `'base'`, and arms by name.
        part: the part that moves.
    """

    def __init__(self, controls: RobotControls):
        self.controls = controls
        self.parts = ([BASE] if controls.velocity is not None else []) + list(controls.arms)
        self.part = self.parts[0] if self.parts else BASE
        self._poses: dict[str, NDArray[np.float64]] = {}
        self._closed = False

    def begin(self, arms: Mapping[str, ArmPose]) -> None:
        """Begin an episode: open the grippers and hold the arms at their poses.

        Arms of a robot that walks or drives are left to its locomotion until they are moved.
        """
        self._closed = False
        held = () if self.controls.velocity is not None else arms
        self._poses = {name: _as_row(arms[name]) for name in held}

    def adopt(self, command: RobotCommand) -> None:
        """Continue from a command that another source gave the robot."""
        self._poses |= {name: np.array(pose) for name, pose in command.poses.items()}
        self._closed = any(command.closed.values()) if command.closed else self._closed

    def next_part(self) -> None:
        """Select the next part to move."""
        if self.parts:
            self.part = self.parts[(self.parts.index(self.part) + 1) % len(self.parts)]

    def toggle_gripper(self) -> None:
        """Close the grippers, or open them."""
        self._closed = not self._closed

    def command(
        self, twist: Twist, dt: float, arms: Mapping[str, ArmPose], heading: NDArray[np.float64]
    ) -> RobotCommand:
        """Return the command to the robot.

        Args:
            twist: input of the person.
            dt: duration of the command [s].
            arms: poses of the arms.
            heading: yaw of the robot's root in the env frame, as an orientation `(4,)`.
        """
        if self.part in arms and twist.any():
            self._move(self.part, twist, dt, arms[self.part], heading)
        speeds = self._speeds(twist) if self.part == BASE else None
        poses = {name: tuple(pose.tolist()) for name, pose in self._poses.items()}
        return RobotCommand(speeds, None, poses, dict.fromkeys(self.controls.grippers, self._closed))

    def _speeds(self, twist: Twist) -> tuple[float, ...] | None:
        velocity = self.controls.velocity
        if velocity is None:
            return None
        forward, lateral, yaw_rate = twist[[0, 1, 5]]
        if len(velocity.labels) == 2:  # what cannot go sideways turns
            speeds = [forward, np.clip(lateral + yaw_rate, -1.0, 1.0)]
        else:
            speeds = [forward, lateral, yaw_rate]
        limits = zip(speeds, velocity.low, velocity.high, strict=True)
        return tuple(float(part * high if part > 0.0 else -part * low) for part, low, high in limits)

    def _move(self, name: str, twist: Twist, dt: float, arm: ArmPose, heading: NDArray[np.float64]) -> None:
        position, orientation = arm.end_effector
        pose = self._poses.setdefault(name, _as_row(arm))
        axes = quat_multiply(quat_conjugate(arm.frame[1]), heading)  # of the twist, in the frame of the targets
        way = pose[:3] + _ARM_SPEED * dt * quat_rotate(axes, twist[:3]) - position
        distance = float(np.linalg.norm(way))
        pose[:3] = position + way * min(1.0, _LEAD / max(distance, _LEAD))
        turn = 0.5 * _ARM_TURN_SPEED * dt * quat_rotate(axes, twist[3:])
        pose[3:] = unit_quat(quat_multiply(np.concatenate([[1.0], turn]), pose[3:]))  # small: sin is the angle


def _as_row(arm: ArmPose) -> NDArray[np.float64]:
    """Return position and orientation of the end effector as one array `(7,)`."""
    return np.concatenate(arm.end_effector, dtype=np.float64)


Script = Callable[[Episode], Callable[[], Mapping[str, Any]]]
"""Returns for an episode a function that is called once per step and returns the actions of all robots."""


class EpisodeRecorder(Protocol):
    """Recorder of episodes, such as `internutopia.recording.Recorder`."""

    def mark(self, env_id: int, success: bool) -> None:
        """Mark the episode of an env as a success or failure."""
        ...

    def discard(self, env_id: int) -> None:
        """Discard the episode of an env."""
        ...


class Session:
    """Session that runs the episodes of an env in real time while a person steers.

    Args:
        env: not reset yet, with one env.
        robot: the name of the robot in every task.
        devices: input devices; the session does not close them.
        viewer: shows the env and paces the run; commands of its pages hold until a device moves the robot.
        recorder: is attached to the env.
        script: actions of the other robots.
        show: called with the progress of the session whenever that has changed.

    Attributes:
        counts: number of episodes by how they ended: `'success'`, `'reset'`, `'discard'`, `'task'`.

    ValueError if there is more than one env.
    """

    def __init__(
        self,
        env: Env,
        robot: str,
        devices: Sequence[Device],
        viewer: Viewer,
        recorder: EpisodeRecorder | None = None,
        script: Script | None = None,
        show: Callable[[str], None] = lambda status: None,
    ):
        if env.num_envs != 1:
            raise ValueError(f'teleoperation needs a single env, and there are {env.num_envs}: use env_num=1')
        self.counts: Counter[str] = Counter()
        self._env, self._robot, self._devices = env, robot, devices
        self._viewer, self._recorder, self._script, self._show = viewer, recorder, script, show
        self._access = access_to(env)
        self._steering: Steering | None = None
        self._others: Callable[[], Mapping[str, Any]] = dict

    def run(self, max_steps: int | None = None, stopped: Callable[[], bool] = lambda: False) -> None:
        """Run until no episode is left, the person ends it, `max_steps` are made or `stopped()` returns True.

        ValueError if the robot is in no task, or has no controller that a person can command.
        """
        env, steps = self._env, 0
        self._reset()
        while not env.done and steps != max_steps and not stopped():
            given = DeviceInput.sum([device.read() for device in self._devices])
            self._follow_pages(taken_over=bool(given.twist.any()) or Signal.GRIPPER in given.signals)
            for signal in given.signals:
                if signal is Signal.END:
                    return
                self._handle(signal)
                if env.done:
                    return
            _, _, terminated, truncated, _ = env.step([self._action(given)])
            steps += 1
            if terminated[0] or truncated[0]:
                self.counts['task'] += 1
                self._reset()

    def _follow_pages(self, taken_over: bool) -> None:
        """Continue from the command of the viewer's pages, unless a device has just taken over."""
        command = self._viewer.command(0, self._robot)
        if command is not None and self._steering is not None:
            self._steering.adopt(command)
            if taken_over:
                self._viewer.release(0, self._robot)

    def _action(self, given: DeviceInput) -> dict[str, Any]:
        steering, arms = self._steering, self._arms()
        assert steering is not None
        _, orientation = self._access.runner.slot(0).task.robots[self._robot].get_pose()
        heading = quat_from_yaw(yaw_of(orientation))
        command = steering.command(given.twist, self._access.step_dt, arms, heading)
        return {**self._others(), self._robot: command.actions(steering.controls)}

    def _handle(self, signal: Signal) -> None:
        steering = self._steering
        assert steering is not None
        match signal:
            case Signal.GRIPPER:
                steering.toggle_gripper()
            case Signal.NEXT_PART:
                steering.next_part()
                self._show_status()
            case Signal.SUCCESS | Signal.RESET:
                self._end(signal is Signal.SUCCESS)
            case Signal.DISCARD:
                self._discard()
            case Signal.END:
                pass

    def _end(self, success: bool) -> None:
        """End the episode, with a result, and start the next one."""
        runner = self._access.runner
        slot = runner.slot(0)
        if self._recorder is not None:
            self._recorder.mark(0, success)
        with runner.scenes.entered():
            metrics = slot.task.calculate_metrics()
        runner.running[0] = False
        runner.record(0, slot.episode, slot.step, True, False, {**metrics, 'success': success}, None)
        runner.results.flush()
        self.counts['success' if success else 'reset'] += 1
        self._reset()

    def _discard(self) -> None:
        """Discard the episode and start it again."""
        if self._recorder is not None:
            self._recorder.discard(0)
        runner = self._access.runner
        runner.queue.put_back([runner.slot(0).episode])
        self.counts['discard'] += 1
        self._reset()

    def _reset(self) -> None:
        """Start the next episode, if there is one."""
        self._viewer.release(0, self._robot)
        self._env.reset([0])
        slot = self._access.runner.envs[0]
        if slot is None:
            return
        controls = self._access.controls(0).get(self._robot)
        if controls is None:
            raise ValueError(f'the task has no robot {self._robot!r}; it has {sorted(slot.task.robots)}')
        if not (controls.velocity or controls.arms or controls.grippers):
            raise ValueError(
                f'robot {self._robot!r} has no controller for teleoperation: add one for speeds '
                '(MoveBySpeedController, DifferentialDriveController), InverseKinematicsController or GripperController'
            )
        if self._steering is None or self._steering.controls != controls:
            self._steering = Steering(controls)
        self._steering.begin(self._arms())
        if self._script is not None:
            self._others = self._script(slot.episode)
        self._show_status()

    def _arms(self) -> dict[str, ArmPose]:
        assert self._steering is not None
        return {arm: self._access.arm_pose(0, self._robot, arm) for arm in self._steering.controls.arms}

    def _show_status(self) -> None:
        assert self._steering is not None
        episode = self._access.runner.slot(0).episode.id
        counts = ', '.join(f'{count} {how}' for how, count in self.counts.items()) or 'none ended yet'
        self._show(f'episode {episode} ({counts}); moves: {self._steering.part}')
