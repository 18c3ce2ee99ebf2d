"""Agent: the upright cylinder that stands for a robot on a navigation map."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from internutopia.core.config.robot import RobotCfg
from internutopia.core.model.part_boxes import geom_bounds
from internutopia.core.model.scene_cache import SCENES
from internutopia.core.model.spec import SceneSpec
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.util.registry import look_up

STEP_OF_HEIGHT = 0.05
"""Height of the steps that a robot is trusted with, as a part of its own height, if nobody says otherwise."""

_TIMESTEP = 0.005  # s; nothing is stepped
_CORNERS = np.array([[x, y] for x in (0, 1) for y in (0, 1)], bool)


@dataclass(frozen=True)
class Agent:
    """An upright cylinder, and what it climbs.

    Attributes:
        radius: of the cylinder [m]; its axis is where the robot's base is.
        height: of the cylinder, from the floor [m].
        step_height: what is not higher is stepped on, what is deeper is a ledge [m]. Slopes of more than 45 degrees
            that rise by more are not climbed either.

    Raises:
        ValueError: a number is not positive and finite, or the step is as high as the cylinder.
    """

    radius: float
    height: float
    step_height: float

    def __post_init__(self) -> None:
        for name in ('radius', 'height', 'step_height'):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f'Agent: {name} must be a positive number of metres, got {value!r}')
        if self.step_height >= self.height:
            raise ValueError(f'Agent: step_height = {self.step_height} m must be below height = {self.height} m')

    @classmethod
    def of(cls, robot: RobotCfg, step_height: float | None = None) -> Agent:
        """The cylinder around everything of a robot's model in its home pose, about the axis of its base.

        Args:
            robot: the robot; its class must be registered (`import_extensions()`).
            step_height: [m]; None means a twentieth of its height, as walking that was learned on level ground has
                been seen to step over little more.
        """
        spec = look_up(BaseRobot.robots, 'robot', robot.type).model(robot)
        scene = SCENES.get(SceneSpec(robots=(spec,)), _TIMESTEP)
        model, data = scene.model, mujoco.MjData(scene.model)
        for name, values in scene.initial_state(scene.source).items():
            getattr(data, name)[:] = values
        mujoco.mj_kinematics(model, data)
        base = data.xpos[scene.robots[spec.name].root.body]
        own = np.flatnonzero(np.isin(model.geom_bodyid, [b.body for b in scene.robots[spec.name].bodies.values()]))
        bounds = np.array([geom_bounds(model, data, int(geom), 0) for geom in own])
        low, high = bounds[:, 0], bounds[:, 1]
        corners = np.where(_CORNERS[:, None], high[:, :2], low[:, :2]) - base[:2]
        height = float(high[:, 2].max() - low[:, 2].min())
        step = STEP_OF_HEIGHT * height if step_height is None else step_height
        return cls(float(np.linalg.norm(corners, axis=-1).max()), height, step)
