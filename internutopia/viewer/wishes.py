"""Wishes: requests of pages to envs at one instant; they can be sent to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from internutopia.viewer.robot_controls import RobotCommand

MOST_SHOWN = 64
"""Maximum number of envs shown at a time."""


@dataclass(frozen=True)
class Wishes:
    """Requests of pages to envs.

    Attributes:
        env_id: the env that is shown.
        all_envs: True to show all envs, False to show one.
        follow: the robot that stays in the middle; None for no robot, `''` for the first one.
        cameras: those whose pictures are shown, as robot and sensor.
        joints: targets [rad or m] that are held, by env id and robot, then by joint.
        commands: commands to robots, by env id and robot.
    """

    env_id: int = 0
    all_envs: bool = False
    follow: str | None = ''
    cameras: frozenset[tuple[str, str]] = frozenset()
    joints: Mapping[tuple[int, str], Mapping[str, float]] = field(default_factory=dict)
    commands: Mapping[tuple[int, str], RobotCommand] = field(default_factory=dict)

    @property
    def told(self) -> frozenset[tuple[int, str]]:
        """Robots that have a command, with their envs."""
        return frozenset((*self.joints, *self.commands))
