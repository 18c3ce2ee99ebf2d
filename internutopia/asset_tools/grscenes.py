"""GRScenes-100: 99 homes and shops as USD stages, extracted one by one from the dataset's archives.

A scene consists of its folder `scenes/<id>_usd` and the files that its stages refer to: models, materials, textures.
All scenes of an archive share these files. Files are written atomically, the folder of the scene last. So if
`get_scene` is interrupted, every existing scene is complete, and the next call downloads only the missing files.

The archive's links (`Materials`, `models` next to a file that refers to `./Materials/...`) all point to the
top-level folders of these names, so a path that does not exist is searched there. Case is ignored.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath

from internutopia.asset_tools.split_zip import Entry, SplitZip
from internutopia.util import did_you_mean

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


ARCHIVES = {'home': 'home_scenes', 'commercial': 'commercial_scenes'}
"""Names of the archives, and of the folders that their contents have on this machine."""
UNPACKED_AS = {'home': 'target_69_new', 'commercial': 'target_30_new'}
"""Names of the folders inside the archives, which they may still have on this machine."""
PACK_FOLDER = PurePosixPath('scenes/GRScenes-100')
"""Path of these folders below an asset folder."""

_SUFFIX = '_usd'
_WORK = '.getting'  # folder of what is not complete yet
_CONNECTIONS = 8
_LINK_TEXT = 512  # bytes that a link has at most where an archive has it as a text


@dataclass(frozen=True)
class Progress:
    """Progress of a scene: files and bytes that were read from the archive, and those known to be needed."""

    files: int
    files_needed: int
    bytes: int
    bytes_needed: int


@dataclass
class SceneFiles:
    """Result of `get_scene`.

    Attributes:
        folder: of the scene.
        stages: its USD files.
        read: files that were read from the archive, and their size there [bytes].
        not_in_archive: references, as they are written, that lead to nothing there, as to materials of Omniverse.
        different: files that were there with another size than in the archive, and were left as they are.
    """

    folder: Path
    stages: list[Path] = field(default_factory=list)
    read: tuple[int, int] = (0, 0)
    not_in_archive: list[str] = field(default_factory=list)
    different: list[Path] = field(default_factory=list)


def pack_folder(kind: str, assets: Path) -> Path:
    """Return the folder of the homes or shops below an asset folder; by default `ARCHIVES[kind]`."""
    places = [assets / PACK_FOLDER / name for name in (ARCHIVES[kind], UNPACKED_AS[kind])]
    return next((place for place in places if place.is_dir()), places[0])


def scenes_on_disk(kind: str, assets: Path) -> list[str]:
    """Return the ids of the scenes on disk."""
    folder = pack_folder(kind, assets) / 'scenes'
    if not folder.is_dir():
        return []
    return sorted(each.name.removesuffix(_SUFFIX) for each in folder.iterdir() if any(each.glob('*.usd')))


def scene_ids(archive: SplitZip) -> list[str]:
    """Return the ids of the scenes in an archive. ValueError if it is not an archive of GRScenes."""
    return sorted(_scene_folders(archive.entries, _root(archive.entries)))


def get_scene(
    scene_id: str, archive: SplitZip, folder: Path, report: Callable[[Progress], None] = lambda _: None
) -> SceneFiles:
    """Unpack the missing files of a scene and of everything that it needs.

    Args:
        scene_id: with or without `_usd`.
        archive: the homes, or the shops.
        folder: where `Materials`, `models` and `scenes` go; it need not exist.
        report: called by the threads that read, one at a time, whenever files were read.

    Raises:
        ValueError: an unknown id, an archive that is damaged or would write elsewhere, too little room on the disk,
            or another process is writing to the folder.
        OSError: a file cannot be written.
    """
    import filelock

    root = _root(archive.entries)
    known = _scene_folders(archive.entries, root)
    scene_id = scene_id.removesuffix(_SUFFIX)
    if scene_id not in known:
        raise ValueError(f'there is no scene {scene_id!r} among the {len(known)}; {did_you_mean(scene_id, known)}')
    work = folder / _WORK
    work.mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(work / 'lock', timeout=0):
            return _Getting(known[scene_id], archive, root, folder, report).run()
    except filelock.Timeout:
        raise ValueError(f'another `internutopia assets get` is writing to {folder}') from None


class _Getting:
    """One call of `get_scene`."""

    def __init__(self, scene: str, archive: SplitZip, root: str, folder: Path, report: Callable[[Progress], None]):
        self._archive, self._folder, self._report = archive, folder, report
        self._root, self._scene = root, scene
        self._index = ArchiveIndex([path for path in archive.entries if path.startswith(root)], root)
        self._final = folder / self._scene.removeprefix(self._root)
        self._staged = folder / _WORK / self._final.name
        self._result = SceneFiles(self._final)
        self._lock = threading.Lock()  # its holder may report, and write while this call has not ended
        self._ended = False
        self._done = Progress(0, 0, 0, 0)

    def run(self) -> SceneFiles:
        try:
            return self._get()
        finally:
            with self._lock:
                self._ended = True

    def _get(self) -> SceneFiles:
        for leftover in self._staged.parent.glob('*.part'):  # of one that was killed
            leftover.unlink()
        entries = self._archive.entries
        seen: set[str] = set()
        wanted = [path for path in entries if path.startswith(self._scene)]
        missing: dict[str, None] = {}
        while wanted:
            seen.update(wanted)
            for path in wanted:
                if path.startswith('/') or '\\' in path or PureWindowsPath(path).drive or '..' in path.split('/'):
                    raise ValueError(
                        f'the archive has a file {path!r}, which is outside its folder; it is not unpacked'
                    )
            self._read([entries[path] for path in wanted])
            found: dict[str, None] = {}
            for path in wanted:
                file = self._place(path)
                for reference, must_exist in references(file) if file.is_file() and not file.is_symlink() else ():
                    if target := self._index.find(reference, path):
                        found[target] = None
                    elif must_exist:
                        missing[reference] = None
            links = [f'{posixpath.dirname(path)}/{name}' for path in found for name in LINKED]
            wanted = [path for path in dict.fromkeys([*found, *links]) if path in entries and path not in seen]
        if not self._final.exists():
            self._final.parent.mkdir(parents=True, exist_ok=True)
            os.replace(self._staged, self._final)
        self._result.stages = sorted(self._final.glob('*.usd'))
        self._result.read = self._done.files, self._done.bytes
        self._result.not_in_archive = list(missing)
        return self._result

    def _place(self, path: str) -> Path:
        """Return the destination of a path of the archive; the scene's own files are staged until it is complete."""
        if path.startswith(self._scene) and not self._final.exists():
            return self._staged / path.removeprefix(self._scene)
        return self._folder / path.removeprefix(self._root)

    def _read(self, entries: Sequence[Entry]) -> None:
        """Read the files that are missing."""
        wanted = [entry for entry in entries if not self._is_there(entry)]
        if not wanted:
            return
        self._check_room(wanted)
        needed = self._done.bytes_needed + sum(entry.packed_size for entry in wanted)
        self._done = replace(self._done, files_needed=self._done.files_needed + len(wanted), bytes_needed=needed)
        self._report(self._done)
        pool = ThreadPoolExecutor(_CONNECTIONS)
        try:
            for job in [pool.submit(self._unpack, run) for run in self._archive.runs(wanted)]:
                job.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # after an error, do not wait for other reads

    def _is_there(self, entry: Entry) -> bool:
        place = self._place(entry.path)
        if place.is_symlink() or _may_be_link(entry):
            return place.exists() or place.is_symlink()
        if not place.is_file():
            return False
        if place.stat().st_size != entry.size:
            self._result.different.append(place)
        return True

    def _check_room(self, entries: Iterable[Entry]) -> None:
        needed, free = sum(entry.size for entry in entries), shutil.disk_usage(self._folder).free
        if needed > free:
            raise ValueError(
                f'{self._folder}: {needed / 1e9:.3g} GB more are needed for this step, {free / 1e9:.3g} GB are free; '
                'make room, or set another asset folder'
            )

    def _unpack(self, run: Sequence[Entry]) -> None:
        for entry, content in self._archive.read(run):
            with self._lock:
                if self._ended:  # after an error: the folder may belong to the next call by now
                    return
                self._write(entry, content)
        with self._lock:
            files, size = len(run), sum(entry.packed_size for entry in run)
            self._done = replace(self._done, files=self._done.files + files, bytes=self._done.bytes + size)
            self._report(self._done)

    def _write(self, entry: Entry, content: bytes) -> None:
        place = self._place(entry.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        part = self._folder / _WORK / f'{entry.offset}.part'
        target = self._link_target(entry, content)
        if target is None or not _made_link(part, target):
            part.write_bytes(content)
        os.replace(part, place)

    def _link_target(self, entry: Entry, content: bytes) -> str | None:
        """Return the target of a link, also of one stored as text in the archive; None for other files.

        ValueError for one that leads out of the archive's folder.
        """
        if not _may_be_link(entry):
            return None
        target = content.decode(errors='replace').strip()
        place = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), target))
        if target.startswith('/') or not f'{place}/'.startswith(self._root) or place.startswith('..'):
            if entry.is_link:
                raise ValueError(f'{entry.path}: a link to a target outside the folder, {target!r}; it is not created')
            return None
        return target


def _may_be_link(entry: Entry) -> bool:
    return entry.is_link or (posixpath.basename(entry.path) in LINKED and entry.size <= _LINK_TEXT)


def _made_link(place: Path, target: str) -> bool:
    """Make a symbolic link. Returns False where links are not supported: then it is a text file."""
    try:
        place.symlink_to(target, target_is_directory=True)
    except (OSError, NotImplementedError):
        return False
    return True


def _root(paths: Collection[str]) -> str:
    """Return the folder that holds `scenes`, with a slash at its end; empty at the top. ValueError if there is none."""
    for path in paths:
        parts = path.split('/')
        for depth in (0, 1):
            if parts[depth : depth + 1] == ['scenes'] and len(parts) > depth + 2:
                return '/'.join(parts[:depth]) + '/' * bool(depth)
    raise ValueError('the archive has no folder scenes/<id>: it is not an archive of GRScenes-100')


def _scene_folders(paths: Iterable[str], root: str) -> dict[str, str]:
    """Return the folders of the scenes, with a slash at their ends, by id."""
    start = f'{root}scenes/'
    names = {path[len(start) :].partition('/')[0] for path in paths if path.startswith(start)}
    return {name.removesuffix(_SUFFIX): f'{start}{name}/' for name in names}
