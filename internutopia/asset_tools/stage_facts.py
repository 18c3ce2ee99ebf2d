"""Stage facts: contents and references of a USD file, read without making a model of it.

Missing files are found in the composed stage, as its importer sees it: files below an inactive prim are not needed.
(USD's own list of dependencies covers everything, and crashes on some broken files.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.model.importers import FileWarnings
from internutopia.model.importers.usd.composition import missing_arcs, quiet
from internutopia.model.importers.usd.materials import read_appearance
from internutopia.model.importers.usd.mdl_materials import MdlMaterials
from internutopia.model.importers.usd.stage_opening import open_stage
from internutopia.model.importers.usd.stage_transforms import (
    ForeignUnits,
    StageTransforms,
    foreign_units,
    prims,
    stage_units,
)
from internutopia.model.importers.usd.values import bound_material
from internutopia.model.scene_bounds import is_sky

if TYPE_CHECKING:
    from pxr import Usd

_BOX = 12  # triangles of the smallest mesh that may be concave

Missing = dict[str, dict[str, list[str]]]
"""Missing files by kind (`layer`, `material`, `image`) and name: the prims, or layers, that need it."""


@dataclass
class StageFacts:
    """Facts about a stage.

    Attributes:
        missing: what it refers to and is not there.
        meters_per_unit, up_axis: as set in the file, or USD's defaults.
        says_unit, says_up_axis: True if the file sets them.
        foreign_units: files in it that are in other units than what refers to them.
        extent: size of the box around all shapes but skies and planes, z up [m]; None if there are none.
        prims, meshes, triangles: what there is, instances counted as often as they are there; meshes have points.
        concave_triangles: triangles of meshes that collide and may have to be decomposed, instances counted once.
        materials, materials_not_found: material prims, and those of unknown appearance, as their `.mdl` is missing.
        grey_meshes: meshes that these leave grey.
        bodies, joints: prims that are rigid bodies or joints.
    """

    missing: Missing = field(default_factory=dict)
    meters_per_unit: float = 0.01
    says_unit: bool = False
    up_axis: str = 'Y'
    says_up_axis: bool = False
    foreign_units: list[ForeignUnits] = field(default_factory=list)
    extent: NDArray[np.float64] | None = None
    prims: int = 0
    meshes: int = 0
    triangles: int = 0
    concave_triangles: int = 0
    materials: int = 0
    materials_not_found: int = 0
    grey_meshes: int = 0
    bodies: int = 0
    joints: int = 0


def read_stage(path: Path) -> StageFacts:
    """Read the facts about a stage. ValueError if it is broken."""
    with quiet():
        return _read(open_stage(path, FileWarnings()))


def _read(stage: Usd.Stage) -> StageFacts:
    facts = StageFacts()
    needed = facts.missing['layer'] = {}
    for arc in missing_arcs(stage):
        needed.setdefault(arc.layer or arc.what, []).append(arc.needed_by)
    units = stage_units(stage)
    facts.meters_per_unit, facts.up_axis, facts.says_unit, facts.says_up_axis = units
    facts.foreign_units = foreign_units(stage, units)
    found = list(prims(stage))
    facts.prims = len(found)
    _count(facts, found)
    facts.extent = _extent(stage, found)
    _Materials(facts, found).collect()
    return facts


def _count(facts: StageFacts, found: Iterable[Usd.Prim]) -> None:
    from pxr import UsdPhysics

    concave: dict[Any, int] = {}
    for prim in found:
        facts.bodies += prim.HasAPI(UsdPhysics.RigidBodyAPI)
        facts.joints += prim.IsA(UsdPhysics.Joint)
        triangles = _triangles(prim)
        facts.triangles += triangles
        facts.meshes += triangles > 0
        if triangles > _BOX and not _collides_as_hull(prim):
            concave[_origin(prim)] = triangles
    facts.concave_triangles = sum(concave.values())


def _triangles(prim: Usd.Prim) -> int:
    if prim.GetTypeName() != 'Mesh' or not prim.GetAttribute('points').Get():
        return 0
    corners = prim.GetAttribute('faceVertexCounts').Get()
    return int(np.maximum(np.asarray(corners) - 2, 0).sum()) if corners else 0


def _collides_as_hull(prim: Usd.Prim) -> bool:
    """Return True if the file requests a convex hull, box or sphere."""
    while prim:
        approximation = prim.GetAttribute('physics:approximation').Get()
        if approximation is not None:
            return approximation in ('convexHull', 'boundingCube', 'boundingSphere')
        prim = prim.GetParent()
    return False


def _origin(prim: Usd.Prim) -> Any:
    """Return the layer and path that define a mesh's points: equal for references to one file and for instances."""
    written = prim.GetAttribute('points').GetPropertyStack()
    return (written[0].layer.identifier, str(written[0].path)) if written else str(prim.GetPath())


