"""Primvars, values that vary over a surface: colours, normals and texture coordinates of geometry prims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.model.importers.file_warnings import FileWarnings
from internutopia.model.importers.usd.shapes import Indexed, Shape
from internutopia.model.importers.usd.transforms import Array
from internutopia.model.importers.usd.values import array, value

if TYPE_CHECKING:
    from pxr import Usd, UsdGeom

_COORDINATES = ('st', 'st0', 'st_0', 'UVMap', 'map1')  # what exporters call texture coordinates
_SAME_COLOUR = 1 / 255


class Primvars:
    """Reader of primvars; a wrong one is left out, with a warning."""

    def __init__(self, warnings: FileWarnings):
        self._warnings = warnings

    def mean(self, prim: Usd.Prim, name: str) -> Array | None:
        """Return a colour or opacity of the prim or one above it, as `(n,)`, averaged if it varies over the surface."""
        from pxr import UsdGeom

        values = self._values(UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance(name))
        if values is None:
            return None
        if np.ptp(values, axis=0).max() > _SAME_COLOUR:
            self._warnings.add(f'{name} that varies over the surface is averaged', prim)
        return np.atleast_1d(values.mean(axis=0))

    def coordinates(self, mesh: Usd.Prim, shape: Shape, name: str) -> Indexed | None:
        """Return texture coordinates of a mesh: those of that name, if it has any, else the usual ones."""
        return self._first(mesh, shape, ((name,) if name else ()) + _COORDINATES, 2)

    def normals(self, mesh: Usd.Prim, shape: Shape) -> Indexed | None:
        """Return unit normals of a mesh, along the axes of its shape."""
        from pxr import UsdGeom

        found = self._first(mesh, shape, ('normals',), 3)
        if found is None:
            values = array(mesh, 'normals', float, 3)
            found = _at_corners(mesh, shape, values, UsdGeom.Mesh(mesh).GetNormalsInterpolation(), 3)
        if found is None:
            return None
        turned = found.values @ np.linalg.inv(shape.stretch)
        lengths = np.linalg.norm(turned, axis=1, keepdims=True)
        return Indexed(turned / lengths, found.index) if np.isfinite(lengths).all() and lengths.all() else None

    def _first(self, mesh: Usd.Prim, shape: Shape, names: tuple[str, ...], width: int) -> Indexed | None:
        """Return the first of these primvars of a mesh that fits it, for the corners of the triangles of a shape."""
        from pxr import UsdGeom

        for name in names:
            primvar = UsdGeom.PrimvarsAPI(mesh).FindPrimvarWithInheritance(name)
            values = self._values(primvar)
            if values is None:
                continue
            found = _at_corners(mesh, shape, values, primvar.GetInterpolation(), width)
            if found is not None:
                return found
            self._warnings.add(f'primvar {name} does not fit the mesh', mesh)
        return None

    def _values(self, primvar: UsdGeom.Primvar) -> Array | None:
        """Return values of a primvar by index, `(n,)` or `(n, width)`; None if it has none that can be read."""
        from pxr import Tf, Usd

        if not primvar or not primvar.HasValue():
            return None
        try:
            values = np.asarray(primvar.ComputeFlattened(Usd.TimeCode.EarliestTime()), float)
        except (Tf.ErrorException, TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.size and np.isfinite(values).all():
            return np.atleast_1d(values)
        if values.size:
            self._warnings.add(f'primvar {primvar.GetPrimvarName()} cannot be read', primvar.GetAttr().GetPrim())
        return None


def polygons(mesh: Usd.Prim, shape: Shape) -> NDArray[np.intp]:
    """Return the face `(m,)` of a mesh prim that each triangle of its shape is part of."""
    assert shape.corners is not None
    return np.searchsorted(np.cumsum(value(mesh, 'faceVertexCounts')), shape.corners[:, 0], side='right')


def _at_corners(mesh: Usd.Prim, shape: Shape, values: Any, interpolation: str, width: int) -> Indexed | None:
    """Return values and indices `(m, 3)` for the corners of a shape's triangles; None if their number does not fit."""
    assert shape.corners is not None
    if interpolation in ('vertex', 'varying'):
        index = np.asarray(value(mesh, 'faceVertexIndices'))[shape.corners]
    elif interpolation == 'uniform':
        index = np.repeat(polygons(mesh, shape)[:, None], 3, axis=1)
    else:
        index = shape.corners if interpolation == 'faceVarying' else np.zeros_like(shape.corners)
    if values.ndim != 2 or values.shape[1] != width or index.max(initial=-1) >= len(values):
        return None
    used, index = np.unique(index, return_inverse=True)
    return Indexed(values[used], index.reshape(-1, 3).astype(np.int32))
