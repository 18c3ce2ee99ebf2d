"""What an extension class sees of the scene it lives in: one env's part of the world, addressed by prim paths.

Prim paths: the env is `/World/env_<id>`, its scene `.../scene`, its robots and objects where their configs say. The
paths are names here; on Isaac Sim they are prims.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from internutopia.core.model.spec import SceneSpec
from internutopia.core.world.base import CameraView, World

if TYPE_CHECKING:
    from internutopia.core.robot.articulation import IArticulation
    from internutopia.core.robot.batched import BatchedRobots
    from internutopia.core.robot.rigid_body import IRigidBody

_ENV_PATH = re.compile(r'^/World/env_(\d+)(/|$)')
# scenes by env id of the Env whose code is running: where `IRigidBody.create(prim_path=...)` looks its path up
_scenes: ContextVar[dict[int, IScene]] = ContextVar('scenes')


class IScene:
    """The scene of one env.

    Attributes:
        world: the physics world.
        env_id: the env, or `...` for the scene that a batched class sees, all envs at once.
        model: what it is made of, with the names that the user wrote; empty in the scene of a batched class.
        root_path: prim path of the env.
        robot_paths: robot name (as the user wrote it) by absolute prim path.
        object_paths: object name by absolute prim path.
    """

    def __init__(self, world: World, env_id: Any, fleets: BatchedRobots):
        self.world = world
        self.env_id = env_id
        self.model = SceneSpec()
        self._lead_env = env_id
        self.fleets = fleets
        self.root_path = f'/World/env_{env_id}' if isinstance(env_id, int) else '/World/env_*'
        self.robot_paths: dict[str, str] = {}
        self.object_paths: dict[str, str] = {}

    @property
    def lead_env(self) -> int:
        """An env that this scene shows; the models of its robots stand for those of all."""
        return self.env_id

    @classmethod
    def create(cls, simulator_type: str = 'isaac_sim') -> IScene:
        """Not for calling: scenes are made by the env. RuntimeError."""
        raise RuntimeError('scenes are made by the Env; a class gets its own as the `scene` argument')

    @classmethod
    def at(cls, prim_path: str) -> IScene:
        """The scene of the env that a prim path lies in. KeyError if the running Env has no such env."""
        match = _ENV_PATH.match(prim_path)
        scene = cls.all().get(int(match[1])) if match else None
        if scene is None:
            raise KeyError(f'prim path {prim_path!r} is in no loaded env (expected /World/env_<id>/...)')
        return scene

    @staticmethod
    def all() -> dict[int, IScene]:
        """The scenes by env id of the Env whose code is running, or ran last."""
        return _scenes.get({})

    @staticmethod
    def use(scenes: dict[int, IScene]) -> None:
        """Make these the scenes that prim paths are looked up in."""
        _scenes.set(scenes)

    def articulation(self, name: str, prim_path: str) -> IArticulation:
        """The robot of that name."""
        from internutopia.core.robot.articulation import IArticulation

        return IArticulation(self.world.articulation(name, self.env_id), self.world, self.env_id, name, prim_path)

    def articulation_at(self, prim_path: str) -> IArticulation:
        """The robot at a prim path. KeyError naming the robots there are."""
        if prim_path not in self.robot_paths:
            raise KeyError(f'no robot at {prim_path!r}; robots: {", ".join(self.robot_paths) or "none"}')
        return self.articulation(self.robot_paths[prim_path], prim_path)

    def rigid_body_at(self, prim_path: str) -> IRigidBody:
        """The link, object or movable scene body at a prim path. KeyError naming what was looked for."""
        for path, name in self.robot_paths.items():
            if prim_path.startswith(path + '/'):
                # links are found by name, wherever their prim lies under the robot
                robot, below = self.articulation(name, path), prim_path.removeprefix(path + '/')
                return robot.body(below if below in robot.view.body_names else below.rsplit('/', 1)[-1])
        if prim_path in self.object_paths:
            return self.get(self.object_paths[prim_path])
        return self.get(prim_path.removeprefix(f'{self.root_path}/scene/'))

    def camera_at(self, prim_path: str) -> CameraView:
        """The camera at a prim path. ValueError naming the cameras, or else the robots, that there are."""
        robots = {f'{path}/': name for path, name in self.robot_paths.items()}
        for path, robot in {**robots, f'{self.root_path}/scene/': None}.items():
            if prim_path.startswith(path):
                return self.world.camera(robot, prim_path.removeprefix(path), self._lead_env)
        places = ', '.join((*robots, f'{self.root_path}/scene/'))
        raise ValueError(f'there is no camera at {prim_path!r}: cameras are below {places}')

    def get(self, target: str) -> IRigidBody:
        """The object or movable scene body of that name. KeyError with close matches."""
        from internutopia.core.robot.rigid_body import IRigidBody

        return IRigidBody(self.world.body(target, self.env_id), self.world, self.env_id, target)

    def object_exists(self, target: str) -> bool:
        """Whether the env has an object or movable scene body of that name."""
        return target in self.world.body_names(self.env_id)

    def add(self, target: Any) -> None:
        """Accepted for scripts written for Isaac Sim: everything in the task config is in the scene already."""

    def remove(self, target: Any, registry_only: bool = False) -> None:
        """Accepted for scripts written for Isaac Sim: a scene is cleared as a whole, when its env is reset."""

    def unwrap(self) -> World:
        """The physics world."""
        return self.world
