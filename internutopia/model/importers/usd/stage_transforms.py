"""Units and transforms of a stage.

USD composes numbers as they are written: nothing converts a file in centimetres with y up that a stage in metres with
z up refers to, so it is a hundred times too large and lies on its side, unless the prim that refers to it, or one
above, is scaled and turned.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from internutopia.model.importers.transforms import Frame, polar
from internutopia.model.importers.usd.values import named_by_prim
from internutopia.model.spec import NO_SCALE, Vec3

if TYPE_CHECKING:
    from pxr import Gf, Pcp, Sdf, Usd, UsdGeom

_UP = {'Y': np.array([0.0, 1, 0]), 'Z': np.array([0.0, 0, 1])}
_SAME = 1e-3  # units that differ by less are the same, written in single precision


class StageUnits(NamedTuple):
    """Length unit [m] and up axis of a stage, by USD's defaults where it states none, and flags for stated ones."""

    metres: float
    up: str
    states_metres: bool = True
    states_up: bool = True

    @property
    def states_any(self) -> bool:
        """True if it states its length unit or its up axis; `Usd.Stage.CreateNew` leaves out both."""
        return self.states_metres or self.states_up

    def without_defaults(self) -> StageUnits:
        """Return the same, but metres with z up if it states neither."""
        return self if self.states_any else self._replace(metres=1.0, up='Z')


@dataclass(frozen=True)
class ForeignUnits:
    """A file in a stage that is in other units than the file that refers to it, and was not converted.

    Attributes:
        prim: path of the prim that has it.
        file: relative to the stage's folder.
        factor: how many times too large it is; below 1 it is too small.
        up: its up axis, if it lies on its side; else empty.
    """

    prim: str
    file: str
    factor: float
    up: str

    @property
    def what(self) -> str:
        """Its fault, in words."""
        faults: list[str] = []
        if self.factor != 1:
            larger = self.factor > 1
            times = f'{self.factor if larger else 1 / self.factor:.6g} times too {"large" if larger else "small"}'
            faults.append(f'{times} (scale it by {1 / self.factor:.6g})')
        if self.up:
            faults.append(f'on its side (its up axis is {self.up}: turn it by {90 if self.up == "Y" else -90} about X)')
        return f'a file in other units than what refers to it, which USD does not convert, is {" and ".join(faults)}'

    @property
    def where(self) -> str:
        """The file and the prim, for a warning."""
        return f'@{self.file}@ at <{self.prim}>'


def stage_units(stage: Usd.Stage) -> StageUnits:
    """Return the units of a stage as its root layer states them."""
    from pxr import UsdGeom

    return StageUnits(
        UsdGeom.GetStageMetersPerUnit(stage),
        str(UsdGeom.GetStageUpAxis(stage)),
        UsdGeom.StageHasAuthoredMetersPerUnit(stage),
        stage.HasAuthoredMetadata(UsdGeom.Tokens.upAxis),
    )


def foreign_units(stage: Usd.Stage, units: StageUnits) -> list[ForeignUnits]:
    """Return sublayers, references and payloads, nested ones too, with shapes in units that are not converted.

    A file that states no units is in those of what refers to it.

    Args:
        stage: with all its payloads.
        units: of the stage.
    """
    from pxr import Usd

    finder = _Finder(stage, units)
    for prim in Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)):
        if prim.HasAuthoredReferences() or prim.HasAuthoredPayloads():
            for arc in _arcs(prim.GetPrimIndex().rootNode):
                finder.check(prim, arc)
    return list(finder.found)


