"""`isaacsim.core.utils.mesh`, `.bounds` and `.semantics`: vertices, boxes and labels of prims of the stage, at present.

Lengths in metres. Labels are those of prims: what is added to the stage changes neither images nor what
`env.runner.objects` finds.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.compat.omni import mirror
from internutopia.compat.omni.xforms import get_relative_transform

if TYPE_CHECKING:
    from pxr import Usd, UsdGeom

MESH = ('get_mesh_vertices_relative_to',)
"""Names of `isaacsim.core.utils.mesh`."""
BOUNDS = (
    *('compute_aabb', 'compute_combined_aabb', 'compute_obb', 'compute_obb_corners', 'create_bbox_cache'),
    *('get_obb_corners', 'recompute_extents'),
)
"""Names of `isaacsim.core.utils.bounds`."""
SEMANTICS = (
    *('add_labels', 'add_update_semantics', 'count_labels_in_scene', 'get_labels', 'get_semantics', 'remove_labels'),
    'remove_all_semantics',
)
"""Names of `isaacsim.core.utils.semantics`."""

Array = NDArray[np.float64]

_LABELS = 'semantics:labels:'
_OLD_LABELS = 'semantic:'  # <name>:params:semanticType, ...:semanticData


def get_mesh_vertices_relative_to(mesh_prim: UsdGeom.Mesh, coord_prim: Usd.Prim) -> Array:
    """Return the vertices `(n, 3)` of a mesh in the frame of a prim. ValueError if it has none."""
    from pxr import UsdGeom

    points = UsdGeom.Mesh(mesh_prim).GetPointsAttr().Get()
    if points is None:
        raise ValueError(f'{mesh_prim.GetPath()} has no points')
    matrix = get_relative_transform(mesh_prim.GetPrim(), coord_prim)
    return np.asarray(points, float) @ matrix[:3, :3].T + matrix[:3, 3]


def create_bbox_cache(time: Any = None, use_extents_hint: bool = True) -> UsdGeom.BBoxCache:
    """Return a cache of boxes, for shapes of the default purpose."""
    from pxr import Usd, UsdGeom

    when = Usd.TimeCode.Default() if time is None else time
    return UsdGeom.BBoxCache(when, [UsdGeom.Tokens.default_], use_extents_hint)


def recompute_extents(prim: UsdGeom.Boundable, time: Any = None, include_children: bool = False) -> None:
    """Set the extents of a shape, and (`include_children`) of those below it, by their points and sizes."""
    from pxr import Usd, UsdGeom

    when = Usd.TimeCode.Default() if time is None else time
    prims = Usd.PrimRange(prim.GetPrim()) if include_children else [prim.GetPrim()]
    for shape in map(UsdGeom.Boundable, prims):
        extent = UsdGeom.Boundable.ComputeExtentFromPlugins(shape, when) if shape else None
        if extent:
            shape.CreateExtentAttr(extent, True).Set(extent, when)


def compute_aabb(bbox_cache: UsdGeom.BBoxCache, prim_path: str, include_children: bool = False) -> Array:
    """Return the least and greatest x, y, z `(6,)` [m] of a prim and what is below it, in the world.

    What is below it always counts. ValueError if there is no shape.
    """
    box = _world_box(bbox_cache, prim_path).ComputeAlignedRange()
    return np.array([*box.GetMin(), *box.GetMax()])


def compute_combined_aabb(bbox_cache: UsdGeom.BBoxCache, prim_paths: list[str]) -> Array:
    """Return the least and greatest x, y, z `(6,)` [m] of several prims, in the world."""
    boxes = np.array([compute_aabb(bbox_cache, path) for path in prim_paths])
    return np.concatenate([boxes[:, :3].min(axis=0), boxes[:, 3:].max(axis=0)])


def compute_obb(bbox_cache: UsdGeom.BBoxCache, prim_path: str) -> tuple[Array, Array, Array]:
    """Return middle `(3,)`, axes `(3, 3)`, a row each, and half lengths `(3,)` of a box along the axes of a prim."""
    _world_box(bbox_cache, prim_path)
    prim = mirror.get_prim_at_path(prim_path)
    box = bbox_cache.ComputeUntransformedBound(prim).ComputeAlignedRange()
    low, high = np.array(box.GetMin()), np.array(box.GetMax())
    matrix = np.array(mirror.get_world_transform_matrix(prim))
    lengths = np.linalg.norm(matrix[:3, :3], axis=1)
    middle = 0.5 * (low + high) @ matrix[:3, :3] + matrix[3, :3]
    return middle, matrix[:3, :3] / lengths[:, None], 0.5 * (high - low) * lengths


def get_obb_corners(centroid: Any, axes: Any, half_extent: Any) -> Array:
    """Return the corners `(8, 3)` of a box, z alternating fastest."""
    signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    return np.asarray(centroid) + (signs * np.asarray(half_extent)) @ np.asarray(axes)


def compute_obb_corners(bbox_cache: UsdGeom.BBoxCache, prim_path: str) -> Array:
    """Return the corners `(8, 3)` of the box of `compute_obb`."""
    return get_obb_corners(*compute_obb(bbox_cache, prim_path))


def add_labels(prim: Usd.Prim, labels: list[str], instance_name: str = 'class', overwrite: bool = True) -> None:
    """Give a prim labels of a type, instead of (`overwrite`) or besides those that it has."""
    from pxr import Sdf, Vt

    before = [] if overwrite else get_labels(prim).get(instance_name, [])
    attribute = prim.CreateAttribute(f'{_LABELS}{instance_name}', Sdf.ValueTypeNames.TokenArray)
    attribute.Set(Vt.TokenArray([*before, *labels]))


def get_labels(prim: Usd.Prim) -> dict[str, list[str]]:
    """Return the labels of a prim by type."""
    found: dict[str, list[str]] = {}
    for attribute in prim.GetAttributes():
        name = attribute.GetName()
        if name.startswith(_LABELS):
            found[name.removeprefix(_LABELS)] = list(attribute.Get() or ())
        elif name.startswith(_OLD_LABELS) and name.endswith(':params:semanticType'):
            data = prim.GetAttribute(name.removesuffix('Type') + 'Data').Get()
            found.setdefault(attribute.Get(), []).append(data)
    return found


def remove_labels(prim: Usd.Prim, instance_name: str | None = None, include_descendants: bool = False) -> None:
    """Remove the labels of a prim, those of one type or all, and those of what is below it."""
    from pxr import Usd

    for each in Usd.PrimRange(prim) if include_descendants else [prim]:
        for attribute in list(each.GetAttributes()):
            name = attribute.GetName()
            of_type = name == f'{_LABELS}{instance_name}'
            if of_type or (instance_name is None and name.startswith((_LABELS, _OLD_LABELS))):
                attribute.Block() if not each.RemoveProperty(name) else None


def count_labels_in_scene(prim_path: str | None = None) -> dict[str, int]:
    """Return how many prims at and below a path have each label; `missing_labels` is the number of shapes without."""
    from pxr import Usd, UsdGeom

    root = mirror.get_prim_at_path(prim_path or '/World')
    counts: Counter[str] = Counter(missing_labels=0)
    for prim in Usd.PrimRange(root):
        labels = [label for each in get_labels(prim).values() for label in each]
        counts.update(labels)
        counts['missing_labels'] += bool(prim.IsA(UsdGeom.Mesh) and not labels)
    return dict(counts)


def add_update_semantics(prim: Usd.Prim, semantic_label: str, type_label: str = 'class', suffix: str = '') -> None:
    """Give a prim a label of a type, instead of the one that it has."""
    add_labels(prim, [semantic_label], type_label)


def get_semantics(prim: Usd.Prim) -> dict[str, tuple[str, str]]:
    """Return the type and label of each label of a prim."""
    labels = [(kind, label) for kind, each in get_labels(prim).items() for label in each]
    return {f'Semantics_{i}' if i else 'Semantics': pair for i, pair in enumerate(labels)}


def remove_all_semantics(prim: Usd.Prim, recursive: bool = False) -> None:
    """Remove all labels of a prim, and (`recursive`) of what is below it."""
    remove_labels(prim, include_descendants=recursive)


def _world_box(bbox_cache: UsdGeom.BBoxCache, prim_path: str) -> Any:
    prim = mirror.existing_prim(prim_path)
    bbox_cache.Clear()  # things may have moved
    box = bbox_cache.ComputeWorldBound(prim)
    if box.GetRange().IsEmpty():
        raise ValueError(f'there is no shape at or below {prim_path!r}')
    return box
