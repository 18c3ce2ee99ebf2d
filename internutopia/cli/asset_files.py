"""Commands `internutopia assets`: `get`, `list` and `check`."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from internutopia.cli.command import guarded
from internutopia.util import did_you_mean

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from internutopia.asset_tools.grscenes import Progress, SceneFiles

assets_app = typer.Typer(help='Get scenes, list what is there, check files.', no_args_is_help=True)
_Json = Annotated[bool, typer.Option('--json', help='Print JSON.')]
_Revision = Annotated[
    str | None, typer.Option(help='Branch, tag or commit of the dataset; default: a commit that is built in.')
]


@assets_app.command('get')
def get_command(
    name: Annotated[
        str, typer.Argument(help='grscenes/home/<scene id> or grscenes/commercial/<scene id>.', metavar='NAME')
    ],
    revision: _Revision = None,
    archives: Annotated[
        Path | None,
        typer.Option('--from', help='Folder with the archives, downloaded before; nothing is downloaded then.'),
    ] = None,
    to: Annotated[Path | None, typer.Option(help='Asset folder; default: the one in use.', metavar='FOLDER')] = None,
) -> None:
    """Get a scene of GRScenes with its models, materials and textures from Hugging Face; goes on where it stopped."""
    raise typer.Exit(get(name, revision=revision, archives=archives, assets=to))


@assets_app.command('list')
def list_command(
    as_json: _Json = False,
    hub: Annotated[bool, typer.Option('--hub', help='The scenes that `get` can bring, instead.')] = False,
    revision: _Revision = None,
) -> None:
    """List what is built in, and what your asset folder holds."""
    raise typer.Exit(show_hub(revision, as_json) if hub else show(as_json))


@assets_app.command('check')
def check_command(
    file: Annotated[str, typer.Argument(help='Scene or robot: USD, URDF or MJCF.', metavar='FILE')],
    load: Annotated[
        bool, typer.Option('--load', help='Load it as well: measure how long that takes, and say what is dropped.')
    ] = False,
    as_json: _Json = False,
) -> None:
    """Say what is missing of a file, how large it is, and how long it takes to load; 1 if something is missing."""
    from internutopia.cli.check import check

    raise typer.Exit(check(file, load, as_json))


def get(name: str, *, revision: str | None, archives: Path | None, assets: Path | None) -> int:
    """Get a scene; returns the exit code.

    Args:
        name: `grscenes/<kind>/<scene id>`.
        revision: of the dataset; None means the one that is built in.
        archives: folder with the archives; None means the hub.
        assets: asset folder; None means the one in use.
    """
    return guarded(f'assets get {name}', lambda: _get(name, revision, archives, assets))


def show(as_json: bool) -> int:
    """Print the built-in assets and those of the asset folder; returns the exit code."""

    def start() -> int:
        from internutopia.asset_tools.listing import list_assets

        listing = list_assets()
        print(json.dumps(dataclasses.asdict(listing), indent=2) if as_json else '\n'.join(listing.lines()))
        return 0

    return guarded('assets list', start)


def show_hub(revision: str | None, as_json: bool) -> int:
    """Print the scenes that `get` can download; returns the exit code."""

    def start() -> int:
        from internutopia.asset_tools.grscenes import ARCHIVES, scene_ids
        from internutopia.asset_tools.hub import REVISION, hub_parts
        from internutopia.asset_tools.split_zip import SplitZip

        found = {
            kind: scene_ids(SplitZip(hub_parts(archive, revision or REVISION))) for kind, archive in ARCHIVES.items()
        }
        lines = [f'grscenes/{kind}/{scene_id}' for kind, ids in found.items() for scene_id in ids]
        print(json.dumps(found, indent=2) if as_json else '\n'.join(lines))
        return 0

    return guarded('assets list --hub', start)


def _get(name: str, revision: str | None, archives: Path | None, assets: Path | None) -> int:
    from internutopia.asset_tools.grscenes import ARCHIVES, get_scene, pack_folder
    from internutopia.asset_tools.hub import REVISION, hub_parts, local_parts
    from internutopia.asset_tools.split_zip import SplitZip

    kind, scene_id = _parsed(name)
    if archives is not None and revision is not None:
        raise ValueError('--from or --revision, not both: archives on this machine have no revisions')
    folder = pack_folder(kind, _asset_folder(assets))
    archive = ARCHIVES[kind]
    parts = hub_parts(archive, revision or REVISION) if archives is None else local_parts(archive, archives)
    with _bar() as bar:
        found = get_scene(scene_id, SplitZip(parts), folder, bar)
    _print_summary(found)
    return 0


def _parsed(name: str) -> tuple[str, str]:
    """Return kind and scene id of a name. ValueError if it is malformed."""
    from internutopia.asset_tools.grscenes import ARCHIVES

    source, _, rest = name.partition('/')
    kind, _, scene_id = rest.partition('/')
    if source != 'grscenes' or kind not in ARCHIVES or '/' in scene_id:
        known = [f'grscenes/{each}' for each in ARCHIVES]
        near = did_you_mean(f'{source}/{kind}', known)
        raise ValueError(f'expected grscenes/<home or commercial>/<scene id>, got {name!r}; {near}')
    if not scene_id:
        raise ValueError(f'which scene? {name.rstrip("/")}/<scene id>; `internutopia assets list --hub` lists them')
    return kind, scene_id


def _asset_folder(given: Path | None) -> Path:
    """Return the asset folder. ValueError if there is none but that of the package, or it does not exist."""
    from internutopia.default_config import PACKAGED_ASSETS_PATH
    from internutopia.set_assets_path import current_assets_path

    folder = given or Path(current_assets_path()[0])
    if folder == Path(PACKAGED_ASSETS_PATH):
        raise ValueError(
            'you have no asset folder of your own: set one with `python -m internutopia.set_assets_path FOLDER`, or '
            'with the environment variable INTERNUTOPIA_ASSETS_PATH, or say --to FOLDER'
        )
    if not folder.is_dir():
        raise ValueError(f'the asset folder {folder} does not exist; create it, or set another one')
    return folder.absolute()


class _Report:
    """Progress on a terminal."""

    def __init__(self, bar: Bar):
        self._bar, self._task = bar, bar.add_task('', total=None, files='reading the table of contents')

    def __call__(self, progress: Progress) -> None:
        files = f'{progress.files} of {progress.files_needed} files'  # more are found in those that were read
        self._bar.update(self._task, completed=progress.bytes, total=progress.bytes_needed, files=files)


@contextmanager
def _bar() -> Iterator[_Report]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (
        TextColumn('{task.fields[files]}'),
        BarColumn(bar_width=30),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        yield _Report(bar)


def _print_summary(found: SceneFiles) -> None:
    from internutopia.model.importers.file_warnings import listed

    files, size = found.read
    print(f'{files} files, {size / 1e6:,.1f} MB read' if files else 'all of it was there')
    for what, names in (
        ('not in the archive (materials of Omniverse, Omni*.mdl, never are)', found.not_in_archive),
        ('of another size than in the archive, left as they are', [str(each) for each in found.different]),
    ):
        if names:
            print(f'{what}: {listed(names)}', file=sys.stderr)
    for stage in found.stages:
        print(stage)
    if found.stages:
        print(f'next: {shlex.join(["internutopia", "assets", "check", str(found.stages[-1])])}', file=sys.stderr)
