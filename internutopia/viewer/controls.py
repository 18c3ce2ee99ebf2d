"""Controls: input of the pages, read by the thread that steps the envs and written by those of the server.

Pages share them: what is chosen on one is chosen on all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from internutopia.viewer.frames import ViewRequest
from internutopia.viewer.robot_controls import RobotCommand

Ray = tuple[tuple[float, ...], tuple[float, ...]]
"""Origin [m] and direction of a ray of a page."""
PAUSE_POLL = 0.1  # s: interval at which a paused run handles signals and requests of pages
_BEHIND = 0.1  # s: a run that is later than this does not try to catch up


class Controls:
    """Input of all pages: envs to show, commands, and speed of the run.

    Args:
        env_id: the env that is shown.
        speed: simulated time per time, None for as fast as it goes.
        paused: True if the run is paused.

    Attributes:
        all_envs: True to show all envs, False to show one.
        follow: the robot that stays in the middle; None for no robot, `''` for the first one.
        joints: targets [rad or m] that are held, by env id and robot, then by joint.
        commands: commands to robots, by env id and robot.
        sent: env ids and robots that go to clicked points.
        cameras: those that are shown, as robot and sensor.
    """

    def __init__(self, env_id: int, speed: float | None, paused: bool):
        self.env_id = env_id
        self.all_envs = False
        self.follow: str | None = ''
        self.speed = speed
        self.joints: dict[tuple[int, str], dict[str, float]] = {}
        self.commands: dict[tuple[int, str], RobotCommand] = {}
        self.sent: frozenset[tuple[int, str]] = frozenset()
        self.cameras: frozenset[tuple[str, str]] = frozenset()
        self._clicks: list[Ray] = []
        self._changed = threading.Condition()
        self._paused = paused
        self._steps = 0  # that may be made while paused
        self._closed = False
        self._next_step = 0.0  # [s]

    @property
    def paused(self) -> bool:
        """True if the run is paused."""
        return self._paused

    def view_request(self) -> ViewRequest:
        """Return the current view."""
        with self._changed:
            return ViewRequest(
                *(self.env_id, self.all_envs, self.follow, self.cameras), dict(self.joints), dict(self.commands)
            )

    def pause(self, paused: bool) -> None:
        """Pause or resume the run."""
        with self._changed:
            self._paused = paused
            self._changed.notify_all()

    def single_step(self) -> None:
        """Make one step in a paused run."""
        with self._changed:
            self._paused = True
            self._steps += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Discard all input and resume the run."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def hold_joint(self, env_id: int, robot: str, joint: str, target: float) -> None:
        """Hold a joint at a target [rad or m]."""
        with self._changed:
            held = self.joints.get((env_id, robot), {})
            self.joints[env_id, robot] = {**held, joint: target}  # a new one: the old one may be being read

    def release(self, env_id: int, robot: str) -> None:
        """Hand a robot back to the program."""
        with self._changed:
            self.joints.pop((env_id, robot), None)
            self.commands.pop((env_id, robot), None)

    def command(self, env_id: int, robot: str) -> RobotCommand:
        """Return the command to a robot; an empty one if the program controls it."""
        return self.commands.get((env_id, robot)) or RobotCommand()

    def change_command(self, env_id: int, robot: str, **changes: Any) -> None:
        """Change fields of the command to a robot."""
        with self._changed:
            self.commands[env_id, robot] = replace(self.command(env_id, robot), **changes)

    def move_arm(self, env_id: int, robot: str, arm: str, pose: tuple[float, ...]) -> None:
        """Move the end effector of an arm to a pose, see `RobotCommand.poses`."""
        with self._changed:
            self.change_command(env_id, robot, poses={**self.command(env_id, robot).poses, arm: pose})

    def move_gripper(self, env_id: int, robot: str, gripper: str, closed: bool) -> None:
        """Close or open a gripper."""
        with self._changed:
            self.change_command(env_id, robot, closed={**self.command(env_id, robot).closed, gripper: closed})

    def click(self, ray: Ray) -> None:
        """Record a click on the scene."""
        with self._changed:
            self._clicks.append(ray)

    def take_clicks(self) -> list[Ray]:
        """Return and clear the clicks since the last call."""
        with self._changed:
            clicks, self._clicks = self._clicks, []
            return clicks

    def wait(self, step_dt: float, while_paused: Callable[[], None]) -> None:
        """Wait until the next step, of `step_dt` [s], may be made; `while_paused` is called periodically."""
        with self._changed:
            while self._paused and not self._steps and not self._closed:
                while_paused()
                self._changed.wait(PAUSE_POLL)
            self._steps = max(self._steps - 1, 0)
            if self.speed is None or self._closed:
                return
            now = time.perf_counter()
            self._next_step = max(self._next_step + step_dt / self.speed, now - _BEHIND)
            if self._next_step > now:
                self._changed.wait_for(lambda: self._closed, self._next_step - now)
