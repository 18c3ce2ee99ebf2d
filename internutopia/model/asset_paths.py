"""Asset look-up: from the path in a config to a file on this machine.

A path is searched as it is, then under the user's asset folder (`gm.ASSET_PATH`), then under the assets packaged with
InternUtopia. With the suffix `.xml`, it is searched after the path itself in the first two places, with a warning if it
is found, and before it among the packaged ones. So `<gm.ASSET_PATH>/robots/h1/h1.usd` finds the user's own H1, and the
packaged `robots/h1/h1.xml` on a machine that has none. Packaged models also answer to the names that they have in
InternUtopia's asset pack (`PACKAGED_AS`).
`package:<package>/<file>` and `assets:<file>` are those of `internutopia.config.yaml_file`.

`menagerie:unitree_h1`, for another file `menagerie:unitree_g1/g1_with_hands`, is a model of MuJoCo Menagerie. They come
with the package `mujoco-menagerie`, which downloads a model when it is first used and keeps it. Where there is no
network, `MENAGERIE_ROOT` names a checkout of the repository, `MENAGERIE_CACHE_DIR` a filled cache.
"""

from __future__ import annotations

import difflib
import os
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path

from internutopia.config.yaml_file import local_path, missing_package
from internutopia.default_config import PACKAGED_ASSETS_PATH
from internutopia.macros import gm
from internutopia.util.imports import install_hint
from internutopia.util.log import warn_once

PACKAGED_ASSETS = Path(PACKAGED_ASSETS_PATH)
_PACKAGED = f'{PACKAGED_ASSETS}{os.sep}'  # beginning of the paths of packaged files
# Files of InternUtopia's asset pack, without suffixes, for which something is packaged under another name
PACKAGED_AS = {
    'robots/aliengo/aliengo_camera': 'robots/aliengo/aliengo.xml',
    'robots/aliengo/policy/move_by_speed/aliengo_loco_model_4000': 'robots/aliengo/move_by_speed.onnx',
    'robots/franka/lula_franka_gen': 'robots/franka/franka.xml',
    'robots/franka/mocap_teleop_franka': 'robots/franka/franka.xml',
    'robots/g1/g1_29dof_color': 'robots/g1/g1.xml',
    'robots/g1/policy/move_by_speed/g1_15000': 'robots/g1/move_by_speed.onnx',
    'robots/gr1/policy/move_by_speed/gr1_policy': 'robots/gr1/move_by_speed.onnx',
    'robots/h1/policy/move_by_speed/h1_loco_model_20000': 'robots/h1/move_by_speed.onnx',
    'robots/h1_with_hand/h1_with_hand_rt_v2': 'robots/h1_with_hand/h1_with_hand.xml',
}
MODEL_SUFFIXES = (
    *('.usd', '.usda', '.usdc', '.usdz', '.urdf', '.xml', '.gltf', '.glb', '.obj', '.stl', '.ply'),
    *('.scene_instance.json', '.stage_config.json', '.object_config.json'),  # of Habitat
)
_MENAGERIE = 'menagerie:'  # prefix
_BLENDER = 'Blender imports it and exports glTF'
_CONVERTERS = {
    '.xacro': 'expand it first: `xacro {0} > robot.urdf`',
    '.blend': 'Blender exports glTF',
    **dict.fromkeys(('.fbx', '.dae', '.3ds', '.x3d', '.abc', '.wrl'), _BLENDER),
    **dict.fromkeys(('.step', '.stp', '.iges', '.igs'), 'FreeCAD imports it and exports glTF'),
    '.sdf': '`gz sdf` prints it; gz-usd writes USD',
}
"""Advice on files of other formats, by suffix."""
POLICY_SUFFIXES = ('.onnx', '.pt', '.yaml')


def resolve(path: str | os.PathLike[str], suffixes: tuple[str, ...] = MODEL_SUFFIXES) -> Path:
    """Return the file that an asset path stands for.

    Args:
        path: Absolute, or relative to the working directory or an asset folder, or with one of the prefixes above.
        suffixes: Formats that are supported.

    Returns:
        An absolute path to an existing file with one of the suffixes.

    Raises:
        FileNotFoundError: No such file; the message names every place tried.
        ValueError: The file is not of a supported format.
    """
    wanted = os.path.expanduser(local_path(os.fspath(path)))
    if (package := missing_package(wanted)) is not None:
        raise FileNotFoundError(f'asset {wanted!r}: no Python package {package!r} is installed here')
    if wanted.startswith(_MENAGERIE):
        return _menagerie_file(wanted)
    tried = _candidates(wanted, os.getcwd(), gm.ASSET_PATH)
    for candidate in tried:
        if os.path.isfile(candidate):
            if not candidate.startswith(_PACKAGED) and _suffix(candidate) != _suffix(wanted) != '':
                warn_once('asset %r not found: %s is used in its place', os.fspath(path), candidate)
            return _supported(candidate, suffixes)
    similar = [
        _packaged(suffixes)[name] for name in difflib.get_close_matches(_short_name(Path(wanted)), _packaged(suffixes))
    ]
    hint = f'\nPackaged assets of a similar name: {", ".join(similar)}' if similar else ''
    places = ''.join(f'\n  {place}{" (a folder)" if os.path.isdir(place) else ""}' for place in tried)
    raise FileNotFoundError(f'asset {os.fspath(path)!r} not found; tried:{places}{hint}')


