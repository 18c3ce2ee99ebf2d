"""Controls: what the pages ask for, read by the thread that steps the envs and written by those of the server.

Pages share them: what is chosen on one is chosen on all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

PAUSE_POLL = 0.1  # s: a paused run looks that often for signals and for what the pages ask for
_BEHIND = 0.1  # s: a run that is later than this does not try to catch up


class Controls:
    """What is shown, and how fast time passes.

    Args:
        env_id: the env that is shown.
        speed: simulated time per time, None for as fast as it goes.
        paused: whether the run stands still.

    Attributes:
        all_envs: whether all envs are shown, and not only one.
        follow: the robot that stays in the middle; None for nobody, `''` for the first one.
        joints: targets [rad or m] that are held, by env id and robot, then by joint.
        velocities: speeds that are commanded, by env id and robot; None is to be given back to the program.
    """

    def __init__(self, env_id: int, speed: float | None, paused: bool):
        self.env_id = env_id
        self.all_envs = False
        self.follow: str | None = ''
        self.speed = speed
        self.joints: dict[tuple[int, str], dict[str, float]] = {}
        self.velocities: dict[tuple[int, str], tuple[float, ...] | None] = {}
        self._changed = threading.Condition()
        self._paused = paused
        self._steps = 0  # that may be made while paused
        self._closed = False
        self._next_step = 0.0  # [s]

    @property
    def paused(self) -> bool:
        """Whether the run stands still."""
        return self._paused

    def pause(self, paused: bool) -> None:
        """Let the run stand still, or go on."""
        with self._changed:
            self._paused = paused
            self._changed.notify_all()

    def single_step(self) -> None:
        """Let a run that stands still make one step."""
        with self._changed:
            self._paused = True
            self._steps += 1
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody asks for anything any more: let the run go on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def hold_joint(self, env_id: int, robot: str, joint: str, target: float) -> None:
        """Hold a joint at a target [rad or m]."""
        with self._changed:
            held = self.joints.get((env_id, robot), {})
            self.joints[env_id, robot] = {**held, joint: target}  # a new one: the old one may be being read

    def release(self, env_id: int, robot: str) -> None:
        """Give a robot back to the program."""
        with self._changed:
            self.joints.pop((env_id, robot), None)
            if (env_id, robot) in self.velocities:
                self.velocities[env_id, robot] = None

    def wait(self, step_dt: float, while_paused: Callable[[], None]) -> None:
        """Return when the next step, of `step_dt` [s], may be made; `while_paused` is called now and then."""
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
