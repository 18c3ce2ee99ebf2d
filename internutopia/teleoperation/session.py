"""Session: episodes in which a person steers a robot.

Each episode ends by its task, or on a signal of the person: as a success or a failure, with that as its result, or
discarded, without a result, and is then started again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from internutopia.core.episodes import Episode
from internutopia.core.vec_env import Env
from internutopia.teleoperation.device import Device, DeviceInput, Signal
from internutopia.teleoperation.steering import Steering
from internutopia.util.rotations import quat_from_yaw, yaw_of
from internutopia.viewer.env_view import access_to
from internutopia.viewer.frames import ArmPose
from internutopia.viewer.viewer import Viewer

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
            raise ValueError(f'a person steers in one env, and there are {env.num_envs}: use env_num=1')
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
                f'robot {self._robot!r} has no controller that a person can command: give it one for speeds '
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
