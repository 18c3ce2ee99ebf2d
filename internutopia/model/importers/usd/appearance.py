"""Appearance of geometry: materials, textures, the meshes that carry them, and values that vary over them (primvars).

A mesh that has several materials (`GeomSubset`) becomes one visual mesh for each. A material becomes one of MuJoCo's:
`specular` and `shininess` fall with its roughness and grow with its metallicity, smooth metal reflects. Textures need
texture coordinates; what has none shows the mean colour of the image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.importers import FileWarnings, listed
from internutopia.model.importers.transforms import Array
from internutopia.model.importers.usd.materials import read_appearance
from internutopia.model.importers.usd.mdl_files import SEARCH_PATH
from internutopia.model.importers.usd.mdl_materials import MdlMaterials
from internutopia.model.importers.usd.shapes import Indexed, Shape
from internutopia.model.importers.usd.textures import (
    ONE_TILE,
    Appearance,
    Texture,
    Tiles,
    read_image,
)
from internutopia.model.importers.usd.values import array, bound_material, value
from internutopia.model.meshes.images import add_texture, decode_srgb, encode_srgb, palette, places_on_palette

if TYPE_CHECKING:
    from pxr import Usd, UsdGeom


_COORDINATES = ('st', 'st0', 'st_0', 'UVMap', 'map1')  # what exporters call texture coordinates
_SAME_COLOUR = 1 / 255
DEFAULT_COLOR = (0.7, 0.7, 0.72)  # sRGB
_PLAIN = Appearance()
_PALETTE = 'palette'  # name of the texture and material of meshes whose triangles have their own colours
_BLENDED = 0.99  # opacity from which on MuJoCo ignores the opacity of a texture


class Primvars:
    """Reader of primvars; a wrong one is left out, with a warning."""

    def __init__(self, warnings: FileWarnings):
        self._warnings = warnings

    def mean(self, prim: Usd.Prim, name: str) -> Array | None:
        """Return a colour or opacity of the prim or one above it, as `(n,)`, averaged if it varies over the surface."""
        from pxr import UsdGeom

        values = self._values(UsdGeom.PrimvarsAPI(prim).FindPrimvarWithInheritance(name))
        if values is None:
            return None
        if np.ptp(values, axis=0).max() > _SAME_COLOUR:
            self._warnings.add(f'{name} that varies over the surface is averaged', prim)
        return np.atleast_1d(values.mean(axis=0))

    def face_colours(self, mesh: Usd.Prim, shape: Shape) -> Array | None:
        """Return linear colours `(m, 3)` of the triangles of a mesh whose displayColor varies; None if it does not."""
        found = self._first(mesh, shape, ('displayColor',), 3)
        if found is None or np.ptp(found.values, axis=0).max() <= _SAME_COLOUR:
            return None
        return found.values[found.index].mean(axis=1)

    def coordinates(self, mesh: Usd.Prim, shape: Shape, name: str) -> Indexed | None:
        """Return texture coordinates of a mesh: those of that name, if it has any, else the usual ones."""
        return self._first(mesh, shape, ((name,) if name else ()) + _COORDINATES, 2)

    def normals(self, mesh: Usd.Prim, shape: Shape) -> Indexed | None:
        """Return unit normals of a mesh, along the axes of its shape."""
        from pxr import UsdGeom

        found = self._first(mesh, shape, ('normals',), 3)
        if found is None:
            values = array(mesh, 'normals', float, 3)
            found = _at_corners(mesh, shape, values, UsdGeom.Mesh(mesh).GetNormalsInterpolation(), 3)
        if found is None:
            return None
        turned = found.values @ np.linalg.inv(shape.stretch)
        lengths = np.linalg.norm(turned, axis=1, keepdims=True)
        return Indexed(turned / lengths, found.index) if np.isfinite(lengths).all() and lengths.all() else None

    def _first(self, mesh: Usd.Prim, shape: Shape, names: tuple[str, ...], width: int) -> Indexed | None:
        """Return the first of these primvars of a mesh that fits it, for the corners of the triangles of a shape."""
        from pxr import UsdGeom

        for name in names:
            primvar = UsdGeom.PrimvarsAPI(mesh).FindPrimvarWithInheritance(name)
            values = self._values(primvar)
            if values is None:
                continue
            found = _at_corners(mesh, shape, values, primvar.GetInterpolation(), width)
            if found is not None:
                return found
            self._warnings.add(f'primvar {name} does not fit the mesh', mesh)
        return None

    def _values(self, primvar: UsdGeom.Primvar) -> Array | None:
        """Return values of a primvar by index, `(n,)` or `(n, width)`; None if it has none that can be read."""
        from pxr import Tf, Usd

        if not primvar or not primvar.HasValue():
            return None
        try:
            values = np.asarray(primvar.ComputeFlattened(Usd.TimeCode.EarliestTime()), float)
        except (Tf.ErrorException, TypeError, ValueError):
            values = np.full(1, np.nan)
        if values.size and np.isfinite(values).all():
            return np.atleast_1d(values)
        if values.size:
            self._warnings.add(f'primvar {primvar.GetPrimvarName()} cannot be read', primvar.GetAttr().GetPrim())
        return None


def polygons(mesh: Usd.Prim, shape: Shape) -> NDArray[np.intp]:
    """Return the face `(m,)` of a mesh prim that each triangle of its shape is part of."""
    assert shape.corners is not None
    return np.searchsorted(np.cumsum(value(mesh, 'faceVertexCounts')), shape.corners[:, 0], side='right')


def _at_corners(mesh: Usd.Prim, shape: Shape, values: Any, interpolation: str, width: int) -> Indexed | None:
    """Return values and indices `(m, 3)` for the corners of a shape's triangles; None if their number does not fit."""
    assert shape.corners is not None
    if interpolation in ('vertex', 'varying'):
        index = np.asarray(value(mesh, 'faceVertexIndices'))[shape.corners]
    elif interpolation == 'uniform':
        index = np.repeat(polygons(mesh, shape)[:, None], 3, axis=1)
    else:
        index = shape.corners if interpolation == 'faceVarying' else np.zeros_like(shape.corners)
    if values.ndim != 2 or values.shape[1] != width or index.max(initial=-1) >= len(values):
        return None
    used, index = np.unique(index, return_inverse=True)
    return Indexed(values[used], index.reshape(-1, 3).astype(np.int32))


