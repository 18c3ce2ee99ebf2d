"""One entry for every asset format: a file -> `MjSpec`, and a hash of everything that the file is made of.

Whatever the format, the spec is in metres, radians and kilograms with z up, compiles on its own and as the child of
another spec (`parent.attach(spec, frame=..., prefix='x/')`), and does not depend on the working directory. Each call
gives a new spec, which the caller may change.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import mujoco

from internutopia.core.scene import mjcf, urdf, usd
from internutopia.core.scene.assets import MODEL_SUFFIXES


def load_spec(path: Path, *, short_names: bool = False) -> mujoco.MjSpec:
    """Read an asset.

    Args:
        path: A `.usd`, `.usda`, `.usdc`, `.usdz`, `.urdf` or `.xml` file; the latter is MJCF, or URDF if its root
            element is `<robot>`.
        short_names: Call the bodies and joints of a USD file as their prims, where that is unique, or by their paths
            below its default prim; not by their full paths.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is broken or of no supported format; the message names the file and, where known, the line
            or the prim.
    """
    path = Path(os.path.abspath(path))
    reader = _format(path)
    return usd.load(path, short_names=short_names) if reader is usd else reader.load(path)


def is_urdf(path: Path) -> bool:
    """Whether `load_spec` reads a file as URDF."""
    return _format(path) is urdf


def content_key(path: Path) -> str:
    """A hash of an asset's file and of every file it refers to (includes, meshes, textures, USD layers).

    Files are read again only when their modification time or size has changed, so a repeated call costs one `stat` per
    file. Raises what `load_spec` raises.
    """
    name = os.path.abspath(path)
    known = _keys.get(name)
    if known is None or any(_stamp(file) != stamp for file, stamp in known.stamps):
        known = _keys[name] = _fingerprint(Path(name))
    return known.key


@dataclass(frozen=True)
class _Fingerprint:
    key: str
    stamps: tuple[tuple[str, tuple[int, int] | None], ...]  # file, its modification time [ns] and size [bytes]


_keys: dict[str, _Fingerprint] = {}


def _format(path: Path) -> ModuleType:
    """The module that reads a file: it has `load(path)` and `dependencies(path)`."""
    if not path.is_file():
        raise FileNotFoundError(f'asset {path} does not exist')
    suffix = path.suffix.lower()
    if suffix not in MODEL_SUFFIXES:
        raise ValueError(f'asset {path}: the format must be one of {", ".join(MODEL_SUFFIXES)}')
    if suffix == '.urdf':
        return urdf
    if suffix != '.xml':
        return usd
    try:
        _, root = next(ElementTree.iterparse(path, events=('start',)))
    except (ElementTree.ParseError, StopIteration) as error:
        raise ValueError(f'{path}: not an XML document: {error}') from error
    return urdf if root.tag == 'robot' else mjcf


def _fingerprint(path: Path) -> _Fingerprint:
    files = sorted(str(file) for file in _format(path).dependencies(path))
    stamps = tuple((file, _stamp(file)) for file in files)  # before reading: a later change is then noticed
    digest = hashlib.sha256()
    for file in files:
        # the place of a file counts, too: exchanging the contents of two meshes must give another key
        digest.update(os.path.relpath(file, path.parent).encode() + b'\0')
        if os.path.isfile(file):  # a layer that is missing counts when it comes
            digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return _Fingerprint(digest.hexdigest(), stamps)


def _stamp(file: str) -> tuple[int, int] | None:
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
