"""Config of a task, and of the objects, metrics and reward in it."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from internutopia.config.base import BaseCfg, Count, PathStr, Quaternion, Scale, Vector
from internutopia.config.learning import LearningCfg
from internutopia.config.robot import RobotCfg
from internutopia.config.typed import TypedCfg, items_by_type

__all__ = ['MetricCfg', 'ObjectCfg', 'RewardCfg', 'RobotCfg', 'TaskCfg']


class ObjectCfg(TypedCfg):
    """An object in the scene that is not a robot. Subclasses refuse unknown fields; `ObjectCfg` itself keeps them."""

    name: str
    """Name of the object, unique among the objects and robots of its task."""
    prim_path: str
    """Path of the object's prim below the objects' root of its env, with a leading slash."""
    position: Vector = (0.0, 0.0, 0.0)
    """Start position (x, y, z), m, env frame."""
    orientation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    """Start orientation (w, x, y, z), env frame."""
    scale: Scale = (1.0, 1.0, 1.0)
    """Size relative to the model along x, y, z; for a unit cube these are the edge lengths, m."""
    type: str
    """Registered name of the object class."""


class MetricCfg(TypedCfg):
    """Metric: a figure computed over an episode. Subclasses refuse unknown fields; `MetricCfg` itself keeps them."""

    type: str
    """Registered name of the metric class."""
    name: str | None = None
    """Key of the metric in the results; None means its `type`."""
    metric_config: dict[str, Any] | BaseModel = {}
    """Settings that the metric class reads itself."""


class RewardCfg(BaseCfg):
    """Reward of a step. Keeps unknown fields."""

    model_config = ConfigDict(extra='allow')

    reward_type: str
    """Registered name of the reward class."""
    reward_settings: dict[str, Any] | None = None
    """Settings that the reward class reads; None means its own defaults."""


class TaskCfg(TypedCfg):
    """One episode. All task configs keep unknown fields, which may hold anything (numpy arrays, nested dicts)."""

    open_subclasses = True

    type: str | None = None
    """Registered name of the task class."""
    metrics: list[MetricCfg] = []
    """Figures to compute over the episode."""
    reward: RewardCfg | None = None
    """Reward given at each step; None means 0.0."""
    scene_root_path: str = '/scene'
    """Path of the scene's prim below the root of its env."""
    robots_root_path: str = '/robots'
    """Path below the root of the env of the robots' common parent prim."""
    objects_root_path: str = '/objects'
    """Path below the root of the env of the objects' common parent prim."""
    scene_asset_path: PathStr | None = None
    """Scene file: USD, URDF (`.urdf`) or MJCF (`.xml`); None means no scene."""
    scene_scale: Scale = (1.0, 1.0, 1.0)
    """Size of the scene relative to its file along x, y, z; the same along all of them for files of MJCF and URDF."""
    scene_position: Vector = (0.0, 0.0, 0.0)
    """Position of the scene's origin (x, y, z), m, env frame."""
    scene_orientation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    """Orientation of the scene (w, x, y, z), env frame."""
    decompose_scene: bool = False
    """True if static concave meshes of a URDF or MJCF scene collide as convex parts, and so stay hollow, instead of as
    convex hulls. USD files have their own setting."""
    robots: list[RobotCfg] = []
    """Robots; every task of a `Config` has the same robot types in the same order."""
    objects: list[ObjectCfg] = []
    """Objects, in addition to the scene."""
    learning: LearningCfg | None = None
    """The learning task; used by the array API."""
    max_episode_steps: Count | None = None
    """Number of steps after which the episode is truncated; None means never."""

    _metrics_by_type = items_by_type('metrics', MetricCfg)
    _robots_by_type = items_by_type('robots', RobotCfg)
    _objects_by_type = items_by_type('objects', ObjectCfg)
