"""Commands `internutopia assets`: `get`, `list` and `check`."""

from __future__ import annotations

import dataclasses
import itertools
import json
import operator
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from internutopia.cli.command import command
from internutopia.cli.options import Json
from internutopia.util import did_you_mean

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from internutopia.asset_tools.file_check import FileCheck
    from internutopia.asset_tools.grscenes import Progress, SceneFiles

assets_app = typer.Typer(help='Download scenes, list assets, check model files.', no_args_is_help=True)
_MISSING_SHOWN = 20  # missing files that are listed before the rest is only counted
_Revision = Annotated[str | None, typer.Option(help='Branch, tag or commit of the dataset; default: a fixed commit.')]


@assets_app.command('get')
@command('assets get {name}')
def get_assets(
    name: Annotated[
        str, typer.Argument(help='grscenes/home/<scene id> or grscenes/commercial/<scene id>.', metavar='NAME')
    ],
    revision: _Revision = None,
    archives: Annotated[
        Path | None,
        typer.Option('--from', help='Folder with the downloaded archives; nothing is downloaded.'),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help='Asset folder; default: the configured one.', metavar='FOLDER')
    ] = None,
) -> int:
    """Download a scene of GRScenes with its models, materials and textures from Hugging Face; resumes downloads."""
    from internutopia.asset_tools.grscenes import ARCHIVES, get_scene, pack_folder
    from internutopia.asset_tools.hub import REVISION, hub_parts, local_parts
    from internutopia.asset_tools.split_zip import SplitZip

    kind, scene_id = _parsed(name)
    if archives is not None and revision is not None:
        raise ValueError('--from or --revision, not both: archives on this machine have no revisions')
    folder = pack_folder(kind, _asset_folder(to))
    archive = ARCHIVES[kind]
    parts = hub_parts(archive, revision or REVISION) if archives is None else local_parts(archive, archives)
    with _bar() as bar:
        found = get_scene(scene_id, SplitZip(parts), folder, bar)
    _print_summary(found)
    return 0


@assets_app.command('list')
@command('assets list')
def list_assets(
    as_json: Json = False,
    hub: Annotated[bool, typer.Option('--hub', help='List the scenes that `get` can download.')] = False,
    revision: _Revision = None,
) -> int:
    """List the built-in assets and those in the asset folder."""
    if hub:
        from internutopia.asset_tools.grscenes import ARCHIVES, scene_ids
        from internutopia.asset_tools.hub import REVISION, hub_parts
        from internutopia.asset_tools.split_zip import SplitZip

        found = {
            kind: scene_ids(SplitZip(hub_parts(archive, revision or REVISION))) for kind, archive in ARCHIVES.items()
        }
        lines = [f'grscenes/{kind}/{scene_id}' for kind, ids in found.items() for scene_id in ids]
        print(json.dumps(found, indent=2) if as_json else '\n'.join(lines))
    else:
        from internutopia.asset_tools import listing

        assets = listing.list_assets()
        print(json.dumps(dataclasses.asdict(assets), indent=2) if as_json else '\n'.join(assets.lines()))
    return 0


@assets_app.command('check')
@command('assets check {file}')
def check_asset(
    file: Annotated[str, typer.Argument(help='Scene or robot file: USD, URDF or MJCF.', metavar='FILE')],
    load: Annotated[
        bool, typer.Option('--load', help='Also load the file: measure the time, list parts that are not supported.')
    ] = False,
    as_json: Json = False,
) -> int:
    """Report missing files, size and load time of a model file; exit code 1 if something is missing."""
    from internutopia.asset_tools.file_check import check_file
    from internutopia.model.asset_paths import resolve

    found = check_file(resolve(file), load)
    print(json.dumps(dataclasses.asdict(found), indent=2) if as_json else '\n'.join(_lines(found)))
    return int(bool(found.missing or found.error))


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
            'with the environment variable INTERNUTOPIA_ASSETS_PATH, or use --to FOLDER'
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
    from internutopia.model.importers import listed

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


def _lines(found: FileCheck) -> Iterator[str]:
    from internutopia.model.importers import listed

    yield f'{found.file}: {found.format.upper()}'
    names = ('prims', 'meshes', 'triangles', 'materials', 'bodies', 'joints')
    counts = [f'{count:,} {name}' for name in names if (count := getattr(found, name)) is not None]
    if counts:
        yield f'  holds: {", ".join(counts)}'
    if found.extent is not None:
        yield f'  size: {" x ".join(f"{length:.4g}" for length in found.extent)} m{_units(found)}'
    what_of = operator.attrgetter('what')
    for what, units in itertools.groupby(sorted(found.foreign_units, key=what_of), what_of):
        yield f'  units: {what}: {listed([each.where for each in units])}'
    if found.size_warning:
        yield f'  size is odd: {found.size_warning}'
    if found.load is not None:
        yield f'  loading: {_loading(found)}'
    yield f'  missing: {len(found.missing) or "nothing"}'
    for missing in found.missing[:_MISSING_SHOWN]:
        yield f'  - {missing.kind} {missing.name}, needed by {listed(missing.needed_by) or "no shape"}'
    if len(found.missing) > _MISSING_SHOWN:
        yield f'  - and {len(found.missing) - _MISSING_SHOWN} more (--json lists all)'
    if found.materials_not_found:
        yield f'  {found.materials_not_found} materials are unknown, which leaves {found.grey_meshes} meshes grey'
    if found.error:
        yield f'  it cannot be loaded: {found.error}'
    if found.dropped is None and not found.error:
        yield '  what its importer drops: not known (--load)'
    elif found.dropped is not None:
        yield f'  dropped: {len(found.dropped) or "nothing"}'
        yield from (f'  - {line}' for line in found.dropped)


def _units(found: FileCheck) -> str:
    if found.meters_per_unit is None:
        return ''
    default = ', which is a default, the file says none'
    unit = f'metersPerUnit = {found.meters_per_unit:g}{"" if found.says_unit else default}'
    return f' ({unit}; up axis {found.up_axis}{"" if found.says_up_axis else default})'


def _loading(found: FileCheck) -> str:
    assert found.load is not None
    if found.load.measured is not None:
        return f'{_seconds(found.load.measured)}, measured'
    return (
        f'about {_seconds(found.load.first)} the first time, {_seconds(found.load.cached)} later, of one core '
        '(a guess from the numbers of meshes and triangles, to a factor of three; --load measures it)'
    )


def _seconds(value: float) -> str:
    return f'{value:.1g} s' if value < 10 else f'{value:.0f} s' if value < 120 else f'{value / 60:.0f} min'
