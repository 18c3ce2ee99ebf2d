"""How geometry is shown: materials, textures and the meshes that carry them.

A mesh that has several materials (`GeomSubset`) becomes one visual mesh for each. A material becomes one of MuJoCo's:
`specular` and `shininess` fall with its roughness and grow with its metallicity, smooth metal reflects. Textures need
texture coordinates; what has none shows the mean colour of the image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.images import add_texture
from internutopia.core.scene.usd.linear import Array
from internutopia.core.scene.usd.materials import Appearance, appearance, read_image
from internutopia.core.scene.usd.notes import Notes
from internutopia.core.scene.usd.shapes import Indexed, Shape, value

if TYPE_CHECKING:
    from pxr import Usd

DEFAULT_COLOR = (0.7, 0.7, 0.72)
_PLAIN = Appearance()
_COORDINATES = ('st', 'st0', 'st_0', 'UVMap', 'map1')  # what exporters call texture coordinates


@dataclass(frozen=True)
class Look:
    """One thing to be shown: a shape, the name of its material if it has one, and its RGBA colour."""

    name: str
    shape: Shape
    rgba: tuple[float, ...]
    material: str = ''


class Looks:
    """Makes the materials and textures of one stage in its spec, each one once."""

    def __init__(self, spec: mujoco.MjSpec, notes: Notes):
        self._spec = spec
        self._notes = notes
        self._appearances: dict[str, Appearance] = {}  # by path of the material
        self._textures: dict[str, str] = {}  # names by file; empty for one that cannot be read
        self._materials: dict[Any, str] = {}  # names by what they look like

    def of(self, prim: Usd.Prim, shape: Shape) -> list[Look]:
        """What is to be seen of a geometry prim that has a shape: one thing for each material on it."""
        path = str(prim.GetPath())
        groups: dict[str, tuple[str, Any, list[NDArray[np.bool_]]]] = {}
        rest = np.ones(0 if shape.faces is None else len(shape.faces), bool)
        for subset, chosen in _subsets(prim, shape):
            chosen &= rest
            rest &= ~chosen
            material = _bound(subset)
            _, _, members = groups.setdefault(
                str(material.GetPath()) if material else '', (str(subset.GetPath()), subset, [])
            )
            members.append(chosen)
        if not groups:
            return [self._look(path, prim, shape)]
        parts = [(name, owner, np.any(members, axis=0)) for name, owner, members in groups.values()]
        parts += [(path, prim, rest)]
        return [self._look(name, owner, shape.with_faces(chosen)) for name, owner, chosen in parts if chosen.any()]

    def rgba(self, prim: Usd.Prim) -> tuple[float, ...]:
        """Colour of a prim, without a texture."""
        material = _bound(prim)
        return _rgba(prim, self._appearance(material) if material else _PLAIN, white=False)

    def _look(self, name: str, prim: Usd.Prim, shape: Shape) -> Look:
        material = _bound(prim)
        surface = self._appearance(material) if material else _PLAIN
        texture = self._texture(surface.texture, material) if surface.texture else ''
        shape = _with_skin(prim, shape, surface if texture else _PLAIN)
        if texture and shape.coordinates is None:
            mean = np.mean(read_image(surface.texture), axis=(0, 1)) / 255
            surface, texture = replace(surface, color=tuple(mean * (surface.color or (1.0, 1.0, 1.0)))), ''
        rgba = _rgba(prim, surface, white=bool(texture))
        return Look(name, shape, rgba, self._material(str(material.GetPath()), surface, texture) if material else '')

    def _appearance(self, material: Usd.Prim) -> Appearance:
        path = str(material.GetPath())
        if path not in self._appearances:
            found = self._appearances[path] = appearance(material) or _PLAIN
            if found.missing:
                self._notes.add(
                    f'texture {found.missing} does not exist; its material is shown in one colour', material
                )
        return self._appearances[path]

    def _texture(self, file: str, material: Usd.Prim) -> str:
        """Name of the texture of an image; empty if it cannot be read."""
        if file not in self._textures:
            self._textures[file] = ''
            try:
                pixels = read_image(file)
            except ValueError as error:
                self._notes.add(f'texture {file} cannot be read ({error}); shown in one colour', material)
            else:
                name = self._textures[file] = f'texture_{len(self._textures)}'
                add_texture(self._spec, name, pixels)
        return self._textures[file]

    def _material(self, path: str, surface: Appearance, texture: str) -> str:
        """Name of the material that shows a surface; it is that of the prim, unless this looks different elsewhere."""
        key = (path, surface, texture)
        if key not in self._materials:
            taken = self._materials.values()
            name = next(n for n in (path, *(f'{path}_{i}' for i in range(1, 99))) if n not in taken)
            self._materials[key] = name
            material = self._spec.add_material(name=name)
            gloss = 1 - float(np.clip(surface.roughness, 0, 1))
            metal = float(np.clip(surface.metallic, 0, 1))
            material.specular = gloss * (0.5 + 0.5 * metal)
            material.shininess = gloss
            material.reflectance = 0.3 * metal * max(0.0, 2 * gloss - 1)
            material.emission = surface.emission
            material.roughness, material.metallic = 1 - gloss, metal  # for renderers other than MuJoCo's own
            if texture:
                material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = texture
        return self._materials[key]


def _bound(prim: Usd.Prim) -> Usd.Prim | None:
    """The material prim that is bound to a prim, or to one above it."""
    from pxr import UsdShade

    material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
    return material.GetPrim() if material else None


def _subsets(prim: Usd.Prim, shape: Shape) -> list[tuple[Usd.Prim, NDArray[np.bool_]]]:
    """Subsets of a mesh that a material is bound to, with `(m,)` which triangles they have."""
    from pxr import UsdShade

    if shape.corners is None:
        return []
    polygons = _polygons(prim, shape)
    subsets = [subset.GetPrim() for subset in UsdShade.MaterialBindingAPI(prim).GetMaterialBindSubsets()]
    return [(subset, np.isin(polygons, value(subset, 'indices') or ())) for subset in subsets if _bound(subset)]


def _polygons(prim: Usd.Prim, shape: Shape) -> NDArray[np.int_]:
    """`(m,)` the face of a mesh prim that each triangle is part of."""
    return np.searchsorted(np.cumsum(value(prim, 'faceVertexCounts')), shape.corners[:, 0], side='right')  # type: ignore[index]


def _rgba(prim: Usd.Prim, surface: Appearance, *, white: bool) -> tuple[float, ...]:
    """Colour of a surface: of its material, else white under a texture, else its displayColor, else a light grey."""
    color, opacity = surface.color, surface.opacity
    if color is None and white:
        color = (1.0, 1.0, 1.0)
    if color is None:
        color = _mean_primvar(prim, 'displayColor')
        if surface == _PLAIN and (own := _mean_primvar(prim, 'displayOpacity')) is not None:
            opacity = float(np.ravel(own)[0])
    rgb = np.clip(DEFAULT_COLOR if color is None else color, 0, 1)
    return *map(float, rgb), float(np.clip(opacity, 0, 1))


def _mean_primvar(prim: Usd.Prim, name: str) -> Array | None:
    """A primvar of the prim or one above it; values that vary over the surface are averaged."""
    from pxr import Usd, UsdGeom

    primvar = UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance(name)
    values = primvar.ComputeFlattened(Usd.TimeCode.EarliestTime()) if primvar else None
    return np.mean(np.asarray(values, float), axis=0) if values else None


def _with_skin(prim: Usd.Prim, shape: Shape, surface: Appearance) -> Shape:
    """A mesh with its normals and, if it has a texture, the coordinates on that."""
    from pxr import UsdGeom

    if shape.corners is None:
        return shape
    mesh = prim if prim.IsA(UsdGeom.Mesh) else prim.GetParent()  # a subset is below its mesh
    normals = _primvar(mesh, shape, ('normals',), 3) or _normals_attribute(mesh, shape)
    if normals is not None:
        turned = normals.values @ np.linalg.inv(shape.stretch)
        lengths = np.linalg.norm(turned, axis=1, keepdims=True)
        normals = Indexed(turned / lengths, normals.index) if lengths.all() else None
    coordinates = None
    if surface.texture:
        names = (surface.coordinates,) if surface.coordinates else ()
        coordinates = _primvar(mesh, shape, (*names, *_COORDINATES), 2)
    if coordinates is not None:
        matrix = np.array(surface.layout)
        u, v = (coordinates.values @ matrix[:, :2].T + matrix[:, 2]).T
        coordinates = Indexed(np.stack([u, 1 - v], axis=1), coordinates.index)  # MuJoCo counts from the top
    return replace(shape, normals=normals, coordinates=coordinates)


def _primvar(mesh: Usd.Prim, shape: Shape, names: tuple[str, ...], width: int) -> Indexed | None:
    """The first of these primvars of a mesh that fits it, for the corners of the triangles of a shape."""
    from pxr import Usd, UsdGeom

    for name in names:
        primvar = UsdGeom.PrimvarsAPI(mesh).FindPrimvarWithInheritance(name)
        values = primvar.ComputeFlattened(Usd.TimeCode.EarliestTime()) if primvar else None
        if values and (found := _at_corners(mesh, shape, values, primvar.GetInterpolation(), width)):
            return found
    return None


def _normals_attribute(mesh: Usd.Prim, shape: Shape) -> Indexed | None:
    from pxr import UsdGeom

    values = value(mesh, 'normals')
    return _at_corners(mesh, shape, values, UsdGeom.Mesh(mesh).GetNormalsInterpolation(), 3) if values else None


def _at_corners(mesh: Usd.Prim, shape: Shape, values: Any, interpolation: str, width: int) -> Indexed | None:
    """Values and their indices `(m, 3)` for the corners of a shape's triangles; None if their number does not fit."""
    array = np.asarray(values, float)
    assert shape.corners is not None
    if interpolation in ('vertex', 'varying'):
        index = np.asarray(value(mesh, 'faceVertexIndices'))[shape.corners]
    elif interpolation == 'uniform':
        index = np.repeat(_polygons(mesh, shape)[:, None], 3, axis=1)
    else:
        index = shape.corners if interpolation == 'faceVarying' else np.zeros_like(shape.corners)
    if array.ndim != 2 or array.shape[1] != width or index.max(initial=-1) >= len(array):
        return None
    used, index = np.unique(index, return_inverse=True)
    return Indexed(array[used], index.reshape(-1, 3).astype(np.int32))
