"""Mesh files (OBJ, STL, PLY): triangles and materials -> a stage, with the axes and lengths of the file.

OBJ: all groups, with materials (Kd, d, map_Kd) of the files that it names; a mesh for each material. PLY is read by
trimesh, an optional package: triangles, normals, texture coordinates and colours of points.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from internutopia.model.asset_files import check_file
from internutopia.model.importers.as_usd.writer import ROOT, StageWriter, Surface, Triangles
from internutopia.model.meshes.images import decode_srgb
from internutopia.model.meshes.mesh_files import (
    material_libraries,
    obj_materials,
    read_obj,
    read_stl,
    read_with_trimesh,
)


def write(path: Path, writer: StageWriter) -> None:
    """Write a file to a stage. ValueError if it is broken, or has no triangles."""
    suffix = path.suffix.lower()
    check_file(path, 'text_size' if suffix == '.obj' else 'file_size')
    if suffix == '.obj':
        _write_obj(path, writer)
    elif suffix == '.stl':
        points, faces = read_stl(path.read_bytes())
        writer.mesh(ROOT, path.stem, Triangles(points, faces))
    else:
        _write_ply(path, writer)


def _write_obj(path: Path, writer: StageWriter) -> None:
    data = path.read_bytes()
    obj = read_obj(data)
    libraries = material_libraries(path)
    writer.files |= set(libraries)
    materials = obj_materials(libraries)
    points, texcoords, corners = obj.vertices, None, obj.faces
    if obj.texcoords is not None and obj.texfaces is not None:  # a point for each pair of place and coordinate
        pairs, corners = np.unique(
            np.stack([obj.faces.ravel(), obj.texfaces.ravel()], axis=1), axis=0, return_inverse=True
        )
        points, texcoords = obj.vertices[pairs[:, 0]], obj.texcoords[pairs[:, 1]]
        corners = corners.reshape(-1, 3)
    for number, name in enumerate(obj.materials):
        used, faces = np.unique(corners[obj.face_materials == number], return_inverse=True)
        shown = materials.get(name)
        if name and shown is None:
            writer.warn('materials are not found', f'{name} of {path.name}')
        material = ''
        if shown is not None:
            color = tuple(decode_srgb(shown.color[:3]).tolist())
            if shown.image is not None:
                writer.files.add(shown.image)
            image = '' if shown.image is None else str(shown.image)
            material = writer.material(name, Surface(color=color, opacity=shown.color[3], image=image))
        part = Triangles(
            points[used],
            faces.reshape(-1, 3),
            texcoords=None if texcoords is None else texcoords[used],
            material=material,
        )
        writer.mesh(ROOT, name or path.stem, part)


def _write_ply(path: Path, writer: StageWriter) -> None:
    mesh = read_with_trimesh(path)
    normals = mesh.vertex_normals if mesh._cache.cache.get('vertex_normals') is not None else None
    points, faces, colors = mesh.vertices, mesh.faces, None
    if mesh.visual.kind == 'vertex':
        colors = mesh.visual.vertex_colors
    elif mesh.visual.kind == 'face':  # points of a triangle's own have its colour
        points, faces, normals = points[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3), None
        colors = np.repeat(mesh.visual.face_colors, 3, axis=0)
    linear = None if colors is None else decode_srgb(colors[:, :3] / 255)
    writer.mesh(ROOT, path.stem, Triangles(points, faces, normals=normals, colors=linear))