class _Finder:
    """Finder of files in foreign units; first those among the sublayers of the stage."""

    def __init__(self, stage: Usd.Stage, units: StageUnits):
        self._units = units
        self._root = stage.GetRootLayer()
        self.found: dict[ForeignUnits, None] = {}
        stack = stage.GetPseudoRoot().GetPrimIndex().rootNode.layerStack
        for layer in stack.layers:
            for spec in layer.rootPrims if layer not in (self._root, stage.GetSessionLayer()) else ():
                if _has_shapes(spec) and (prim := stage.GetPrimAtPath(spec.path)):
                    self._compare(prim, layer, units, 0, lambda other, own=layer: other != own)

    def check(self, prim: Usd.Prim, arc: Pcp.NodeRef) -> None:
        """Compare the layers that a reference or payload brings with the one that has it."""
        from pxr import Usd, UsdGeom

        owner = _owner(arc)
        above, layers = self._units_of(owner), list(arc.layerStack.layers)
        root = arc.layerStack.identifier.rootLayer
        levels = owner.GetDepthBelowIntroduction() if owner.parent else prim.GetPath().pathElementCount
        outside = list(owner.layerStack.layers) if owner.parent and not levels else None

        def is_outside(layer: Sdf.Layer) -> bool:
            return layer in outside if outside else layer not in layers

        everything = Usd.PrimRange(prim, Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate))
        if any(each.IsA(UsdGeom.Boundable) or each.IsA(UsdGeom.Camera) for each in everything):
            self._compare(prim, root, above, levels, is_outside)
        for layer in layers:
            spec = layer.GetPrimAtPath(arc.path) if layer != root else None
            if spec and _has_shapes(spec):
                self._compare(prim, layer, _stated(root, above), 0, lambda other, own=layer: other != own)

    def _compare(
        self, prim: Usd.Prim, layer: Sdf.Layer, base: StageUnits, levels: int, is_outside: Callable[[Sdf.Layer], bool]
    ) -> None:
        """Note a layer in other units than `base`, unless an ancestor up to `levels` above its prim converts them."""
        own = _stated(layer, base)
        ratio = base.metres / own.metres
        if math.isclose(ratio, 1, rel_tol=_SAME) and own.up == base.up:
            return
        linear = _linear(prim, levels, is_outside)
        scale = float(np.cbrt(abs(np.linalg.det(linear)))) or 1.0
        fits = math.isclose(ratio, 1, rel_tol=_SAME) or abs(math.log(scale * ratio)) < abs(math.log(scale))
        turned = _UP[own.up] @ linear / scale @ _UP[base.up] > 0.5
        if not fits or not turned:
            file = os.path.relpath(layer.realPath or layer.identifier, os.path.dirname(self._root.realPath))
            found = ForeignUnits(str(prim.GetPath()), file, 1.0 if fits else ratio, '' if turned else own.up)
            self.found[found] = None

    def _units_of(self, node: Pcp.NodeRef) -> StageUnits:
        """Return the units of the layers of a node."""
        if not node.parent:
            return self._units
        return _stated(node.layerStack.identifier.rootLayer, self._units_of(_owner(node)))


def _stated(layer: Sdf.Layer, base: StageUnits) -> StageUnits:
    """Return the units that a layer states, those of `base` where it states none or invalid ones."""
    root = layer.pseudoRoot
    metres, up = (root.GetInfo(name) if root.HasInfo(name) else None for name in ('metersPerUnit', 'upAxis'))
    return StageUnits(
        metres if metres is not None and math.isfinite(metres) and metres > 0 else base.metres,
        up if up in _UP else base.up,
    )


def _arcs(node: Pcp.NodeRef) -> Iterator[Pcp.NodeRef]:
    """Return the references and payloads that a prim has itself, in whatever file."""
    from pxr import Pcp

    for child in node.children:
        if child.arcType in (Pcp.ArcTypeReference, Pcp.ArcTypePayload) and not child.IsDueToAncestor():
            if child.layerStack.identifier != child.parent.layerStack.identifier:
                yield child
        yield from _arcs(child)


def _owner(arc: Pcp.NodeRef) -> Pcp.NodeRef:
    """Return the node of the file that has an arc: not that of a variant or class in it."""
    node = arc.parent
    while node.parent and node.parent.layerStack.identifier == node.layerStack.identifier:
        node = node.parent
    return node


def _has_shapes(spec: Sdf.PrimSpec) -> bool:
    """Return True if a layer defines shapes, cameras or lights at or below a prim."""
    from pxr import Usd, UsdGeom

    kind = Usd.SchemaRegistry.GetTypeFromName(spec.typeName) if spec.typeName else None
    places = (UsdGeom.Boundable, UsdGeom.Camera)
    return bool(kind and any(kind.IsA(place) for place in places)) or any(map(_has_shapes, spec.nameChildren))


