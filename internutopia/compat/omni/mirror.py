"""`omni.usd`, and the stage that it returns: one in memory per process, z up, in metres, that mirrors the envs.

What it shows are the envs of the Env whose code runs (outside of that, of all of them: of envs of the same number, that
of the Env that was made last), as of the last call of `current_stage`:

- `/World/env_<id>`: an `Xform` at the place of the env on the grid, new with each episode.
- `.../scene`: an `Xform` with a reference to the scene asset if that is USD, else with its movable bodies by name.
- robots, at their `config.prim_path`: an `Xform` at the pose of the robot, with a reference to its asset if that is USD
  (whose links have the poses of the file), else with its links by name (without poses of their own).
- objects, likewise: an `Xform` at the pose of the object, with a reference to its asset if that is USD.

An edit of the stage changes no physics and no picture: prims that are added (lights among them) are kept until the
episode of their env ends, and can be found again, but nothing draws them. Poses, joints and velocities belong to
`robot.articulation` and to rigid bodies.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from internutopia.core.scene.scene import IScene
from internutopia.model.asset_paths import resolve
from internutopia.util.log import warn_once

if TYPE_CHECKING:
    from pxr import Usd

USD = ('UsdContext', 'get_context')
"""Names of `omni.usd`."""

_USD_SUFFIXES = ('.usd', '.usda', '.usdc', '.usdz')

_mirror: _Mirror | None = None


def current_stage() -> Usd.Stage:
    """Return the stage, up to date with the envs."""
    global _mirror
    if _mirror is None:
        _mirror = _Mirror()
    _mirror.update({scene.env_id: scene for scene in IScene.all()})
    return _mirror.stage


class UsdContext:
    """Context that holds the stage."""

    def get_stage(self) -> Usd.Stage:
        """Return the stage, up to date with the envs."""
        return current_stage()


def get_context(name: str = '') -> UsdContext:
    """Return the context, whatever its name: there is one stage."""
    return UsdContext()


def forget() -> None:
    """Release the stage; the next call makes another one."""
    global _mirror
    _mirror = None


class _Mirror:
    """A stage, and which episode of each env it shows."""

    def __init__(self) -> None:
        from pxr import Usd, UsdGeom

        self.stage: Any = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        self._xform('/World')
        self._shown: dict[int, weakref.ref[IScene]] = {}  # each episode has a scene of its own
        self._placed: set[tuple[int, int]] = set()  # world and version when things were put in their places

    def update(self, scenes: dict[int, IScene]) -> None:
        """Show these envs, and no others."""
        for env_id, shown in list(self._shown.items()):
            if shown() is None or shown() is not scenes.get(env_id):
                self.stage.RemovePrim(f'/World/env_{env_id}')
                del self._shown[env_id]
        worlds = {(id(scene.world), scene.world.version) for scene in scenes.values()}
        for env_id, scene in scenes.items():
            added = env_id not in self._shown
            if added:
                self._add_env(scene)
                self._shown[env_id] = weakref.ref(scene)
            if added or worlds != self._placed:
                self._place_members(scene)
        self._placed = worlds

    def _add_env(self, scene: IScene) -> None:
        self._place(scene.root_path, scene.world.env_origins[scene.env_id])
        spec = scene.model
        root = f'{scene.root_path}/scene'
        bodies = set(scene.world.body_names(scene.env_id)) - set(scene.object_paths.values())
        self._add(root, spec.asset, bodies)
        self._place(root, spec.position, spec.orientation, spec.scale)
        for path, robot in _members(scene.robot_paths, spec.robots):
            self._add(path, robot.asset, scene.articulation_at(path).view.body_names)
        for path, obj in _members(scene.object_paths, spec.objects):
            self._add(path, obj.asset, ())
            self._place(path, obj.position, obj.orientation, None if obj.asset is None else obj.scale)

    def _place_members(self, scene: IScene) -> None:
        """Move robots and objects to where they are."""
        for path in scene.robot_paths:
            self._place(path, *scene.articulation_at(path).get_pose())
        movable = scene.world.body_names(scene.env_id)
        for path, name in scene.object_paths.items():
            if name in movable:
                self._place(path, *scene.get(name).get_pose())

    def _add(self, path: str, asset: str | None, bodies: Iterable[str]) -> None:
        """Add an asset by reference, or prims of the names of its bodies."""
        if not self._xform(path):
            return
        reference = None if asset is None else _reference(asset)
        if reference is not None:
            self.stage.GetPrimAtPath(path).GetReferences().AddReference(*reference)
            return
        for body in bodies:
            self._xform(f'{path}/{body}')

    def _xform(self, path: str) -> bool:
        """Make a prim, with those above it. False if USD cannot call one so."""
        from pxr import Sdf, UsdGeom

        if not Sdf.Path.IsValidPathString(path):
            warn_once('the stage has no prim %s: USD allows letters, digits and underscores in names', path)
            return False
        UsdGeom.Xform.Define(self.stage, path)
        return True

    def _place(self, path: str, position: Any, orientation: Any = (1, 0, 0, 0), scale: Any = None) -> None:
        """Give a prim a pose relative to the one that it stands in, and a scale unless that is None."""
        from pxr import Gf, UsdGeom

        if not self._xform(path):
            return
        w, x, y, z = (float(value) for value in orientation)
        matrix = Gf.Matrix4d().SetRotate(Gf.Quatd(w, x, y, z))
        matrix.SetTranslateOnly(Gf.Vec3d(*(float(value) for value in position)))
        if scale is not None:
            matrix = Gf.Matrix4d().SetScale(Gf.Vec3d(*scale)) * matrix  # acts on rows: first the scale
        UsdGeom.Xformable(self.stage.GetPrimAtPath(path)).MakeMatrixXform().Set(matrix)


def _members(paths: dict[str, str], specs: Iterable[Any]) -> Iterable[tuple[str, Any]]:
    """Return the specs of robots or objects with their prim paths."""
    by_name = {spec.name: spec for spec in specs}
    return ((path, by_name[name]) for path, name in paths.items())


def _reference(asset: str) -> tuple[str, str] | None:
    """Return the file and prim to refer to; None for an asset that is not USD."""
    from pxr import Sdf

    file = resolve(asset)
    if file.suffix.lower() not in _USD_SUFFIXES:
        return None
    layer = Sdf.Layer.FindOrOpen(str(file))
    return str(file), f'/{layer.defaultPrim or layer.rootPrims[0].name}'
