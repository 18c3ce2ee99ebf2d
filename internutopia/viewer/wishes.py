"""Wishes: what pages wish of envs at one instant; they can be sent to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from internutopia.viewer.robot_controls import RobotCommand

MOST_SHOWN = 64
"""Envs that are shown at a time."""


@dataclass(frozen=True)
class Wishes:
    """What pages wish of envs.

    Attributes:
        env_id: the env that is shown.
        all_envs: whether all envs are shown, and not only one.
        follow: the robot that stays in the middle; None for nobody, `''` for the first one.
        cameras: those whose pictures are shown, as robot and sensor.
        joints: targets [rad or m] that are held, by env id and robot, then by joint.
        commands: what robots are told, by env id and robot.
    """

    env_id: int = 0
    all_envs: bool = False
    follow: str | None = ''
    cameras: frozenset[tuple[str, str]] = frozenset()
    joints: Mapping[tuple[int, str], Mapping[str, float]] = field(default_factory=dict)
    commands: Mapping[tuple[int, str], RobotCommand] = field(default_factory=dict)

    @property
    def told(self) -> frozenset[tuple[int, str]]:
        """The robots, with their envs, that are told anything."""
        return frozenset((*self.joints, *self.commands))