def _linear(prim: Usd.Prim, levels: int, is_outside: Callable[[Sdf.Layer], bool]) -> NDArray[np.float64]:
    """Return the linear part `(3, 3)`, acting on rows, of the transform of a prim and ancestors, `levels` in all.

    Of the prim itself count operations that are written in other layers than the one that it comes from.
    """
    from pxr import Gf, Tf, Usd, UsdGeom

    first, total = Usd.TimeCode.EarliestTime(), Gf.Matrix4d(1)
    try:
        for operation in reversed(UsdGeom.Xformable(prim).GetOrderedXformOps()):
            written = operation.GetAttr().GetPropertyStack(first)
            if written and is_outside(written[0].layer):
                total *= operation.GetOpTransform(first)
        for _ in range(levels - 1):
            if UsdGeom.Xformable(prim).GetResetXformStack():
                break
            prim = prim.GetParent()
            total *= UsdGeom.Xformable(prim).GetLocalTransformation(first)
    except Tf.ErrorException:  # of a transform that cannot be read, which its reader reports
        return np.eye(3)
    linear = np.array(total)[:3, :3]
    return linear if np.isfinite(linear).all() else np.eye(3)


# columns: where a stage's x, y and z axes point in a frame with z up
UP_AXES = {'Z': np.eye(3), 'Y': np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])}


class StageTransforms:
    """Transforms of the prims of a stage, in metres with z up, once the stage is scaled.

    Attributes:
        raw_lengths: whether lengths count as they are written, as if the file had `metersPerUnit = 1`.
        stated: units of the stage, as they count.
        unit: length of the stage's unit [m] without the scale: that of what a scale leaves as it is (densities, gains).
        metres: length of the stage's unit [m] with the scale; of a scale that differs between axes, its geometric mean.
        kilograms: mass of the stage's unit [kg].
        units: `(4, 4)` matrix from the stage's world, in its units and with its up axis, to scaled metres with z up.
    """

    def __init__(
        self, stage: Usd.Stage, scale: Vec3 = NO_SCALE, raw_lengths: bool = False, ignore_usd_defaults: bool = False
    ):
        """`scale` is along x, y, z after the up axis was turned; the rest is as of `LoadOptions`."""
        from pxr import Usd, UsdGeom, UsdPhysics

        self.raw_lengths = raw_lengths
        self.stated = stage_units(stage).without_defaults() if ignore_usd_defaults else stage_units(stage)
        self.unit: float = 1.0 if raw_lengths else self.stated.metres
        self._scale = np.array(scale)
        self._is_even = len(set(scale)) == 1
        self.metres: float = self.unit * (scale[0] if self._is_even else float(np.cbrt(np.prod(self._scale))))
        self.kilograms: float = UsdPhysics.GetStageKilogramsPerUnit(stage)
        self.units = np.eye(4)
        self.units[:3, :3] = self._scale[:, None] * (UP_AXES[self.stated.up] * self.unit)
        self._xforms = UsdGeom.XformCache(Usd.TimeCode.EarliestTime())

    def metres_along(self, direction: NDArray[np.float64]) -> float:
        """Return the length of the stage's unit [m] with the scale, along a direction `(3,)` of the scaled world."""
        return self.metres if self._is_even else float(self.unit / np.linalg.norm(direction / self._scale))

    def matrix(self, prim: Usd.Prim) -> NDArray[np.float64]:
        """Return the `(4, 4)` transform from a prim to the world; acts on columns. ValueError if it is not finite."""
        matrix = self.units @ np.array(_to_world(prim, self._xforms)).T
        if not np.isfinite(matrix).all():
            raise ValueError(f'{prim.GetPath()}: the transform is not finite')
        return matrix

    def relative(self, prim: Usd.Prim, ancestor: Usd.Prim) -> NDArray[np.float64]:
        """Return the `(4, 4)` transform from a prim to one above it, in the stage's units, bit-equal for copies."""
        matrix, _ = self._xforms.ComputeRelativeTransform(prim, ancestor)
        return np.array(matrix).T

    def frame(self, prim: Usd.Prim) -> Frame:
        """Return the pose of a prim in the world, without its scale. ValueError if the scale is zero."""
        matrix = self.matrix(prim)
        if np.linalg.matrix_rank(matrix[:3, :3]) < 3:
            raise ValueError(f'{prim.GetPath()}: a rigid body cannot have a scale of zero')
        return Frame(matrix[:3, 3], polar(matrix[:3, :3])[0])


@named_by_prim
def _to_world(prim: Usd.Prim, xforms: UsdGeom.XformCache) -> Gf.Matrix4d:
    return xforms.GetLocalToWorldTransform(prim)


def prims(stage: Usd.Stage) -> Iterator[Usd.Prim]:
    """Return active, loaded, defined prims, those inside instances included."""
    from pxr import Usd

    return iter(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)))
