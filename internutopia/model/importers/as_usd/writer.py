"""Stage writer: meshes, materials and transforms of another format -> a stage in memory.

All is below the default prim `/World`, materials below `/World/Looks`. Meshes that several prims show are written once,
below the class `/World/Shared`, and referred to.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_files import check_bound
from internutopia.model.importers.transforms import Array

if TYPE_CHECKING:
    from pxr import Usd

ROOT = '/World'
_LOOKS, _SHARED = f'{ROOT}/Looks', f'{ROOT}/Shared'
_FILES, _WARNINGS = 'internutopia:files', 'internutopia:warnings'  # of the layer's own data


@dataclass(frozen=True)
class Triangles:
    """A mesh of one material.

    Attributes:
        points: `(n, 3)`.
        faces: `(m, 3)` their corners.
        normals: `(n, 3)` of points, if there are any.
        texcoords: `(n, 2)` of points, counted from the bottom of the image, if there are any.
        colors: `(n, 3)` of points, linear, if there are any.
        material: path of its material prim; empty for none.
    """

    points: Array
    faces: NDArray[np.integer]
    normals: Array | None = None
    texcoords: Array | None = None
    colors: Array | None = None
    material: str = ''


@dataclass(frozen=True)
class Surface:
    """A material.

    Attributes:
        color: linear RGB, which multiplies the image.
        opacity: 0 to 1; ignored where the alpha of the image counts.
        image: path of the image's file, or `file[number]` of one within a file; empty for none.
        wrap: `repeat`, `mirror` or `clamp`, beyond the image's left and right, and beyond its top and bottom.
        alpha: how the alpha of the image counts: not at all, mixed with what is behind, or cut out.
        cutoff: alpha from which on a surface that is cut out is there.
        metallic, roughness: 0 to 1.
        emission: linear RGB.
    """

    color: tuple[float, ...] = (1.0, 1.0, 1.0)
    opacity: float = 1.0
    image: str = ''
    wrap: tuple[str, str] = ('repeat', 'repeat')
    alpha: Literal['', 'blend', 'mask'] = ''
    cutoff: float = 0.5
    metallic: float = 0.0
    roughness: float = 1.0
    emission: tuple[float, ...] = (0.0, 0.0, 0.0)


class StageWriter:
    """Writer of one stage, in metres.

    Attributes:
        files: all that the stage is made of, missing ones as well.
    """

    def __init__(self, path: Path, up: Literal['Y', 'Z']):
        from pxr import Usd, UsdGeom

        self.path = path
        self.files = {path}
        self.stage = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageUpAxis(self.stage, up)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        self.stage.SetDefaultPrim(self.stage.DefinePrim(ROOT, 'Xform'))
        self._warnings: dict[tuple[str, str], None] = {}
        self._taken: dict[str, int] = {}  # paths, and how many others wanted each
        self._prims = 0

    def finish(self) -> Usd.Stage:
        """Return the stage, with notes of its files and of what is not as in them."""
        from pxr import Vt

        data = {_FILES: sorted(map(str, self.files)), _WARNINGS: [text for pair in self._warnings for text in pair]}
        self.stage.GetRootLayer().customLayerData = {name: Vt.StringArray(values) for name, values in data.items()}
        return self.stage

    def warn(self, what: str, where: str) -> None:
        """Note what is not as in the file, and where."""
        self._warnings[what, where] = None

    def xform(self, parent: str, name: str, matrix: Array | None = None) -> str:
        """Add a prim with a `(4, 4)` transform that acts on columns; returns its path."""
        from pxr import Gf, UsdGeom

        path = self._path(parent, name)
        xform = UsdGeom.Xform.Define(self.stage, path)
        if matrix is not None:
            xform.AddTransformOp().Set(Gf.Matrix4d(*np.asarray(matrix, float).T.ravel().tolist()))
        return path

    def shared(self, name: str, parts: Iterable[tuple[str, Triangles]]) -> str:
        """Write meshes that prims will refer to; returns the path for `refer`."""
        if not self.stage.GetPrimAtPath(_SHARED):
            self.stage.CreateClassPrim(_SHARED)
        path = self.xform(_SHARED, name)
        for part, triangles in parts:
            self.mesh(path, part, triangles)
        return path

    def refer(self, parent: str, name: str, target: str | Usd.Stage) -> str:
        """Add a prim that shows shared meshes or all of another written stage; returns its path."""
        path = self.xform(parent, name)
        references = self.stage.GetPrimAtPath(path).GetReferences()
        if isinstance(target, str):
            references.AddInternalReference(target)
        else:
            references.AddReference(target.GetRootLayer().identifier)
        return path

    def mesh(self, parent: str, name: str, triangles: Triangles) -> str:
        """Add a mesh; returns its path."""
        from pxr import Sdf, UsdGeom, UsdShade, Vt

        path = self._path(parent, name)
        mesh = UsdGeom.Mesh.Define(self.stage, path)
        faces = triangles.faces.astype(np.int32)
        mesh.CreatePointsAttr(_vectors(triangles.points))
        mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(faces.ravel()))
        mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(faces), 3, np.int32)))
        mesh.CreateSubdivisionSchemeAttr('none')
        if triangles.normals is not None:
            mesh.CreateNormalsAttr(_vectors(triangles.normals))
            mesh.SetNormalsInterpolation('vertex')
        if triangles.texcoords is not None:
            kind = Sdf.ValueTypeNames.TexCoord2fArray
            texcoords = Vt.Vec2fArray.FromNumpy(np.ascontiguousarray(triangles.texcoords, np.float32))
            UsdGeom.PrimvarsAPI(mesh).CreatePrimvar('st', kind, 'vertex').Set(texcoords)
        if triangles.colors is not None:
            mesh.CreateDisplayColorPrimvar('vertex').Set(_vectors(triangles.colors))
        if triangles.material:
            material = UsdShade.Material(self.stage.GetPrimAtPath(triangles.material))
            UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
        return path

    def camera(self, parent: str, name: str, fovy: float, aspect: float) -> None:
        """Add a camera that faces -z with y up; `fovy` [rad], width by height: of the image that it is made for."""
        from pxr import UsdGeom

        camera = UsdGeom.Camera.Define(self.stage, self._path(parent, name))
        height = 2 * camera.GetFocalLengthAttr().Get() * float(np.tan(fovy / 2))
        camera.CreateVerticalApertureAttr(height)
        camera.CreateHorizontalApertureAttr(aspect * height)

    def material(self, name: str, surface: Surface) -> str:
        """Add a material; returns its path."""
        from pxr import Sdf, UsdShade

        types = Sdf.ValueTypeNames
        path = self._path(_LOOKS, name)
        material = UsdShade.Material.Define(self.stage, path)
        shader = UsdShade.Shader.Define(self.stage, f'{path}/Surface')
        shader.CreateIdAttr('UsdPreviewSurface')
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), 'surface')
        numbers = {'metallic': surface.metallic, 'roughness': surface.roughness}
        numbers['opacityThreshold'] = surface.cutoff if surface.alpha == 'mask' else 0.0
        for key, value in numbers.items():
            shader.CreateInput(key, types.Float).Set(value)
        shader.CreateInput('emissiveColor', types.Color3f).Set(surface.emission)
        color = shader.CreateInput('diffuseColor', types.Color3f)
        opacity = shader.CreateInput('opacity', types.Float)
        color.Set(surface.color)
        opacity.Set(surface.opacity)
        if surface.image:
            reader = UsdShade.Shader.Define(self.stage, f'{path}/Image')
            reader.CreateIdAttr('UsdUVTexture')
            reader.CreateInput('file', types.Asset).Set(Sdf.AssetPath(surface.image))
            reader.CreateInput('scale', types.Float4).Set((*surface.color, 1.0))
            for axis, wrap in zip('ST', surface.wrap, strict=True):
                reader.CreateInput(f'wrap{axis}', types.Token).Set(wrap)
            color.ConnectToSource(reader.ConnectableAPI(), 'rgb')
            if surface.alpha:
                opacity.ConnectToSource(reader.ConnectableAPI(), 'a')
        return path

    def _path(self, parent: str, name: str) -> str:
        """Return a path for a prim of some name below another one, which no other has."""
        from pxr import Tf

        self._prims += 1
        check_bound(self.path, 'prims', self._prims, 'prims')
        name = Tf.MakeValidIdentifier(name or 'unnamed')
        path = f'{parent}/{name}'
        while path in self._taken:
            self._taken[path] += 1
            path = f'{path}_{self._taken[path]}'
        self._taken[path] = 0
        return path


def files_of(stage: Usd.Stage) -> set[Path]:
    """Return the files that a written stage is made of; none for one that is a file."""
    return {Path(file) for file in stage.GetRootLayer().customLayerData.get(_FILES, ())}


def warnings_of(stage: Usd.Stage) -> list[tuple[str, str]]:
    """Return what in a written stage is not as in its file, and where."""
    texts = list(stage.GetRootLayer().customLayerData.get(_WARNINGS, ()))
    return list(zip(texts[::2], texts[1::2], strict=True))


def _vectors(values: Array) -> Any:
    from pxr import Vt

    return Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(values, np.float32))
