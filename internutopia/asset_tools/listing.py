"""Asset listing: built-in assets and the contents of the user's asset folder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from internutopia.asset_tools.grscenes import ARCHIVES, PACK_FOLDER, scenes_on_disk
from internutopia.default_config import PACKAGED_ASSETS_PATH
from internutopia.model.asset_paths import MODEL_SUFFIXES, model_suffix
from internutopia.set_assets_path import current_assets_path

# Parts of InternUtopia 2's asset pack, and what there is without them
_PACK = {
    'robots': 'built-in models take their place',
    'objects': 'none are built in',
    'scenes/empty.usd': 'the built-in scenes/empty.xml takes its place',
    'scenes/demo_scenes': 'none are built in',
    'scenes/GRScenes-100': 'internutopia assets get brings scenes of it',
}
_FLAT = 2  # levels of the folder of scenes in which files are searched, GRScenes apart


@dataclass(frozen=True)
class AssetListing:
    """Built-in assets and those of the user's asset folder.

    Attributes:
        builtin_robots, builtin_scenes: as a config names them, below `builtin_folder`.
        folder, set_by: the asset folder, and where that is set; `exists` is True if it is there.
        robots, scenes: names of the robots' folders in it, paths of scenes relative to it.
        grscenes: ids of the scenes of GRScenes-100 in it, by kind (`home`, `commercial`).
        pack: parts of the asset pack of InternUtopia 2, by whether they are there.
    """

    builtin_folder: str
    builtin_robots: list[str]
    builtin_scenes: list[str]
    folder: str
    set_by: str
    exists: bool
    robots: list[str]
    scenes: list[str]
    grscenes: dict[str, list[str]]
    pack: dict[str, bool]

    def lines(self) -> Iterator[str]:
        """Return the listing as text."""
        yield f'built in, below {self.builtin_folder}:'
        yield f'  robots: {_listed(self.builtin_robots)}'
        yield f'  scenes: {_listed(self.builtin_scenes)}'
        yield f'asset folder: {self.folder} ({self.set_by})'
        if not self.exists:
            yield '  it does not exist'
            return
        if self.folder == self.builtin_folder:
            return
        yield f'  robots: {_listed(self.robots)}'
        yield f'  scenes: {_listed(self.scenes)}'
        for kind, ids in self.grscenes.items():
            yield f'  grscenes/{kind}: {_listed(ids)}'
        absent = [f'{part} ({_PACK[part]})' for part, there in self.pack.items() if not there]
        if absent:
            yield f"  of InternUtopia 2's asset pack it does not have: {', '.join(absent)}"


def list_assets() -> AssetListing:
    """List the built-in assets and the current asset folder."""
    builtin = Path(PACKAGED_ASSETS_PATH)
    name, set_by = current_assets_path()
    folder = Path(name)
    own = folder != builtin
    return AssetListing(
        builtin_folder=str(builtin),
        builtin_robots=_folders(builtin / 'robots'),
        builtin_scenes=_scenes(builtin),
        folder=str(folder),
        set_by=set_by,
        exists=folder.is_dir(),
        robots=_folders(folder / 'robots') if own else [],
        scenes=_scenes(folder) if own else [],
        grscenes={kind: scenes_on_disk(kind, folder) for kind in ARCHIVES},
        pack={part: (folder / part).exists() for part in _PACK},
    )


def _folders(place: Path) -> list[str]:
    return sorted(each.name for each in place.iterdir() if each.is_dir()) if place.is_dir() else []


def _scenes(assets: Path) -> list[str]:
    """Return the model files among the scenes of an asset folder and one level below, without GRScenes."""
    found = (file for depth in range(_FLAT) for file in (assets / 'scenes').glob('*/' * depth + '*'))
    names = (file.relative_to(assets) for file in found if model_suffix(file) in MODEL_SUFFIXES)
    return sorted(name.as_posix() for name in names if Path(PACK_FOLDER) not in name.parents)


def _listed(names: list[str]) -> str:
    return ', '.join(names) or 'none'
