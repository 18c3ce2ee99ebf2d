"""Opening a stage and walking over the prims that exist for a viewer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.model import NO_SCALE, Vec3
from internutopia.core.scene.usd.linear import Frame, polar

if TYPE_CHECKING:
    from pxr import Usd

# columns: where a stage's x, y and z axes point in a frame with z up
_UP_AXES = {'Z': np.eye(3), 'Y': np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])}


def open_stage(path: Path) -> Usd.Stage:
    """Open a stage with all its payloads. ValueError if it, or a layer it is composed of, is missing or broken."""
    from pxr import Tf, Usd

    try:
        stage = Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        raise ValueError(f'{path}: {"; ".join(str(part.commentary).strip() for part in error.args)}') from None
    errors = [str(error).strip() for error in stage.GetCompositionErrors()]
    if errors:
        raise ValueError(f'{path}: {"; ".join(errors)}')
    return stage


def layer_files(stage: Usd.Stage) -> set[Path]:
    """Files that the layers of a stage were read from."""
    from pxr import Ar

    names = (layer.realPath for layer in stage.GetUsedLayers())
    outer = (Ar.SplitPackageRelativePathOuter(name)[0] for name in names)  # `a.usdz[b.usda]` lies in a.usdz
    return {Path(name) for name in outer if name}


class Places:
    """Where the prims of a stage are, in metres with z up, once the stage is scaled.

    Attributes:
        raw_lengths: whether lengths count as they are written, as if the file said `metersPerUnit = 1`.
        unit: length of the stage's unit [m] without the scale: that of what a scale leaves as it is (densities, gains).
        metres: length of the stage's unit [m] with the scale; of a scale that differs between axes, its geometric mean.
        kilograms: mass of the stage's unit [kg].
        units: `(4, 4)` matrix from the stage's world, in its units and with its up axis, to scaled metres with z up.
    """

    def __init__(self, stage: Usd.Stage, scale: Vec3 = NO_SCALE, raw_lengths: bool = False):
        """`scale` is along x, y, z after the up axis was turned."""
        from pxr import Usd, UsdGeom, UsdPhysics

        self.raw_lengths = raw_lengths
        self.unit: float = 1.0 if raw_lengths else UsdGeom.GetStageMetersPerUnit(stage)
        self._scale = np.array(scale)
        self._is_even = len(set(scale)) == 1
        self.metres: float = self.unit * (scale[0] if self._is_even else float(np.cbrt(np.prod(self._scale))))
        self.kilograms: float = UsdPhysics.GetStageKilogramsPerUnit(stage)
        self.units = np.eye(4)
        self.units[:3, :3] = self._scale[:, None] * (_UP_AXES[UsdGeom.GetStageUpAxis(stage)] * self.unit)
        self._xforms = UsdGeom.XformCache(Usd.TimeCode.EarliestTime())

    def metres_along(self, direction: NDArray[np.float64]) -> float:
        """Length of the stage's unit [m] with the scale, along a direction `(3,)` of the scaled world."""
        return self.metres if self._is_even else float(self.unit / np.linalg.norm(direction / self._scale))

    def matrix(self, prim: Usd.Prim) -> NDArray[np.float64]:
        """`(4, 4)` transform from a prim to the world; acts on columns. ValueError if it is not finite."""
        matrix = self.units @ np.array(self._xforms.GetLocalToWorldTransform(prim)).T
        if not np.isfinite(matrix).all():
            raise ValueError(f'{prim.GetPath()}: the transform is not finite')
        return matrix

    def frame(self, prim: Usd.Prim) -> Frame:
        """Position and rotation of a prim in the world, without its scale. ValueError if the scale is zero."""
        matrix = self.matrix(prim)
        if np.linalg.matrix_rank(matrix[:3, :3]) < 3:
            raise ValueError(f'{prim.GetPath()}: a rigid body cannot have a scale of zero')
        return Frame(matrix[:3, 3], polar(matrix[:3, :3])[0])


def prims(stage: Usd.Stage) -> Iterator[Usd.Prim]:
    """Active, loaded, defined prims, those inside instances included."""
    from pxr import Usd, UsdGeom

    traversal = iter(Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)))
    for prim in traversal:
        if prim.IsA(UsdGeom.PointInstancer):
            traversal.PruneChildren()  # prototypes do not stand where they are defined
        yield prim