def _extent(stage: Usd.Stage, found: Iterable[Usd.Prim]) -> NDArray[np.float64] | None:
    from pxr import Usd, UsdGeom

    boxes = UsdGeom.BBoxCache(Usd.TimeCode.EarliestTime(), [UsdGeom.Tokens.default_, UsdGeom.Tokens.render])
    units = StageTransforms(stage).units[:3, :3]
    corners = []
    for prim in found:
        if prim.IsA(UsdGeom.Gprim) and prim.GetTypeName() != 'Plane' and not is_sky(str(prim.GetPath())):
            box = boxes.ComputeWorldBound(prim).ComputeAlignedRange()
            corners += [] if box.IsEmpty() else [box.GetMin(), box.GetMax()]
    placed = np.array([list(corner) for corner in corners]).reshape(-1, 3)
    placed = placed[np.isfinite(placed).all(axis=1)] @ units.T
    return np.ptp(placed, axis=0) if len(placed) else None


class _Materials:
    """Collector of the missing files of a stage's materials."""

    def __init__(self, facts: StageFacts, found: list[Usd.Prim]):
        self._facts, self._found = facts, found
        self._mdl = MdlMaterials()
        self._unknown: set[str] = set()  # paths of materials of unknown appearance

    def collect(self) -> None:
        from pxr import UsdGeom, UsdShade

        files: dict[str, str] = {}  # .mdl files that are missing, by path of the material
        images: dict[str, list[str]] = {}
        for prim in self._found:
            if prim.IsA(UsdShade.Material):
                self._facts.materials += 1
                for name in self._missing_images(prim, files):
                    images.setdefault(name, []).append(str(prim.GetPath()))
            elif prim.IsA(UsdShade.Shader):
                for name in self._unresolved(prim):
                    images.setdefault(name, []).append(str(prim.GetPath()))
        needed: dict[str, list[str]] = {name: [] for name in files.values()}
        grey: set[str] = set()
        for prim in self._found if files else ():
            if prim.IsA(UsdGeom.Gprim) or prim.GetTypeName() == 'GeomSubset':
                bound = str(material.GetPath()) if (material := bound_material(prim)) else ''
                if bound in files:
                    mesh = prim if prim.GetTypeName() != 'GeomSubset' else prim.GetParent()
                    needed[files[bound]].append(str(mesh.GetPath()))
                    grey |= {str(mesh.GetPath())} if bound in self._unknown else set()
        self._facts.materials_not_found, self._facts.grey_meshes = len(self._unknown), len(grey)
        self._facts.missing |= {'material': needed, 'image': images}

    def _missing_images(self, material: Usd.Prim, files: dict[str, str]) -> tuple[str, ...]:
        """Return the missing images of a material; records its `.mdl` file if that is missing."""
        from pxr import UsdShade

        path = str(material.GetPath())
        for context in ((), ('mdl',)):
            shader = UsdShade.Material(material).ComputeSurfaceSource(*context)[0]
            if shader and (name := self._mdl.missing(shader)):
                files[path] = name
        try:
            found = read_appearance(material, self._mdl)
        except ValueError:
            return ()  # the importer warns of it
        if found and found.missing_mdl:
            self._unknown.add(path)
        return found.missing_images if found else ()

    def _unresolved(self, shader: Usd.Prim) -> Iterator[str]:
        """Return the missing images among the inputs of a shader, shown or not."""
        for attribute in shader.GetAttributes():
            asset = attribute.Get() if str(attribute.GetTypeName()) == 'asset' else None
            if asset is None or not asset.path or asset.resolvedPath or asset.path.lower().endswith('.mdl'):
                continue
            folder = Path(attribute.GetPropertyStack()[0].layer.realPath or '.').parent
            if '<UDIM>' not in asset.path and self._mdl.files.find(asset.path, folder) is None:
                yield asset.path
