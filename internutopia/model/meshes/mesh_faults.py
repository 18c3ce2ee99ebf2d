"""Mesh faults: why MuJoCo cannot compile a mesh of a spec (it is flat, or too small), found by compiling it alone."""

from __future__ import annotations

import mujoco


def fault_of(mesh: mujoco.MjsMesh) -> str:
    """Return why a mesh cannot be compiled, as something that collides if it has the inertia of its hull."""
    probe = mujoco.MjSpec()
    alone = probe.add_mesh(name=mesh.name, file=mesh.file, scale=mesh.scale, inertia=mesh.inertia)
    alone.uservert, alone.userface = mesh.uservert, mesh.userface  # normals and texture coordinates do not matter
    geom = probe.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=mesh.name)
    geom.contype = geom.conaffinity = int(mesh.inertia == mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX)
    try:
        probe.compile()
    except ValueError as error:
        reason, _, _advice = str(error).splitlines()[0].removeprefix('Error: ').partition('. ')
        return reason.replace(f" '{mesh.name}'", '').replace(f': {mesh.name}', '').strip()
    return ''
