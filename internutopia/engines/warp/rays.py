"""Ray caster: distances along rays of tensors in all worlds of a Warp batch, found on the device in one launch.

What is computed is a fixed sequence of kernels without access to the host, so that it can be captured in a CUDA graph.
Rays end where those of MuJoCo's `mj_ray` do, also where they begin inside of something; flexible bodies are not seen.
The tree of boxes and the intersections are the engine's, those that images are traced with. Only what the rays see is
in the tree, so that nothing else is intersected.
"""

# pyright: reportIndexIssue=false, reportAttributeAccessIssue=false, reportAssignmentType=false
# pyright: reportGeneralTypeIssues=false, reportOperatorIssue=false, reportArgumentType=false
# (kernels are compiled by Warp, whose arrays have no types for what kernels do with them)

import copy
from typing import Any

import mujoco
import mujoco_warp as mjw
import numpy as np
import warp as wp
from mujoco_warp._src.ray import ray_geom, ray_hfield, ray_mesh_with_bvh
from numpy.typing import NDArray

from internutopia.engines.warp.arrays import memory_checked
from internutopia.engines.warp.batch import WarpBatch

wp.set_module_options({'enable_backward': False})  # else compiling takes several times as long

_HFIELD, _MESH = int(mujoco.mjtGeom.mjGEOM_HFIELD), int(mujoco.mjtGeom.mjGEOM_MESH)
# their boxes would be infinite, or leave out the base that a height field stands on
_OUTSIDE_THE_TREE = (_HFIELD, int(mujoco.mjtGeom.mjGEOM_PLANE))


class DeviceRayCaster:
    """Ray caster in the worlds of a batch.

    Args:
        batch: the worlds; the other calls are about the same one, which is not kept alive.
        seen: the geoms that stop rays, `(ngeom,)`.
        origins: in each world, the number of rays or 1.
        rays: in each world.

    Raises:
        MemoryError: it does not fit on the device.
    """

    def __init__(self, batch: WarpBatch, seen: NDArray[np.bool_], origins: int, rays: int):
        outside = seen & np.isin(batch.model.geom_type, _OUTSIDE_THE_TREE)
        model = copy.copy(batch.model)
        model.geom_group[:] = inside = seen & ~outside
        room = memory_checked(f'{rays} rays in each of {batch.n} envs', 'fewer rays or a smaller env_num')
        with wp.ScopedDevice(batch.device), room:
            self._context: Any = None
            if inside.any():  # to make a tree of nothing on a GPU crashes the process
                self._context = mjw.create_render_context(
                    model, batch.n, cam_active=[], enabled_geom_groups=[1], use_textures=False
                )
            self._outside: Any = wp.array(np.flatnonzero(outside), dtype=int)
            self._origins: Any = wp.zeros((batch.n, origins), dtype=wp.vec3)
            self._directions: Any = wp.zeros((batch.n, rays), dtype=wp.vec3)
            self._distances: Any = wp.zeros((batch.n, rays), dtype=float)

    def cast(self, batch: WarpBatch, slots: Any, origins: Any, directions: Any) -> Any:
        """Return distances [m] in the worlds `slots`, a tensor `(n, rays)` until the next call; infinite for a miss.

        Args:
            batch: the worlds; the poses of bodies describe the state.
            slots: n worlds, a slice or a tensor.
            origins: `(n, origins, 3)` [m].
            directions: `(n, rays, 3)`, unit vectors.
        """
        for array, values in ((self._origins, origins), (self._directions, directions)):
            wp.to_torch(array, requires_grad=False)[slots] = values.float()
        batch.trace('rays', self, self._trace)
        return wp.to_torch(self._distances, requires_grad=False)[slots]

    def _trace(self, model: mjw.Model, data: mjw.Data) -> None:
        tree: Any = _Tree()
        if self._context is not None:
            mjw.refit_bvh(model, data, self._context)
            for name in _Tree.vars:
                setattr(tree, name, getattr(self._context, name))
        geoms: Any = _Geoms()
        for name in _Geoms.vars:
            setattr(geoms, name, getattr(data if name in ('geom_xpos', 'geom_xmat') else model, name))
        inputs = [tree, self._outside, geoms, self._origins, self._directions]
        wp.launch(_cast, self._distances.shape, inputs, [self._distances])


