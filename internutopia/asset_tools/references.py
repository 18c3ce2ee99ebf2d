"""References between the files of GRScenes: which files of the archive a stage, model or material refers to.

The archive's links (`Materials`, `models` beside a file that refers to `./Materials/...`) all lead to the folders of
these names at its top, so a path that does not exist as it is written is searched there. Upper and lower case need
not agree.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator
from pathlib import Path

LINKED = ('Materials', 'models')
"""Folders at the top that others have links to."""

_STAGES = ('.usd', '.usda', '.usdc')
_TEXTURE = re.compile(r'"([^"\n]+\.(?:png|jpe?g|tga|bmp|tiff?|exr|hdr|dds))"', re.IGNORECASE)
_MODULE = re.compile(r'\b(?:import|using)\s+\.{0,2}(?:::)?(\w+)')
_INSIDE_LINKED = re.compile(rf'(?:.*/|^)((?:{"|".join(LINKED)})/.*)')
_MOST_TEXT = 4 << 20  # bytes of an .mdl file that are searched


class ArchiveIndex:
    """Index of the paths in an archive, to resolve references between its files.

    Args:
        paths: all paths.
        root: folder that holds `LINKED` and `scenes`, with a slash at the end, or empty.
    """

    def __init__(self, paths: Collection[str], root: str):
        self._root = root
        self._paths = {path.lower(): path for path in paths}

    def find(self, reference: str, referrer: str) -> str | None:
        """Resolve a reference in the file `referrer` to a path; None if the archive has none."""
        reference = reference.replace('\\', '/')
        place = posixpath.normpath(posixpath.join(posixpath.dirname(referrer), reference))
        linked = _INSIDE_LINKED.fullmatch(place.removeprefix(self._root))
        for candidate in (place, *([self._root + linked[1]] if linked else []), f'{self._root}Materials/{reference}'):
            if found := self._paths.get(posixpath.normpath(candidate).lower()):
                return found
        return None


def references(file: Path) -> Iterator[tuple[str, bool]]:
    """Yield the references in a file, as written, and True if they must exist: MDL modules may be Omniverse's.

    Yields nothing for other files than USD and MDL.
    """
    suffix = file.suffix.lower()
    if suffix in _STAGES:
        from pxr import UsdUtils

        for kind in UsdUtils.ExtractExternalReferences(str(file)):  # sublayers; references and assets; payloads
            yield from ((reference, True) for reference in kind)
    elif suffix == '.mdl':
        with file.open('rb') as content:
            text = content.read(_MOST_TEXT).decode(errors='replace')
        yield from ((image, True) for image in _TEXTURE.findall(text))
        yield from ((f'{module}.mdl', False) for module in _MODULE.findall(text))
