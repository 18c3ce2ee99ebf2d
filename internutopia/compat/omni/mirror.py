"""`omni.usd`, and the stage that it returns: one in memory per process, z up, in metres, that mirrors the envs.

It shows the envs of the Env whose code runs (outside of that, of all of them: of envs of the same number, that of the
Env that was made last), as they were when it was requested last, or after the last physics step of an Env since then:

- `/World/env_<id>`: an `Xform` at the place of the env on the grid, new with each episode.
- `.../scene`: an `Xform` with a reference to the scene asset if that is USD, else with its bodies by name.
- robots, at their `config.prim_path`: an `Xform` at the pose of the robot, with a reference to its asset if that is
  USD, else with its links by name.
- objects, likewise: an `Xform` at the pose of the object, with a reference to its asset if that is USD.

Bodies and links have their present poses, and the scales that their files give them, as `xformOp:translate`, `:orient`
and `:scale`, whatever operations the file has. Those of assets that are not USD
have their shapes below them (`stage_shapes`). Edits of the stage change neither physics nor pictures: prims that are
added (lights among them) are kept until the episode of their env ends, and can be found again, but nothing draws them.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.compat.omni.rotations import rot_matrices_to_quats
from internutopia.core.scene.scene import EnvScenes, IScene
from internutopia.model.asset_paths import resolve
from internutopia.model.spec import SceneSpec, Vec3
from internutopia.util import did_you_mean
from internutopia.util.arrays import to_host
from internutopia.util.log import warn_once
from internutopia.util.rotations import quat_to_matrix

if TYPE_CHECKING:
    from pxr import Gf, Usd

Matrix = NDArray[np.float64]  # `(4, 4)`, acts on rows, as those of USD

USD = ('UsdContext', 'get_context', 'get_local_transform_matrix', 'get_prim_at_path', 'get_world_transform_matrix')
"""Names of `omni.usd`."""

_IN_SCENE = re.compile(r'(/World/env_\d+/scene)/\w+/(.+)')
_USD_SUFFIXES = ('.usd', '.usda', '.usdc', '.usdz')

_mirror: _Mirror | None = None


def current_stage() -> Usd.Stage:
    """Return the stage, up to date with the envs."""
    global _mirror
    if _mirror is None:
        _mirror = _Mirror()
    for scenes in EnvScenes.candidates():
        if _update not in scenes.after_physics:
            scenes.after_physics.append(_update)
    _update()
    return _mirror.stage


class UsdContext:
    """Context that holds the stage."""

    def get_stage(self) -> Usd.Stage:
        """Return the stage, up to date with the envs."""
        return current_stage()


def get_context(name: str = '') -> UsdContext:
    """Return the context, whatever its name: there is one stage."""
    return UsdContext()


def get_prim_at_path(path: Any) -> Usd.Prim:
    """Return the prim, an invalid one (false in an `if`) where there is none.

    The path of a body of the scene may have the default prim of the scene's file in it, as `IRigidBody.prim_path` does.
    """
    stage = current_stage()
    prim = stage.GetPrimAtPath(path)
    if not prim and (named := _IN_SCENE.fullmatch(str(path))):
        return stage.GetPrimAtPath(f'{named[1]}/{named[2]}')
    return prim


def add_xform(path: str) -> None:
    """Add an `Xform` to the stage. ValueError inside of what an env has: there it would be a misspelt path."""
    from pxr import Sdf, UsdGeom

    stage = current_stage()
    above = Sdf.Path(path).GetParentPath() if Sdf.Path.IsValidPathString(path) else Sdf.Path.emptyPath
    members = {f'{scene.root_path}/{kind}' for scene in IScene.all() for kind in ('robots', 'objects', 'scene')}
    if not stage.GetPrimAtPath(above) or any(f'{path}/'.startswith(f'{member}/') for member in members):
        raise ValueError(f'there is no prim at {path!r}')
    UsdGeom.Xform.Define(stage, path)


def get_world_transform_matrix(prim: Usd.Prim, time_code: Any = None) -> Gf.Matrix4d:
    """Return the transform from a prim to the world at present; acts on rows. `time_code` is accepted."""
    from pxr import Usd, UsdGeom

    current_stage()
    return UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(Usd.TimeCode.Default())


def get_local_transform_matrix(prim: Usd.Prim, time_code: Any = None) -> Gf.Matrix4d:
    """Return the transform from a prim to its parent at present; acts on rows. `time_code` is accepted."""
    from pxr import UsdGeom

    current_stage()
    return UsdGeom.Xformable(prim).GetLocalTransformation()


def existing_prim(path: str) -> Usd.Prim:
    """Return the prim. ValueError naming the nearest one above it, and what is there."""
    prim = get_prim_at_path(path)
    if prim:
        return prim
    parent, _, name = path.rstrip('/').rpartition('/')
    siblings = [child.GetName() for child in existing_prim(parent or '/').GetChildren()]
    raise ValueError(f'there is no prim at {path!r}; below {parent or "/"!r}: {did_you_mean(name, siblings)}')


def scale_of(matrix: Any) -> NDArray[np.float64]:
    """Return the scale along x, y, z `(3,)` of a transform that acts on rows."""
    return np.linalg.norm(np.array(matrix)[:3, :3], axis=1)


def set_visibility(prim: Usd.Prim, visible: bool) -> None:
    """Set whether a prim is visible on the stage."""
    from pxr import UsdGeom

    image = UsdGeom.Imageable(prim)
    image.MakeVisible() if visible else image.MakeInvisible()


def forget() -> None:
    """Release the stage; the next call makes another one."""
    global _mirror
    _mirror = None


def _update() -> None:
    if _mirror is not None:
        _mirror.update({scene.env_id: scene for scene in IScene.all()})


class _Mirror:
    """A stage, and which episode of each env it shows."""

    def __init__(self) -> None:
        from pxr import Usd, UsdGeom

        self.stage: Any = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        UsdGeom.Xform.Define(self.stage, '/World')
        self._shown: dict[int, _ShownEnv] = {}

    def update(self, scenes: dict[int, IScene]) -> None:
        """Show these envs, and no others."""
        for env_id, shown in list(self._shown.items()):
            if not shown.shows(scenes.get(env_id)):
                self.stage.RemovePrim(f'/World/env_{env_id}')
                del self._shown[env_id]
        for env_id, scene in scenes.items():
            if env_id not in self._shown:
                self._shown[env_id] = _ShownEnv(self.stage, scene)
            self._shown[env_id].update(scene)


class _ShownEnv:
    """The prims of an env, and where they were placed last."""

    def __init__(self, stage: Any, scene: IScene):
        self._stage = stage
        self._scene = weakref.ref(scene)  # each episode has its own scene
        self._attributes: dict[str, Any] = {}  # transforms of prims
        self._sizes: dict[str, list[float]] = {}  # their scales
        self._model: SceneSpec | None = None
        self._members: dict[str, Any] = {}  # what refers to an asset, by path
        self._files: dict[str, Matrix] = {}  # transform of each from its file to metres
        self._bodies: list[tuple[list[str], Callable[[], tuple[Any, Any]]]] = []  # paths, and their poses now
        self._version = -1  # of the world when they were placed
        self._own = self._between = self._last = np.zeros((0, 4, 4))
        self._above = np.zeros(0, np.intp)
        origin = np.eye(4)
        origin[3, :3] = scene.world.env_origins[scene.env_id]
        if self._define(scene.root_path):
            self._write([(scene.root_path, origin)])

    def shows(self, scene: IScene | None) -> bool:
        """Return True if this is the scene that is shown."""
        return scene is not None and self._scene() is scene

    def update(self, scene: IScene) -> None:
        if self._model is not scene.model:
            self._update_members(scene)
            self._find_bodies(scene)
            self._model = scene.model
        elif self._version == scene.world.version:
            return
        self._version = scene.world.version
        poses = [_pose_matrices(*pose()) for _, pose in self._bodies]
        worlds = np.concatenate([self._own @ np.concatenate([*poses, np.zeros((0, 4, 4))]), np.eye(4)[None]])
        local = worlds[:-1] @ np.linalg.inv(self._between @ worlds[self._above])
        moved = np.flatnonzero((local != self._last).any(axis=(1, 2)))
        self._last = local
        paths = [path for paths, _ in self._bodies for path in paths]
        self._write([(paths[i], local[i]) for i in moved])

    def _update_members(self, scene: IScene) -> None:
        """Add what is new, where it starts, and remove what is gone."""
        spec = scene.model
        members: dict[str, Any] = {f'{scene.root_path}/scene': spec}
        for paths, specs in ((scene.robot_paths, spec.robots), (scene.object_paths, spec.objects)):
            by_name: dict[str, Any] = {each.name: each for each in specs}
            # an object whose class adds it has a path before it is there
            members.update({path: by_name[name] for path, name in paths.items() if name in by_name})
        for path in self._members.keys() - members.keys():
            self._stage.RemovePrim(path)
        for path in members.keys() - self._members.keys():
            if self._define(path):
                member = members[path]
                self._files[path] = self._refer(path, member, scene)
                place = _pose_matrices(np.array([member.position]), np.array([member.orientation]))[0]
                self._write([(path, self._files[path] @ place)])
        self._members = members

    def _refer(self, path: str, member: Any, scene: IScene) -> Matrix:
        """Let a prim refer to an asset, or to shapes of its bodies; returns the transform from its frame to metres."""
        from pxr import Sdf, UsdGeom

        from internutopia.compat.omni.stage_shapes import shapes_layer

        prim = self._stage.GetPrimAtPath(path)
        file = resolve(member.asset) if member.asset else None
        if file is None or file.suffix.lower() not in _USD_SUFFIXES:
            name = None if member is scene.model else member.name
            prim.GetReferences().AddReference(shapes_layer(scene.world, scene.env_id, name).identifier)
            return np.eye(4)
        layer = Sdf.Layer.FindOrOpen(str(file))
        prim.GetReferences().AddReference(str(file), f'/{layer.defaultPrim or layer.rootPrims[0].name}')
        scale = member.scale if isinstance(member.scale, tuple) else (member.scale,) * 3
        own = np.array(UsdGeom.Xformable(prim).GetLocalTransformation())
        return own @ _units(str(file), scale, member.raw_lengths, member.ignore_usd_defaults)

    def _find_bodies(self, scene: IScene) -> None:
        """Find the prims of bodies, the body above each, and the transform of what is between them."""
        from pxr import Usd, UsdGeom

        self._bodies = []
        for path in filter(self._exists, scene.robot_paths):
            robot = scene.articulation_at(path)
            self._bodies.append(([path], lambda robot=robot: tuple(value[None] for value in robot.get_pose())))
            links = {link: prim for link in robot.view.body_names if (prim := self._link(path, link))}
            names = tuple(links)

            def link_poses(view: Any = robot.view, names: Any = names) -> tuple[Any, Any]:
                positions, orientations = view.get_link_poses(names)
                return to_host(positions)[scene.env_id], to_host(orientations)[scene.env_id]

            if links:
                self._bodies.append((list(links.values()), link_poses))
        paths = {name: [path] for path, name in scene.object_paths.items()}
        for name in scene.world.body_names(scene.env_id):
            below = [name, name.partition('/')[2]]  # a stage that refers to the asset leaves out its default prim
            there = paths.get(name) or [f'{scene.root_path}/scene/{each}' for each in below if each]
            prim = next(filter(self._exists, there), None)
            if prim is not None:
                body = scene.get(name)
                self._bodies.append(([prim], lambda body=body: tuple(value[None] for value in body.get_pose())))
        found = {path: i for i, path in enumerate(path for paths, _ in self._bodies for path in paths)}
        cache = UsdGeom.XformCache(Usd.TimeCode.Default())
        env = np.array(cache.GetLocalToWorldTransform(self._stage.GetPrimAtPath(scene.root_path)))
        worlds = {path: np.array(cache.GetLocalToWorldTransform(self._stage.GetPrimAtPath(path))) for path in found}
        own, between, above = [np.eye(4)] * len(found), [np.eye(4)] * len(found), [len(found)] * len(found)
        for path, i in found.items():
            scale = np.linalg.norm(worlds[path][:3, :3], axis=1)
            own[i] = self._files[path] if path in self._files else np.diag([*scale, 1.0])
            parents = [str(each) for each in self._stage.GetPrimAtPath(path).GetParent().GetPath().GetPrefixes()]
            parent = np.array(cache.GetLocalToWorldTransform(self._stage.GetPrimAtPath(parents[-1])))
            nearest = next((each for each in reversed(parents) if each in found), None)
            if nearest is not None:
                above[i] = found[nearest]
            between[i] = parent @ np.linalg.inv(env if nearest is None else worlds[nearest])
        self._own, self._between = np.array(own).reshape(-1, 4, 4), np.array(between).reshape(-1, 4, 4)
        self._above = np.array(above, np.intp)
        self._last = np.full_like(self._own, np.nan)

    def _link(self, robot: str, link: str) -> str | None:
        from pxr import Usd

        if self._exists(f'{robot}/{link}'):
            return f'{robot}/{link}'
        prims = Usd.PrimRange(self._stage.GetPrimAtPath(robot))
        return next((str(each.GetPath()) for each in prims if str(each.GetPath()).endswith(f'/{link}')), None)

    def _exists(self, path: str) -> bool:
        from pxr import Sdf

        return Sdf.Path.IsValidPathString(path) and bool(self._stage.GetPrimAtPath(path))

    def _define(self, path: str) -> bool:
        """Make a prim, with those above it. False if USD cannot call one so."""
        from pxr import Sdf, UsdGeom

        if not Sdf.Path.IsValidPathString(path):
            warn_once('the stage has no prim %s: USD allows letters, digits and underscores in names', path)
            return False
        UsdGeom.Xform.Define(self._stage, path)
        self._attributes.pop(path, None)
        self._sizes.pop(path, None)
        return True

    def _write(self, transforms: Iterable[tuple[str, Matrix]]) -> None:
        """Give prims transforms to their parents."""
        from pxr import Gf, Sdf

        transforms = list(transforms)
        if not transforms:
            return
        matrices = np.array([matrix for _, matrix in transforms])
        scales = np.linalg.norm(matrices[:, :3, :3], axis=2)
        scales[np.linalg.det(matrices[:, :3, :3]) < 0] *= -1
        turns = matrices[:, :3, :3] / scales[..., None]
        sheared = np.abs(turns @ np.swapaxes(turns, 1, 2) - np.eye(3)).max(axis=(1, 2)) > 1e-4
        for (path, _), shear in zip(transforms, sheared, strict=True):
            if path not in self._attributes:
                prim = self._stage.GetPrimAtPath(path)
                self._attributes[path] = _matrix_attribute(prim) if shear else pose_attributes(prim)
        quats = rot_matrices_to_quats(np.swapaxes(turns, 1, 2)).tolist()
        places, sizes = matrices[:, 3, :3].tolist(), scales.round(9).tolist()
        with Sdf.ChangeBlock():
            for (path, matrix), place, quat, size in zip(transforms, places, quats, sizes, strict=True):
                own = self._attributes[path]
                if len(own) == 1:
                    own[0].Set(Gf.Matrix4d(matrix))
                    continue
                own[0].Set(Gf.Vec3d(place))
                own[1].Set(quat_of(own[1], quat))
                if self._sizes.get(path) != size:
                    own[2].Set(Gf.Vec3d(size))
                    self._sizes[path] = size


def quat_of(attribute: Any, quat: Iterable[float]) -> Any:
    """Return a quaternion of the precision of an attribute, which a file may have given."""
    return attribute.GetTypeName().type.pythonClass(*quat)


def pose_attributes(prim: Usd.Prim) -> tuple[Any, ...]:
    """Let a prim have a translation, an orientation and a scale, as Isaac Sim does; returns their attributes."""
    from pxr import Sdf

    kinds = Sdf.ValueTypeNames
    types = {'translate': kinds.Double3, 'orient': kinds.Quatd, 'scale': kinds.Double3}
    attributes = tuple(prim.CreateAttribute(f'xformOp:{name}', kind, False) for name, kind in types.items())
    order = [attribute.GetName() for attribute in attributes]
    prim.CreateAttribute('xformOpOrder', kinds.TokenArray, False, Sdf.VariabilityUniform).Set(order)
    return attributes


def _matrix_attribute(prim: Usd.Prim) -> tuple[Any]:
    """Let a prim have a matrix, which can hold a shear; returns its attribute."""
    from pxr import UsdGeom

    return (UsdGeom.Xformable(prim).MakeMatrixXform().GetAttr(),)


def _pose_matrices(positions: Any, quats: Any) -> Matrix:
    """Return the matrices `(n, 4, 4)` of poses."""
    matrices = np.zeros((len(positions), 4, 4))
    matrices[:, :3, :3] = np.swapaxes(quat_to_matrix(np.asarray(quats, np.float64)), -1, -2)
    matrices[:, 3, :3] = positions
    matrices[:, 3, 3] = 1.0
    return matrices


@lru_cache(256)
def _units(file: str, scale: Vec3, raw_lengths: bool, ignore_usd_defaults: bool) -> Matrix:
    """Return the transform from the world of a file to metres with z up, scaled."""
    from pxr import Usd

    from internutopia.model.importers.usd.stage_transforms import StageTransforms

    stage = Usd.Stage.Open(file, Usd.Stage.LoadNone)
    return StageTransforms(stage, scale, raw_lengths, ignore_usd_defaults).units.T
