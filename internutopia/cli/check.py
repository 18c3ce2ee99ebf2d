"""Command `internutopia assets check`."""

from __future__ import annotations

import dataclasses
import itertools
import json
import operator
from collections.abc import Iterator

from internutopia.asset_tools.file_check import FileCheck, check_file
from internutopia.cli.command import guarded
from internutopia.model.assets import resolve
from internutopia.model.importers.file_warnings import listed

_LINES = 20  # missing files that are listed before the rest is only counted


def check(file: str, load: bool, as_json: bool) -> int:
    """Print the report on a file; returns the exit code, 1 if something is missing or it cannot be loaded.

    Args:
        file: model file, found like `scene_asset_path`.
        load: load a USD file as well.
        as_json: print JSON.
    """

    def start() -> int:
        found = check_file(resolve(file), load)
        print(json.dumps(dataclasses.asdict(found), indent=2) if as_json else '\n'.join(_lines(found)))
        return int(bool(found.missing or found.error))

    return guarded(f'assets check {file}', start)


def _lines(found: FileCheck) -> Iterator[str]:
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
    for missing in found.missing[:_LINES]:
        yield f'  - {missing.kind} {missing.name}, needed by {listed(missing.needed_by) or "no shape"}'
    if len(found.missing) > _LINES:
        yield f'  - and {len(found.missing) - _LINES} more (--json lists all)'
    if found.materials_not_found:
        yield f'  {found.materials_not_found} materials are not known, which leaves {found.grey_meshes} meshes grey'
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
