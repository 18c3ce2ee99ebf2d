"""Shown scene: the parts of a compiled scene that pages need; it can be sent to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.compiled import CompiledScene


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
