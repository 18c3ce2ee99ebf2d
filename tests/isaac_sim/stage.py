"""Stage: prims with poses, which robot, scene or cube each of them stands for, and the scene models made of them.

It is a real `Usd.Stage` in memory. Robots and scenes of the tests are MJCF files: referencing one authors what a USD
file of the same thing would bring, a prim per link or movable body with the schemas of USD Physics on them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

from internutopia.model.drives import DRIVEN_JOINTS
from internutopia.model.importers import LoadOptions
from internutopia.model.importers.load import content_key, load_spec
from internutopia.model.spec import IDENTITY_QUAT, CameraSpec, ObjectSpec, Quat, RobotSpec, SceneSpec, Vec3

_ASSET = 'asset'  # custom data of a prim: the file that was referenced there
_ENV_ROOT = re.compile(r'^/.*?/env_\d+(?=/|$)')


@dataclass(frozen=True)
class Asset:
    """What the stand-in knows of a file: its `bodies` and cameras are names of prims below the referenced one."""

    kind: Literal['robot', 'scene']
    bodies: tuple[str, ...]
    cameras: tuple[str, ...]


def env_root(path: str) -> str:
    """The prim of the env that a prim lies in, `/` for what lies in none."""
    match = _ENV_ROOT.match(path)
    return match[0] if match else '/'


def add_reference(stage: Usd.Stage, asset_path: str, path: str, prim_type: str) -> Usd.Prim:
    """Reference a file at a prim path."""
    if not Path(asset_path).is_file():
        raise FileNotFoundError(f'unable to add reference to file at {asset_path}')
    prim = stage.DefinePrim(path, prim_type)
    prim.SetCustomDataByKey(_ASSET, str(asset_path))
    if Path(asset_path).suffix != '.xml':
        prim.GetReferences().AddReference(str(asset_path))
        return prim
    asset = read_asset(str(asset_path), content_key(Path(asset_path)))
    for index, name in enumerate(asset.bodies):
        body = stage.DefinePrim(f'{path}/{name}', 'Xform')
        UsdPhysics.RigidBodyAPI.Apply(body)
        if asset.kind == 'robot' and index == 0:
            UsdPhysics.ArticulationRootAPI.Apply(body)
    for camera in asset.cameras:
        stage.DefinePrim(f'{path}/{camera}', 'Camera')
    return prim


@cache
def read_asset(path: str, content: str) -> Asset:
    """Look into an MJCF file; `content` is its `content_key`."""
    spec = load_spec(Path(path), LoadOptions(short_names=True))
    is_robot = any(joint.type in DRIVEN_JOINTS for joint in spec.joints)
    links = [body for body in spec.bodies if body.name != 'world' and (is_robot or body.joints)]
    cameras = [camera.name for body in links for camera in body.cameras]
    return Asset('robot' if is_robot else 'scene', tuple(body.name for body in links), tuple(cameras))


def scene_models(stage: Usd.Stage, source: Callable[[str], str | None], tracked: set[str]) -> dict[str, SceneSpec]:
    """The scene of each env, by the path of its root prim, in the frame of that prim.

    `source` tells where physics reads the env of a prim, None if it reads it nowhere; `tracked` are the links whose
    contact forces are wanted.
    """
    parts: dict[str, dict[str, Any]] = {}
    sources: dict[str, str] = {}
    cache = UsdGeom.XformCache()
    prims = iter(Usd.PrimRange.Stage(stage))
    for prim in prims:
        path = str(prim.GetPath())
        asset = prim.GetCustomDataByKey(_ASSET)
        root = env_root(path)
        if source(path) is None:
            continue
        if root == path:
            parts[root], sources[root] = {'robots': [], 'objects': []}, source(path) or root
        if asset is None and not prim.IsA(UsdGeom.Cube):
            continue
        prims.PruneChildren()
        if root not in parts:
            raise NotImplementedError(f'the stand-in simulates what lies in an env, not {path}')
        _add_part(parts[root], prim, path.removeprefix(f'{root}/'), asset, cache, tracked)
    models = {
        root: SceneSpec(**{**part, 'robots': tuple(part['robots']), 'objects': tuple(part['objects'])})
        for root, part in parts.items()
    }
    return {root: models[sources[root]] for root in models}


def _add_part(
    scene: dict[str, Any], prim: Usd.Prim, name: str, asset: str | None, cache: UsdGeom.XformCache, tracked: set[str]
) -> None:
    """Add a robot, an object or the scene itself to the scene of an env."""
    path = str(prim.GetPath())
    root = prim.GetStage().GetPrimAtPath(path.removesuffix(f'/{name}'))
    position, orientation = _relative_pose(cache, prim, root)
    if asset is None:
        scene['objects'].append(_cube(prim, name, position, orientation))
        return
    scale = tuple(float(np.linalg.norm(row)) for row in _local(prim)[2])
    scale = (scale[0], scale[1], scale[2])
    if any(part.HasAPI(UsdPhysics.ArticulationRootAPI) for part in Usd.PrimRange(prim)):
        contact_links = tuple(t.removeprefix(f'{path}/') for t in sorted(tracked) if t.startswith(f'{path}/'))
        cameras = _cameras(prim, asset)
        scene['robots'].append(
            RobotSpec(name, asset, scale[0], position, orientation, contact_links=contact_links, cameras=cameras)
        )
    elif prim.HasAPI(UsdPhysics.RigidBodyAPI) or 'asset' in scene:
        mechanics = _mechanics(prim)
        scene['objects'].append(ObjectSpec(name, asset, scale, position, orientation, **mechanics))
    else:
        scene.update(asset=asset, scale=scale, position=position, orientation=orientation)


def _cube(prim: Usd.Prim, name: str, position: Vec3, orientation: Quat) -> ObjectSpec:
    size = UsdGeom.Cube(prim).GetSizeAttr().Get()
    scale = tuple(float(size * np.linalg.norm(row)) for row in _local(prim)[2])
    color = UsdGeom.Gprim(prim).GetDisplayColorAttr().Get()
    return ObjectSpec(
        name=name,
        scale=(scale[0], scale[1], scale[2]),
        position=position,
        orientation=orientation,
        color=tuple(color[0]) if color else ObjectSpec.color,
        collider=prim.HasAPI(UsdPhysics.CollisionAPI),
        **_mechanics(prim),
    )


def _mechanics(prim: Usd.Prim) -> dict[str, Any]:
    mass = UsdPhysics.MassAPI(prim)
    return {
        'dynamic': prim.HasAPI(UsdPhysics.RigidBodyAPI),
        'mass': mass.GetMassAttr().Get() or None if mass else None,
        'density': mass.GetDensityAttr().Get() or None if mass else None,
    }


def _cameras(robot: Usd.Prim, asset: str) -> tuple[CameraSpec, ...]:
    """The cameras that were defined below a robot beside those of its file."""
    own = read_asset(asset, content_key(Path(asset))).cameras if Path(asset).suffix == '.xml' else ()
    stage_layer = robot.GetStage().GetRootLayer()
    cameras: list[CameraSpec] = []
    for prim in Usd.PrimRange(robot):
        path = str(prim.GetPath()).removeprefix(f'{robot.GetPath()}/')
        is_added = all(spec.layer == stage_layer for spec in prim.GetPrimStack())
        if prim.IsA(UsdGeom.Camera) and path not in own and is_added:
            camera = UsdGeom.Camera(prim).GetCamera()
            fovy = float(camera.GetFieldOfView(Gf.Camera.FOVVertical))
            cameras.append(CameraSpec(path, *get_local_pose(prim), fovy=fovy))
    return tuple(cameras)


def get_local_pose(prim: Usd.Prim) -> tuple[Vec3, Quat]:
    """Position [m] and orientation of a prim in the frame of its parent."""
    position, orientation, _ = _local(prim)
    return position, orientation


def get_world_pose(prim: Usd.Prim) -> tuple[Vec3, Quat]:
    """Position [m] and orientation of a prim in the frame of the world."""
    return _pose(UsdGeom.XformCache().GetLocalToWorldTransform(prim))


def set_local_pose(prim: Usd.Prim, position: Any = None, orientation: Any = None, scale: Any = None) -> None:
    """Move a prim in the frame of its parent; None keeps what is there."""
    old_position, old_orientation, axes = _local(prim)
    position = old_position if position is None else position
    orientation = old_orientation if orientation is None else orientation
    scale = [float(np.linalg.norm(row)) for row in axes] if scale is None else scale
    w, *xyz = (float(value) for value in orientation)
    values: tuple[tuple[str, Any, Any], ...] = (
        ('xformOp:translate', Sdf.ValueTypeNames.Double3, Gf.Vec3d(*(float(value) for value in position))),
        ('xformOp:orient', Sdf.ValueTypeNames.Quatd, Gf.Quatd(w, *xyz)),
        ('xformOp:scale', Sdf.ValueTypeNames.Double3, Gf.Vec3d(*(float(value) for value in scale))),
    )
    for name, kind, value in values:
        prim.CreateAttribute(name, kind, False).Set(value)
    UsdGeom.Xformable(prim).GetXformOpOrderAttr().Set([name for name, _, _ in values])


def set_world_pose(prim: Usd.Prim, position: Any = None, orientation: Any = None) -> None:
    """Move a prim in the frame of the world; None keeps what is there."""
    old_position, old_orientation = get_world_pose(prim)
    matrix = Gf.Matrix4d()
    w, *xyz = (float(value) for value in (old_orientation if orientation is None else orientation))
    matrix.SetRotateOnly(Gf.Quatd(w, *xyz))
    matrix.SetTranslateOnly(Gf.Vec3d(*(float(value) for value in (old_position if position is None else position))))
    parent = UsdGeom.XformCache().GetParentToWorldTransform(prim)
    set_local_pose(prim, *_pose(matrix * parent.GetInverse()))


def matching(stage: Usd.Stage, pattern: Callable[[str, str], bool], path: str) -> list[str]:
    """The prims whose path matches component by component, level by level, in the order of children."""
    found = [stage.GetPseudoRoot()]
    for component in path.strip('/').split('/'):
        found = [child for prim in found for child in prim.GetAllChildren() if pattern(component, child.GetName())]
    return [str(prim.GetPath()) for prim in found]


def _local(prim: Usd.Prim) -> tuple[Vec3, Quat, NDArray[np.float64]]:
    matrix = UsdGeom.XformCache().GetLocalTransformation(prim)[0]
    axes = np.array(matrix)[:3, :3]
    return *_pose(matrix), axes


def _relative_pose(cache: UsdGeom.XformCache, prim: Usd.Prim, root: Usd.Prim) -> tuple[Vec3, Quat]:
    to_world = cache.GetLocalToWorldTransform
    return _pose(to_world(prim) * to_world(root).GetInverse())


def _pose(matrix: Gf.Matrix4d) -> tuple[Vec3, Quat]:
    position = matrix.ExtractTranslation()
    quat = matrix.RemoveScaleShear().ExtractRotationQuat()
    x, y, z = quat.GetImaginary()
    orientation = (quat.GetReal(), x, y, z)
    if np.allclose(orientation, IDENTITY_QUAT, atol=1e-12):
        orientation = IDENTITY_QUAT
    return (position[0], position[1], position[2]), orientation
