"""Prims on a stage of OpenUSD; Isaac Sim's `pxr` can be imported once its app runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


class Prims:
    """Prims of the root layer of a `pxr.Usd.Stage`, which a USD text describes."""

    def __init__(self, stage: Any):
        self._stage = stage
        self._layer = stage.GetRootLayer()

    def copy(self, text: str, paths: Sequence[str], prim: str) -> None:
        """Copy the prim of a name in a text to some paths; what refers to it there refers to the copy."""
        from pxr import Sdf

        source = parsed(text)
        with Sdf.ChangeBlock():
            for path in paths:
                if self._layer.GetPrimAtPath(path):
                    del self._layer.GetPrimAtPath(path).nameParent.nameChildren[path.rpartition('/')[2]]
                Sdf.CreatePrimInLayer(self._layer, path)
                Sdf.CopySpec(source, f'/{prim}', self._layer, path)

    def set(self, values: Sequence[tuple[str, str, str, Any]]) -> None:
        """Set attributes: path of the prim, name, type, value; tuples are vectors."""
        from pxr import Sdf

        with Sdf.ChangeBlock():
            for path, name, kind, value in values:
                prim = Sdf.CreatePrimInLayer(self._layer, path)
                attribute = prim.attributes.get(name)
                if attribute is None:
                    uniform = Sdf.VariabilityUniform if name == 'xformOpOrder' else Sdf.VariabilityVarying
                    attribute = Sdf.AttributeSpec(prim, name, Sdf.ValueTypeNames.Find(kind), uniform)
                attribute.default = value

    def update(self, path: str, text: str) -> None:
        """Give a prim of the stage the API schemas and attributes of the prim in a text."""
        prim, source = self._stage.GetPrimAtPath(path), parsed(text)
        for schema in source.rootPrims[0].GetInfo('apiSchemas').prependedItems:
            prim.AddAppliedSchema(schema)
        for attribute in source.rootPrims[0].attributes:
            prim.CreateAttribute(attribute.name, attribute.typeName).Set(attribute.default)


def pose(path: str, position: Floats, orientation: Floats | None = None) -> list[tuple[str, str, str, Any]]:
    """Return the attributes that put a prim somewhere, for `Prims.set`."""
    values: list[tuple[str, str, str, Any]] = [(path, 'xformOp:translate', 'double3', tuple(position.tolist()))]
    order = ['xformOp:translate']
    if orientation is not None:
        from pxr import Gf

        values.append((path, 'xformOp:orient', 'quatd', Gf.Quatd(*orientation.tolist())))
        order.append('xformOp:orient')
    return [*values, (path, 'xformOpOrder', 'token[]', order)]


def parsed(text: str) -> Any:
    """Return a USD text, without its first line, as a layer."""
    from pxr import Sdf

    layer = Sdf.Layer.CreateAnonymous('.usda')
    layer.ImportFromString(f'#usda 1.0\n{text}')
    return layer