@dataclass(frozen=True)
class Visual:
    """A visual: a shape, the name of its material if it has one, and its colour in sRGB, with opacity."""

    name: str
    shape: Shape
    rgba: tuple[float, ...]
    material: str = ''


class VisualBuilder:
    """Builder of the materials and textures of one stage in its spec, each one once."""

    def __init__(self, spec: mujoco.MjSpec, warnings: FileWarnings):
        self._spec = spec
        self._warnings = warnings
        self._appearances: dict[str, Appearance] = {}  # by path of the material
        self._mdl = MdlMaterials()
        self._grey: dict[str, set[str]] = {}  # paths of meshes by the `.mdl` file that is missing
        self._primvars = Primvars(warnings)
        self._read_image = lru_cache(32)(read_image)  # materials often share images
        self._textures: dict[Any, str] = {}  # names by what they show; empty for one that cannot be read
        self._materials: dict[Any, str] = {}  # names by their appearance

    def of(self, prim: Usd.Prim, shape: Shape) -> list[Visual]:
        """Return the visuals of a geometry prim that has a shape: one for each material on it."""
        path = str(prim.GetPath())
        groups: dict[str, tuple[str, Any, list[NDArray[np.bool_]]]] = {}
        rest = np.ones(0 if shape.faces is None else len(shape.faces), bool)
        for subset, chosen in _subsets(prim, shape):
            chosen &= rest
            rest &= ~chosen
            material = bound_material(subset)
            _, _, members = groups.setdefault(
                str(material.GetPath()) if material else '', (str(subset.GetPath()), subset, [])
            )
            members.append(chosen)
        if not groups:
            return [self._visual(path, prim, shape)]
        parts = [(name, owner, np.any(members, axis=0)) for name, owner, members in groups.values()]
        parts += [(path, prim, rest)]
        return [self._visual(name, owner, shape.with_faces(chosen)) for name, owner, chosen in parts if chosen.any()]

    def rgba(self, prim: Usd.Prim) -> tuple[float, ...]:
        """Return the colour of a prim, without a texture."""
        material = bound_material(prim)
        return self._rgba(prim, self._appearance(material) if material else _PLAIN, white=False)

    def warn_of_missing(self) -> None:
        """Warn of the `.mdl` files that were not found, all of them at once."""
        if not self._grey:
            return
        meshes = set[str]().union(*self._grey.values())
        folders = listed([str(folder) for folder in self._mdl.files.folders])
        what = (
            f'materials are not found ({len(self._grey)}), which leaves meshes grey ({len(meshes)}); '
            f'searched in {folders}; {SEARCH_PATH} may name other folders'
        )
        for file in self._grey:
            self._warnings.add(what, file)

    def _visual(self, name: str, prim: Usd.Prim, shape: Shape) -> Visual:
        from pxr import UsdGeom

        material = bound_material(prim)
        surface, texture = self._appearance(material) if material else _PLAIN, ''
        if shape.corners is not None:
            mesh = prim if prim.IsA(UsdGeom.Mesh) else prim.GetParent()  # a subset is below its mesh
            shape = replace(shape, normals=self._primvars.normals(mesh, shape))
            if surface.texture is not None:
                shape, texture = self._textured(mesh, shape, surface.texture, material)
            if surface.color is None and not texture:
                colours = self._primvars.face_colours(mesh, shape)
                if colours is not None:
                    return self._painted(name, shape, colours, self._rgba(prim, surface, white=True))
        if surface.texture is not None and not texture:
            surface = self._without_texture(surface, surface.texture, material)
        rgba = self._rgba(prim, surface, white=bool(texture))
        if surface.missing_mdl and rgba[:3] == DEFAULT_COLOR:
            mesh = prim if prim.IsA(UsdGeom.Gprim) else prim.GetParent()
            self._grey.setdefault(surface.missing_mdl, set()).add(str(mesh.GetPath()))
        if texture and self._spec.texture(texture).nchannel == 4:
            rgba = (*rgba[:3], min(rgba[3], _BLENDED))
        return Visual(name, shape, rgba, self._material(material, surface, texture) if material else '')

    def _painted(self, name: str, shape: Shape, colours: Array, rgba: tuple[float, ...]) -> Visual:
        """Return a mesh whose triangles have linear colours `(m, 3)`, as places on an image of all colours."""
        if not any(texture.name == _PALETTE for texture in self._spec.textures):
            add_texture(self._spec, _PALETTE, palette())
            material = self._spec.add_material(name=_PALETTE, specular=0.0, shininess=0.0)
            material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = _PALETTE
        places, index = np.unique(places_on_palette(encode_srgb(colours)), axis=0, return_inverse=True)
        corners = np.repeat(index.reshape(-1, 1), 3, axis=1).astype(np.int32)
        return Visual(name, replace(shape, coordinates=Indexed(places, corners)), rgba, _PALETTE)

    def _textured(self, mesh: Usd.Prim, shape: Shape, texture: Texture, material: Usd.Prim) -> tuple[Shape, str]:
        """Return a mesh with texture coordinates, and the texture's name; empty if it has none or it cannot be read."""
        found = self._primvars.coordinates(mesh, shape, texture.coordinates)
        if found is None:
            return shape, ''
        tiles, on_texture = texture.fit(found.values)
        name = self._texture(texture, tiles, material)
        from_top = np.stack([on_texture[:, 0], 1 - on_texture[:, 1]], axis=1)  # as MuJoCo counts
        return (replace(shape, coordinates=Indexed(from_top, found.index)), name) if name else (shape, '')

    def _without_texture(self, surface: Appearance, texture: Texture, material: Usd.Prim) -> Appearance:
        """Return a surface in the mean colour and opacity of its texture, or without both if that cannot be read."""
        pixels = self._pixels(texture, ONE_TILE, material)
        if pixels is None:
            return replace(surface, texture=None)
        mean = np.mean(pixels, axis=(0, 1)) / 255
        color = tuple((decode_srgb(mean[:3]) * (surface.color or (1.0, 1.0, 1.0))).tolist())
        alpha = float(mean[3]) if len(mean) > 3 else 1.0
        return replace(surface, texture=None, color=color, opacity=surface.opacity * alpha)

    def _appearance(self, material: Usd.Prim) -> Appearance:
        path = str(material.GetPath())
        if path not in self._appearances:
            try:
                found = read_appearance(material, self._mdl) or _PLAIN
            except ValueError as error:
                self._warnings.add(f'material cannot be read ({str(error).removeprefix(f"{path}: ")})', material)
                found = _PLAIN
            self._appearances[path] = found
            for warning in found.warnings:
                self._warnings.add(warning, material)
            for image in found.missing_images:
                self._warnings.add('image does not exist; its material has a single colour', f'@{image}@ of <{path}>')
        return self._appearances[path]

    def _texture(self, texture: Texture, tiles: Tiles, material: Usd.Prim) -> str:
        """Return the name of a texture of the spec; empty if it cannot be read."""
        key = replace(texture, coordinates='', layout=Texture.layout), tiles
        if key not in self._textures:
            pixels = self._pixels(texture, tiles, material)
            self._textures[key] = '' if pixels is None else f'texture_{len(self._textures) + 1}'
            if pixels is not None:
                add_texture(self._spec, self._textures[key], pixels)
        return self._textures[key]

    def _pixels(self, texture: Texture, tiles: Tiles, material: Usd.Prim) -> NDArray[np.uint8] | None:
        try:
            return texture.pixels(tiles, self._read_image)
        except ValueError as error:
            names = ' and '.join(sorted(texture.files))
            self._warnings.add(f'texture {names} cannot be read ({error}); shown in one colour', material)
            return None

    def _rgba(self, prim: Usd.Prim, surface: Appearance, *, white: bool) -> tuple[float, ...]:
        """Return the sRGB colour of a surface: of its material, white under a texture, else displayColor, else grey."""
        color, opacity = surface.color, surface.opacity
        if color is None and white:
            color = (1.0, 1.0, 1.0)
        if color is None:
            color = self._primvars.mean(prim, 'displayColor')
            color = None if color is None or len(color) != 3 else color
            if surface == _PLAIN and (own := self._primvars.mean(prim, 'displayOpacity')) is not None:
                opacity = float(own[0])
        rgb = DEFAULT_COLOR if color is None else encode_srgb(color)
        return *map(float, rgb), float(np.clip(opacity, 0, 1))

    def _material(self, prim: Usd.Prim, surface: Appearance, texture: str) -> str:
        """Return the material name of a surface: the path of the first prim of this name and appearance.

        A home refers to the same few hundred materials from each of its models, and MuJoCo renders 1000 at most.
        """
        key = (prim.GetName(), surface.roughness, surface.metallic, surface.emission, texture)
        if key not in self._materials:
            path = str(prim.GetPath())
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


def _subsets(prim: Usd.Prim, shape: Shape) -> list[tuple[Usd.Prim, NDArray[np.bool_]]]:
    """Return the subsets of a mesh that a material is bound to, with masks `(m,)` of their triangles."""
    from pxr import UsdShade

    if shape.corners is None:
        return []
    faces = polygons(prim, shape)
    subsets = [subset.GetPrim() for subset in UsdShade.MaterialBindingAPI(prim).GetMaterialBindSubsets()]
    return [(subset, np.isin(faces, array(subset, 'indices', int))) for subset in subsets if bound_material(subset)]
