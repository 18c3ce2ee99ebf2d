"""Robots: base class and registry.

A robot class defines which model it is (`model`), what it observes (`get_obs`) and how it takes an action
(`apply_action`).

Per env (the default): one object per env, arrays without an env axis, as in InternUtopia 2.x.

Batched (`batched = True` in the class's own body; not inherited): one object for all envs that run the robot, which the
env steps; its arrays have a leading env axis `(env_num, ...)`. Each env still has its own object of the same
class, `task.robots[name]`, to be read and posed; code written with `[..., k]` and `axis=-1` serves both.
"""

from __future__ import annotations

from collections import OrderedDict, UserDict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from internutopia.config.robot import RobotCfg
from internutopia.config.task import TaskCfg
from internutopia.core.observations import own_values
from internutopia.core.registry import OrderedKeys, is_batched, look_up, register_in
from internutopia.core.robot.articulation import ArticulationAction, IArticulation
from internutopia.core.robot.context import RobotBatch
from internutopia.core.robot.controller import BaseController, ControllerHandle, create_controllers
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import IScene
from internutopia.core.sensor.sensor import BaseSensor, create_sensors
from internutopia.core.util.pose_mixin import Pose
from internutopia.model.spec import IDENTITY_QUAT, Drives, RobotSpec, Vec3
from internutopia.util import did_you_mean
from internutopia.util.errors import EnvKeyError


class LinkHandles(UserDict[str, IRigidBody]):
    """Handles of links by prim path: that of the robot and the name of the link, or wherever its prim lies below."""

    def __missing__(self, path: str) -> IRigidBody:
        links = [name for name in self.data if name.rsplit('/', 1)[-1] == path.rsplit('/', 1)[-1]]
        if len(links) != 1:
            raise KeyError(f'no link at {path!r}; {did_you_mean(path, self.data)}')
        return self.data[links[0]]

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and any(name.endswith(f'/{path.rsplit("/", 1)[-1]}') for name in self.data)


