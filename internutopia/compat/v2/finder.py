"""Finder of modules of InternUtopia 2.x that have no file here: it comes after all others.

Those in the table of what moved have the public names of the module that has their classes now. In those of which
nothing is left, each name of the table `gone.txt` is an ImportError that says what to use instead. There, what to use
instead is followed by indented lines with a place and its names; `docs/porting.md` shows the same table
(`tools/make_porting.py`).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from itertools import groupby
from pathlib import Path
from types import ModuleType

from typing_extensions import override

from internutopia.util.conventions import GONE_NAMES, raise_if_gone

_CORE, _V2 = 'internutopia.core', 'internutopia.compat.v2'
_EXTENSION = 'internutopia_extension'
_CONFIGS = f'{_EXTENSION}.configs'
_CONTROLLERS = f'{_EXTENSION}.controllers'


def _below(package: str, module: str, *names: str) -> dict[str, str]:
    return {f'{package}.{name}': module for name in names}


MOVED = {
    f'{_CORE}.datahub.datahub': f'{_CORE}.datahub',
    f'{_CORE}.object.object': f'{_CORE}.object',
    **_below(_CORE, f'{_V2}.handles', 'scene.isaacsim', 'scene.isaacsim.scene'),
    **_below(_CORE, f'{_V2}.handles', 'sensor.isaacsim', 'sensor.isaacsim.camera'),
    **_below(f'{_CORE}.util', f'{_V2}.core_util', 'gym', 'math', 'physics'),
    **_below(
        f'{_CONFIGS}.controllers',
        f'{_CONFIGS}.controllers',
        *('aliengo_move_by_speed_controller', 'dd_controller', 'franka_mocap_teleop_controller', 'gripper_controller'),
        *('g1_move_by_speed_controller', 'gr1_move_by_speed_controller', 'gr1_teleop_controller', 'ik_controller'),
        *('h1_move_by_speed_controller', 'joint_controller', 'layout_edit_mocap_controller', 'recover_controller'),
        *('move_along_path_points_controller', 'move_to_point_by_speed_controller', 'rmpflow_controller'),
        'rotate_controller',
    ),
    **_below(f'{_CONFIGS}.objects', f'{_CONFIGS}.objects', 'dynamic_cube', 'usd_object', 'visual_cube'),
    **_below(f'{_CONFIGS}.metrics', f'{_CONFIGS}.metrics', 'recording_metric', 'traveled_distance_metric'),
    **_below(
        f'{_CONFIGS}.tasks', f'{_CONFIGS}.tasks', 'finite_step_task', 'manipulation_task', 'single_inference_task'
    ),
    **_below(
        _CONTROLLERS,
        f'{_CONTROLLERS}.walking_controllers',
        *(f'{robot}_move_by_speed_controller' for robot in ('aliengo', 'g1', 'gr1', 'h1')),
    ),
    f'{_CONTROLLERS}.dd_controller': f'{_CONTROLLERS}.speed_controllers',
    **_below(_CONTROLLERS, f'{_CONTROLLERS}.joint_controllers', 'gripper_controller', 'joint_controller'),
    f'{_CONTROLLERS}.ik_controller': f'{_CONTROLLERS}.inverse_kinematics_controller',
    **_below(
        _CONTROLLERS,
        f'{_CONTROLLERS}.ground_controllers',
        *('move_to_point_by_speed_controller', 'rotate_controller'),
    ),
    **_below(f'{_EXTENSION}.metrics', f'{_EXTENSION}.metrics', 'recording_metric', 'traveled_distance_metric'),
    **_below(f'{_EXTENSION}.objects', f'{_EXTENSION}.objects', 'dynamic_cube', 'usd_object', 'visual_cube'),
    f'{_EXTENSION}.robots.mocap_controlled_franka': f'{_EXTENSION}.robots.franka',
    **_below(
        f'{_EXTENSION}.sensors',
        f'{_EXTENSION}.sensors.rep_camera',
        *('layout_edit_mocap_controlled_camera', 'mocap_controlled_camera'),
    ),
    **_below(
        f'{_EXTENSION}.tasks',
        f'{_EXTENSION}.tasks',
        *('finite_step_task', 'manipulation_task', 'single_inference_task'),
    ),
}
"""Module here, by module of 2.x."""


@dataclass(frozen=True)
class Gone:
    """Names that 2.x had in one place, a module, a class or a registry (`'controller'`), and what to use instead."""

    place: str
    names: tuple[str, ...]
    instead: str

    def message(self, name: str) -> str:
        """Return the error message for one of the names."""
        what = f'{self.place}.{name}' if '.' in self.place else f'{self.place} type {name!r}'
        return f'{what} of InternUtopia 2.x is not available: {self.instead}'


def _read(file: Path) -> list[Gone]:
    table, instead = dict[tuple[str, str], tuple[str, ...]](), ''
    for indented, lines in groupby(file.read_text(encoding='utf-8').splitlines(), lambda line: line.startswith(' ')):
        if not indented:
            instead = ' '.join(lines)
            continue
        for line in lines:
            place, names = line.strip().split(': ')
            table[place, instead] = (*table.get((place, instead), ()), *names.split())
    return [Gone(place, names, instead) for (place, instead), names in table.items()]


GONE = _read(Path(__file__).with_name('gone.txt'))
"""All names of the table."""
_CLASS = 'internutopia.core.datahub.DataHub'
_MODULES = {*MOVED, *(row.place for row in GONE if '.' in row.place)} - {_CLASS}
_PACKAGES = {name.rpartition('.')[0] for name in _MODULES}


class _Finder(MetaPathFinder, Loader):
    """Finder and loader of modules of the tables, and of the packages that they are in."""

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_package = any(package == fullname or package.startswith(f'{fullname}.') for package in _PACKAGES)
        if path is None or not (is_package or fullname in _MODULES):
            return None
        return ModuleSpec(fullname, self, is_package=is_package)

    @override
    def exec_module(self, module: ModuleType) -> None:
        """Give a module the names that it has now, and errors for those that are gone."""
        name = module.__name__
        if name in MOVED:
            moved = vars(importlib.import_module(MOVED[name]))
            vars(module).update({each: value for each, value in moved.items() if not each.startswith('_')})
        vars(module).update(__doc__='A module of InternUtopia 2.x.', __getattr__=raise_if_gone(name))


_FINDER = _Finder()


def install() -> None:
    """Make the modules importable, and register the messages about names that are gone; may be called again."""
    for row in GONE:
        GONE_NAMES[row.place].update({name: row.message(name) for name in row.names})
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
