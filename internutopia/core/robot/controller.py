"""Controllers: from an action in a robot's own terms (a speed, a goal) to targets for its joints.

A per-env controller (the default) is one object per env and robot: arrays have no env axis, `action_to_control(action)`
gets the action as the caller wrote it.

A batched controller (`batched = True` in the class's own body) is one object for all envs that run the robot. Its
arrays have a leading env axis `(env_num, ...)`, and `action_to_control(action, env_ids)` gets the actions of the envs
`env_ids`, checked and stacked by `parse_action`, `(len(env_ids), ...)`. State made with `state()` is kept per env and
cleared when an env is reset. The same class also serves one env, as a sub-controller of a per-env controller or on a
per-env robot: then `env_ids` is `...` and arrays have no env axis. Code written with `[..., k]`, `axis=-1` and
`x[env_ids]` does both::

    @BaseController.register('Hold')
    class Hold(BaseController):
        batched = True

        def parse_action(self, action):
            return box_action(action, (1,))

        def action_to_control(self, action, env_ids=...):
            action = self.parsed(action, env_ids)
            return ArticulationAction(joint_positions=np.repeat(action, 2, axis=-1))
"""

from __future__ import annotations

import functools
import inspect
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from internutopia.config.robot import ControllerCfg, RobotCfg
from internutopia.core.observations import split_rows
from internutopia.core.registry import OrderedKeys, is_batched, look_up, register_in
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.context import RobotContext
from internutopia.core.robot.mimic_joints import MimicJoints
from internutopia.core.scene.scene import IScene
from internutopia.engines.views import LARGEST_NUMBER
from internutopia.util.arrays import ArrayMaker, HostArrays, masked_assign
from internutopia.util.errors import EnvValueError

if TYPE_CHECKING:
    import gymnasium


class ActionError(ValueError):
    """One of several actions is wrong: that of number `index`."""

    def __init__(self, index: int, message: str):
        super().__init__(message)
        self.index = index


class _ParsedAction(np.ndarray):
    """One env's action, as `parse_action` has returned it."""


