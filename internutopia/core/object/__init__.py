"""Objects other than robots: base class and registry."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar

from internutopia.config.task import ObjectCfg, TaskCfg
from internutopia.core.registry import look_up, register_in
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import IScene
from internutopia.model.spec import ObjectSpec


class BaseObject:
    """Base class of objects. `model` defines an object of this type; `body` is its handle in the env."""

    objs: ClassVar[dict[str, type[BaseObject]]] = {}

    def __init__(self, config: ObjectCfg, scene: IScene):
        self.name = config.name
        self.config = config
        self._scene = scene

    @classmethod
    def register(cls, name: str) -> Callable[[Any], Any]:
        """Return a class decorator that registers the implementation of object type `name`."""
        return register_in(BaseObject.objs, name)

    @classmethod
    def model(cls, config: Any) -> ObjectSpec:
        """Return the model of the object, for a config."""
        raise NotImplementedError(f'{cls.__name__} must define its model')

    def set_up_to_scene(self, scene: IScene) -> None:
        """Initialize; called when the object's body exists."""

    @property
    def body(self) -> IRigidBody:
        """Rigid body of the object."""
        return self._scene.rigid_body_at(self.config.prim_path)


def init_objects(task_config: TaskCfg, scene: IScene) -> OrderedDict[str, BaseObject]:
    """Create the objects of one env, by their names in the user's config."""
    objects: OrderedDict[str, BaseObject] = OrderedDict()
    for config in task_config.objects:
        objects[scene.object_paths[config.prim_path]] = init_object(config, scene)
    return objects


def init_object(config: ObjectCfg, scene: IScene) -> BaseObject:
    """Create an object of one env; its config has its name and prim path there."""
    obj = look_up(BaseObject.objs, 'object', config.type)(config, scene)
    obj.set_up_to_scene(scene)
    return obj


create_objects = init_objects