def packaged_as(path: str | os.PathLike[str]) -> Path | None:
    """Return the packaged file for one of the asset pack, wherever that lies; None for any other."""
    known_as = os.path.splitext(os.path.abspath(path))[0]
    names = (name for name in PACKAGED_AS if known_as.endswith(f'/{name}'))
    return next((PACKAGED_ASSETS / PACKAGED_AS[name] for name in names), None)


@lru_cache(4096)  # every reset resolves the same few files
def _candidates(wanted: str, working_directory: str, asset_path: str) -> tuple[str, ...]:
    """Return the absolute paths to try, in order."""
    roots = [os.path.abspath(asset_path), str(PACKAGED_ASSETS)]
    places = [os.path.abspath(os.path.join(working_directory, wanted))]
    inside = [places[0][len(root) + 1 :] for root in roots if places[0].startswith(root + os.sep)]
    for relative in inside or ([] if os.path.isabs(wanted) else [wanted]):
        places += [os.path.join(root, relative) for root in roots]
        known_as = os.path.splitext(relative)[0]
        if known_as in PACKAGED_AS:
            places.append(str(PACKAGED_ASSETS / PACKAGED_AS[known_as]))
    paths: list[str] = []
    for packaged, group in groupby(places, lambda place: place.startswith(_PACKAGED)):
        named = list(group)
        others = [os.path.splitext(place)[0] + '.xml' for place in named]
        paths += others + named if packaged else named + others  # the packaged original has the suffix `.xml`
    return tuple(dict.fromkeys(paths))  # a dict keeps the order and drops duplicates


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def model_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a model file, in lower case; those of Habitat have two parts."""
    name = os.path.basename(path).lower()
    return next((suffix for suffix in MODEL_SUFFIXES if name.endswith(suffix)), os.path.splitext(name)[1])


@lru_cache(4096)
def _supported(file: str, suffixes: tuple[str, ...]) -> Path:
    suffix = model_suffix(file)
    if suffix not in suffixes:
        converter = _CONVERTERS.get(suffix, '').format(os.path.basename(file))
        hint = f' ({converter})' if converter else ''
        raise ValueError(f'asset {file}: suffix {suffix!r} is not one of {", ".join(suffixes)}{hint}')
    return Path(file)


def _short_name(file: Path) -> str:
    """Return folder and name without suffix, which a wrong path most likely shares with the right one."""
    return '/'.join((*file.parts[-2:-1], file.stem))


@cache
def _packaged(suffixes: tuple[str, ...]) -> dict[str, str]:
    """Return the paths of the packaged assets relative to their folder, by short name."""
    files = sorted(file for file in PACKAGED_ASSETS.rglob('*') if model_suffix(file) in suffixes)
    return {_short_name(file): file.relative_to(PACKAGED_ASSETS).as_posix() for file in files}


def _menagerie_file(asset: str) -> Path:
    """Return the file of an asset `menagerie:<robot>[/<entry>]`.

    Raises:
        FileNotFoundError: the package is not installed, it has no such model, or the model is not here and cannot be
            downloaded; the message has the remedy.
    """
    robot, _, entry = asset.removeprefix(_MENAGERIE).partition('/')
    try:
        import mujoco_menagerie
    except ImportError as error:
        raise FileNotFoundError(
            f'asset {asset!r} needs the package mujoco-menagerie ({error}): {install_hint("menagerie")}'
        ) from error
    try:
        model = mujoco_menagerie.get(robot)
        file = model.xml(entry or model.default_model)
    except LookupError as error:
        raise FileNotFoundError(f'asset {asset!r}: {error.args[0]}') from None
    except (mujoco_menagerie.MenagerieError, OSError) as error:
        raise FileNotFoundError(
            f'asset {asset!r} could not be downloaded: {error}\nOn a machine without network, set MENAGERIE_ROOT to a '
            'checkout of mujoco_menagerie, or MENAGERIE_CACHE_DIR to a folder that '
            f'`mujoco-menagerie prefetch {robot}` has filled elsewhere'
        ) from error
    if not file.is_file():
        raise FileNotFoundError(f'asset {asset!r}: there is no {file}')
    return file
