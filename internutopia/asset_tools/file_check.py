"""File check: missing references, size and loading time of a model file.

All results are plain data in SI units; `dataclasses.asdict` makes them fit for JSON.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path

import mujoco

from internutopia.asset_tools.description import describe
from internutopia.asset_tools.stage_facts import StageFacts, read_stage
from internutopia.core.task.start_checks import LARGEST, SMALLEST, likely_power
from internutopia.model.asset_paths import model_suffix
from internutopia.model.importers.load import is_mjcf, is_urdf, load_spec
from internutopia.model.importers.mjcf import read_mjcf
from internutopia.model.importers.urdf.document import Document
from internutopia.model.importers.urdf.meshes import find
from internutopia.model.importers.urdf.reader import read_document
from internutopia.model.importers.usd.stage_transforms import ForeignUnits
from internutopia.model.scene_bounds import geom_boxes

# What loading takes [s of one core]: between what was measured on generated homes of 60,000 and of a million triangles,
# 0.9 and 16 s, and the first time 8 and 166 s; up to half too much for the former, a fifth too little for the latter.
_PER_MESH = 5e-4
_PER_TRIANGLE = 1.4e-5
_PER_CONCAVE_TRIANGLE = 2e-4
_START = 0.3
# of a stage that are passed on as they are
_FACTS = ('meters_per_unit', 'says_unit', 'up_axis', 'says_up_axis', 'foreign_units', 'prims', 'meshes', 'triangles')
_FACTS += ('materials', 'materials_not_found', 'grey_meshes', 'bodies', 'joints')


@dataclass(frozen=True)
class MissingFile:
    """Missing reference: its kind, its name as written, and the files or prims that need it."""

    kind: str
    name: str
    needed_by: list[str]


@dataclass(frozen=True)
class LoadTime:
    """Loading time of a model.

    Attributes:
        first, cached: estimates [s of one core], rough to a factor of three: the first time, when concave meshes are
            made of convex parts, and later on.
        measured: measured time [s]; None if it was not loaded.
    """

    first: float
    cached: float
    measured: float | None = None


@dataclass(frozen=True)
class FileCheck:
    """Result of a check of a model file.

    Attributes:
        file, format: `usd`, `urdf`, `mjcf`, or the suffix of another one without its dot, which is read as USD is.
        missing: files that it refers to and are not there.
        meters_per_unit, up_axis: of a USD file, as set there or by USD's defaults; else None.
        says_unit, says_up_axis: True if the file sets them; None for other files.
        foreign_units: files in a USD file that are in other units than what refers to them.
        extent: size of the box around what is finite in it, z up [m]; None if there is nothing, or it cannot be loaded.
        size_warning: what is odd about that, and what was likely meant; empty if nothing is.
        prims: of a USD file.
        meshes, triangles, materials, bodies, joints: numbers of them; of a USD file as it is written, instances
            counted each; of others in the model, whose links are all bodies. None if it cannot be loaded.
        materials_not_found, grey_meshes: materials whose `.mdl` is missing, and the meshes that they leave grey.
        load: how long that takes; None for what is too small to matter.
        dropped: what the importer mends, leaves out or does not read; None if it was not loaded.
        error: why it cannot be loaded, empty otherwise.
    """

    file: str
    format: str
    missing: list[MissingFile]
    meters_per_unit: float | None = None
    says_unit: bool | None = None
    up_axis: str | None = None
    says_up_axis: bool | None = None
    foreign_units: list[ForeignUnits] = field(default_factory=list)
    extent: list[float] | None = None
    size_warning: str = ''
    prims: int | None = None
    meshes: int | None = None
    triangles: int | None = None
    materials: int | None = None
    materials_not_found: int = 0
    grey_meshes: int = 0
    bodies: int | None = None
    joints: int | None = None
    load: LoadTime | None = None
    dropped: list[str] | None = None
    error: str = ''


@dataclass
class _Loaded:
    dropped: list[str] | None = None
    seconds: float | None = None
    error: str = ''


def check_file(path: Path, load: bool = False) -> FileCheck:
    """Check a model file.

    Args:
        path: absolute.
        load: load a USD file as well, which may take minutes; the others, which are small, are always loaded.

    Raises:
        ValueError: the file is broken and cannot be checked.
    """
    if is_urdf(path):
        return _check_xml(path, 'urdf', _missing_of_urdf(read_document(path)))
    if is_mjcf(path):
        models = read_mjcf(path)
        missing = [MissingFile(tag, name, [str(file)]) for file, model in models.items() for tag, name in model.missing]
        return _check_xml(path, 'mjcf', missing)
    facts = read_stage(path)
    loaded = _load(path) if load else _Loaded()
    cached = _START + _PER_MESH * facts.meshes + _PER_TRIANGLE * facts.triangles
    first = cached + _PER_CONCAVE_TRIANGLE * facts.concave_triangles
    suffix = model_suffix(path)
    is_usd = suffix.startswith('.usd')
    return FileCheck(
        file=str(path),
        format='usd' if is_usd else suffix[1:],
        missing=[
            MissingFile(kind, name, needed_by)
            for kind, names in facts.missing.items()
            for name, needed_by in names.items()
        ],
        extent=None if facts.extent is None else [round(float(length), 6) for length in facts.extent],
        size_warning=_size_warning(facts, is_usd),
        load=LoadTime(first, cached, loaded.seconds),
        dropped=loaded.dropped,
        error=loaded.error,
        **{name: getattr(facts, name) for name in _FACTS},
    )


def _load(path: Path) -> _Loaded:
    start = time.perf_counter()
    try:
        dropped = describe(path).dropped
    except ValueError as error:
        return _Loaded(error=str(error))
    return _Loaded(dropped, time.perf_counter() - start)


def _size_warning(facts: StageFacts, is_usd: bool) -> str:
    """Return the warning about the size of a stage, by the rule of the warning at an episode's start."""
    if facts.extent is None:
        return 'it has nothing finite in it'
    across = float(facts.extent[:2].max())
    if SMALLEST <= across <= LARGEST or across == 0:
        return ''
    to_metres = -round(math.log10(facts.meters_per_unit))
    power = likely_power(lambda power: across * 10.0**power, (to_metres,))
    default = '' if facts.says_unit else ' (a default, the file has none)'
    unit = f' with metersPerUnit = {facts.meters_per_unit:g}{default}' if is_usd else ''
    if power is None:
        return f'it is {across:.3g} m wide{unit}'
    factor = 10.0**power
    likely = f'scene_scale=({factor:g}, {factor:g}, {factor:g})'
    in_file = f', or metersPerUnit = {facts.meters_per_unit * factor:g} in the file' if is_usd else ''
    return f'it is {across:.3g} m wide{unit}; if it is a scene, likely meant: {likely}{in_file}'


