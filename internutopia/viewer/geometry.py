"""Geometry of a compiled model as a page shows it: a GLB file for each body that moves by itself.

Bodies that are fixed to others are drawn with them, so that all static geometry is one file (body 0).
It has what the renderer shows: geoms of visible groups with their colours, and textures of meshes, planes and height
fields; other shapes have the mean colour of their texture. Not shown: skins, flexes, tendons and the sky.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.geom_groups import shown_geoms

if TYPE_CHECKING:
    from trimesh import Trimesh

Floats = NDArray[np.float64]

_FAR = 200.0  # m: how far an infinite plane reaches
_LEVEL = 0.9  # upward component of the normal of a level plane
_DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)  # of a geom that names none: its material counts
_GAMMA = 2.2  # colours of models are those of a screen, colours of GLB files are linear


@dataclass(frozen=True)
class _Surface:
    """Triangles: `faces` `(m, 3)` of `vertices` `(k, 3)` [m] with `normals` `(k, 3)`; `uv` `(k, 2)` is for textures."""

    vertices: Floats
    normals: Floats
    uv: Floats
    faces: NDArray[np.intp]


def moving_bodies(model: mujoco.MjModel) -> NDArray[np.intp]:
    """Return for each body the moving body to which it is fixed, `(nbody,)`; 0 for static bodies."""
    moving = np.arange(model.nbody)
    for body in range(1, model.nbody):
        if not model.body_jntnum[body] and model.body_mocapid[body] < 0:
            moving[body] = moving[model.body_parentid[body]]
    return moving


def body_files(model: mujoco.MjModel, cell: float = 2.0 * _FAR) -> dict[int, bytes]:
    """Return GLB files by moving body, in its frame; bodies without visible geometry are left out.

    Level planes that stand still end at the border of a square of width `cell` [m] around the origin of the env.
    """
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    moving = moving_bodies(model)
    shown = shown_geoms(model)
    by_material: dict[int, dict[tuple[int, tuple[float, ...]], list[_Surface]]] = {}
    for geom in range(model.ngeom):
        texture, rgba = _material(model, geom)
        if not shown[geom] or rgba[3] == 0.0:
            continue
        body = int(moving[model.geom_bodyid[geom]])
        axes = data.geom_xmat[geom].reshape(3, 3)
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
            level = body == 0 and abs(axes[2, 2]) > _LEVEL
            surface = _plane(model, geom, cell if level else 2.0 * _FAR, axes[:2, :2], data.geom_xpos[geom, :2])
        else:
            surface = _surface(model, geom)
        if surface is None:
            continue
        frame = data.xmat[body].reshape(3, 3)
        rotation = frame.T @ axes
        placed = _Surface(
            surface.vertices @ rotation.T + frame.T @ (data.geom_xpos[geom] - data.xpos[body]),
            surface.normals @ rotation.T,
            surface.uv,
            surface.faces,
        )
        by_material.setdefault(body, {}).setdefault((texture, rgba), []).append(placed)
    return {body: _glb(model, surfaces) for body, surfaces in by_material.items()}


def _material(model: mujoco.MjModel, geom: int) -> tuple[int, tuple[float, ...]]:
    """Return texture (-1 for none) and colour of a geom; the colour has the mean of a texture that cannot be shown."""
    material = model.geom_matid[geom]
    rgba = model.geom_rgba[geom].astype(float)
    if material < 0:
        return -1, tuple(rgba.tolist())
    if np.allclose(rgba, _DEFAULT_RGBA):
        rgba = model.mat_rgba[material].astype(float)
    texture = int(model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB])
    if texture >= 0 and not _takes_texture(model, geom, texture):
        rgba[:3] *= _pixels(model, texture)[..., :3].mean(axis=(0, 1)) / 255.0
        texture = -1
    return texture, tuple(rgba.tolist())


def _takes_texture(model: mujoco.MjModel, geom: int, texture: int) -> bool:
    if model.tex_type[texture] != mujoco.mjtTexture.mjTEXTURE_2D:
        return False
    kind = mujoco.mjtGeom(model.geom_type[geom])
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        return bool(model.mesh_texcoordadr[model.geom_dataid[geom]] >= 0)
    return kind in (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)


def _pixels(model: mujoco.MjModel, texture: int) -> NDArray[np.uint8]:
    height, width, channels = (int(field[texture]) for field in (model.tex_height, model.tex_width, model.tex_nchannel))
    first = model.tex_adr[texture]
    return model.tex_data[first : first + height * width * channels].reshape(height, width, channels)


def _surface(model: mujoco.MjModel, geom: int) -> _Surface | None:
    """Return the surface of a geom in its own frame; None for a kind that is not shown."""
    from trimesh import creation

    size, kind = model.geom_size[geom], mujoco.mjtGeom(model.geom_type[geom])
    match kind:
        case mujoco.mjtGeom.mjGEOM_HFIELD:
            return _height_field(model, geom)
        case mujoco.mjtGeom.mjGEOM_MESH | mujoco.mjtGeom.mjGEOM_SDF:
            return _mesh(model, int(model.geom_dataid[geom]))
        case mujoco.mjtGeom.mjGEOM_BOX:
            return _flat(creation.box(extents=2.0 * size))
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            return _flat(creation.cylinder(radius=size[0], height=2.0 * size[1], sections=32))
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            capsule = creation.capsule(radius=size[0], height=2.0 * size[1], count=(24, 24))
            vertices = capsule.vertices - capsule.bounds.mean(axis=0)
            return _Surface(vertices, capsule.vertex_normals, np.zeros((len(vertices), 2)), capsule.faces)
        case mujoco.mjtGeom.mjGEOM_SPHERE | mujoco.mjtGeom.mjGEOM_ELLIPSOID:
            radii = size if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID else np.full(3, size[0])
            sphere = creation.icosphere(subdivisions=3)
            normals = sphere.vertices / radii
            normals /= np.linalg.norm(normals, axis=1, keepdims=True)
            return _Surface(sphere.vertices * radii, normals, np.zeros((len(normals), 2)), sphere.faces)
    return None


def _flat(mesh: Trimesh) -> _Surface:
    """Give every triangle its own vertices, so that edges stay sharp."""
    vertices = mesh.triangles.reshape(-1, 3)
    normals = np.repeat(mesh.face_normals, 3, axis=0)
    return _Surface(vertices, normals, np.zeros((len(vertices), 2)), np.arange(len(vertices)).reshape(-1, 3))


def _mesh(model: mujoco.MjModel, mesh: int) -> _Surface:
    """Build a surface with a vertex for each combination of position, normal and texture coordinates."""
    rows = slice(model.mesh_faceadr[mesh], model.mesh_faceadr[mesh] + model.mesh_facenum[mesh])
    textured = model.mesh_texcoordadr[mesh] >= 0
    columns = [model.mesh_face[rows].ravel(), model.mesh_facenormal[rows].ravel()]
    if textured:
        columns.append(model.mesh_facetexcoord[rows].ravel())
    corners, faces = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    vertices = model.mesh_vert[model.mesh_vertadr[mesh] + corners[:, 0]].astype(float)
    normals = model.mesh_normal[model.mesh_normaladr[mesh] + corners[:, 1]].astype(float)
    if textured:
        uv = model.mesh_texcoord[model.mesh_texcoordadr[mesh] + corners[:, 2]].astype(float)
    else:
        uv = np.zeros((len(vertices), 2))
    return _Surface(vertices, normals, uv, faces.reshape(-1, 3))


def _plane(model: mujoco.MjModel, geom: int, cell: float, axes: Floats, place: Floats) -> _Surface | None:
    """Build a plane as far as the square of an env's cell reaches; None if it is outside.

    `axes` `(2, 2)` are its own in the frame of the env, one a column, `place` `(2,)` is its middle [m] there.
    """
    half = np.where(model.geom_size[geom, :2] > 0.0, model.geom_size[geom, :2], _FAR)
    square = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    corners = square * half
    for normal, offset in zip((*axes, *-axes), (*place, *-place), strict=True):  # x and y, from both sides
        corners = _cut(corners, normal, 0.5 * cell - offset)
        if len(corners) < 3:
            return None
    material = model.geom_matid[geom]
    uv = np.zeros((len(corners), 2))
    if material >= 0:
        endless = not model.geom_size[geom, :2].all()
        # a repeat is 2 m, or the whole plane; the middle of the image is in the middle of the plane
        by_length = model.mat_texuniform[material] or endless
        uv = 0.5 + 0.5 * model.mat_texrepeat[material] * (corners if by_length else corners / half)
    vertices = np.column_stack([corners, np.zeros(len(corners))])
    faces = np.array([[0, i, i + 1] for i in range(1, len(corners) - 1)])
    return _Surface(vertices, np.tile([0.0, 0.0, 1.0], (len(corners), 1)), uv, faces)


def _cut(corners: Floats, normal: Floats, limit: float) -> Floats:
    """Return the part of a convex polygon `(n, 2)` in which `normal @ point` is at most `limit`."""
    excess = corners @ normal - limit
    kept: list[Floats] = []
    for (point, over), (following, beyond) in pairwise([*zip(corners, excess, strict=True), (corners[0], excess[0])]):
        if over <= 0.0:
            kept.append(point)
        if (over > 0.0) != (beyond > 0.0):
            kept.append(point + over / (over - beyond) * (following - point))
    return np.array(kept).reshape(-1, 2)


def _height_field(model: mujoco.MjModel, geom: int) -> _Surface:
    from trimesh import Trimesh

    field = int(model.geom_dataid[geom])
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    first = model.hfield_adr[field]
    heights = model.hfield_data[first : first + rows * columns] * model.hfield_size[field, 2]
    u, v = (axis.ravel() for axis in np.meshgrid(np.linspace(0.0, 1.0, columns), np.linspace(0.0, 1.0, rows)))
    half_x, half_y = model.hfield_size[field, :2]
    vertices = np.column_stack([(2.0 * u - 1.0) * half_x, (2.0 * v - 1.0) * half_y, heights])
    low = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    right, up, across = low + 1, low + columns, low + columns + 1
    faces = np.vstack([np.column_stack([low, right, across]), np.column_stack([low, across, up])])
    material = model.geom_matid[geom]
    repeat = model.mat_texrepeat[material] if material >= 0 else np.ones(2)
    normals = Trimesh(vertices, faces, process=False).vertex_normals
    return _Surface(vertices, normals, np.column_stack([u, v]) * repeat, faces)


def _glb(model: mujoco.MjModel, surfaces_by_material: dict[tuple[int, tuple[float, ...]], list[_Surface]]) -> bytes:
    from PIL import Image
    from trimesh import Scene, Trimesh
    from trimesh.util import append_faces
    from trimesh.visual import TextureVisuals
    from trimesh.visual.material import PBRMaterial

    scene = Scene()
    for (texture, rgba), surfaces in surfaces_by_material.items():
        picture: Any = Image.fromarray(_pixels(model, texture).squeeze()) if texture >= 0 else None
        material = PBRMaterial(
            baseColorFactor=[*(np.clip(rgba[:3], 0.0, 1.0) ** _GAMMA).tolist(), rgba[3]],
            baseColorTexture=picture,
            metallicFactor=0.0,
            roughnessFactor=0.8,
            alphaMode='BLEND' if rgba[3] < 1.0 else 'OPAQUE',
        )
        scene.add_geometry(
            Trimesh(
                *append_faces([each.vertices for each in surfaces], [each.faces for each in surfaces]),
                vertex_normals=np.concatenate([each.normals for each in surfaces]),
                visual=TextureVisuals(uv=np.concatenate([each.uv for each in surfaces]), material=material),
                process=False,
            )
        )
    data = scene.export(file_type='glb', include_normals=True)
    assert isinstance(data, bytes)
    return data