@wp.struct
class _Tree:
    """A tree of boxes around geoms, and behind those around flexible bodies, of each world."""

    bvh_id: wp.uint64
    bvh_ngeom: int
    bvh_nflexgeom: int
    group_root: wp.array[int]
    enabled_geom_ids: wp.array[int]
    mesh_bvh_id: wp.array[wp.uint64]


@wp.struct
class _Geoms:
    """Geoms in the engine's model and data, under its names."""

    geom_type: wp.array[int]
    geom_dataid: wp.array2d[int]
    geom_matid: wp.array2d[int]
    geom_size: wp.array2d[wp.vec3]
    geom_rgba: wp.array2d[wp.vec4]
    mat_rgba: wp.array2d[wp.vec4]
    hfield_size: wp.array[wp.vec4]
    hfield_nrow: wp.array[int]
    hfield_ncol: wp.array[int]
    hfield_adr: wp.array[int]
    hfield_data: wp.array[float]
    geom_xpos: wp.array2d[wp.vec3]
    geom_xmat: wp.array2d[wp.mat33]


@wp.func
def _reach(
    geoms: _Geoms,
    meshes: wp.array[wp.uint64],
    world: int,
    geom: int,
    origin: wp.vec3,
    direction: wp.vec3,
    limit: float,
) -> float:
    """Return the length of a ray that a geom may stop."""
    material = geoms.geom_matid[world % geoms.geom_matid.shape[0], geom]
    opacity = geoms.geom_rgba[world % geoms.geom_rgba.shape[0], geom][3]
    if material >= 0:
        opacity = geoms.mat_rgba[world % geoms.mat_rgba.shape[0], material][3]
    if opacity == 0.0:
        return limit
    kind = geoms.geom_type[geom]
    position = geoms.geom_xpos[world, geom]
    rotation = geoms.geom_xmat[world, geom]
    if kind == wp.static(_MESH):
        mesh = geoms.geom_dataid[world % geoms.geom_dataid.shape[0], geom]
        distance, _n, _u, _v, _face, _mesh = ray_mesh_with_bvh(
            meshes, mesh, position, rotation, origin, direction, limit, False
        )
    elif kind == wp.static(_HFIELD):
        distance, _n = ray_hfield(
            geoms.geom_dataid,
            geoms.hfield_size,
            geoms.hfield_nrow,
            geoms.hfield_ncol,
            geoms.hfield_adr,
            geoms.hfield_data,
            position,
            rotation,
            origin,
            direction,
            geom,
            world,
        )
    else:
        size = geoms.geom_size[world % geoms.geom_size.shape[0], geom]
        distance, _n = ray_geom(position, rotation, size, origin, direction, kind)
    return wp.where(distance >= 0.0 and distance < limit, distance, limit)


@wp.kernel
def _cast(
    tree: _Tree,
    outside: wp.array[int],
    geoms: _Geoms,
    origins: wp.array2d[wp.vec3],
    directions: wp.array2d[wp.vec3],
    distances: wp.array2d[float],
):
    """Find the length of each ray among the geoms in the tree and outside of it."""
    world, ray = wp.tid()
    origin = origins[world, ray % origins.shape[1]]
    direction = directions[world, ray]
    nearest = float(wp.inf)
    for i in range(outside.shape[0]):
        nearest = _reach(geoms, tree.mesh_bvh_id, world, outside[i], origin, direction, nearest)
    if tree.bvh_ngeom > 0:
        first = world * (tree.bvh_ngeom + tree.bvh_nflexgeom)
        box = wp.int32(0)  # a variable
        query = wp.bvh_query_ray(tree.bvh_id, origin, direction, tree.group_root[world])
        while wp.bvh_query_next(query, box, nearest):
            if box - first < tree.bvh_ngeom:
                geom = tree.enabled_geom_ids[box - first]
                nearest = _reach(geoms, tree.mesh_bvh_id, world, geom, origin, direction, nearest)
    distances[world, ray] = nearest
