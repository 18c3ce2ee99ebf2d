"""Model files of a home: one for each design, `/Root/Instance` with its groups and meshes, `/Root/Looks` next to it.

Lengths are centimetres, z is up. A mesh has its own material and hangs below a Mesh prim without points, in whose frame
its points are.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.homes.designs import Design, Part
from benchmarks.homes.material_prims import add_material
from benchmarks.homes.materials import Appearance
from benchmarks.homes.prims import CENTIMETRES, add_prim, new_layer, save, set_attribute, set_place, set_targets
from benchmarks.homes.shapes import Array

_CHILDREN = 2  # meshes below one that has no points


class MeshPlace(NamedTuple):
    """Place of a part of a design in its file: its path below the root, and the origin of its own frame [m]."""

    path: str
    origin: Array
    part: int


def group_name(design: Design, group: int) -> str:
    """Name of the prim of a group; '' in a design without joints, whose meshes are right below `Instance`."""
    if not design.joints:
        return ''
    static = 'Group_Static' if design.category in ('window', 'wardrobe', 'nightstand') else 'Group_00'
    return f'Group_{group:02}' if group else static


def group_origin(design: Design, group: int) -> Array:
    """The frame of a group: where its joint is [m]."""
    return np.array(next((joint.anchor for joint in design.joints if joint.group == group), (0.0, 0.0, 0.0)))


def mesh_places(design: Design) -> list[MeshPlace]:
    """Return the places of the parts of a design, in order; `Instance/Group_01/wood_03/SM_wood_03`, for example."""
    found: list[MeshPlace] = []
    members: dict[int, int] = {}
    parent, origin = '', np.zeros(3)
    for k, part in enumerate(design.parts):
        number = members.get(part.group, 0)
        if number % _CHILDREN == 0 or design.parts[k - 1].group != part.group:
            name = group_name(design, part.group)
            parent = f'Instance/{name + "/" if name else ""}{part.role}_{k:03}'
            origin = np.round(part.surface.bounds.mean(axis=0), 2)
        members[part.group] = number + 1
        found.append(MeshPlace(f'{parent}/SM_{part.role}_{k:03}', origin, k))
    return found


def write_model(path: Path, design: Design, materials: Sequence[Appearance], assets: str, *, preview: bool) -> None:
    """Write the file of a design.

    Args:
        path: of the file.
        design: what is in it.
        materials: of its parts.
        assets: the folder of the materials as the file calls it.
        preview: write UsdPreviewSurface, whatever the kind of the material.
    """
    from pxr import Gf, Sdf

    layer, root = new_layer('Root')
    with Sdf.ChangeBlock():
        add_prim(root, 'Instance', 'Xform')
        for group in {part.group for part in design.parts} if design.joints else ():
            _add_group(root, design, group)
        scope = add_prim(root, 'Looks', 'Scope')
        for appearance in dict.fromkeys(materials):
            add_material(scope, appearance, assets, preview=preview)
        for place, appearance in zip(mesh_places(design), materials, strict=True):
            part = design.parts[place.part]
            parent_path, _, name = place.path.rpartition('/')
            parent = layer.GetPrimAtPath(f'/Root/{parent_path}')
            if not parent:
                above, _, parent_name = parent_path.rpartition('/')
                parent = add_prim(layer.GetPrimAtPath(f'/Root/{above}'), parent_name, 'Mesh')
                at = CENTIMETRES * (place.origin - group_origin(design, part.group))
                set_attribute(parent, 'xformOp:translate', 'Double3', Gf.Vec3d(*at))
                set_attribute(parent, 'xformOpOrder', 'TokenArray', ['xformOp:translate'], uniform=True)
            mesh = add_prim(parent, name, 'Mesh', ['MaterialBindingAPI'])
            _add_surface(mesh, part, place.origin)
            set_targets(mesh, 'material:binding', [f'/Root/Looks/{appearance.name}'])
    save(layer, path)


def _add_surface(mesh: Any, part: Part, origin: Array) -> None:
    from pxr import Vt

    surface = part.surface
    points = (CENTIMETRES * (surface.points - origin)).astype(np.float32)
    set_attribute(mesh, 'points', 'Point3fArray', Vt.Vec3fArray.FromNumpy(points))
    count = np.full(len(surface.triangles), 3, np.int32)
    set_attribute(mesh, 'faceVertexCounts', 'IntArray', Vt.IntArray.FromNumpy(count))
    set_attribute(
        mesh, 'faceVertexIndices', 'IntArray', Vt.IntArray.FromNumpy(np.ascontiguousarray(surface.triangles.ravel()))
    )
    extent = np.stack([points.min(axis=0), points.max(axis=0)])
    set_attribute(mesh, 'extent', 'Float3Array', Vt.Vec3fArray.FromNumpy(extent))
    set_attribute(mesh, 'subdivisionScheme', 'Token', 'none', uniform=True)
    coordinates = set_attribute(mesh, 'primvars:st', 'TexCoord2fArray', Vt.Vec2fArray.FromNumpy(surface.coordinates()))
    coordinates.SetInfo('interpolation', 'faceVarying')
    normals = Vt.Vec3fArray.FromNumpy(surface.normals().astype(np.float32))
    interpolation = 'vertex' if surface.smooth else 'faceVarying'
    set_attribute(mesh, 'normals', 'Normal3fArray', normals).SetInfo('interpolation', interpolation)


def _add_group(root: Any, design: Design, group: int) -> None:
    """The prim of a group, with the joint that it moves by."""
    from pxr import Gf

    instance = root.nameChildren['Instance']
    prim = add_prim(instance, group_name(design, group), 'Xform')
    set_place(prim, group_origin(design, group), 0)
    for joint in design.joints:
        if joint.group != group:
            continue
        kind = {'revolute': 'PhysicsRevoluteJoint', 'prismatic': 'PhysicsPrismaticJoint'}[joint.kind]
        made = add_prim(prim, f'joint_{group:02}', kind)
        scale = CENTIMETRES if joint.kind == 'prismatic' else 1.0
        set_attribute(made, 'physics:axis', 'Token', joint.axis, uniform=True)
        set_attribute(made, 'physics:lowerLimit', 'Float', scale * joint.low)
        set_attribute(made, 'physics:upperLimit', 'Float', scale * joint.high)
        set_attribute(made, 'physics:localPos0', 'Point3f', Gf.Vec3f(*(CENTIMETRES * np.array(joint.anchor))))
        set_attribute(made, 'physics:localPos1', 'Point3f', Gf.Vec3f(0))
        for side, owner in enumerate((group_name(design, 0), prim.name)):
            set_targets(made, f'physics:body{side}', [instance.path.AppendChild(owner)])
