"""Configs of tasks. All of them keep unknown fields."""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import FiniteFloat, NonNegativeInt, model_validator

from internutopia.config.base import BaseCfg, Count, PositiveFloat, Range
from internutopia.config.robot import RobotCfg
from internutopia.config.task import TaskCfg
from internutopia.navigation.episodes import NavigationEpisode
from internutopia_extension.configs.metrics import NavigationMetricCfg


class SingleInferenceTaskCfg(TaskCfg):
    """A task without its own end."""

    type: str | None = 'SingleInferenceTask'


class FiniteStepTaskCfg(TaskCfg):
    """A task that ends after a number of steps."""

    type: str | None = 'FiniteStepTask'
    max_steps: Count = 500
    """The task is done at this step."""


class ManipulationTaskCfg(TaskCfg):
    """A task for a robot arm, with an instruction in words."""

    type: str | None = 'ManipulationTask'
    max_steps: Count
    """The task is done at the step after this one, or earlier when it is reported finished."""
    prompt: str = ''
    """Instruction to the robot."""
    target: str
    """Object of the instruction."""
    episode_idx: NonNegativeInt
    """Number of the episode in its data set."""


class PlacementCfg(BaseCfg):
    """Goal of a manipulation task: an object rests on another one or on a mark, and the gripper has released it."""

    object: str
    """Object that is brought there."""
    target: str
    """Object or mark that it must rest on."""
    tolerance: PositiveFloat
    """Largest distance between their centres along the x and the y axis of the target, m."""
    highest: PositiveFloat | None = None
    """Height above its start that the object must not be lifted by, m; None means that it may be lifted."""


class JointGoalCfg(BaseCfg):
    """Goal of a manipulation task: a joint of an object is in a range."""

    object: str
    """Object with the joint, a model file."""
    joint: str
    """Joint; the part that it moves has the same name."""
    range: Range
    """Lowest and highest position that will do, m or rad."""
    start: FiniteFloat = 0.0
    """Position at the start of the episode, m or rad."""


class NearCfg(BaseCfg):
    """Goal of a mobile robot: it stands still near a place."""

    place: tuple[Range, Range]
    """Lowest and highest x, and y, of a rectangle in the frame of the scene, m."""
    distance: PositiveFloat
    """Largest distance of the robot's base from the rectangle, m."""


class TabletopTaskCfg(TaskCfg):
    """An episode of a suite of manipulation tasks: an instruction for the first robot of the task, and its goal."""

    type: str | None = 'TabletopTask'
    suite_task: str
    """Name of the task in its suite."""
    perturbation: str = 'none'
    """Axis along which the episode differs from how the task was meant."""
    number: NonNegativeInt
    """Number of the episode in its suite task."""
    instruction: str
    """Instruction to the robot, in words."""
    goals: list[PlacementCfg | JointGoalCfg | NearCfg]
    """Conditions of success: all of them."""
    start_joints: dict[str, FiniteFloat] = {}
    """Initial joint positions of the first robot, rad; other joints start in its home pose."""
    arm_base: str | None = None
    """Link in whose frame objects are observed, of a robot that drives; None means the frame of the robot's start."""
    max_steps: Count
    """Step at which the episode ends if the goals were not reached."""
    hold: Count = 5
    """Number of steps in a row in which the goals have to hold; then the episode ends."""


class NavigationTaskCfg(TaskCfg):
    """A navigation episode for the first robot of the task; `of` makes one of an episode."""

    type: str | None = 'NavigationTask'
    episode: NavigationEpisode
    """Start, goals and instruction."""
    success_distance: PositiveFloat | None = None
    """Distance at which a goal counts as reached, m; None uses the goals' own, which must be set."""
    stop_action: bool = True
    """True if the robot has to end the episode by the stop action of a discrete controller; otherwise it ends where a
    goal is reached."""
    distance: Literal['geodesic', 'euclidean'] = 'geodesic'
    """Distance to the goals: along the shortest path on the map of the scene, or straight."""
    max_actions: Count | None = None
    """Number of discrete actions at which the episode ends; None means no limit. `max_episode_steps` limits steps."""
    fall_angle: PositiveFloat | None = math.radians(50)
    """Angle between the robot and its pose at the start, rad, at which it has fallen; None means that it cannot."""
    stuck_seconds: PositiveFloat | None = None
    """Time in which a robot that is not stuck moves or turns, s; None means that it cannot be stuck."""
    stuck_distance: PositiveFloat = 0.2
    """Shortest distance that it moves in that time, m."""
    stuck_angle: PositiveFloat = math.radians(15)
    """Smallest angle that it turns by if it does not move, rad."""

    @property
    def radius(self) -> float:
        """Distance at which a goal counts as reached [m]."""
        return self.success_distance or self.episode.goals[0].radius or math.nan

    @classmethod
    def of(cls, episode: NavigationEpisode, robot: RobotCfg, **fields: Any) -> Self:
        """Return the task of an episode.

        Args:
            episode: the episode.
            robot: the robot. The height of its `position` is that of its root above the ground, its `orientation` how
                it stands when its yaw is 0; it is put at the start of the episode.
            **fields: other fields of the task; without `metrics` it has a `NavigationMetric`.

        Raises:
            pydantic.ValidationError: a field is wrong, or there is no distance at which a goal is reached.
        """
        import numpy as np

        from internutopia.util.rotations import quat_multiply

        x, y, z = episode.start_position
        turned = quat_multiply(np.array(episode.start_orientation), np.array(robot.orientation or (1.0, 0.0, 0.0, 0.0)))
        start = robot.update(position=(x, y, z + robot.position[2]), orientation=turned)
        defaults = {'scene_asset_path': episode.scene, 'metrics': [NavigationMetricCfg()]}
        return cls.model_validate({**defaults, 'episode': episode, 'robots': [start], **fields})

    @model_validator(mode='after')
    def _check(self) -> Self:
        if not self.robots:
            raise ValueError('a navigation task needs a robot')
        radii = {goal.radius for goal in self.episode.goals}
        if self.success_distance is None and (None in radii or len(radii) > 1):
            radii_text = ', '.join('none' if radius is None else f'{radius:g} m' for radius in radii)
            raise ValueError(
                f'episode {self.episode.episode_id!r}: its goals have no single distance at which they are reached '
                f'({radii_text}); set success_distance (--success-distance)'
            )
        return self
