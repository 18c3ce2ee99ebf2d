"""Files that a URDF refers to, and their search.

- A path without a scheme is relative to the URDF's folder, or to that with the `meshdir` of a `<mujoco><compiler>`, or
  to a folder above it. With `strippath` only its last part counts.
- `package://name/...` and `model://name/...`: the folder `name` beside or above the file, or one in `ROS_PACKAGE_PATH`,
  `AMENT_PREFIX_PATH`, `GAZEBO_MODEL_PATH` or `GZ_SIM_RESOURCE_PATH`; at last the folders above the file, as if they
  were the package, which may have been renamed.
- `file://` is an absolute path.

Upper and lower case of the file's name need not agree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from internutopia.model.importers.urdf.document import Document

_PACKAGES = ('package', 'model')
_SEARCHED = ('ROS_PACKAGE_PATH', 'AMENT_PREFIX_PATH', 'GAZEBO_MODEL_PATH', 'GZ_SIM_RESOURCE_PATH')


def find(document: Document, reference: str) -> tuple[Path | None, list[Path]]:
    """Find the file that a reference means, None if there is none; also returns the places that were searched."""
    tried: list[Path] = []
    for place in dict.fromkeys(_places(document, reference.strip().replace('\\', '/'))):
        tried.append(place)
        file = _spelled(place)
        if file is not None:
            return file, tried
    return None, tried


def _spelled(place: Path) -> Path | None:
    """Return a file, whatever the case of its name."""
    if place.is_file():
        return place
    try:
        return next((file for file in place.parent.iterdir() if file.name.lower() == place.name.lower()), None)
    except OSError:
        return None


def _places(document: Document, reference: str) -> Iterator[Path]:
    scheme, separator, rest = reference.partition('://')
    folders = document.path.parents
    if separator and scheme in _PACKAGES:
        name, _, inside = rest.lstrip('/').partition('/')
        yield from (folder / name / inside for folder in folders)
        for folder in _searched():
            # the folder of packages, the package itself, or an installation
            yield from (folder / name / inside, folder.parent / name / inside, folder / 'share' / name / inside)
        yield from (folder / inside for folder in folders)
        return
    compiler = document.settings.find('compiler') if document.settings is not None else None
    settings = compiler.attrib if compiler is not None else {}
    name = rest if separator else reference
    if settings.get('strippath') == 'true':
        name = os.path.basename(name)
    for place in (folders[0] / settings.get('meshdir', '') / name, *(folder / name for folder in folders)):
        yield Path(os.path.normpath(place))


def _searched() -> list[Path]:
    entries = (entry for variable in _SEARCHED for entry in os.environ.get(variable, '').split(os.pathsep))
    return [Path(entry) for entry in entries if entry]
