"""Static meshes of MJCF and URDF files as convex parts, for scenes that should be hollow.

MuJoCo collides with the convex hull of a mesh, which closes doorways and fills rooms. A mesh that collides and that no
joint moves stays visible, and gets geoms that collide in its place, called `<geom>/part_<i>`, in group 3.
"""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco import mjtGeom, mjtMeshInertia

from internutopia.model.groups import COLLIDER_GROUP
from internutopia.model.importers.transforms import Frame, from_quat, to_quat
from internutopia.model.meshes.convex_parts import STATIC_TOLERANCE
from internutopia.model.meshes.decomposition import Mesh, decompose

_CONTACT = ('contype', 'conaffinity', 'condim', 'priority', 'friction', 'solmix', 'solref', 'solimp', 'margin', 'gap')


def decompose_static_meshes(spec: mujoco.MjSpec) -> None:
    """Replace the colliders of a spec that are static concave meshes by convex parts, in their present size."""
    twin = spec.copy()  # compiling changes a spec
    model = twin.compile()
    found = [(geom, twin_geom.id) for geom, twin_geom in zip(spec.geoms, twin.geoms, strict=True)]
    found = [(geom, number) for geom, number in found if _is_static_collider(model, number)]
    used = sorted({int(model.geom_dataid[number]) for _, number in found})
    meshes = [_mesh(model, mesh) for mesh in used]
    names = [f'mesh {model.mesh(mesh).name!r}' for mesh in used]
    parts = dict(zip(used, decompose(meshes, names, finest=[STATIC_TOLERANCE] * len(used)), strict=True))
    made: dict[tuple[int, int], str] = {}  # meshes of parts
    for geom, number in found:
        mesh = int(model.geom_dataid[number])
        if len(parts[mesh]) < 2:
            continue  # its hull is as good
        frame = Frame(model.geom_pos[number], from_quat(model.geom_quat[number]))
        contact = {field: getattr(model, f'geom_{field}')[number] for field in _CONTACT}
        for index, part in enumerate(parts[mesh]):
            name = f'{geom.name or f"geom_{number}"}/part_{index}'
            added = geom.parent.add_geom(name=name, group=COLLIDER_GROUP, density=0, **contact)
            place = frame
            if part.axes is None:
                added.type, added.meshname = mjtGeom.mjGEOM_MESH, made.setdefault((mesh, index), name)
                if made[mesh, index] == name:
                    hull = mjtMeshInertia.mjMESH_INERTIA_CONVEX
                    spec.add_mesh(name=name, uservert=part.vertices.ravel(), inertia=hull)
            else:
                added.type = mjtGeom.mjGEOM_BOX
                spread = part.vertices @ part.axes
                low, high = spread.min(axis=0), spread.max(axis=0)
                added.size = np.maximum((high - low) / 2, 1e-4)
                place = frame @ Frame(part.axes @ ((low + high) / 2), part.axes)
            added.pos, added.quat = place.position, to_quat(place.rotation)
        geom.contype = geom.conaffinity = 0


def _is_static_collider(model: mujoco.MjModel, geom: int) -> bool:
    """Return True for a geom that is a mesh that collides, on a body that is fixed to the world."""
    body = model.geom_bodyid[geom]
    collides = model.geom_contype[geom] or model.geom_conaffinity[geom]
    fixed = model.body_weldid[body] == 0 and model.body_mocapid[body] < 0
    return bool(model.geom_type[geom] == mjtGeom.mjGEOM_MESH and collides and fixed)


def _mesh(model: mujoco.MjModel, mesh: int) -> Mesh:
    """Return vertices and faces of a compiled mesh, in the frame that MuJoCo gives it."""
    first, last = model.mesh_vertadr[mesh], model.mesh_vertadr[mesh] + model.mesh_vertnum[mesh]
    begin, end = model.mesh_faceadr[mesh], model.mesh_faceadr[mesh] + model.mesh_facenum[mesh]
    return model.mesh_vert[first:last].astype(float), model.mesh_face[begin:end].astype(int)
