"""PointInstancers, expanded to a prim for each instance.

The instance `i` of `/World/trees` is `/World/trees/instance_<i>/<prototype>`; the prototypes below the instancer are
gone. It is composed by references, so rigid bodies, joints, materials and instancers within prototypes are read as
anywhere else.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.model.asset_bounds import check_bound
from internutopia.model.importers.file_warnings import FileWarnings
from internutopia.model.importers.usd.values import array

if TYPE_CHECKING:
    from pxr import Sdf, Usd, UsdGeom


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
