"""Frames: states of envs at one instant for pages, and the requests of pages; both can be sent to other processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.compiled import CompiledScene
from internutopia.viewer.robot_controls import RobotCommand, RobotControls

MOST_SHOWN = 64
"""Maximum number of envs shown at a time."""
ArmKey = tuple[int, str, str]
"""Env id, robot and arm."""


@dataclass(frozen=True)
class ViewRequest:
    """Requests of pages to envs.

    Attributes:
        env_id: the env that is shown.
        all_envs: True to show all envs, False to show one.
        follow: the robot that stays in the middle; None for no robot, `''` for the first one.
        cameras: those whose images are shown, as robot and sensor.
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
    def commanded(self) -> frozenset[tuple[int, str]]:
        """Robots that have a command, with their envs."""
        return frozenset((*self.joints, *self.commands))


@dataclass(frozen=True)
class ShownRobot:
    """Addresses of a robot in a model: its `root` body, and the addresses of its joint positions in `qpos` `(dof,)`."""

    root: int
    qpos: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class ShownScene:
    """Model with its robots, by name; `digest` is that of the compiled scene."""

    digest: bytes
    model: mujoco.MjModel
    robots: Mapping[str, ShownRobot]

    @classmethod
    def of(cls, scene: CompiledScene) -> ShownScene:
        """Create the shown scene of a compiled scene."""
        robots = {name: ShownRobot(robot.root.body, robot.qpos) for name, robot in scene.robots.items()}
        return cls(scene.digest, scene.model, robots)


@dataclass(frozen=True)
class EnvSnapshot:
    """State of an env at one instant.

    `origin` `(3,)` [m] is its position on the page, `state` that of MuJoCo (`mjSTATE_INTEGRATION`), a copy.
    """

    env_id: int
    origin: NDArray[np.float64]
    scene: ShownScene
    state: NDArray[np.float64]


@dataclass(frozen=True)
class ArmPose:
    """Pose of an arm: the frame of its targets in the env frame, and its end effector in that frame.

    Each is a position `(3,)` [m] and an orientation `(4,)`.
    """

    frame: tuple[NDArray[Any], NDArray[Any]]
    end_effector: tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class RobotFacts:
    """Facts that panels show of a robot.

    Attributes:
        joints: names with limits `(low, high)` [rad or m] in the order of joint arrays.
        held: those of them that hold a target.
        controls: its controls.
        cameras: names of its sensors that capture images.
    """

    joints: Mapping[str, tuple[float, float]]
    held: frozenset[str]
    controls: RobotControls
    cameras: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.controls.robot


@dataclass(frozen=True)
class EpisodeFacts:
    """Facts that panels show of the episode in the env that is shown."""

    env_id: int
    title: str
    robots: tuple[RobotFacts, ...]


@dataclass(frozen=True)
class Report:
    """Contents of the panels of the env that is shown: figures, and images of cameras by robot and sensor."""

    figures: Mapping[str, Any]
    pictures: Mapping[tuple[str, str], NDArray[np.uint8]]


@dataclass(frozen=True)
class Frame:
    """States of envs after a step or reset.

    Attributes:
        envs: those that are shown and hold an episode.
        episode: that of the env that is shown.
        time: of that episode [s].
        report: contents of the panels; None to leave them as they are.
        arms: of that env.
        goals: points of that env's learning task `(3,)` [m], env frame, by the name of the command.
    """

    envs: Sequence[EnvSnapshot] = ()
    episode: EpisodeFacts | None = None
    time: float = 0.0
    report: Report | None = None
    arms: Mapping[ArmKey, ArmPose] = field(default_factory=dict)
    goals: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
