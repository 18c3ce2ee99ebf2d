"""Loading of assets of every format: a file -> `MjSpec`, and a hash of everything that the file is made of.

Whatever the format, the spec is in metres, radians and kilograms with z up, compiles on its own and as the child of
another spec (`parent.attach(spec, frame=..., prefix='x/')`), and does not depend on the working directory. Each call
gives a new spec, which the caller may change.

MuJoCo collides with the convex hull of a mesh, which closes doorways and fills rooms. A mesh that collides and that no
joint moves stays visible, and gets geoms that collide in its place, called `<geom>/part_<i>`, in group 3.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from xml.parsers import expat

import mujoco
import numpy as np
from mujoco import mjtGeom, mjtMeshInertia

from internutopia.model.asset_files import check_file, reading
from internutopia.model.asset_paths import MODEL_SUFFIXES, model_suffix
from internutopia.model.groups import COLLIDER_GROUP
from internutopia.model.importers import DEFAULT_OPTIONS, LoadOptions, mjcf, urdf, usd
from internutopia.model.importers.fingerprints import (
    Fingerprint,
    adopt_fingerprint,
    known_fingerprint,
    search_path,
    stamp_of,
    store_fingerprint,
    stored_fingerprint,
)
from internutopia.model.importers.transforms import Frame, from_quat, to_quat
from internutopia.model.importers.usd.stage_transforms import StageUnits
from internutopia.model.meshes.convex_parts import STATIC_TOLERANCE
from internutopia.model.meshes.decomposition import Mesh, decompose
from internutopia.model.scaling import scale_spec
from internutopia.util.log import Warned, recorded_warnings

_CONTACT = ('contype', 'conaffinity', 'condim', 'priority', 'friction', 'solmix', 'solref', 'solimp', 'margin', 'gap')


def decompose_static_meshes(spec: mujoco.MjSpec) -> None:
    """Replace the colliders of a spec that are static concave meshes by convex parts, in their present size."""
    twin = spec.copy()  # compiling changes a spec
    model = twin.compile()
    fixed = (model.body_weldid == 0) & (model.body_mocapid < 0)
    chosen = (model.geom_type == mjtGeom.mjGEOM_MESH) & fixed[model.geom_bodyid]
    chosen &= (model.geom_contype | model.geom_conaffinity) != 0
    found = [(geom, each.id) for geom, each in zip(spec.geoms, twin.geoms, strict=True) if chosen[each.id]]
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


def _mesh(model: mujoco.MjModel, mesh: int) -> Mesh:
    """Return vertices and faces of a compiled mesh, in the frame that MuJoCo gives it."""
    first, last = model.mesh_vertadr[mesh], model.mesh_vertadr[mesh] + model.mesh_vertnum[mesh]
    begin, end = model.mesh_faceadr[mesh], model.mesh_faceadr[mesh] + model.mesh_facenum[mesh]
    return model.mesh_vert[first:last].astype(float), model.mesh_face[begin:end].astype(int)


_HEAD = 1 << 16  # bytes; most root elements begin within


def load_spec(path: Path, options: LoadOptions = DEFAULT_OPTIONS) -> mujoco.MjSpec:
    """Read an asset.

    Args:
        path: A file with one of the `MODEL_SUFFIXES`; `.xml` is MJCF, or URDF if its root element is `<robot>`. All but
            these two are read as USD is (`as_usd`).
        options: How it is read. Only what is read as USD may be scaled differently along x, y and z.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken or of no supported format, or cannot be scaled like that; the message names the
            file and, where known, the line or the prim.
    """
    path = Path(os.path.abspath(path))
    content_key(path)  # checks all of its files, unless that was done before
    with reading(path):
        reader = _format(path)
        if reader is usd:
            return usd.load(path, options)
        if len(set(options.scale)) != 1:
            raise ValueError(
                f'scale {options.scale} must be the same along x, y and z; files of MJCF and URDF cannot be scaled '
                'differently along them'
            )
        spec = reader.load(path)
        scale_spec(spec, options.scale[0])
        if options.decompose:
            decompose_static_meshes(spec)
        return spec


@dataclass(frozen=True)
class _KeptAsset:
    path: Path
    content: str
    options: LoadOptions
    spec: mujoco.MjSpec
    warnings: list[Warned]


_last_scene: _KeptAsset | None = None


def load_scene_asset(path: Path, options: LoadOptions) -> mujoco.MjSpec:
    """Load as `load_spec`, with the same warnings, but reuse the asset that this process has read last."""
    global _last_scene
    content, kept = content_key(path), _last_scene
    if kept is not None and (kept.path, kept.content, kept.options) == (path, content, options):
        for warned in kept.warnings:
            warned.emit()
        return kept.spec.copy()
    kept = _last_scene = None  # before there is another one in memory
    with recorded_warnings() as warnings:
        spec = load_spec(path, options)
    if all(warned.lasting for warned in warnings):  # or else another attempt may do better
        _last_scene = _KeptAsset(path, content, options, spec, warnings)
        return spec.copy()
    return spec


def is_urdf(path: Path) -> bool:
    """Return True if `load_spec` reads a file as URDF."""
    return _format(path) is urdf


def is_mjcf(path: Path) -> bool:
    """Return True if `load_spec` reads a file as MJCF."""
    return _format(path) is mjcf


def units_of(path: Path) -> StageUnits | None:
    """Return length unit and up axis of a USD file, with flags for stated ones; None for other formats."""
    with reading(path):
        return usd.units_of(path) if _format(path) is usd and model_suffix(path).startswith('.usd') else None


def content_key(path: Path) -> str:
    """Return a hash of an asset's file and of every file it refers to (includes, meshes, textures, USD layers).

    Files are read again only when one of them has changed (see `fingerprints`). Raises what `load_spec` raises, of
    files that are too large or nested too deep before a reader has seen them.
    """
    known = known_fingerprint(path)
    if known is None:
        with reading(path):
            known = _fingerprint(Path(os.path.abspath(path)))
        adopt_fingerprint(path, known)
    return known.key


def _format(path: Path) -> ModuleType:
    """Return the module that reads a file: it has `load(path)`, `dependencies(path)` (which may name missing files)."""
    if not path.exists():
        raise FileNotFoundError(f'asset {path} does not exist')
    suffix = model_suffix(path)
    if suffix not in MODEL_SUFFIXES:
        raise ValueError(f'asset {path}: the format must be one of {", ".join(MODEL_SUFFIXES)}')
    check_file(path)
    if suffix == '.urdf':
        return urdf
    if suffix != '.xml':
        return usd
    return urdf if _root_tag(path) == 'robot' else mjcf


def _root_tag(path: Path) -> str:
    """Return the tag of a file's root element, as it is written. ValueError if it has none."""
    tags: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: tags.append(tag)
    try:
        with path.open('rb') as file:
            parser.Parse(file.read(_HEAD).lstrip())
            while not tags:
                rest = file.read(_HEAD)
                parser.Parse(rest, not rest)
    except expat.ExpatError as error:
        if not tags:
            raise ValueError(f'{path}: not an XML document: {error}') from error
    return tags[0]


def _fingerprint(path: Path) -> Fingerprint:
    reader = _format(path)
    stored = stored_fingerprint(path) if reader is usd else None
    if stored is not None:
        return stored
    files = sorted(str(file) for file in reader.dependencies(path))
    stamps = tuple((file, stamp_of(file)) for file in files)  # before reading: a later change is then detected
    digest = hashlib.sha256()
    for file, stamp in stamps:
        # the place of a file counts, too: exchanging the contents of two meshes must give another key
        digest.update(os.path.relpath(file, path.parent).encode() + b'\0')
        if stamp is not None:  # a file that is missing may come later
            check_file(file)
            with open(file, 'rb') as content:
                digest.update(hashlib.file_digest(content, 'sha256').digest())
    found = Fingerprint(digest.hexdigest(), stamps, search_path())
    if reader is usd:
        store_fingerprint(path, found)
    return found
