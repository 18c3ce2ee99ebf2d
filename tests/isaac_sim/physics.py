"""Physics of the stage: a `MujocoWorld` with one env per env root, seen through prim paths and in world coordinates."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pxr import Usd

from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.model.spec import SceneSpec
from isaac_sim import stage as stages

Floats = NDArray[np.float32]


class LinkRows(Protocol):
    """Rows of links, which follow joints and roots that are set at the next step only."""

    def hold(self) -> None: ...


class Physics:
    """What runs between play and stop.

    `generation` tells views whether what they found is still there: it grows when the stage has been read again.
    """

    def __init__(self, stage: Usd.Stage, source: Callable[[str], str | None], tracked: set[str], dt: float):
        self.stage = stage
        self.source = source
        self.tracked = tracked
        self.dt = dt
        self.generation = 0
        self.stale = True
        self.steps = 0
        self.roots: dict[str, int] = {}
        self.link_rows: weakref.WeakSet[LinkRows] = weakref.WeakSet()
        self.broken: set[int] = set()  # envs that diverged
        self.world = MujocoWorld(0, np.zeros((0, 3)), dt, threads=1)
        self._models: dict[str, SceneSpec] = {}

    def read_stage(self) -> None:
        """Take up what was changed on the stage; envs that were not keep their state."""
        models = stages.scene_models(self.stage, self.source, self.tracked)
        kept = {root: self._models[root] for root in models if self._models.get(root) == models[root]}
        saved = {root: self.world.get_state(self.roots[root]) for root in kept}
        if list(models) != list(self._models):
            self.world.close()
            self.roots = {root: row for row, root in enumerate(models)}
            self.world = MujocoWorld(len(models), np.zeros((len(models), 3)), self.dt, threads=1)
            self.broken.clear()
            loaded = models
        else:
            loaded = {root: model for root, model in models.items() if root not in kept}
        self.world.load({self.roots[root]: (self.world.prepare(model), model) for root, model in loaded.items()})
        for root in set(loaded) & set(kept):
            self.world.set_state(self.roots[root], saved[root])
        self.broken -= {self.roots[root] for root in loaded}
        self._models = models
        self.offsets = np.array(
            [stages.get_world_pose(self.stage.GetPrimAtPath(root))[0] for root in models], np.float64
        ).reshape(-1, 3)
        self.generation += 1
        self.stale = False

    def step(self) -> None:
        """One physics step of everything."""
        if self.stale:
            self.read_stage()
        if self.roots:
            going = np.array([row for row in range(len(self.roots)) if row not in self.broken], np.intp)
            self.broken |= set(self.world.step(going))
        self.steps += 1

    def articulation(self, paths: list[str]) -> Any:
        """The view of the world that shows the articulations with these root links."""
        views = [self.world.articulation(self._part(path)[0], self.roots[stages.env_root(path)]) for path in paths]
        if any(view is not views[0] for view in views):
            raise AssertionError(f'articulations of one view must be homogeneous: {paths}')
        return views[0]

    def articulation_of_link(self, path: str) -> tuple[Any, str]:
        """The view of the world that shows the articulation of a link, and the name of the link."""
        robot, link = self._part(path)
        return self.world.articulation(robot, self.roots[stages.env_root(path)]), link

    def bodies(self, paths: list[str]) -> list[Any]:
        """The views of the world that show the rigid bodies at these paths."""
        return [self._body(path) for path in paths]

    def camera(self, path: str) -> tuple[Any, int]:
        """The view of the world that shows the camera at a path, and its env."""
        root = stages.env_root(path)
        row, below = self.roots[root], path.removeprefix(f'{root}/')
        robot = self._robot_of(path)
        return self.world.camera(robot, below.removeprefix(f'{robot}/').removeprefix('scene/'), row), row

    def offset(self, path: str) -> NDArray[np.float64]:
        """Where the env of a prim stands in the world [m]."""
        return self.offsets[self.roots[stages.env_root(path)]]

    def revive(self, envs: NDArray[np.intp]) -> None:
        """Start envs that diverged afresh: somebody gives them a state."""
        for root, row in self.roots.items():
            if row in envs and row in self.broken:
                self.world.load({row: (self.world.prepare(self._models[root]), self._models[root])})
                self.broken.remove(row)

    def is_link(self, path: str) -> bool:
        """Whether a rigid body is a link of an articulation."""
        return self._robot_of(path) is not None

    def body_id(self, path: str) -> int:
        """Index of a rigid body in the model of its env."""
        root = stages.env_root(path)
        scene = self.world.scene(self.roots[root])
        if self._robot_of(path) is None:
            return scene.bodies[self._body(path).name].body
        robot, link = self._part(path)
        return scene.robots[robot].bodies[link].body

    def follow(self, path: str) -> None:
        """Take up that a prim was moved on the stage: what stands still there moves with it."""
        root = stages.env_root(path)
        name = path.removeprefix(f'{root}/')
        still = [obj.name for obj in self._models[root].objects if not obj.dynamic] if root in self._models else []
        if name in still:
            self._models = stages.scene_models(self.stage, self.source, self.tracked)
            new = next(obj for obj in self._models[root].objects if obj.name == name)
            row = self.roots[root]
            pose = np.array([new.position]), np.array([new.orientation])
            self.world.body(name, row).set_poses(np.array([row]), *pose)

    def _robot_of(self, path: str) -> str | None:
        """The robot that a prim belongs to."""
        root = stages.env_root(path)
        names = (robot.name for robot in self._models[root].robots)
        return next((name for name in names if f'{path}/'.startswith(f'{root}/{name}/')), None)

    def _part(self, path: str) -> tuple[str, str]:
        """The robot that a prim belongs to, and what is left of its path below it."""
        robot = self._robot_of(path)
        if robot is None:
            raise RuntimeError(f'physics knows no articulation at {path}')
        root = stages.env_root(path)
        links = self.world.scene(self.roots[root]).robots[robot].bodies
        below = path.removeprefix(f'{root}/{robot}').lstrip('/')
        return robot, below if below in links else below.rpartition('/')[2]

    def _body(self, path: str) -> Any:
        root = stages.env_root(path)
        row, name = self.roots[root], path.removeprefix(f'{root}/')
        if self._robot_of(path) is not None:
            view, link = self.articulation_of_link(path)
            return view.body(link)
        names = self.world.body_names(row)
        if name in names:
            return self.world.body(name, row)
        last = name.rpartition('/')[2]  # of the scene asset
        match = next((each for each in names if each.rpartition('/')[2] == last), None)
        if match is None:
            raise RuntimeError(f'physics knows no rigid body at {path}')
        return self.world.body(match, row)
