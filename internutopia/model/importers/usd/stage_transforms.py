"""Transforms of the prims of a stage to metres with z up, and the prims that exist for a viewer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from internutopia.model.importers.transforms import Frame, polar
from internutopia.model.importers.usd.units import stage_units
from internutopia.model.importers.usd.values import named_by_prim
from internutopia.model.spec import NO_SCALE, Vec3

if TYPE_CHECKING:
    from pxr import Gf, Usd, UsdGeom

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