class _Alias:
    """Another name of an attribute, for objects that have none of that name themselves."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else getattr(instance, self._name)


class BaseController(OrderedKeys, ABC):
    """Base class of controllers.

    Attributes:
        pure: whether what a batched class makes of an action, in `action_to_control`, follows from it and from what the
            robot's articulation shows, so that `LearningCfg.compiled` may compile it; in the class's own body.
        config: its config; extra fields are attributes.
        robot: the robot it drives.
        scene: the scene of its env.
        sub_controllers: controllers it commands, in the order of `config.sub_controllers`.
        batch_shape: `()` for one env, `(env_num,)` for all: the leading axes of its arrays.
        arrays: makes arrays of the kind that it gets and gives: those of the world for all envs, of numpy for one.
        commands: what it sets: position or velocity targets of joint `'drives'`, or raw controls of the `'actuators'`
            that a model brings. A `GenericRobot` whose model has nothing but motors gets drives if a controller
            commands them, and none commands actuators. None: neither, or efforts.
        mimic_joints: joints that it moves along with those of its `joint_subset`; None for none.
        sub_command: arguments that `forward` calls that of its first sub-controller with, which is then checked when it
            is created; not for subclasses with a `forward` or `action_to_control` of their own.
    """

    batched: ClassVar[bool] = False
    pure: ClassVar[bool] = False
    controllers: ClassVar[dict[str, type[BaseController]]] = {}
    commands: ClassVar[Literal['drives', 'actuators'] | None] = None
    mimic_joints: MimicJoints | None = None
    sub_command: ClassVar[tuple[str, ...]] = ()

    def __init__(self, config: ControllerCfg, robot: RobotContext, scene: IScene):
        self.config = config
        self.scene = scene
        self.robot_ref = weakref.ref(robot)
        self.sub_controllers: list[BaseController] = []
        self.obs_keys: list[str] = []
        self.batch_shape: tuple[int, ...] = () if isinstance(scene.env_id, int) else (scene.world.env_num,)
        self.arrays: ArrayMaker = scene.world.arrays if self.batch_shape else HostArrays()
        self._states: list[tuple[NDArray[Any], Any]] = []

    @classmethod
    def register(cls, name: str) -> Callable[[Any], Any]:
        """Class decorator: make the class the implementation of controller type `name`."""
        return register_in(BaseController.controllers, name)

    @classmethod
    def checks_signature_only(cls) -> bool:
        """Whether it takes every action of the shapes and types of one that it took, as long as numbers are finite.

        Distributed runs then need not wait until all workers have checked their actions. `parse_actions` gets those as
        one array there, as far as they make one.
        """
        return False

    @property
    def robot(self) -> RobotContext:
        """The robot it drives."""
        robot = self.robot_ref()
        if robot is None:
            raise RuntimeError(f'the robot of controller {self.config.name!r} no longer exists: its env was reset')
        return robot

    _robot = _Alias('robot')  # some extension packages call it so

    @abstractmethod
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Turn an action into joint targets."""

    def prepare_control(self, action: Any) -> Callable[[], ArticulationAction]:
        """Check one env's action; what is returned computes its joint targets, when all actions were checked.

        A batched class parses the action. A per-env one computes at once: only `action_to_control` can check it.
        ValueError naming env, robot and controller if it refuses the action.
        """
        if is_batched(type(self)):
            parsed = self._named(self.parse_action, action).view(_ParsedAction)
            return functools.partial(self._named, self.action_to_control, parsed)
        control: ArticulationAction = self._named(self.action_to_control, action)
        return lambda: control

    def get_obs(self) -> dict[str, Any]:
        """Return the observation of the controller; for a batched one every value is `(env_num, ...)`."""
        return OrderedDict()

    def parse_action(self, action: Any) -> NDArray[Any]:
        """Check one env's action and return it as an array. ValueError with the expected and the given value."""
        raise NotImplementedError(f'{type(self).__name__} is batched and must define how an action is parsed')

    def parse_actions(self, actions: Sequence[Any]) -> NDArray[Any]:
        """Parse the actions of several envs into one array `(n, ...)`; shorter ones are filled up with NaN.

        ActionError if one of them is wrong.
        """
        parsed = []
        for index, action in enumerate(actions):
            try:
                parsed.append(self.parse_action(action))
            except (ValueError, TypeError) as error:
                raise ActionError(index, str(error)) from error
        longest = max(len(row) for row in parsed)
        if all(len(row) == longest for row in parsed):
            return np.array(parsed)
        stacked = np.full((len(parsed), longest, *parsed[0].shape[1:]), np.nan, parsed[0].dtype)
        for row, values in zip(stacked, parsed, strict=True):
            row[: len(values)] = values
        return stacked

    def parsed(self, action: Any, env_ids: Any) -> NDArray[Any]:
        """Return the action as an array: already parsed for envs `env_ids`, perhaps raw for a single env (`...`)."""
        if env_ids is not ...:
            return action
        return action.view(np.ndarray) if isinstance(action, _ParsedAction) else self.parse_action(action)

    def action_space(self) -> gymnasium.Space[Any]:
        """Return the space of one env's action, for learners and random actions. NotImplementedError if it has none."""
        raise NotImplementedError(
            f'{type(self).__name__} (controller {self.config.name!r}) has no action space: learning and random actions '
            "need its method action_space(), which returns a gymnasium.spaces.Box of the shape of one env's action"
        )

    def observation_space(self) -> gymnasium.Space[Any] | None:
        """Return the space of one env's `get_obs`; None: it is inferred from the first observation."""
        return None

    def state(self, shape: tuple[int, ...] = (), fill: ArrayLike = 0.0, dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """Create an array `(*batch_shape, *shape)` that is set to `fill` when its env is reset."""
        value = self.arrays.asarray(fill, np.dtype(dtype).name)
        array = self.arrays.zeros((*self.batch_shape, *shape), np.dtype(dtype).name)
        array[...] = value
        self._states.append((array, value))
        return array

    def reset(self, env_ids: Any = ...) -> None:
        """Forget everything about these envs: a new episode starts. Sub-controllers are reset by the caller too.

        On a device, `env_ids` can be a mask `(env_num,)`.
        """
        for array, fill in self._states:
            if isinstance(array, np.ndarray) or isinstance(env_ids, np.ndarray | EllipsisType):
                array[env_ids] = fill
            else:
                masked_assign(array, env_ids, fill)
        for sub_controller in self.sub_controllers:
            sub_controller.reset(env_ids)

    def forward_to(self, index: int, env_ids: Any, **command: Any) -> ArticulationAction:
        """Call `forward` of a sub-controller for the same envs."""
        sub_controller: Any = self.sub_controllers[index]
        return (
            sub_controller.forward(**command) if env_ids is ... else sub_controller.forward(**command, env_ids=env_ids)
        )

    def find_stuck(self) -> Any:
        """Return where the robot stands still under a moving command, bool `(*batch_shape,)`; False if unknown."""
        stuck: Any = False
        for sub in self.sub_controllers:
            stuck = stuck | sub.find_stuck()
        return stuck

    def get_joint_subset(self) -> ArticulationSubset | None:
        """Return the joints it drives: its own `joint_subset`, else its first sub-controller's."""
        own = getattr(self, 'joint_subset', None)
        if own is None and self.sub_controllers:
            return self.sub_controllers[0].get_joint_subset()
        return own

    def cleanup(self) -> None:
        """Called when the env is reset or closed."""

    def _named(self, method: Callable[[Any], Any], action: Any) -> Any:
        """Call a method with one env's action. ValueError naming env, robot and controller if it refuses it."""
        try:
            return method(action)
        except (AssertionError, TypeError, ValueError) as error:
            robot = self.scene.robot_paths[self.robot.config.prim_path]
            where = f'env {self.scene.env_id}, robot {robot!r}, controller {self.config.name!r}'
            raise EnvValueError(self.scene.env_id, f'{where}: {str(error) or repr(action)}') from error


def box_action(action: Any, shape: tuple[int, ...], what: str = '') -> NDArray[np.float32]:
    """Return one env's action as a float array of a fixed shape.

    ValueError names expected and got. Numbers that are not finite, or larger than the engine takes, are refused, too.
    """
    try:
        array = np.asarray(action)
    except ValueError:  # a nested list of uneven lengths
        array = np.empty(0, object)
    if array.dtype.kind not in 'biuf':
        raise ValueError(f'expected {_numbers(shape)}{what}, got {action!r}')
    with np.errstate(over='ignore'):  # too large for a float32: infinite, refused below
        array = array.astype(np.float32)
    if array.shape != shape:
        raise ValueError(f'expected {_numbers(shape)}{what}, got shape {array.shape}: {action!r}')
    if not (np.abs(array) <= LARGEST_NUMBER).all():
        fault = f'beyond {LARGEST_NUMBER:g}' if np.isfinite(array).all() else 'not finite'
        raise ValueError(f'expected {_numbers(shape)}{what}, got a value that is {fault}: {action!r}')
    return array


def _numbers(shape: tuple[int, ...]) -> str:
    return f'{shape[0]} numbers' if len(shape) == 1 else f'numbers of shape {shape}'


class ControllerHandle:
    """Handle to one env's part of a batched controller: what it observes and commands there; else the controller's."""

    def __init__(self, batch: BaseController, robot: RobotContext):
        self._batch = batch
        self.robot = self._robot = robot

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return getattr(self._batch, name)

    def get_obs(self) -> dict[str, Any]:
        """Return what the controller observes in this env, as new arrays."""
        return split_rows(self._batch.get_obs(), self._rows)[0]

    def action_to_control(self, action: Any) -> ArticulationAction:
        """Convert an action for this env to joint targets. ValueError for a bad one."""
        control = self._batch.action_to_control(self._batch.parse_actions([action]), self._rows)
        values = {name: None if each is None else np.asarray(each)[0] for name, each in control.get_dict().items()}
        return ArticulationAction(**{**values, 'joint_indices': control.joint_indices})

    @property
    def _rows(self) -> NDArray[np.intp]:
        return np.array([self.robot._scene.env_id])


def batched_tree(config: ControllerCfg) -> bool:
    """Return True if a controller and all its sub-controllers are batched."""
    cls = look_up(BaseController.controllers, 'controller', config.type)
    return is_batched(cls) and all(batched_tree(sub) for sub in config.sub_controllers or [])


def create_controllers(robot_cfg: RobotCfg, robot: RobotContext, scene: IScene) -> OrderedDict[str, BaseController]:
    """Create the controllers of a robot, by name.

    On a batched robot: those that are batched down to the last sub-controller. On an env's own robot that stands for a
    batched one: the others.
    """
    controllers: OrderedDict[str, BaseController] = OrderedDict()
    batch = robot.batch
    for config in robot_cfg.controllers or []:
        if batch is None or (
            batched_tree(config) if batch.robot is robot else config.name not in batch.robot.own_controllers
        ):
            controllers[config.name] = _create(config, robot, scene)
    return controllers


def inject_sub_controllers(
    parent: BaseController, configs: Sequence[ControllerCfg] | None, robot: RobotContext, scene: IScene
) -> None:
    """Create the sub-controllers of a controller."""
    parent.sub_controllers = [_create(config, robot, scene) for config in configs or []]


def _create(config: ControllerCfg, robot: RobotContext, scene: IScene) -> BaseController:
    cls = look_up(BaseController.controllers, 'controller', config.type)
    controller = cls(config=config, robot=robot, scene=scene)
    inject_sub_controllers(controller, config.sub_controllers, robot, scene)
    _check_sub_controller(controller)
    return controller


def _check_sub_controller(controller: BaseController) -> None:
    """Check that a controller has the sub-controller that it commands. ValueError that says what it needs."""
    cls, command = type(controller), controller.sub_command
    owner = next(base for base in cls.__mro__ if 'sub_command' in vars(base))
    own = any(getattr(cls, name, None) is not getattr(owner, name, None) for name in ('forward', 'action_to_control'))
    if own or not command:
        return
    where = f'robot {controller.robot.config.name!r}, controller {controller.config.name!r}'
    needed = f'{where}: it needs a sub-controller whose `forward` takes {", ".join(command)}'
    if not controller.sub_controllers:
        raise ValueError(f'{needed}; it has none: set `sub_controllers`')
    sub: Any = controller.sub_controllers[0]
    try:
        inspect.signature(sub.forward).bind(**dict.fromkeys(command))
    except (AttributeError, TypeError) as error:
        raise ValueError(f'{needed}; that of {sub.config.name!r} ({sub.config.type}) does not: {error}') from None
