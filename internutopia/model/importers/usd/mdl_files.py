"""MDL files and the images that they name: the search for them.

A name is searched, as it is written and by its last parts alone,

1. relative to the layer or `.mdl` file that has it,
2. in each folder of the environment variable `MDL_SYSTEM_PATH`,
3. in folders `Materials`, `Material` and `mdl` next to that file and up the tree,

first in the case that is written, then in any. Where an archive has made text files of links (a small file with a
relative path), these are followed.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

SEARCH_PATH = 'MDL_SYSTEM_PATH'
"""Environment variable with folders of MDL files, separated as in `PATH`."""
_FOLDERS = ('Materials', 'Material', 'mdl')
_LONGEST_LINK = 1024  # bytes of a text file that may be a link
_MOST_LINKS = 16  # that lead to each other


class MdlFiles:
    """Finder of files for one stage; each name is searched once.

    Attributes:
        files: what the answers depend on: files that were found, text files that are links, where files that were
            found could have been found before, and where files that are missing would be found first.
        folders: where missing files were searched.
    """

    def __init__(self) -> None:
        self.files: set[Path] = set()
        self.folders: dict[Path, None] = {}
        self._known: dict[tuple[Path, str], Path | None] = {}
        self._nearby: dict[Path, list[Path]] = {}
        self._entries: dict[Path, dict[str, str]] = {}
        self._links: dict[Path, Path | None] = {}
        self._real: dict[Path, str] = {}
        search_path = os.environ.get(SEARCH_PATH, '').split(os.pathsep)
        self._search_path = [folder for name in search_path if name and os.path.isdir(folder := Path(name).absolute())]

    def find(self, name: str, folder: Path) -> Path | None:
        """Find the file that one in `folder` refers to by that name, None if missing; it may be no regular file."""
        key = folder, name
        if key not in self._known:
            self._known[key] = self._find(PurePosixPath(name.replace('\\', '/')), folder)
        return self._known[key]

    def real(self, path: Path) -> str:
        """Return a path without links, by which models share files."""
        if path not in self._real:
            self._real[path] = os.path.realpath(path)
        return self._real[path]

    def _find(self, name: PurePosixPath, folder: Path) -> Path | None:
        if not name.name:
            return None
        places = [(folder, name)]
        parts = [part for part in name.parts if part not in ('.', '..', '/')]
        others = [place for place in [*self._search_path, *self._folders_near(folder)] if place != folder]
        places += [(place, PurePosixPath(*parts[i:])) for place in others for i in range(len(parts))]
        tried: list[Path] = []
        for any_case in (False, True):
            for place, rest in places:
                found = self._at(place, rest, any_case)
                if found is not None:
                    self.files.add(Path(self.real(found)))
                    self.files.update(tried)
                    return found
                tried.append(place / rest)
        self.files |= {folder / name, *(place / parts[-1] for place in others)}
        self.folders |= dict.fromkeys([folder, *others])
        return None

    def _folders_near(self, folder: Path) -> list[Path]:
        """Return the folders of materials that are in a folder or above."""
        if folder not in self._nearby:
            inside = [self._at(folder, PurePosixPath(each), any_case=False) for each in _FOLDERS]
            found = [each for each in inside if each is not None and os.path.isdir(each)]
            nested = [self._at(each, PurePosixPath('mdl'), any_case=False) for each in found]
            found += [each for each in nested if each is not None and os.path.isdir(each)]
            above = [] if folder.parent == folder else self._folders_near(folder.parent)
            self._nearby[folder] = list(dict.fromkeys([*found, *above]))
        return self._nearby[folder]

    def _at(self, folder: Path, name: PurePosixPath, any_case: bool) -> Path | None:
        """Return the file or folder at a path below a folder, through links that are text files."""
        here: Path | None = folder
        for part in name.parts:
            inside = here / part
            if any_case and not os.path.exists(inside):
                inside = here / self._names_in(here).get(part.lower(), part)
            here = self._followed(inside)
            if here is None:
                return None
        return here

    def _followed(self, path: Path) -> Path | None:
        """Return the file or folder at a path, or where a text link there leads; None if there is none."""
        for _ in range(_MOST_LINKS):
            if not os.path.exists(path):
                return None
            if path not in self._links:
                self._links[path] = _link_target(path)
            target = self._links[path]
            if target is None:
                return path
            self.files.add(path)
            path = target
        return None

    def _names_in(self, folder: Path) -> dict[str, str]:
        """Return the names in a folder, by their lower case."""
        if folder not in self._entries:
            try:
                self._entries[folder] = {name.lower(): name for name in sorted(os.listdir(folder), reverse=True)}
            except OSError:
                self._entries[folder] = {}
        return self._entries[folder]


def _link_target(path: Path) -> Path | None:
    """Return the target of a small text file that holds a relative path, if that exists."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LONGEST_LINK:
            return None
        text = path.read_bytes().decode().strip()
    except (OSError, UnicodeError):
        return None
    target = Path(os.path.normpath(path.parent / text))
    is_link = text.isprintable() and text and not os.path.isabs(text) and os.path.exists(target)
    return target if is_link and target != path else None
