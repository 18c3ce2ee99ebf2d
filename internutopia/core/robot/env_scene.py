"""Env scenes with handles to the robots and bodies in them: of one env, and of all envs for a batched robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import EllipsisType
from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.context import RobotBatches
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.env_joints import in_env_frame
from internutopia.core.scene.scene import IScene
from internutopia.engines.base import World
from internutopia.engines.setter_checks import POSITIVE, check_numbers, check_poses
from internutopia.model.spec import OBJECTS_PREFIX, SCENE_PREFIX, JointSpec, ObjectSpec, SceneSpec
from internutopia.util import did_you_mean
from internutopia.util.errors import EnvKeyError, EnvValueError


class EnvScene(IScene):
    """The scene of one env.

    Args:
        world: the physics world.
        env_id: the env, or `...` for all.
        batches: the batched robots of the world.
        lead_env: an env whose robots stand for those of all; None means `env_id`.
        convention: applied to its spec before that is compiled, see `Conventions.scene`.
        native: returns what `unwrap` does, see `Conventions.native_scene`.
        handles_in_world: see `Conventions`.
    """

    def __init__(
        self,
        world: World,
        env_id: int | EllipsisType,
        batches: RobotBatches,
        lead_env: int | None = None,
        convention: Callable[[SceneSpec], SceneSpec] = lambda spec: spec,
        native: Callable[[IScene], Any] = lambda scene: scene.world,
        handles_in_world: bool = False,
    ):
        super().__init__(world, env_id)
        self.batches = batches
        self._convention = convention
        self._native = native
        self.handles_in_world = handles_in_world
        self._lead_env: Any = env_id if lead_env is None else lead_env

    @property
    @override
    def lead_env(self) -> int:
        return self._lead_env

    @override
    def unwrap(self) -> Any:
        return self._native(self)

    def articulation(self, name: str, prim_path: str) -> IArticulation:
        """Return the articulation of a name (see `World.articulation`) as a handle named by a prim path."""
        return IArticulation(self.world.articulation(name, self._lead_env), self.world, self.env_id, name, prim_path)

    @override
    def articulation_at(self, prim_path: str) -> IArticulation:
        if prim_path in self.robot_paths:
            return self.articulation(self.robot_paths[prim_path], prim_path)
        if prim_path in self.object_paths:
            return self.articulation(OBJECTS_PREFIX + self.object_paths[prim_path], prim_path)
        root = f'{self.root_path}/scene/'
        if prim_path.startswith(root):
            return self.articulation(SCENE_PREFIX + prim_path.removeprefix(root), prim_path)
        robots = ', '.join(self.robot_paths) or 'none'
        objects = ', '.join(self.object_paths) or 'none'
        raise KeyError(
            f'no robot at {prim_path!r}; robots: {robots}; objects: {objects}; what the scene joins is below {root}'
        )

    @override
    def rigid_body_at(self, prim_path: str) -> IRigidBody:
        for path, name in self.robot_paths.items():
            if prim_path.startswith(path + '/'):
                return self.articulation(name, path).body(prim_path.removeprefix(path + '/'))
        if prim_path in self.object_paths:
            return self.get(self.object_paths[prim_path])
        below = prim_path.removeprefix(f'{self.root_path}/scene/')
        names = self.world.body_names(self.lead_env)
        # a stage that refers to the asset leaves out its default prim
        return self.get(next((name for name in names if name.partition('/')[2] == below), below))

    @override
    def get(self, target: str) -> IRigidBody:
        target = self.user_name(target)
        path = next((path for path, name in self.object_paths.items() if name == target), None)
        view = self.world.body(target, self.env_id)
        return IRigidBody(view, self.world, self.env_id, target, prim_path=path or f'{self.root_path}/scene/{target}')

    @override
    def add_object(self, spec: ObjectSpec) -> IRigidBody:
        path, there = self.root_path + spec.path, self.world.body_names(self.env_id)
        spec = replace(spec, name=self.user_name(spec.name))
        # an object of the task whose class adds it has a path before it is there
        objects = {path: name for path, name in self.object_paths.items() if name in there}
        taken = {**objects, **self.robot_paths}
        if spec.name in there or spec.name in taken.values():
            raise EnvValueError(self.env_id, f'env {self.env_id} has an object or robot {spec.name!r} already')
        if path in taken:
            raise EnvValueError(self.env_id, f'env {self.env_id} has {taken[path]!r} at {path!r} already')
        env_ids = np.array([self.env_id])
        check_poses(env_ids, spec.name, [spec.position], [spec.orientation])
        check_numbers(env_ids, spec.name, 'scale', [spec.scale], (3,), POSITIVE)
        for quantity in ('mass', 'density'):
            check_numbers(env_ids, spec.name, quantity, getattr(spec, quantity), (), POSITIVE, optional=True)
        self._change(replace(self.model, objects=(*self.model.objects, spec)))
        self.object_paths[path] = spec.name
        return self.get(spec.name)

    @override
    def remove_object(self, name: str) -> None:
        name = self.user_name(name)
        names = {obj.name: obj for obj in self.model.objects}
        if name not in names:
            raise EnvKeyError(self.env_id, f'env {self.env_id} has no object {name!r}; {did_you_mean(name, names)}')
        path = names[name].path
        joints = (replace(each, broken=True) if path in each.bodies else each for each in self.model.joints)
        objects = tuple(obj for obj in self.model.objects if obj.name != name)
        self._change(replace(self.model, objects=objects, joints=tuple(joints)))
        del self.object_paths[self.root_path + path]

    @override
    def set_joint(self, path: str, joint: JointSpec | None) -> None:
        known = [each.path for each in self.model.joints if not each.broken]
        if joint is None and path not in known:
            hint = did_you_mean(path, known)
            raise EnvValueError(self.env_id, f'env {self.env_id} has no joint {path!r} to take back; {hint}')
        joints = [replace(each, broken=True) if each.path == path else each for each in self.model.joints]
        if joint is not None:
            joints.append(in_env_frame(joint, self.world.env_origins[self.env_id]))
        self._change(replace(self.model, joints=tuple(joints)))

    def _change(self, model: SceneSpec) -> None:
        self.model = self.world.change_scene(self.env_id, self._convention(model))
        self.batches.forget(self.env_id)
