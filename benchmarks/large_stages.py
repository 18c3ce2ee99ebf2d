"""Large USD stages, made from a seed, for measurements (`python -m benchmarks --rows large`).

`write_tea_room` writes meshes that are all different, curved and textured, as artists leave them: shells, open tubes,
turned solids, things of many pieces. `write_ants` writes many articulated robots in one stage.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.homes.prims import add_prim, set_attribute, set_targets
from benchmarks.homes.shapes import Array, Surface, join, rounded_box, smooth_profile, turned_shape

_MATERIALS = 40
_TEXTURE = 256  # pixels


def write_tea_room(
    path: Path, meshes: int = 524, triangles: int = 1_300_000, seed: int = 0, approximation: str | None = None
) -> None:
    """Write a stage of so many meshes with materials, of about so many triangles together.

    Without an `approximation` it has no colliders: all that is visible collides.
    """
    from pxr import Sdf

    rng = np.random.default_rng(seed)
    layer = Sdf.Layer.CreateAnonymous('.usdc')
    layer.defaultPrim = 'World'
    for key, value in (('metersPerUnit', 1.0), ('upAxis', 'Z')):
        layer.pseudoRoot.SetInfo(key, value)
    world = Sdf.PrimSpec(layer, 'World', Sdf.SpecifierDef, 'Xform')
    path.parent.mkdir(parents=True, exist_ok=True)
    looks = add_prim(world, 'Looks', 'Scope')
    materials = [_add_material(looks, path.parent, index, rng) for index in range(min(_MATERIALS, meshes))]
    side = int(np.ceil(np.sqrt(meshes)))
    collides = ['PhysicsCollisionAPI', 'PhysicsMeshCollisionAPI'] if approximation is not None else []
    schemas = ['MaterialBindingAPI', *collides]
    for index in range(meshes):
        size = rng.uniform(0.3, 3.0)  # from a pot to what one walks around
        surface = _KINDS[index % len(_KINDS)](rng, triangles / meshes)
        points = surface.points * size + [4.0 * (index % side), 4.0 * (index // side), 0.0]
        prim = add_prim(world, f'thing_{index}', 'Mesh', schemas)
        if approximation is not None:
            set_attribute(prim, 'physics:approximation', 'Token', approximation, uniform=True)
        set_attribute(prim, 'points', 'Point3fArray', points.astype(np.float32))
        set_attribute(prim, 'faceVertexCounts', 'IntArray', np.full(len(surface.triangles), 3, np.int32))
        set_attribute(prim, 'faceVertexIndices', 'IntArray', surface.triangles.ravel())
        set_attribute(prim, 'subdivisionScheme', 'Token', 'none', uniform=True)
        coordinates = set_attribute(prim, 'primvars:st', 'TexCoord2fArray', surface.coordinates())
        normals = set_attribute(prim, 'normals', 'Normal3fArray', surface.normals().astype(np.float32))
        coordinates.SetInfo('interpolation', 'faceVarying')
        normals.SetInfo('interpolation', 'vertex' if surface.smooth else 'faceVarying')
        set_targets(prim, 'material:binding', [materials[index % len(materials)]])
    if not layer.Export(str(path)):
        raise OSError(f'{path} cannot be written')


def _add_material(looks: object, folder: Path, index: int, rng: np.random.Generator) -> str:
    """Add a material with its own image; returns its path."""
    from PIL import Image
    from pxr import Sdf

    image = rng.integers(0, 256, (_TEXTURE // 16, _TEXTURE // 16, 3), np.uint8).repeat(16, axis=0).repeat(16, axis=1)
    Image.fromarray(image).save(folder / f'look_{index}.png')
    material = add_prim(looks, f'look_{index}', 'Material')
    where = str(material.path)
    surface, texture, reader = (add_prim(material, name, 'Shader') for name in ('surface', 'texture', 'reader'))
    set_attribute(surface, 'info:id', 'Token', 'UsdPreviewSurface', uniform=True)
    set_attribute(texture, 'info:id', 'Token', 'UsdUVTexture', uniform=True)
    set_attribute(reader, 'info:id', 'Token', 'UsdPrimvarReader_float2', uniform=True)
    set_attribute(reader, 'inputs:varname', 'String', 'st')
    set_attribute(reader, 'outputs:result', 'Float2')
    set_attribute(texture, 'inputs:file', 'Asset', Sdf.AssetPath(f'./look_{index}.png'))
    set_attribute(texture, 'outputs:rgb', 'Float3')
    set_attribute(surface, 'outputs:surface', 'Token')
    inputs = (
        (texture, 'inputs:st', 'Float2', f'{where}/reader.outputs:result'),
        (surface, 'inputs:diffuseColor', 'Color3f', f'{where}/texture.outputs:rgb'),
        (material, 'outputs:surface', 'Token', f'{where}/surface.outputs:surface'),
    )
    for prim, name, kind, source in inputs:
        set_attribute(prim, name, kind).connectionPathList.explicitItems = [Sdf.Path(source)]
    return where


def _pot(rng: np.random.Generator, triangles: float) -> Surface:
    """A solid of revolution with a hollow: a pot, bowl or vase."""
    wide, neck, wall = rng.uniform(0.25, 0.5), rng.uniform(0.1, 0.3), rng.uniform(0.01, 0.04)
    outside = [(0, 0), (0.6 * wide, 0), (wide, rng.uniform(0.3, 0.6)), (neck, 0.9), (neck + 0.05, 1.0)]
    inside = [(max(radius - wall, 0.02), max(height, wall)) for radius, height in outside[:0:-1]]
    detail = np.sqrt(triangles / 1760)  # 11 corners times 4 points, times 20 around, times 2 triangles at detail 1
    return turned_shape(smooth_profile([*outside, *inside, (0, wall)], detail), detail)


def _shell(rng: np.random.Generator, triangles: float) -> Surface:
    """A sheet without thickness: the body of a pot as patches leave it, open above."""
    steps = int(np.sqrt(triangles / 2))
    height, angle = np.meshgrid(np.linspace(0, 1, steps + 1), np.linspace(0, 2 * np.pi, steps + 1))
    bulge, waves = rng.uniform(0.1, 0.3), rng.integers(2, 9)
    radius = 0.15 + bulge * np.sin(np.pi * height**0.7) + 0.02 * np.cos(waves * angle)
    return _grid(np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=-1))


def _tube(rng: np.random.Generator, triangles: float) -> Surface:
    """An open bent tube: a handle or a spout."""
    steps = int(np.sqrt(triangles / 2))
    along, angle = np.meshgrid(np.linspace(0, rng.uniform(2, 5), steps + 1), np.linspace(0, 2 * np.pi, steps + 1))
    thickness = rng.uniform(0.04, 0.1) * (1 + 0.3 * np.sin(3 * along))
    radius = 0.4 + thickness * np.cos(angle)
    return _grid(np.stack([radius * np.cos(along), thickness * np.sin(angle), 0.5 + radius * np.sin(along)], axis=-1))


def _heap(rng: np.random.Generator, triangles: float) -> Surface:
    """A mesh of many pieces: cushions and biscuits in a heap."""
    pieces = 8
    detail = (np.sqrt(triangles / pieces / 12) - 1) / 6
    low = rng.uniform(0, 0.7, (pieces, 3))
    return join(*(rounded_box(each, each + rng.uniform(0.1, 0.3, 3), 0.05, detail) for each in low))


def _grid(points: Array) -> Surface:
    """A sheet of the quads between points `(n, m, 3)`."""
    rows, columns = points.shape[:2]
    index = np.arange(rows * columns).reshape(rows, columns)
    corners = np.stack([index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:]], axis=-1).reshape(-1, 4)
    triangles = np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]]).astype(np.int32)
    return Surface(points.reshape(-1, 3), triangles, smooth=True)


_KINDS: tuple[Callable[[np.random.Generator, float], Surface], ...] = (_pot, _shell, _tube, _heap)


def write_ants(path: Path, count: int = 64) -> None:
    """Write a stage of so many articulated robots with a torso and four legs of two hinges, on a ground.

    Each has a collision group that passes through all others, as copies of an environment have in Isaac Sim.
    """
    side = int(np.ceil(np.sqrt(count)))
    ants = '\n'.join(_ant(f'ant_{index}', 3.0 * (index % side), 3.0 * (index // side)) for index in range(count))
    groups = '\n'.join(
        f'def PhysicsCollisionGroup "group_{index}" (prepend apiSchemas = ["CollectionAPI:colliders"]) {{\n'
        f'rel collection:colliders:includes = </World/ant_{index}>\nrel physics:filteredGroups = ['
        f'{", ".join(f"</World/group_{other}>" for other in range(count) if other != index)}]\n}}'
        for index in range(count)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    ground = 'def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {\nuniform token axis = "Z"\n}'
    path.write_text(
        '#usda 1.0\n(metersPerUnit = 1\nupAxis = "Z"\ndefaultPrim = "World")\n'
        f'def Xform "World" {{\n{ground}\n{ants}\n{groups}\n}}\n'
    )


def _ant(name: str, x: float, y: float) -> str:
    """Return the prim of a robot: a ball with four legs along the diagonals."""
    root = f'/World/{name}'
    prims, bodies = [], ['PhysicsRigidBodyAPI', 'PhysicsCollisionAPI']
    prims.append(_prim('Sphere', 'torso', bodies, (0, 0, 0), 0, 'double radius = 0.25'))
    for leg, angle in enumerate((45, 135, 225, 315)):
        direction = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle)), 0])
        shape = 'double radius = 0.08\ndouble height = 0.4\nuniform token axis = "X"'
        for part, (parent, start) in enumerate((('torso', 0.25), (f'leg_{leg}_0', 0.85))):
            link = f'leg_{leg}_{part}'
            middle = tuple((direction * (start + 0.3)).tolist())
            prims.append(_prim('Capsule', link, bodies, middle, angle, shape))
            before = (start, 0, 0) if part == 0 else (0.3, 0, 0)
            turn = np.radians(angle) / 2 if part == 0 else 0.0
            prims.append(
                f'def PhysicsRevoluteJoint "hinge_{leg}_{part}" (prepend apiSchemas = ["PhysicsDriveAPI:angular"]) {{\n'
                f'rel physics:body0 = <{root}/{parent}>\nrel physics:body1 = <{root}/{link}>\n'
                f'uniform token physics:axis = "{"ZY"[part]}"\n'
                f'point3f physics:localPos0 = {before if part else tuple((direction * start).tolist())}\n'
                f'quatf physics:localRot0 = ({np.cos(turn)}, 0, 0, {np.sin(turn)})\n'
                'point3f physics:localPos1 = (-0.3, 0, 0)\nquatf physics:localRot1 = (1, 0, 0, 0)\n'
                'float physics:lowerLimit = -40\nfloat physics:upperLimit = 40\n'
                'float drive:angular:physics:stiffness = 10\nfloat drive:angular:physics:damping = 1\n}'
            )
    body = '\n'.join(prims)
    return (
        f'def Xform "{name}" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {{\n'
        f'double3 xformOp:translate = ({x}, {y}, 1)\nuniform token[] xformOpOrder = ["xformOp:translate"]\n{body}\n}}'
    )


def _prim(kind: str, name: str, schemas: list[str], position: tuple[float, ...], angle: float, shape: str) -> str:
    quoted = ', '.join(f'"{schema}"' for schema in schemas)
    return (
        f'def {kind} "{name}" (prepend apiSchemas = [{quoted}]) {{\n{shape}\n'
        f'double3 xformOp:translate = {position}\nfloat xformOp:rotateZ = {angle}\n'
        'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ"]\n}'
    )
