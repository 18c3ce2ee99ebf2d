"""Objects other than robots: base class and registry."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

from internutopia.config.task import ObjectCfg, TaskCfg
from internutopia.core.registry import look_up, register_in
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import IScene
from internutopia.model.spec import ObjectSpec


class BaseObject:
    """Base class of objects. `model` defines an object of this type; `body` is its handle in the env.

    A class may add its object itself instead, in `set_up_to_scene`, as those of 2.x do: the scene of the env is then
    compiled once more when an episode starts.
    """

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
    def model(cls, config: Any) -> ObjectSpec | None:
        """Return the model of the object, for a config; None if `set_up_to_scene` adds it."""
        if cls.set_up_to_scene is BaseObject.set_up_to_scene:
            raise NotImplementedError(f'{cls.__name__} must define its model, or add it in set_up_to_scene')
        return None

    def set_up_to_scene(self, scene: IScene) -> None:
        """Initialize; called when the object's body exists, or where `model` is None, to add it to the scene."""

    @cached_property
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
    scene.adds_by_config = True
    try:
        obj.set_up_to_scene(scene)
    finally:
        scene.adds_by_config = False
    return obj


create_objects = init_objects
