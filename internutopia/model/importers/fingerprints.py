"""Fingerprints: a hash of all files that an asset is made of, cached until one of them changes.

A file has changed when its time of modification or of its status, or its size, is another one: a program can set back
the former, but not the latter. So what is known costs a `stat` for each file. It is kept in memory; that of a large USD
file, whose stage takes seconds to open, also in the folder `fingerprints` of the cache.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from internutopia.model.asset_files import limits
from internutopia.model.importers.usd.mdl_files import SEARCH_PATH as MDL_SEARCH_PATH
from internutopia.util.cache_folder import CacheFolder, code_version, hashed

Stamp = tuple[int, int, int]
"""Times of modification and of the last change of status [ns], and size [bytes]."""

_SEARCH_PATHS = (MDL_SEARCH_PATH, 'PXR_AR_DEFAULT_SEARCH_PATH')  # variables with folders, of MDL and of USD files
_CAPACITY = 64 << 20  # bytes
_fingerprints: dict[str, Fingerprint] = {}


@dataclass(frozen=True)
class Fingerprint:
    """Result of `content_key` for a file.

    Attributes:
        key: the hash.
        stamps: files, and stamps that differ when they have changed; None for one that is missing.
        search_path: folders in which files were searched.
    """

    key: str
    stamps: tuple[tuple[str, Stamp | None], ...]
    search_path: tuple[str, ...]

    def is_valid(self) -> bool:
        """Return True if no file has changed."""
        return self.search_path == search_path() and all([stamp_of(file) == stamp for file, stamp in self.stamps])


def search_path() -> tuple[str, ...]:
    """Return the folders in which environment variables let files be found."""
    folders = [folder for name in _SEARCH_PATHS for folder in os.environ.get(name, '').split(os.pathsep) if folder]
    return tuple(map(os.path.abspath, folders))


def stamp_of(file: str) -> Stamp | None:
    """Return a stamp that differs when a file has changed; None if there is no file."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size


def known_fingerprint(path: Path) -> Fingerprint | None:
    """Return the fingerprint of a file that this process has or was given, if nothing has changed since."""
    known = _fingerprints.get(os.path.abspath(path))
    return known if known is not None and known.is_valid() else None


def adopt_fingerprint(path: Path, fingerprint: Fingerprint) -> None:
    """Take over a fingerprint that this or another process computed."""
    _fingerprints[os.path.abspath(path)] = fingerprint


def stored_fingerprint(path: Path) -> Fingerprint | None:
    """Return the fingerprint stored by another process under the limits in force, if nothing has changed since."""
    folder, name = _place(path)
    try:
        content = json.loads(folder.used(name).read_bytes())
        stamps = tuple((str(file), stamp and tuple(stamp)) for file, stamp in content['stamps'])
        found = Fingerprint(str(content['key']), stamps, tuple(content['search_path']))
    except (OSError, ValueError, TypeError, LookupError):
        return None
    return found if found.is_valid() else None


def store_fingerprint(path: Path, fingerprint: Fingerprint) -> None:
    """Store it for other processes."""
    folder, name = _place(path)
    content = json.dumps({'file': os.path.abspath(path), **vars(fingerprint)})
    folder.write(name, lambda file: file.write(content.encode()))


def _place(path: Path) -> tuple[CacheFolder, str]:
    name = f'{hashed(code_version(), limits().of_sizes(), os.path.abspath(path))}.json'
    return CacheFolder('fingerprints', 'fingerprints of USD files', _CAPACITY), name
