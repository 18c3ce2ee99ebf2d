"""Asset look-up: from the path in a config to a file on this machine.

A path is looked for as it is, then under the user's asset folder (`gm.ASSET_PATH`), then under the assets packaged
with InternUtopia; in each place also with the suffix `.xml`. So `<gm.ASSET_PATH>/robots/h1/h1.usd` finds the user's own
H1, and the packaged `robots/h1/h1.xml` on a machine that has none.
"""

from __future__ import annotations

import difflib
import os
from functools import cache, lru_cache
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
    tried = _candidates(wanted, os.getcwd(), gm.ASSET_PATH)
    for candidate in tried:
        if os.path.isfile(candidate):
            return _supported(candidate)
    similar = [_packaged()[name] for name in difflib.get_close_matches(_short_name(Path(wanted)), _packaged())]
    hint = f'\nPackaged assets of a similar name: {", ".join(similar)}' if similar else ''
    places = ''.join(f'\n  {candidate}' for candidate in tried)
    raise FileNotFoundError(f'asset {os.fspath(path)!r} not found; tried:{places}{hint}')


@lru_cache(4096)  # every reset asks for the same few files
def _candidates(wanted: str, working_directory: str, asset_path: str) -> tuple[str, ...]:
    """Absolute paths to look at, in order."""
    roots = [os.path.abspath(asset_path), str(PACKAGED_ASSETS)]
    places = [os.path.abspath(os.path.join(working_directory, wanted))]
    inside = [places[0][len(root) + 1 :] for root in roots if places[0].startswith(root + os.sep)]
    for relative in inside or ([] if os.path.isabs(wanted) else [wanted]):
        places += [os.path.join(root, relative) for root in roots]
    # a dict keeps the order and drops what would be looked at twice
    return tuple(dict.fromkeys(path for place in places for path in (place, os.path.splitext(place)[0] + '.xml')))


@lru_cache(4096)
def _supported(file: str) -> Path:
    suffix = os.path.splitext(file)[1]
    if suffix.lower() not in SUFFIXES:
        raise ValueError(f'asset {file}: suffix {suffix!r} is not one of {", ".join(SUFFIXES)}')
    return Path(file)


def _short_name(file: Path) -> str:
    """Folder and name without suffix, what a wrong path most likely shares with the right one."""
    return '/'.join((*file.parts[-2:-1], file.stem))


@cache
def _packaged() -> dict[str, str]:
    """Paths of the packaged assets relative to their folder, by short name."""
    files = sorted(file for file in PACKAGED_ASSETS.rglob('*') if file.suffix in SUFFIXES)
    return {_short_name(file): file.relative_to(PACKAGED_ASSETS).as_posix() for file in files}
