"""Opening of a stage: its units checked, point instancers expanded, skinned meshes posed, all in its session layer.

The instance `i` of `/World/trees` is `/World/trees/instance_<i>/<prototype>`; the prototypes below the instancer are
gone. It is composed by references, so rigid bodies, joints, materials and instancers within prototypes are read as
anywhere else. Skinned meshes (UsdSkel) are in the pose of the first frame of their animation, else in the skeleton's
rest pose.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.model.asset_files import check_bound
from internutopia.model.importers import FileWarnings
from internutopia.model.importers.as_usd import warnings_of
from internutopia.model.importers.usd.composition import compose, warn_of_missing
from internutopia.model.importers.usd.stage_transforms import UP_AXES
from internutopia.model.importers.usd.values import array

if TYPE_CHECKING:
    from pxr import Sdf, Usd, UsdGeom, UsdSkel


def open_stage(path: Path, warnings: FileWarnings, *, within_bounds: bool = False) -> Usd.Stage:
    """Open a stage with all its payloads; point instancers are expanded and skinned meshes posed in its session layer.

    Its bounds are checked before, unless it is known to be within them.
    What is missing or cannot be read is warned of. ValueError if the file itself is broken.
    """
    stage = compose(path, within_bounds=within_bounds)
    warn_of_missing(stage, warnings)
    for what, where in warnings_of(stage):
        warnings.add(what, where)
    stage.SetEditTarget(stage.GetSessionLayer())
    _check_units(stage, warnings)
    _open_instances(stage)
    expand_instancers(stage, warnings)
    pose_skinned(stage, warnings)
    return stage


def _check_units(stage: Usd.Stage, warnings: FileWarnings) -> None:
    """Replace an invalid up axis by z. ValueError for units that are no positive numbers."""
    from pxr import UsdGeom, UsdPhysics

    axis = UsdGeom.GetStageUpAxis(stage)
    if axis not in UP_AXES:
        warnings.add('upAxis must be Y or Z; Z is assumed', f'{str(axis)!r}')
        stage.SetMetadata('upAxis', 'Z')
    units = {
        'metersPerUnit': UsdGeom.GetStageMetersPerUnit(stage),
        'kilogramsPerUnit': UsdPhysics.GetStageKilogramsPerUnit(stage),
    }
    for name, unit in units.items():
        if not (np.isfinite(unit) and unit > 0):
            raise ValueError(f'{name} of the stage must be a positive number, it is {unit:g}')


def _open_instances(stage: Usd.Stage) -> None:
    """Copy instances in which something has to be changed."""
    from pxr import Usd, UsdGeom, UsdSkel

    def instance(prim: Usd.Prim) -> Usd.Prim:
        while prim.IsInstanceProxy():
            prim = prim.GetParent()
        return prim

    everywhere = Usd.TraverseInstanceProxies(Usd.PrimIsActive & Usd.PrimIsLoaded)
    while True:  # instances may hold instances
        shared = {
            instance(prim).GetPath()
            for prim in Usd.PrimRange.Stage(stage, everywhere)
            if prim.IsInstanceProxy() and (prim.IsA(UsdGeom.PointInstancer) or prim.IsA(UsdSkel.Root))
        }
        if not shared:
            return
        for path in sorted(shared):
            stage.GetPrimAtPath(path).SetInstanceable(False)


def expand_instancers(stage: Usd.Stage, warnings: FileWarnings) -> None:
    """Write the instances of all PointInstancers into the session layer; a wrong one is left out with a warning."""
    from pxr import Sdf, Usd, UsdGeom

    # also those that are not rendered themselves, in prototypes that are `over` or `class`
    found = [
        UsdGeom.PointInstancer(prim)
        for prim in Usd.PrimRange.Stage(stage, Usd.PrimIsActive & Usd.PrimIsLoaded)
        if prim.IsA(UsdGeom.PointInstancer)
    ]
    layer = stage.GetSessionLayer()
    expanded = [(instancer, _instances(instancer, warnings)) for instancer in found]
    _Sizes(stage, expanded).check()
    with Sdf.ChangeBlock():
        for instancer, instances in expanded:
            _write(layer, instancer, instances)


_Instance = tuple[int, 'Sdf.Path', Any, Any]  # number, prototype, matrix, colour or None


def _instances(instancer: UsdGeom.PointInstancer, warnings: FileWarnings) -> list[_Instance]:
    """Return the instances of an instancer that are active and visible; none, with a warning, if it is wrong."""
    from pxr import Tf, Usd, UsdGeom

    prim, time = instancer.GetPrim(), Usd.TimeCode.EarliestTime()
    prototypes = instancer.GetPrototypesRel().GetForwardedTargets()
    indices = array(prim, 'protoIndices', int)
    if not len(indices):
        return []
    try:
        exclude, ignore = UsdGeom.PointInstancer.ExcludeProtoXform, UsdGeom.PointInstancer.IgnoreMask
        matrices = instancer.ComputeInstanceTransformsAtTime(time, time, exclude, ignore)
        mask = instancer.ComputeMaskAtTime(time) or [True] * len(indices)
    except Tf.ErrorException:
        matrices = mask = ()
    if len(matrices) != len(indices) or len(mask) != len(indices):
        warnings.add('left out: positions, orientations, scales and ids must be as many as protoIndices', prim)
        return []
    if not np.isfinite(np.array(matrices)).all():
        warnings.add('left out: positions, orientations and scales must be finite', prim)
        return []
    known = [bool(prim.GetStage().GetPrimAtPath(path)) for path in prototypes]
    if any(not (0 <= i < len(known) and known[i]) for i in indices):
        warnings.add('instances of prototypes that do not exist are left out', prim)
    colours = _colours(prim, len(indices), warnings)
    return [
        (number, prototypes[i], matrices[number], None if colours is None else colours[number])
        for number, i in enumerate(indices.tolist())
        if mask[number] and 0 <= i < len(known) and known[i]
    ]


class _Sizes:
    """Number of prims, with all instances and those within them."""

    def __init__(self, stage: Usd.Stage, expanded: list[tuple[UsdGeom.PointInstancer, list[_Instance]]]):
        self._stage = stage
        self._made = {
            instancer.GetPath(): Counter(prototype for _, prototype, *_ in made) for instancer, made in expanded
        }
        self._known: dict[Sdf.Path, int] = {}

    def check(self) -> None:
        """Raise ValueError if instances bring too many prims."""
        total = sum(map(self._brought, self._made))
        check_bound(self._stage.GetRootLayer().realPath, 'prims that instancers bring', total, 'prims')

    def _brought(self, instancer: Sdf.Path) -> int:
        return sum(count * self._size(prototype) for prototype, count in self._made[instancer].items())

    def _size(self, prototype: Sdf.Path) -> int:
        from pxr import Usd

        if prototype not in self._known:
            self._known[prototype] = 0  # what holds itself counts once
            everywhere = Usd.TraverseInstanceProxies(Usd.PrimIsActive & Usd.PrimIsLoaded)
            below = [prim.GetPath() for prim in Usd.PrimRange(self._stage.GetPrimAtPath(prototype), everywhere)]
            self._known[prototype] = len(below) + sum(self._brought(path) for path in below if path in self._made)
        return self._known[prototype]


def _colours(prim: Usd.Prim, count: int, warnings: FileWarnings) -> Any:
    """Return the `displayColor` of each instance, if it is given one by one."""
    from pxr import Tf, Usd, UsdGeom

    primvar = UsdGeom.PrimvarsAPI(prim).GetPrimvar('displayColor')
    try:
        values = primvar.ComputeFlattened(Usd.TimeCode.EarliestTime()) if primvar else None
    except Tf.ErrorException:
        warnings.add('primvar displayColor cannot be read', prim)
        return None
    return values if values and len(values) == count > 1 else None


def _write(layer: Sdf.Layer, instancer: UsdGeom.PointInstancer, instances: list[_Instance]) -> None:
    from pxr import Sdf

    root = Sdf.CreatePrimInLayer(layer, instancer.GetPath())
    root.typeName = 'Xform'  # so that its prototypes and instances are children like others
    for child in instancer.GetPrim().GetAllChildren():
        Sdf.CreatePrimInLayer(layer, child.GetPath()).SetInfo('active', False)
    for number, prototype, matrix, colour in instances:
        place = Sdf.PrimSpec(root, f'instance_{number}', Sdf.SpecifierDef, 'Xform')
        _set(place, 'xformOp:transform', Sdf.ValueTypeNames.Matrix4d, matrix)
        _set(place, 'xformOpOrder', Sdf.ValueTypeNames.TokenArray, ['xformOp:transform'])
        if colour is not None:
            _set(place, 'primvars:displayColor', Sdf.ValueTypeNames.Color3fArray, [colour])
        thing = Sdf.PrimSpec(place, prototype.name, Sdf.SpecifierDef)
        thing.SetInfo('active', True)  # stronger than what switches the prototype off
        thing.referenceList.prependedItems = [Sdf.Reference(primPath=prototype)]


def _set(spec: Sdf.PrimSpec, name: str, kind: Any, value: Any) -> None:
    from pxr import Sdf

    Sdf.AttributeSpec(spec, name, kind).default = value


def pose_skinned(stage: Usd.Stage, warnings: FileWarnings) -> None:
    """Write the points of skinned meshes, as their skeletons and blend shapes hold them, into the session layer."""
    from pxr import Sdf, Usd, UsdSkel

    everywhere = Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)
    paths = [prim.GetPath() for prim in Usd.PrimRange.Stage(stage, everywhere) if prim.IsA(UsdSkel.Root)]
    poses = []
    session = stage.GetSessionLayer()
    for path in paths:
        # each by itself: what refers to a root must not be seen as posed already
        pose = Sdf.Layer.CreateAnonymous()
        session.subLayerPaths.append(pose.identifier)
        stage.SetEditTarget(pose)
        posed = _pose(UsdSkel.Root.Get(stage, path))
        stage.SetEditTarget(session)
        session.subLayerPaths.remove(pose.identifier)
        if posed:
            poses.append(pose)
            warnings.add('skinned meshes are static', str(path))
        else:
            warnings.add('skeleton cannot be read; its meshes are not posed', str(path))
    for pose in poses:
        session.subLayerPaths.append(pose.identifier)


def _pose(root: UsdSkel.Root) -> bool:
    """Write the pose of the meshes below a root to the edit target; returns True if that worked."""
    from pxr import Gf, Tf, UsdSkel

    try:
        time = _first_frame(root)
        return bool(UsdSkel.BakeSkinning(root, Gf.Interval(time, time)))
    except Tf.ErrorException:
        return False


def _first_frame(root: UsdSkel.Root) -> float:
    """Return the first time sample of the animations of the skeletons below a root; 0 if they do not move."""
    from pxr import Usd, UsdSkel

    cache = UsdSkel.Cache()
    cache.Populate(root, Usd.PrimDefaultPredicate)
    times: list[float] = []
    for prim in Usd.PrimRange(root.GetPrim()):
        query = cache.GetSkelQuery(UsdSkel.Skeleton(prim)) if prim.IsA(UsdSkel.Skeleton) else None
        animation = query.GetAnimQuery() if query else None
        if animation:
            times += animation.GetJointTransformTimeSamples() + animation.GetBlendShapeWeightTimeSamples()
    return min(times, default=0.0)
