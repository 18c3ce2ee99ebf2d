"""Asset checks: supported contents of scenes on Isaac Sim, and the paths of an asset's prims on a stage.

Isaac Sim reads USD. What a scene's model needs beyond what is in its files has to have a counterpart in Isaac Sim:
`check_scene` refuses what has none before anything is loaded.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import mujoco
import numpy as np

from internutopia.model.asset_paths import resolve
from internutopia.model.compiled import CompiledScene
from internutopia.model.importers import LoadOptions
from internutopia.model.importers.load import content_key, load_spec
from internutopia.model.spec import RobotSpec, SceneSpec

USD_SUFFIXES = ('.usd', '.usda', '.usdc', '.usdz')
ASSET_SUFFIXES: tuple[str, ...] = USD_SUFFIXES  # what is accepted
_MEASURED = ('effort', 'frame')  # kinds of probes


def check_assets(scene: SceneSpec) -> None:
    """Raise ValueError for assets that Isaac Sim does not read, naming the file. FileNotFoundError for missing ones."""
    parts = [(f'robot {robot.name!r}', robot.asset) for robot in scene.robots]
    parts += [(f'object {obj.name!r}', obj.asset) for obj in scene.objects if obj.asset is not None]
    if scene.asset is not None:
        parts.append(('the scene', scene.asset))
    for part, asset in parts:
        file = resolve(asset)
        if file.suffix.lower() not in ASSET_SUFFIXES:
            raise ValueError(
                f"backend 'isaac_sim' reads USD ({', '.join(USD_SUFFIXES)}), but {part} is {file}: name a USD file as "
                "its usd_path (Isaac Sim's own importers make one of URDF and MJCF files), or use backend='mujoco'"
            )


def check_scene(scene: SceneSpec, compiled: CompiledScene) -> None:
    """Raise NotImplementedError for features of the scene that Isaac Sim has no counterpart of, naming them."""
    if scene.joints:
        raise NotImplementedError(
            f"joint {scene.joints[0].path!r}: backend 'isaac_sim' has the joints that are in its files, "
            "not those of create_joint; use backend='mujoco'"
        )
    for robot in scene.robots:
        layout = compiled.robots[robot.name]
        if not layout.driven and layout.dof_names:
            raise NotImplementedError(
                f"robot {robot.name!r} keeps the actuators of {robot.asset}: backend 'isaac_sim' has joint drives only"
            )
        if robot.frozen:
            raise NotImplementedError(
                f"robot {robot.name!r}: backend 'isaac_sim' cannot leave out joints (frozen={robot.frozen}); "
                'use an asset in which they are fixed'
            )
        if robot.fixed_base is not None and robot.fixed_base is not _is_fixed(robot):
            raise NotImplementedError(
                f'robot {robot.name!r}: fixed_base={robot.fixed_base} is not what {robot.asset} says, and backend '
                "'isaac_sim' takes it as it is; change the asset's fixed joint to the world"
            )
        roots = np.count_nonzero(compiled.model.body_parentid == layout.root.body)
        if layout.root.qpos < 0 and roots != 1:
            raise NotImplementedError(
                f"robot {robot.name!r}: {robot.asset} has {roots} root bodies, backend 'isaac_sim' needs exactly one"
            )
        probe = next((probe for probe in robot.probes if probe.kind not in _MEASURED), None)
        if probe is not None:
            raise NotImplementedError(
                f"robot {robot.name!r}, sensor {probe.sensor!r}: backend 'isaac_sim' cannot measure what it needs "
                f'({probe.kind} of {probe.target!r}); disable it, or use another backend'
            )
    for obj in scene.objects:
        if obj.asset is None:
            continue
        bodies = prim_paths(resolve(obj.asset)).values()
        if any(bodies) or (bodies and not obj.dynamic):
            raise NotImplementedError(
                f"object {obj.name!r}: backend 'isaac_sim' moves an object by its default prim, or not at all, but "
                f'{obj.asset} has rigid bodies of its own below it'
            )
        if not obj.collider:
            raise NotImplementedError(
                f"object {obj.name!r}: backend 'isaac_sim' leaves colliders as they are in {obj.asset} (collider=False)"
            )


def host_name(name: str, own: Collection[str], robot: RobotSpec) -> str:
    """Return the name of a joint or link of an asset in the host's model of a robot, which has the names `own`."""
    return name if name in own else robot.synonyms.get(name, name)


def prim_paths(file: Path) -> dict[str, str]:
    """Return the paths of an asset's bodies below the prim that refers to the file, by their short names.

    A reference brings what is below the file's default prim.
    """
    return _facts(file, content_key(file)).bodies


def path_below(file: Path, prim: str) -> str:
    """Return the path of a prim, `/Robot/link` in its file, below the prim that refers to the file: `link`.

    In a file that is no USD, names are such paths.
    """
    return prim.lstrip('/').partition('/')[2] if file.suffix.lower() in USD_SUFFIXES else prim


def _is_fixed(robot: RobotSpec) -> bool:
    """Return whether the asset itself has a fixed root."""
    file = resolve(robot.asset)
    return _facts(file, content_key(file)).fixed


@dataclass(frozen=True)
class _Facts:
    """Cached facts of an asset: its `prim_paths`, and whether nothing in it moves freely."""

    bodies: dict[str, str]
    fixed: bool


@lru_cache(256)
def _facts(file: Path, content: str) -> _Facts:
    spec = load_spec(file, LoadOptions(short_names=True))
    fixed = not any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in spec.joints)
    pairs = zip(spec.bodies, load_spec(file).bodies, strict=True)
    return _Facts({short.name: path_below(file, own.name) for short, own in pairs if short.name != 'world'}, fixed)