class BaseRobot(OrderedKeys):
    """Base class of robots.

    Class attributes describe the robot; `model` puts them together and may be overridden instead.

    Attributes:
        drives: joint drives that its model gets; by default those of the asset (USD), else none that hold it.
        home: initial joint positions by joint name [rad or m], which are the first position targets too; others 0.
        base_link: link whose pose is `obs['position']` and `obs['orientation']`; None means the root.
        fixed_base: see `RobotSpec`.
        feet: links it stands on, whose contact forces are measured, and whose contacts are stiff unless its file says
            how stiff they are.
        frozen: joints of its model that are left out, fixed at zero.
        synonyms: names of its joints and links, by the names that they have in other descriptions of the robot.
        frames: links that are added to models without them: link that they are fixed to and position on it [m].
        weightless: whether gravity does not act on its links, as if the drives made up for it.
        at_root: whether its pose is that of its root, wherever a model puts that; else the two add up.
        self_collisions: whether its links collide with each other; None: as its model says. Neighbours, and links that
            overlap in the pose of the model or at `home`, never do, unless an MJCF file says which do.
    """

    batched: ClassVar[bool] = False
    robots: ClassVar[dict[str, type[BaseRobot]]] = {}

    drives: ClassVar[Drives] = Drives(asset_first=True)
    home: ClassVar[Mapping[str, float]] = {}
    base_link: str | None = None
    fixed_base: ClassVar[bool | None] = None
    feet: ClassVar[tuple[str, ...]] = ()
    frozen: ClassVar[tuple[str, ...]] = ()
    synonyms: ClassVar[Mapping[str, str]] = {}
    frames: ClassVar[Mapping[str, tuple[str, Vec3]]] = {}
    weightless: ClassVar[bool] = False
    at_root: ClassVar[bool] = False
    self_collisions: ClassVar[bool | None] = None

    def __init__(self, config: RobotCfg, scene: IScene):
        self.name = config.name
        self.config = config
        self.articulation: IArticulation = scene.articulation_at(config.prim_path)
        self.own_controllers: OrderedDict[str, BaseController] = OrderedDict()
        self.sensors: OrderedDict[str, BaseSensor] = OrderedDict()
        self.obs_keys: list[str] = []
        self.batch: RobotBatch | None = None
        self._scene = scene
        self._robot_scale = np.array(config.scale or (1.0, 1.0, 1.0), np.float32)
        self._start_position = np.array(config.position, np.float32)
        self._start_orientation = np.array(config.orientation or IDENTITY_QUAT, np.float32)

    @classmethod
    def register(cls, name: str) -> Callable[[Any], Any]:
        """Class decorator: make the class the implementation of robot type `name`."""
        return register_in(BaseRobot.robots, name)

    @classmethod
    def model(cls, config: RobotCfg) -> RobotSpec:
        """Return the spec of the robot for a config. ValueError for a scale that differs between axes."""
        scale = tuple(config.scale or (1.0, 1.0, 1.0))
        if len(set(scale)) != 1:
            raise ValueError(f'robot {config.name!r}: scale {scale} must be the same along x, y and z')
        if not config.usd_path:
            raise ValueError(f'robot {config.name!r} of type {config.type!r} has no usd_path: set it to a model file')
        return RobotSpec(
            name=config.name,
            asset=str(config.usd_path),
            scale=float(scale[0]),
            position=config.position,
            orientation=config.orientation or IDENTITY_QUAT,
            fixed_base=cls.fixed_base,
            drives=cls.drives,
            joint_positions=cls.home,
            contact_links=cls.feet,
            frozen=cls.frozen,
            synonyms=cls.synonyms,
            frames=cls.frames,
            weightless=cls.weightless,
            at_root=cls.at_root,
            self_collisions=cls.self_collisions,
        )

    @property
    def is_batch(self) -> bool:
        """True if this object is the robot of all envs."""
        return not isinstance(self._scene.env_id, int)

    def set_up_to_scene(self, scene: IScene) -> None:
        """Create handles, controllers and sensors."""
        self.own_controllers = create_controllers(self.config, self, scene)
        self.sensors = create_sensors(self.config, self, scene)

    def create_rigid_bodies(self) -> None:
        """Drop the handles of links; `_rigid_body_map[prim_path]` makes them at its next use."""
        vars(self).pop('_rigid_body_map', None)

    @cached_property
    def _rigid_body_map(self) -> LinkHandles:
        # most classes never ask for it, and handles of all links would take a fifth of the time of a reset
        return LinkHandles({body.name: body for body in self.articulation.links()})

    def post_reset(self) -> None:
        """Called when the env's scene is ready."""
        self.articulation.initialize()
        self.articulation.post_reset()
        for sensor in self.sensors.values():
            sensor.post_reset()

    def reset(self, env_ids: Any) -> None:
        """Called on the object for all envs when some of them start a new episode."""

    def cleanup(self) -> None:
        """Called when the env is reset or closed."""
        for part in (*self.own_controllers.values(), *self.sensors.values()):
            part.cleanup()

    def apply_action(self, action: dict[str, Any]) -> None:
        """Command controllers of this env's robot: `{controller name: controller action}`, in this order.

        A class that overrides this receives whatever the caller of `step` sent for the robot. Names that are no
        controllers are passed over here: an overriding class may give them its own meaning.
        """
        known = self.get_controllers()
        action = {name: value for name, value in action.items() if name in known}
        if self.batch is not None:
            self.batch.apply(self.batch.validate([(self._scene.env_id, action)]))
        else:
            self.command([(control(), ...) for control in self.controls(action)])

    def command(self, controls: Sequence[tuple[ArticulationAction, Any]]) -> None:
        """Set the joint targets of controllers, in this order.

        Each comes with the ids of the envs that its rows are for; on the robot of one env, with `...`.
        """
        for control, env_ids in controls:
            self.articulation.apply_action(control, env_ids)

    def controls(self, action: Mapping[str, Any]) -> list[Callable[[], ArticulationAction]]:
        """Check an action: functions that compute its joint targets. Nothing is commanded yet.

        KeyError for an unknown controller, ValueError for an action it cannot take, naming env, robot and controller.
        """
        return [self.controller(name).prepare_control(value) for name, value in action.items()]

    def controller(self, name: str) -> BaseController:
        """Return the controller of that name. KeyError naming env and robot, with close matches."""
        known = self.get_controllers()
        if name not in known:
            where = f'env {self._scene.env_id}: robot {self._scene.robot_paths[self.config.prim_path]!r}'
            raise EnvKeyError(self._scene.env_id, f'{where} has no controller {name!r}; {did_you_mean(name, known)}')
        return known[name]

    def get_obs(self) -> OrderedDict[str, Any]:
        """Return base pose (env frame), joint positions and velocities, and observations of controllers and sensors."""
        position, orientation = self.get_pose()
        obs: OrderedDict[str, Any] = OrderedDict(
            position=position,
            orientation=orientation,
            joint_positions=self.articulation.get_joint_positions(),
            joint_velocities=self.articulation.get_joint_velocities(),
        )
        obs['controllers'], obs['sensors'] = self._get_controllers_and_sensors_obs()
        return obs

    def observe(self) -> dict[str, Any]:
        """Return the observation of this env's robot: `get_obs`, for all envs at once where the class is batched."""
        return own_values(self.get_obs()) if self.batch is None else self.batch.observation(self._scene.env_id)

    def get_pose(self) -> Pose:
        """Return the position [m] and orientation of the base, env frame."""
        return self.get_robot_base().get_pose() if self.base_link else self.articulation.get_pose()

    def get_robot_base(self) -> IRigidBody:
        """Return the base link. ValueError for a robot class without `base_link`."""
        if self.base_link is None:
            raise ValueError(f'robot {self.name!r} of type {self.config.type!r} names no base_link')
        return self._rigid_body_map[f'{self.config.prim_path}/{self.base_link}']

    def get_robot_scale(self) -> NDArray[np.float32]:
        """Return the scale along x, y, z, `(3,)`."""
        return self._robot_scale

    def get_robot_articulation(self) -> IArticulation:
        """Return the handle to joints and root."""
        return self.articulation

    def find_stuck(self) -> Any:
        """Return True if it stands still under a moving command; for all envs, bool `(env_num,)`."""
        stuck: Any = False
        for controller in self.own_controllers.values():
            stuck = stuck | controller.find_stuck()
        return stuck

    @property
    def controllers(self) -> Mapping[str, Any]:
        """Controllers by name; handles to the part of its env of those that one object runs for all envs."""
        if self.batch is None or self.batch.robot is self:
            return self.own_controllers
        shared = self.batch.robot.own_controllers
        return {**{name: ControllerHandle(each, self) for name, each in shared.items()}, **self.own_controllers}

    @controllers.setter
    def controllers(self, controllers: OrderedDict[str, BaseController]) -> None:
        self.own_controllers = controllers

    def get_controllers(self) -> dict[str, BaseController]:
        """Controllers by name; those that one object runs for all envs among them."""
        own = self.own_controllers
        return own if self.batch is None else {**self.batch.robot.own_controllers, **own}

    def get_rigid_bodies(self) -> list[IRigidBody]:
        """Return the handles to all links."""
        return list(self._rigid_body_map.values())

    def _get_controllers_and_sensors_obs(self) -> tuple[dict[str, Any], dict[str, Any]]:
        if self.batch is not None and self.batch.robot is not self:  # most of its controllers run for all envs at once
            obs = self.batch.observation(self._scene.env_id)
            return obs['controllers'], obs['sensors']
        controllers: OrderedDict[str, Any] = OrderedDict()
        for name, controller in self.own_controllers.items():
            controllers[name] = controller.get_obs()
        sensors: OrderedDict[str, Any] = OrderedDict()
        for name, sensor in self.sensors.items():
            sensors[name] = sensor.observe()
        return controllers, sensors


def init_robots(task_config: TaskCfg, scene: IScene) -> OrderedDict[str, BaseRobot]:
    """Create the robots of one env, by the names in the config, ready to be stepped."""
    robots: OrderedDict[str, BaseRobot] = OrderedDict()
    for config in task_config.robots:
        cls = look_up(BaseRobot.robots, 'robot', config.type)
        robot: BaseRobot = cls(config, scene)
        name = scene.robot_paths[config.prim_path]
        if is_batched(cls):
            robot.batch = scene.batches.join(robot, name, scene)
        robot.set_up_to_scene(scene)
        if robot.batch is not None:
            robot.batch.add(robot)
        robots[name] = robot
    return robots


create_robots = init_robots
