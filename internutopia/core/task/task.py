"""Tasks: base class and registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from internutopia.config.task import TaskCfg
from internutopia.core.object import BaseObject, init_objects
from internutopia.core.registry import has_batched_form, look_up, register_in
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.robot.robot import BaseRobot, init_robots
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor.sensor import SensorHandle
from internutopia.core.task.metric import BaseMetric, create_metric
from internutopia.core.task.reward import BaseReward, create_reward


class BaseTask(ABC):
    """Base class of tasks, one episode in one env. Subclasses define its end and may add observations.

    The env calls, in this order: constructor, `set_up_runtime`, `set_up_scene`, `load`, `post_reset`; then once per
    step `get_observations`, `is_done`, `metric.update`, `reward.calc`; `calculate_metrics` and `cleanup` at the end.

    Attributes:
        config: the task config of this episode, with the names and prim paths that hold inside this env.
        robots: robots by their names in the user's config.
        objects: objects likewise.
        scene_rigid_bodies: movable bodies of the scene asset by name.
        env_offset: position of the env frame in the world, a plain list of floats [m].
        steps: a counter for the subclass's own use.
    """

    tasks: ClassVar[dict[str, type[BaseTask]]] = {}
    ends_itself: ClassVar[bool] = True
    """False if `is_done` never returns True: it is not called then. A class that defines `is_done` has to say so."""

    def __init__(self, config: TaskCfg, scene: IScene):
        self.name = ''
        self.env_id = -1
        self.env_offset: list[float] = [0.0, 0.0, 0.0]
        self.root_path = ''
        self.config = config
        self.robots: OrderedDict[str, BaseRobot] = OrderedDict()
        self.objects: OrderedDict[str, BaseObject] = OrderedDict()
        self.scene_rigid_bodies: dict[str, IRigidBody] = {}
        self.steps = 0
        self.work = True
        self.loaded = False
        self._scene = scene
        self.metrics: dict[str, BaseMetric] = {}
        for metric_config in config.metrics:
            metric = create_metric(metric_config, config)
            self.metrics[metric.name] = metric
        self.reward: BaseReward | None = create_reward(config.reward, self) if config.reward else None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if 'is_done' in vars(cls):
            cls.ends_itself = vars(cls).get('ends_itself', True)

    @classmethod
    def register(cls, name: str) -> Callable[[Any], Any]:
        """Return a class decorator that registers the implementation of task type `name`."""
        return register_in(BaseTask.tasks, name)

    def set_up_runtime(self, task_name: str, env_id: int, env_offset: list[float]) -> None:
        """Receive the env of the episode; called once."""
        self.name = task_name
        self.env_id = env_id
        self.env_offset = env_offset
        self.root_path = f'/World/env_{env_id}'
        for metric in self.metrics.values():
            metric.set_up_runtime(task_name, env_id, env_offset)

    def set_up_scene(self, scene: IScene) -> None:
        """Receive the scene of the env."""
        self._scene = scene

    def load(self) -> None:
        """Create robots and objects; their bodies exist already, at the poses of the config."""
        for name in self._scene.world.body_names(self.env_id):
            if name not in self._scene.object_paths.values():
                self.scene_rigid_bodies[name] = self._scene.get(name)
        self.robots = init_robots(self.config, self._scene)
        self.objects = init_objects(self.config, self._scene)
        self.loaded = True

    def post_reset(self) -> None:
        """Finish the reset; called when everything is in place, before the first observation."""
        for robot in self.robots.values():
            robot.post_reset()

    def get_observations(self) -> dict[str, Any]:
        """Return `{robot name: observation}`; called exactly once per step and once after a reset."""
        obs: dict[str, Any] = {}
        for name, robot in self.robots.items():
            obs[name] = robot.observe()
        return obs

    @abstractmethod
    def is_done(self) -> bool:
        """Return True if the episode ends with this step; called exactly once per step."""

    @classmethod
    def are_done(cls, tasks: Sequence[Any]) -> Any:
        """Return whether the episodes of several envs end with this step, bool `(n,)`: `is_done` of each, in one call.

        A class that has it besides `is_done` is called once for all envs whose metrics and reward have such forms,
        too (see `BaseMetric.update_all`).
        """
        raise NotImplementedError

    def calculate_metrics(self) -> dict[str, Any]:
        """Return the metrics at the end of the episode, by name."""
        return {name: metric.calc() for name, metric in self.metrics.items()}

    def cleanup(self) -> None:
        """Clean up; called when the env is reset or closed."""
        for robot in self.robots.values():
            robot.cleanup()


_LIFE: dict[type, tuple[str, ...]] = {  # methods that start and end what an episode is made of
    BaseTask: ('__init__', 'set_up_runtime', 'set_up_scene', 'load', 'post_reset', 'cleanup'),
    BaseRobot: ('__init__', 'set_up_to_scene', 'create_rigid_bodies', 'post_reset', 'cleanup'),
    BaseObject: ('__init__', 'set_up_to_scene'),
    SensorHandle: ('__init__', 'post_reset', 'reset', 'cleanup'),
}


def is_reusable(task: BaseTask) -> bool:
    """Return True if the objects of a task can run one episode after the other in their env, for learning.

    That holds if none of them has to keep anything of an episode, and no class has its own code for the start
    or end.
    """
    robots = task.robots.values()
    if (
        task.ends_itself
        or task.metrics
        or task.reward
        or any(not each.batch or each.own_controllers for each in robots)
    ):
        return False
    sensors = [sensor for robot in robots for sensor in robot.sensors.values()]
    members = {BaseTask: [task], BaseRobot: robots, BaseObject: task.objects.values(), SensorHandle: sensors}
    return all(
        isinstance(member, base) and all(getattr(type(member), name) is getattr(base, name) for name in _LIFE[base])
        for base, of_base in members.items()
        for member in of_base
    )


def observed_batches(task: BaseTask) -> list[tuple[str, Any]] | None:
    """Return the batches that have all that a task observes, by robot name; None if code of its own env is called."""
    batches: list[tuple[str, Any]] = []
    own = type(task).get_observations is not BaseTask.get_observations
    for name, robot in task.robots.items():
        batch, cls = robot.batch, type(robot)
        own |= cls.observe is not BaseRobot.observe or cls.find_stuck is not BaseRobot.find_stuck
        if own or batch is None or robot.own_controllers or robot.sensors.keys() - batch.robot.sensors.keys():
            return None
        batches.append((name, batch))
    return None if own else batches


class TaskKind(NamedTuple):
    """What tasks have in common that are evaluated together: batched robots by name, and classes."""

    batches: tuple[tuple[str, Any], ...]
    task: type[BaseTask]
    metrics: tuple[tuple[str, type[BaseMetric]], ...]
    reward: type[BaseReward] | None


def kind_of(task: BaseTask, batches: Sequence[tuple[str, Any]] | None) -> TaskKind | None:
    """Return the kind of a task; None if code of it is for one env alone.

    Args:
        task: the task.
        batches: what `observed_batches` returns for it.
    """
    metrics = tuple(zip(task.metrics, map(type, task.metrics.values()), strict=True))
    reward = None if task.reward is None else type(task.reward)
    if (
        batches is None
        or (task.ends_itself and not has_batched_form(type(task), 'is_done', 'are_done'))
        or not all(has_batched_form(cls, 'update', 'update_all') for _, cls in metrics)
        or (reward is not None and not has_batched_form(reward, 'calc', 'calc_all'))
    ):
        return None
    return TaskKind(tuple(batches), type(task), metrics, reward)


def create_task(config: TaskCfg, scene: IScene) -> BaseTask:
    """Create the task of a config."""
    return look_up(BaseTask.tasks, 'task', config.type)(config, scene)
