"""Env scenes with handles to the robots and bodies in them, and joints between bodies that are in no file.

A joint belongs to the Env that was made or reset last in its thread. Requested between `Env(config)` and the first
reset of its env, it holds in all episodes of that env; requested while the env runs, until its episode ends. A joint of
the same path replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.context import RobotBatches
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import IScene
from internutopia.engines.base import World
from internutopia.engines.setter_checks import NOT_NEGATIVE, POSITIVE, check_numbers, check_poses
from internutopia.model.spec import OBJECTS_PREFIX, SCENE_PREFIX, JointSpec, ObjectSpec, SceneSpec, Vec3
from internutopia.util import did_you_mean
from internutopia.util.errors import EnvKeyError, EnvValueError

_current: ContextVar[EnvJoints | None] = ContextVar('env_joints', default=None)


class EnvJoints:
    """The joints of one run by env.

    Args:
        envs: what each env holds, None where nothing is loaded; read when a joint is requested.
        loaded: the scenes that are loaded, by env id; None if they are in other processes.
    """

    def __init__(self, envs: Sequence[object | None], loaded: Mapping[int, IScene] | None = None):
        self._envs = envs
        self._loaded = loaded
        self._joints: dict[int, dict[str, JointSpec]] = {}
        self.use()

    @staticmethod
    def current() -> EnvJoints | None:
        """Return the joints of the Env that was made or reset last, unless it is closed."""
        return _current.get()

    def use(self) -> None:
        """Make these the joints that `create_joint` adds to."""
        _current.set(self)

    def close(self) -> None:
        """Take no more joints."""
        if _current.get() is self:
            _current.set(None)

    def assign(self, env_id: int, path: str, joint: JointSpec | None) -> None:
        """Give an env a joint at a prim path, or take it back (None).

        Raises:
            ValueError: there is no such env; or it runs, and has no such body, or no joint to take back.
            NotImplementedError: it runs, and its engine cannot add joints then, or it runs in another process.
        """
        if env_id >= len(self._envs):
            raise ValueError(f'there is no env {env_id}; expected 0..{len(self._envs) - 1}')
        if self._loaded is not None and env_id in self._loaded:
            self._loaded[env_id].set_joint(path, joint)
            return
        if self._envs[env_id] is not None:
            raise NotImplementedError(
                f'env {env_id} runs in another process: create joints after Env(config) and before its first reset, or '
                'in code of its task or robots'
            )
        joints = self._joints.setdefault(env_id, {})
        joints.pop(path, None)
        if joint is not None:
            joints[path] = joint

    def of(self, env_id: int) -> tuple[JointSpec, ...]:
        """Return the joints of an env."""
        return tuple(self._joints.get(env_id, {}).values())


def in_env_frame(joint: JointSpec, offset: NDArray[np.float64]) -> JointSpec:
    """Return a joint whose position on the world, if any, is given in the frame of the env at `offset` `(3,)` [m]."""
    first, second = (
        _minus(position, offset) if body is None and position is not None else position
        for body, position in zip(joint.bodies, joint.positions, strict=True)
    )
    return replace(joint, positions=(first, second))


def _minus(position: Vec3, offset: NDArray[np.float64]) -> Vec3:
    x, y, z = (np.asarray(position) - offset).tolist()
    return x, y, z


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
        self._check(spec)
        self._change(self.model.with_objects((*self.model.objects, spec)))
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
        rest = self.model.with_objects([obj for obj in self.model.objects if obj.name != name])
        self._change(replace(rest, joints=tuple(joints)))
        del self.object_paths[self.root_path + path]

    def change_object(self, name: str, **changes: Any) -> None:
        """Change fields of an object's spec, such as `collider` or `friction`, until the episode ends."""
        objects = [replace(each, **changes) if each.name == name else each for each in self.model.objects]
        for each in objects:
            self._check(each)
        self._change(replace(self.model, objects=tuple(objects)))

    @override
    def set_joint(self, path: str, joint: JointSpec | None) -> None:
        known = [each.path for each in self.model.joints if not each.broken]
        if joint is None and path not in known:
            hint = did_you_mean(path, known)
            raise EnvValueError(self.env_id, f'env {self.env_id} has no joint {path!r} to remove; {hint}')
        joints = [replace(each, broken=True) if each.path == path else each for each in self.model.joints]
        if joint is not None:
            joints.append(in_env_frame(joint, self.world.env_origins[self.env_id]))
        self._change(replace(self.model, joints=tuple(joints)))

    def _check(self, spec: ObjectSpec) -> None:
        """Raise EnvValueError for numbers of an object that are out of their ranges."""
        env_ids = np.array([self.env_id])
        check_poses(env_ids, spec.name, [spec.position], [spec.orientation])
        check_numbers(env_ids, spec.name, 'scale', [spec.scale], (3,), POSITIVE)
        for quantity in ('mass', 'density'):
            check_numbers(env_ids, spec.name, quantity, getattr(spec, quantity), (), POSITIVE, optional=True)
        check_numbers(env_ids, spec.name, 'friction', spec.friction, (), NOT_NEGATIVE, optional=True)

    def _change(self, model: SceneSpec) -> None:
        self.model = self.world.change_scene(self.env_id, self._convention(model))
        self.batches.forget(self.env_id)
