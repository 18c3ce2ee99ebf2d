"""Env scenes with handles to the robots and bodies in them: of one env, and of all envs for a batched robot."""

from __future__ import annotations

from types import EllipsisType
from typing import Any

from typing_extensions import override

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.context import RobotBatches
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import IScene
from internutopia.engines.base import World
from internutopia.model.spec import SCENE_PREFIX


class EnvScene(IScene):
    """The scene of one env.

    Args:
        world: the physics world.
        env_id: the env, or `...` for all.
        batches: the batched robots of the world.
        lead_env: an env whose robots stand for those of all; None means `env_id`.
    """

    def __init__(self, world: World, env_id: int | EllipsisType, batches: RobotBatches, lead_env: int | None = None):
        super().__init__(world, env_id)
        self.batches = batches
        self._lead_env: Any = env_id if lead_env is None else lead_env

    @property
    @override
    def lead_env(self) -> int:
        return self._lead_env

    def articulation(self, name: str, prim_path: str) -> IArticulation:
        """Return the articulation of a name (see `World.articulation`) as a handle named by a prim path."""
        return IArticulation(self.world.articulation(name, self.lead_env), self.world, self.env_id, name, prim_path)

    @override
    def articulation_at(self, prim_path: str) -> IArticulation:
        if prim_path in self.robot_paths:
            return self.articulation(self.robot_paths[prim_path], prim_path)
        root = f'{self.root_path}/scene/'
        if prim_path.startswith(root):
            return self.articulation(SCENE_PREFIX + prim_path.removeprefix(root), prim_path)
        robots = ', '.join(self.robot_paths) or 'none'
        raise KeyError(f'no robot at {prim_path!r}; robots: {robots}; what the scene joins is below {root}')

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