def _missing_of_urdf(document: Document) -> list[MissingFile]:
    needed: dict[str, list[str]] = {}
    for link in document.links.values():
        for shape in link.shapes:
            if shape.mesh and find(document, shape.mesh)[0] is None:
                needed.setdefault(shape.mesh, []).append(f'link {link.name}')
    return [MissingFile('mesh', name, list(dict.fromkeys(links))) for name, links in needed.items()]


def _check_xml(path: Path, kind: str, missing: list[MissingFile]) -> FileCheck:
    loaded = _load(path)
    if loaded.error:
        return FileCheck(str(path), kind, missing, error=loaded.error)
    model = load_spec(path).compile()
    meshes = model.geom_dataid[model.geom_type == mujoco.mjtGeom.mjGEOM_MESH]
    return FileCheck(
        file=str(path),
        format=kind,
        missing=missing,
        extent=_extent(model),
        meshes=len(meshes),
        triangles=int(model.mesh_facenum[meshes].sum()),
        materials=model.nmat,
        bodies=model.nbody - 1,
        joints=model.njnt,
        dropped=loaded.dropped,
    )


def _extent(model: mujoco.MjModel) -> list[float] | None:
    """Return the size of the box around all geoms but planes [m]."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    chosen = model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE
    if not chosen.any():
        return None
    low, high = geom_boxes(model, data)
    return [round(float(length), 6) for length in high[chosen].max(axis=0) - low[chosen].min(axis=0)]
