"""Asset look-up: from the path in a config to a file on this machine.

A path is looked for as it is, then under the user's asset folder (`gm.ASSET_PATH`), then under the assets packaged
with InternUtopia; in each place also with the suffix `.xml`. So `<gm.ASSET_PATH>/robots/h1/h1.usd` finds the user's own
H1, and the packaged `robots/h1/h1.xml` on a machine that has none.
"""

from __future__ import annotations

import difflib
import os
from functools import cache
from pathlib import Path

from internutopia.macros import gm

PACKAGED_ASSETS = Path(__file__).parents[2] / 'assets'
SUFFIXES = ('.usd', '.usda', '.usdc', '.usdz', '.urdf', '.xml')


def resolve(path: str | os.PathLike[str]) -> Path:
    """The file that an asset path stands for.

    Args:
        path: Absolute, or relative to the working directory or an asset folder.

    Returns:
        An absolute path to an existing file with one of the `SUFFIXES`.

    Raises:
        FileNotFoundError: No such file; the message names every place tried.
        ValueError: The file is not of a supported format.
    """
    wanted = os.path.expanduser(os.fspath(path))
    tried: list[str] = []
    for place in _places(wanted):
        for candidate in (place, os.path.splitext(place)[0] + '.xml'):
            if candidate in tried:
                continue
            if os.path.isfile(candidate):
                return _supported(candidate)
            tried.append(candidate)
    close = difflib.get_close_matches(Path(wanted).with_suffix('').as_posix()[-80:], _packaged_names(), n=3, cutoff=0.5)
    hint = f'\nPackaged assets of a similar name: {", ".join(close)}' if close else ''
    places = ''.join(f'\n  {candidate}' for candidate in tried)
    raise FileNotFoundError(f'asset {os.fspath(path)!r} not found; tried:{places}{hint}')


def _places(wanted: str) -> list[str]:
    """Absolute paths to look at, without the `.xml` variants."""
    roots = [os.path.abspath(gm.ASSET_PATH), str(PACKAGED_ASSETS)]
    places = [os.path.abspath(wanted)]
    inside = [os.path.relpath(places[0], root) for root in roots if places[0].startswith(root + os.sep)]
    for relative in inside or ([] if os.path.isabs(wanted) else [wanted]):
        places += [os.path.join(root, relative) for root in roots]
    return places


def _supported(file: str) -> Path:
    suffix = os.path.splitext(file)[1]
    if suffix.lower() not in SUFFIXES:
        raise ValueError(f'asset {file}: format {suffix or "without a suffix"!r} is not one of {", ".join(SUFFIXES)}')
    return Path(file)


@cache
def _packaged_names() -> tuple[str, ...]:
    files = (file for file in PACKAGED_ASSETS.rglob('*') if file.suffix in SUFFIXES)
    return tuple(sorted(file.relative_to(PACKAGED_ASSETS).with_suffix('').as_posix() for file in files))
