"""Values of the attributes of prims, with error messages that name prim and attribute."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pxr import Usd

P = ParamSpec('P')
R = TypeVar('R')
_NUMBERS = tuple(f'{kind}Array' for kind in ('Int', 'UInt', 'Int64', 'UInt64', 'UChar', 'Half', 'Float', 'Double'))
_UNREADABLE = (TypeError, ValueError, AttributeError, LookupError, OverflowError, np.linalg.LinAlgError)


def value(prim: Usd.Prim, name: str) -> Any:
    """Return an attribute's value: its first time sample, else its default; None without either or the attribute.

    ValueError for an attribute of a schema that the file gives another type.
    """
    from pxr import Usd

    attribute = prim.GetAttribute(name)
    if not attribute:
        return None
    found = attribute.Get(Usd.TimeCode.EarliestTime())
    schema = prim.GetPrimDefinition().GetAttributeDefinition(name)
    if schema and found is not None and _form(found) != _form(schema.GetTypeName().defaultValue):
        wanted = schema.GetTypeName()
        raise ValueError(f'{prim.GetPath()}: {name} must be of type {wanted}, it is a {type(found).__name__}')
    return found


def array(prim: Usd.Prim, name: str, kind: type, width: int = 0) -> NDArray[Any]:
    """Return an attribute's array `(n,)` or `(n, width)` as floats or ints; empty if there is none."""
    found = value(prim, name)
    return np.asarray(found, kind) if found else np.zeros((0, width) if width else 0, kind)


def bound_material(prim: Usd.Prim, purpose: str = '') -> Usd.Prim | None:
    """Return the material prim that is bound to a prim, or to one above it; `purpose`: `physics`, or all."""
    from pxr import UsdPhysics, UsdShade

    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial(purpose)
    bound = material.GetPrim() if material else None
    return None if bound and purpose == 'physics' and not bound.HasAPI(UsdPhysics.MaterialAPI) else bound


def named_by_prim(read: Callable[Concatenate[Usd.Prim, P], R]) -> Callable[Concatenate[Usd.Prim, P], R]:
    """Turn errors of a reader of a prim into a ValueError that names the prim."""

    @wraps(read)
    def reader(prim: Usd.Prim, *args: P.args, **kwargs: P.kwargs) -> R:
        from pxr import Tf

        try:
            return read(prim, *args, **kwargs)
        except (*_UNREADABLE, Tf.ErrorException) as error:
            path = str(prim.GetPath())
            parts = error.args if isinstance(error, Tf.ErrorException) else ()
            message = ' '.join('; '.join(str(part.commentary) for part in parts).split()) or str(error)
            raise ValueError(message if path in message else f'{path}: {message}') from error

    return reader


def _form(found: Any) -> str:
    """Return the same name for value types that convert into each other, with their kind and if it is an array."""
    if isinstance(found, int | float) and not isinstance(found, bool):
        return 'number'
    name = type(found).__name__
    if not name.endswith('Array'):
        return name.rstrip('fdhi')  # Vec3f, Vec3d, Vec3h
    return 'numbers' if name in _NUMBERS else name.removesuffix('Array').rstrip('fdhi') + 's'
