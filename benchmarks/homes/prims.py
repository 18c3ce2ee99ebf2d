"""Prim specs: short forms for what a stage is written with, straight into a layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

CENTIMETRES = 100.0  # to a metre


def new_layer(root: str) -> tuple[Any, Any]:
    """A layer in memory in centimetres with z up, and the spec of its default prim, an Xform of that name."""
    from pxr import Sdf

    layer = Sdf.Layer.CreateAnonymous('.usdc')
    layer.defaultPrim = root
    for key, value in (('metersPerUnit', 1 / CENTIMETRES), ('upAxis', 'Z')):
        layer.pseudoRoot.SetInfo(key, value)
    return layer, Sdf.PrimSpec(layer, root, Sdf.SpecifierDef, 'Xform')


def save(layer: Any, path: Path) -> None:
    """Write a layer as a crate file. OSError if that is not possible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not layer.Export(str(path)):
        raise OSError(f'{path} cannot be written')


def add_prim(parent: Any, name: str, kind: str, schemas: Sequence[str] = ()) -> Any:
    """The spec of a prim of a type with API schemas, below another one; without a type it is an override."""
    from pxr import Sdf

    prim = Sdf.PrimSpec(parent, name, Sdf.SpecifierDef if kind else Sdf.SpecifierOver, kind)
    if schemas:
        prim.SetInfo('apiSchemas', Sdf.TokenListOp.Create(prependedItems=list(schemas)))
    return prim


def set_attribute(prim: Any, name: str, kind: str, value: object = None, *, uniform: bool = False) -> Any:
    """A new attribute spec; `kind` is a name of `Sdf.ValueTypeNames`."""
    from pxr import Sdf

    variability = Sdf.VariabilityUniform if uniform else Sdf.VariabilityVarying
    attribute = Sdf.AttributeSpec(prim, name, getattr(Sdf.ValueTypeNames, kind), variability)
    if value is not None:
        attribute.default = value
    return attribute


def set_targets(prim: Any, name: str, targets: Sequence[Any]) -> None:
    """A new relationship spec to some paths."""
    from pxr import Sdf

    Sdf.RelationshipSpec(prim, name, False).targetPathList.explicitItems = [Sdf.Path(str(path)) for path in targets]


def connect(attribute: Any, shader: Any, output: str) -> None:
    """Let an attribute have the value of an output of a shader."""
    attribute.connectionPathList.explicitItems = [shader.path.AppendProperty(output)]


def set_place(prim: Any, position: ArrayLike, quarters: int) -> None:
    """Give a prim spec its place [m] and yaw [quarter turns], by translate, orient and scale."""
    from pxr import Gf

    half = np.pi / 4 * quarters
    set_attribute(
        prim, 'xformOp:translate', 'Double3', Gf.Vec3d(*(float(c) for c in CENTIMETRES * np.asarray(position)))
    )
    set_attribute(prim, 'xformOp:orient', 'Quatf', Gf.Quatf(float(np.cos(half)), 0.0, 0.0, float(np.sin(half))))
    set_attribute(prim, 'xformOp:scale', 'Float3', Gf.Vec3f(1.0))
    order = ['xformOp:translate', 'xformOp:orient', 'xformOp:scale']
    set_attribute(prim, 'xformOpOrder', 'TokenArray', order, uniform=True)
