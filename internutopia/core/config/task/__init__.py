"""Config of a task: one episode's scene, robots, objects, metrics and reward."""

from internutopia.core.config.fields import Count, PathStr, Quaternion, Scale, Vector
from internutopia.core.config.learning import LearningCfg
from internutopia.core.config.metric import MetricCfg
from internutopia.core.config.object import ObjectCfg
from internutopia.core.config.robot import RobotCfg
from internutopia.core.config.task.reward import RewardCfg
from internutopia.core.config.typed import TypedCfg, items_by_type

__all__ = ['MetricCfg', 'ObjectCfg', 'RewardCfg', 'RobotCfg', 'TaskCfg']


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
    """Path below the root of the env that the robots' prims stand under."""
    objects_root_path: str = '/objects'
    """Path below the root of the env that the objects' prims stand under."""
    scene_asset_path: PathStr | None = None
    """Scene file: USD, URDF (`.urdf`) or MJCF (`.xml`); None means no scene."""
    scene_scale: Scale = (1.0, 1.0, 1.0)
    """Size of the scene relative to its file along x, y, z; the same along all of them but for USD files."""
    scene_position: Vector = (0.0, 0.0, 0.0)
    """Position of the scene's origin (x, y, z), m, env frame."""
    scene_orientation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    """Orientation of the scene (w, x, y, z), env frame."""
    decompose_scene: bool = False
    """Whether concave meshes of a URDF or MJCF scene that do not move collide as convex parts and stay hollow, not as
    their convex hulls. USD scenes say so themselves."""
    robots: list[RobotCfg] = []
    """Robots; every task of a `Config` has the same robot types in the same order."""
    objects: list[ObjectCfg] = []
    """Objects besides the scene."""
    learning: LearningCfg | None = None
    """What is learned; used by the array API."""
    max_episode_steps: Count | None = None
    """Number of steps after which the episode is truncated; None means never."""

    _metrics_by_type = items_by_type('metrics', MetricCfg)
    _robots_by_type = items_by_type('robots', RobotCfg)
    _objects_by_type = items_by_type('objects', ObjectCfg)
