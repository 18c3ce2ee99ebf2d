"""Prims of each env: the stage that is built of them, and the states in which their episodes begin.

The env `i` is `/World/env_i`, at its origin; its scene is `/World/env_i/scene`, robots and objects are where their
configs put them below the env. Envs whose scenes are made of the same things are cloned from the first of them. If
that is all envs, physics is replicated, too. Things of different envs never collide.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.isaac.api import Box, IsaacSim
from internutopia.engines.isaac.usd_assets import host_name, path_below, prim_paths
from internutopia.model.asset_paths import resolve
from internutopia.model.compiled import CompiledScene
from internutopia.model.compose import robot_prefix
from internutopia.model.spec import IDENTITY_QUAT, NO_SCALE, Quat, SceneSpec, Vec3

_DENSITY = 1000.0  # kg/m3, of objects without mass and density
_ENV = re.compile(r'^/World/env_(\d+)')


@dataclass(frozen=True)
class EnvPrims:
    """Prims of an env; equal for envs that can be placed on the same stage, whatever their poses.

    `robots` and `objects` are prim paths below the env, by name.
    """

    compiled: CompiledScene
    robots: tuple[tuple[str, str], ...]
    objects: tuple[tuple[str, str], ...]
    spec: SceneSpec = field(compare=False)

    @classmethod
    def of(cls, compiled: CompiledScene, spec: SceneSpec) -> EnvPrims:
        """Return the prims of an env that runs a scene."""
        robots = tuple((robot.name, robot.prim_path or f'/robots/{robot.name}') for robot in spec.robots)
        objects = tuple((obj.name, obj.prim_path or f'/objects/{obj.name}') for obj in spec.objects)
        return cls(compiled, robots, objects, spec)

    def robot(self, name: str) -> str:
        """Return the path of a robot below the env."""
        return dict(self.robots)[name]

    def body(self, name: str) -> str:
        """Return the path of an object or a movable scene body below the env."""
        if name in (objects := dict(self.objects)):
            return objects[name]
        assert self.spec.asset is not None
        below = path_below(resolve(self.spec.asset), name)
        return f'/scene/{below}' if below else '/scene'

    def links(self, robot: str) -> dict[str, str]:
        """Return the paths of a robot's links below the env, by their names; only of those that its asset has."""
        robot_spec = next(spec for spec in self.spec.robots if spec.name == robot)
        bodies = self.compiled.robots[robot].bodies
        return {
            host_name(name, bodies, robot_spec): f'{self.robot(robot)}/{below}'.rstrip('/')
            for name, below in prim_paths(resolve(robot_spec.asset)).items()
        }

    def adds_camera(self, robot: str | None, name: str) -> bool:
        """Return whether the camera of that name in the host's model is added to those of the robot's asset."""
        cameras = (camera.path for spec in self.spec.robots if spec.name == robot for camera in spec.cameras)
        return robot is not None and name.removeprefix(robot_prefix(robot)) in cameras

    def camera(self, robot: str, path: str) -> str:
        """Return the path below the env of a camera that is added to those of a robot's asset."""
        link, _, name = path.rpartition('/')
        return f'{self.links(robot).get(link.rpartition("/")[2], self.robot(robot))}/{name}'


@dataclass(frozen=True)
class InitialState:
    """Initial state of an episode: state fields of the host's model, and the poses of its bodies."""

    prims: EnvPrims
    fields: Mapping[str, NDArray[np.float64]]
    data: mujoco.MjData

    @classmethod
    def of(cls, prims: EnvPrims) -> InitialState:
        """Return the initial state of the prims of an env."""
        fields = prims.compiled.initial_state(prims.spec)
        data = mujoco.MjData(prims.compiled.model)
        for name in ('qpos', 'mocap_pos', 'mocap_quat'):
            getattr(data, name)[:] = fields[name]
        mujoco.mj_kinematics(prims.compiled.model, data)
        return cls(prims, fields, data)


def env_path(env_id: int) -> str:
    """Return the prim path of an env."""
    return f'/World/env_{env_id}'


def envs_of(paths: Sequence[str]) -> NDArray[np.intp]:
    """Return the envs that prims are in. ValueError for one that is in none."""
    matches = [_ENV.match(path) for path in paths]
    if None in matches:
        raise ValueError(f'prim {paths[matches.index(None)]!r} is in no env')
    return np.array([int(match[1]) for match in matches if match], np.intp)


def build_stage(sim: IsaacSim, env_prims: Mapping[int, EnvPrims], env_origins: NDArray[np.float64]) -> None:
    """Build the prims of the envs, `env_prims`, on an empty stage."""
    alike: dict[EnvPrims, list[int]] = {}
    for env_id in sorted(env_prims):
        alike.setdefault(env_prims[env_id], []).append(env_id)
    for prims, env_ids in alike.items():
        first = env_ids[0]
        _build_env(sim, env_path(first), prims, env_origins[first])
        if len(env_ids) > 1:
            everything = len(alike) == 1 and env_ids == list(range(len(env_ids)))
            paths = [env_path(env_id) for env_id in env_ids]
            sim.clone(paths[0], paths, env_origins[env_ids], replicate=everything)
    if len(env_prims) > 1:
        sim.isolate([env_path(env_id) for env_id in sorted(env_prims)])


def _build_env(sim: IsaacSim, path: str, prims: EnvPrims, origin: NDArray[np.float64]) -> None:
    spec = prims.spec
    sim.add_frame(path, origin)
    if spec.asset is not None:
        _add_asset(sim, spec.asset, f'{path}/scene', spec.scale, spec.position, spec.orientation)
    for robot in spec.robots:
        root = path + prims.robot(robot.name)
        scale = robot.scale, robot.scale, robot.scale
        _add_asset(sim, robot.asset, root, scale, robot.position, robot.orientation)
        for camera in robot.cameras:
            turn = _unit(camera.orientation)
            sim.add_camera(path + prims.camera(robot.name, camera.path), camera.position, turn, camera.fovy)
    for obj in spec.objects:
        where = path + prims.body(obj.name)
        if obj.asset is not None:
            _add_asset(sim, obj.asset, where, obj.scale, obj.position, obj.orientation)
            if obj.dynamic:
                sim.add_body(where, obj.mass, obj.density)
        else:
            mass = math.prod(obj.scale) * (_DENSITY if obj.density is None else obj.density)
            mass = mass if obj.mass is None else obj.mass
            sim.add_box(where, Box(obj.scale, obj.color, obj.dynamic, obj.collider, mass))


def _add_asset(sim: IsaacSim, asset: str, path: str, scale: Vec3, position: Vec3, orientation: Quat) -> None:
    sim.add_asset(str(resolve(asset)), path)
    if (scale, position, orientation) != (
        NO_SCALE,
        (0.0, 0.0, 0.0),
        IDENTITY_QUAT,
    ):  # else the asset's own transform stays
        sim.add_frame(path, position, _unit(orientation), scale)


def _unit(orientation: Quat) -> NDArray[np.float64]:
    """Normalize a quaternion, which USD does not do."""
    return np.asarray(orientation) / np.linalg.norm(orientation)
