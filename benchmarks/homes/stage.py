"""Stages of a home: `/Root/Meshes/<scope>/<category>/model_<hash>_<n>`, which refer to the model files; and lights.

- `navigation`: nothing moves, everything has exact triangles; the doors inside, and all joints, are deactivated.
- `interaction`: doors, drawers and small things are rigid bodies with convex parts, the rest is as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.homes.designs import Design, Vec3
from benchmarks.homes.model_file import group_name, mesh_places
from benchmarks.homes.prims import add_prim, new_layer, save, set_attribute, set_place, set_targets
from benchmarks.homes.small_things import MOVABLE

Variant = Literal['navigation', 'interaction']

_STATIC = ('PhysicsCollisionAPI', 'PhysicsMeshCollisionAPI', 'PhysxMeshMergeCollisionAPI')
_MOVING = (
    'PhysicsRigidBodyAPI',
    'PhysicsCollisionAPI',
    'PhysicsMeshCollisionAPI',
    'PhysxConvexDecompositionCollisionAPI',
)
_HEAVY = frozenset({'oven', 'dishwasher', 'microwave'})  # have a centre of mass
_BASE_GROUP = '/Root/Meshes/Base/Collision_Group_base'


class ModelPrim(NamedTuple):
    """A model of a stage: its path, the design, the file that it refers to, and where it is [m, quarter turns]."""

    path: str
    design: Design
    file: str
    position: Vec3
    quarters: int
    inner_door: bool = False

    @property
    def label(self) -> str:
        """Semantic label of its prims."""
        return '/'.join(self.path.rsplit('/', 2)[1:])


def write_stage(path: Path, models: Sequence[ModelPrim], lights: Sequence[Vec3], variant: Variant) -> None:
    """Write one of the stages of a home.

    Args:
        path: of the file.
        models: what is in it.
        lights: where lamps are [m].
        variant: what can move.
    """
    from pxr import Sdf

    layer, root = new_layer('Root')
    with Sdf.ChangeBlock():
        add_prim(root, 'Meshes', 'Xform')
        for model in models:
            _add_model(layer, model, variant)
        if variant == 'interaction':
            _add_collision_groups(layer, models)
            scene = add_prim(root, 'physicsScene', 'PhysicsScene', ['PhysxSceneAPI'])
            set_attribute(scene, 'physxScene:broadphaseType', 'Token', 'MBP', uniform=True)
            set_attribute(scene, 'physxScene:enableGPUDynamics', 'Bool', False)
        above = add_prim(root, 'Lights', 'Xform')
        for number, position in enumerate(lights):
            light = add_prim(above, f'light_{number}', 'SphereLight')
            set_attribute(light, 'inputs:radius', 'Float', 10.0)
            set_attribute(light, 'inputs:intensity', 'Float', 30000.0)
            set_place(light, position, 0)
    save(layer, path)


def _add_model(layer: Any, model: ModelPrim, variant: Variant) -> None:
    from pxr import Sdf

    parent = layer.pseudoRoot
    for name in model.path.split('/')[1:-1]:
        parent = parent.nameChildren.get(name) or add_prim(parent, name, 'Xform')
    prim = _labelled(parent, model.path.rsplit('/', 1)[1], model, kind='Xform')
    prim.referenceList.Prepend(Sdf.Reference(model.file))
    set_place(prim, model.position, model.quarters)
    if model.inner_door and variant == 'navigation':
        prim.SetInfo('active', False)
    design = model.design
    leaves = [place.path for place in mesh_places(design)]
    groups = {group_name(design, part.group): part.group for part in design.parts} if design.joints else {}
    moves = variant == 'interaction'
    above = ['Instance', *(f'Instance/{name}' for name in groups), *(leaf.rpartition('/')[0] for leaf in leaves)]
    for relative in dict.fromkeys([*above, *leaves]):
        schemas = _schemas(relative, design, groups, moves=moves)
        over, name = relative.rpartition('/')[::2]
        made = _labelled(layer.GetPrimAtPath(f'{model.path}/{over}' if over else model.path), name, model, schemas)
        if 'PhysicsMeshCollisionAPI' in schemas:
            below = [f'{model.path}/{leaf}' for leaf in leaves if leaf.startswith(f'{relative}/')]
            _add_collider(made, below, moving='PhysicsRigidBodyAPI' in schemas)
        if 'PhysicsMassAPI' in schemas:
            set_attribute(made, 'physics:centerOfMass', 'Point3f', (0.0, 0.0, 0.0))
        if relative == 'Instance' and 'PhysicsRigidBodyAPI' in schemas:
            set_place(made, (0.0, 0.0, 0.0), 0)
    if not moves:
        for joint in design.joints:
            group = layer.GetPrimAtPath(f'{model.path}/Instance/{group_name(design, joint.group)}')
            add_prim(group, f'joint_{joint.group:02}', '').SetInfo('active', False)


def _schemas(relative: str, design: Design, groups: dict[str, int], *, moves: bool) -> tuple[str, ...]:
    """Physics of a prim of a model, by its path below that."""
    if relative == 'Instance':
        if moves and design.joints:
            return ()
        return _MOVING if moves and design.category in MOVABLE else _STATIC
    group = groups.get(relative.removeprefix('Instance/')) if moves else None
    if group is None:
        return ()
    heavy = ('PhysicsMassAPI',) if design.category in _HEAVY else ()
    return (*_MOVING, *heavy) if group else _STATIC


def _add_collider(prim: Any, leaves: Sequence[str], *, moving: bool) -> None:
    set_attribute(prim, 'physics:approximation', 'Token', 'convexDecomposition' if moving else 'none', uniform=True)
    if moving:
        set_attribute(prim, 'physxConvexDecompositionCollision:maxConvexHulls', 'Int', 256)
        set_attribute(prim, 'physxConvexDecompositionCollision:hullVertexLimit', 'Int', 64)
    else:
        set_targets(prim, 'collection:collisionmeshes:includes', leaves)


def _labelled(parent: Any, name: str, model: ModelPrim, schemas: Sequence[str] = (), kind: str = '') -> Any:
    """A prim with a semantic label."""
    prim = add_prim(parent, name, kind, ['SemanticsAPI:Semantics', *schemas])
    set_attribute(prim, 'semantic:Semantics:params:semanticType', 'String', 'class')
    set_attribute(prim, 'semantic:Semantics:params:semanticData', 'String', model.label)
    return prim


def _add_collision_groups(layer: Any, models: Sequence[ModelPrim]) -> None:
    """Moving groups of a model pass through each other and through all of `Base` but the ground."""
    base = [m.path for m in models if m.design.scope == 'Base' and m.design.category != 'ground']
    _add_collision_group(layer, _BASE_GROUP, base, [])
    for model in models:
        moving = [f'{model.path}/Instance/{group_name(model.design, joint.group)}' for joint in model.design.joints]
        if moving:
            path = f'{model.path}/Collision_Group'
            _add_collision_group(layer, path, moving, [path, _BASE_GROUP])


def _add_collision_group(layer: Any, path: str, members: Sequence[str], filtered: Sequence[str]) -> None:
    parent, _, name = path.rpartition('/')
    group = add_prim(layer.GetPrimAtPath(parent), name, 'PhysicsCollisionGroup', ['CollectionAPI:colliders'])
    set_targets(group, 'collection:colliders:includes', members)
    set_targets(group, 'physics:filteredGroups', filtered)
