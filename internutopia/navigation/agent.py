"""Agent of a navigation map, and the scene that the map is made of."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.config.robot import RobotCfg
from internutopia.config.task import TaskCfg
from internutopia.core.registry import look_up
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.task.scene_builder import scene_spec
from internutopia.model.compiled import CompiledScene
from internutopia.model.part_boxes import geom_bounds
from internutopia.model.scene_cache import SCENES
from internutopia.model.spec import SceneSpec
from internutopia.util.rotations import quat_from_yaw, quat_multiply, yaw_of

SceneFile = str | os.PathLike[str] | TaskCfg | SceneSpec


def spec_of(scene: SceneFile) -> SceneSpec:
    """Return the spec of a scene, without robots."""
    if isinstance(scene, SceneSpec):
        return replace(scene, robots=())
    task = scene if isinstance(scene, TaskCfg) else TaskCfg(scene_asset_path=os.fspath(scene))
    return scene_spec(task.model_copy(update={'robots': []}))


@dataclass(frozen=True)
class StartingScene:
    """A scene when an episode starts.

    Attributes:
        name: of its file.
        compiled: the scene.
        data: its state, positions computed.
    """

    name: str
    compiled: CompiledScene
    data: mujoco.MjData

    @classmethod
    def load(cls, scene: SceneFile) -> StartingScene:
        """Load the scene of a file, found like `scene_asset_path`, a task or a spec. Errors as for `SceneCache.get`."""
        spec = spec_of(scene)
        compiled = SCENES.get(spec, _TIMESTEP)
        return cls(spec.asset or 'the scene', compiled, compiled.data_at_start(spec))

    def box(self, geoms: NDArray[np.intp]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the lowest and highest corner `(3,)` of a box around some geoms [m], env frame."""
        boxes = np.array([geom_bounds(self.compiled.model, self.data, geom, 0) for geom in geoms.tolist()])
        return boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)


STEP_OF_HEIGHT = 0.05
"""Default height of the steps that a robot can take, as its own fraction height."""

_TIMESTEP = 0.005  # s; nothing is stepped
_DIGITS = 9  # of a length [m]: it is bitwise identical wherever a robot is


@dataclass(frozen=True)
class Agent:
    """An upright cylinder, and what it climbs.

    Attributes:
        radius: of the cylinder [m]; its axis is where the robot's base is.
        height: of the cylinder, from the floor [m].
        step_height: what is not higher is stepped on, what is deeper is a ledge [m]. Slopes of more than 45 degrees
            that rise by more are not climbed either.
        turning_radius: of the cylinder in which it can turn on the spot [m]; at least `radius`, which is the default.

    Raises:
        ValueError: a number is not positive and finite, or the step is as high as the cylinder.
    """

    radius: float
    height: float
    step_height: float
    turning_radius: float = 0.0

    def __post_init__(self) -> None:
        for name in ('radius', 'height', 'step_height'):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f'Agent: {name} must be a positive number of metres, got {value!r}')
        if not math.isfinite(self.turning_radius):
            raise ValueError(f'Agent: turning_radius must be a number of metres, got {self.turning_radius!r}')
        if self.step_height >= self.height:
            raise ValueError(f'Agent: step_height = {self.step_height} m must be below height = {self.height} m')
        object.__setattr__(self, 'turning_radius', max(self.radius, self.turning_radius))

    @classmethod
    def of(cls, robot: RobotCfg, step_height: float | None = None) -> Agent:
        """Return the cylinder that stands for a robot's model in its home pose, about the axis of its base.

        Robots are longer than wide, go forward, and pass doors that they could not turn in. So the radius is not that
        of the circle around the robot (that is `turning_radius`), but that with which the box around it passes a door
        of the cylinder's width and gets round a right-angled corner of a corridor of that width: the larger one of half
        its width, and of `(length / 2 + width) / sqrt(8)`. Nav2 plans with the inscribed radius, too, and Habitat with
        a cylinder about as wide as the robot.

        Args:
            robot: the robot; its class must be registered (`import_extensions()`). Its pose does not matter.
            step_height: [m]; None means a twentieth of its height, as walking that was learned on level ground has
                been seen to step over little more.
        """
        low, high = _bounds(robot)
        half_width = float(max(-low[1], high[1]))
        # the box stands at 45 degrees, its outer side across both outer walls, its inner side at the inner corner
        cornering = (float(high[0] - low[0]) / 2 + 2 * half_width) / math.sqrt(8)
        height = float(high[2] - low[2])
        return cls(
            radius=max(half_width, cornering),
            height=height,
            step_height=STEP_OF_HEIGHT * height if step_height is None else step_height,
            turning_radius=math.hypot(float(max(-low[0], high[0])), half_width),
        )


def _bounds(robot: RobotCfg) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return corners `(3,)` [m] of the box around a robot in its home pose from its base, x to the front and z up."""
    orientation = np.array(robot.orientation or (1.0, 0.0, 0.0, 0.0), np.float64)
    ahead = quat_multiply(quat_from_yaw(-yaw_of(orientation)), orientation)
    spec = look_up(BaseRobot.robots, 'robot', robot.type).model(robot.update(orientation=ahead))
    scene = SCENES.get(SceneSpec(robots=(spec,)), _TIMESTEP)
    model, data = scene.model, scene.data_at_start(scene.source)
    placed = scene.robots[spec.name]
    own = np.flatnonzero(np.isin(model.geom_bodyid, [body.body for body in placed.bodies.values()]))
    bounds = np.array([geom_bounds(model, data, int(geom), 0) for geom in own])
    low, high = (bounds[:, k] - data.xpos[placed.root.body] for k in (0, 1))
    return low.min(axis=0).round(_DIGITS), high.max(axis=0).round(_DIGITS)
