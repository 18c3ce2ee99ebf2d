"""Scene cache: compiled scenes by content, in memory and on disk.

Two scene specs that differ only in poses or initial joint positions give the very same `CompiledScene`.

On disk, so that later processes need not compile them again, they are the folder `scenes` of the cache
(`internutopia.util.cache_folder`), two files for a scene: its model in MuJoCo's binary format, and what goes with it.
Their name is a hash of all that the model depends on: content and places of the assets' files, the scene spec, the
limits in force, and the code. Nothing in them is executed.

With limits on assets, scenes are compiled in their own process first. Only files with which that went well are
read by the calling process; what passed is known by content.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import mujoco
import numpy as np

from internutopia.config.simulator import AssetLimitsCfg, ContactCfg
from internutopia.model.asset_files import BROKEN, limited_by, limits
from internutopia.model.asset_paths import resolve
from internutopia.model.compilation import compile_scene
from internutopia.model.compiled import CompiledScene
from internutopia.model.importers.fingerprints import Fingerprint, adopt_fingerprint, known_fingerprint
from internutopia.model.importers.load import content_key
from internutopia.model.overlaps import exclude_overlaps
from internutopia.model.spec import SceneSpec
from internutopia.util.cache_folder import CacheFolder, code_version, hashed
from internutopia.util.child_process import LimitError, call_limited
from internutopia.util.log import Warned, recorded_warnings, warn_once
from internutopia.util.memory import return_free_memory

R = TypeVar('R')
_passed: set[str] = set()  # content keys


def call_in_own_process(files: Collection[Path], function: Callable[..., R], *args: Any) -> R:
    """Call a function, of a module, that reads these files, in a process with the limits in force.

    Raises:
        ValueError: It took too long or too much memory, or the process died; the message names the files.
        Exception: What the function raises.
    """
    given = limits()
    try:
        return call_limited(given.time, given.memory, _call, given.of_sizes(), function, *args)
    except LimitError as error:
        names = ', '.join(map(str, files))
        raise ValueError(f'{names}: cannot be read and compiled: {error} (SimConfig.asset_limits)') from error


def try_files(files: Collection[Path], compile_them: Callable[..., Any], *args: Any) -> None:
    """Try files that have not passed yet: `compile_them(*args)` in a separate process.

    Raises what `call_in_own_process` raises.
    """
    unknown = [file for file in files if (known := known_fingerprint(file)) is None or known.key not in _passed]
    if not unknown:
        return
    found = call_in_own_process(unknown, _fingerprints_after, unknown, compile_them, *args)
    for file, fingerprint in found.items():
        adopt_fingerprint(file, fingerprint)
        _passed.add(fingerprint.key)


def _call(given: AssetLimitsCfg, function: Callable[..., R], *args: Any) -> R:
    with limited_by(given):
        return function(*args)


def _fingerprints_after(
    files: Collection[Path], compile_them: Callable[..., Any], *args: Any
) -> dict[Path, Fingerprint]:
    keys = {file: content_key(file) for file in files}
    compile_them(*args)
    found = {file: known_fingerprint(file) for file in files}
    if changed := [str(file) for file, known in found.items() if known is None or known.key != keys[file]]:
        raise ValueError(f'{", ".join(changed)}: changed while it was read')
    return {file: known for file, known in found.items() if known is not None}


CAPACITY = 8 << 30
"""Maximum size of all files [bytes]; scenes that were used least recently are deleted."""
_COMPILED_PER_RETURN = 64 << 20  # [bytes] of models that are compiled until memory is given back
_DROPPED_KEPT = 10_000  # keys of dropped scenes that are kept


class SceneFiles:
    """Compiler of scenes that caches them on disk."""

    def __init__(self, least_time: float = 1.0):
        """`least_time`: processor time [s] from which on compiling a scene is worth keeping it."""
        self._least_time = least_time

    def get(self, scene: SceneSpec, key: str, timestep: float, contact: ContactCfg | None = None) -> CompiledScene:
        """Return the compiled scene for a scene spec, with the same warnings either way. Errors as for `compile_scene`.

        `key`: everything that the model depends on, assets by content.
        """
        folder = CacheFolder('scenes', 'compiled scenes', CAPACITY)
        name = _name(scene, key)
        if (model := _load(folder, name)) is not None:
            return CompiledScene(scene, model)
        begin = time.thread_time()
        with recorded_warnings() as warnings:
            compiled = compile_scene(scene, timestep, contact)
        if time.thread_time() - begin >= self._least_time and all(warned.lasting for warned in warnings):
            _store(folder, name, compiled.model, warnings)
        return compiled


def _name(scene: SceneSpec, key: str) -> str:
    """Return the name of a scene's files. Paths of its assets are part of it, as warnings name them."""
    assets = [scene.asset, *(robot.asset for robot in scene.robots), *(obj.asset for obj in scene.objects)]
    places = [str(resolve(asset)) for asset in assets if asset]
    return hashed(code_version(), limits().of_sizes(), places, key)


def _load(folder: CacheFolder, name: str) -> mujoco.MjModel | None:
    """Load the model of that name and log its warnings again; None if there is none that is as it was written."""
    file = folder.used(f'{name}.mjb')
    try:
        about = json.loads(folder.used(f'{name}.json').read_bytes())
        warnings = [Warned(**each) for each in about['warnings']]
        with file.open('rb') as content:
            digest = hashlib.file_digest(content, 'sha256')
        if about['digest'] != _digest(digest, about['warnings']):
            return None
        model = mujoco.MjModel.from_binary_path(str(file))
    except (OSError, TypeError, *BROKEN):
        return None
    for warned in warnings:
        warned.emit()
    return model


def _store(folder: CacheFolder, name: str, model: mujoco.MjModel, warnings: list[Warned]) -> None:
    return_free_memory()  # before there is the model once more
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, buffer=buffer)
    logged = [asdict(warned) for warned in warnings]
    about = {'digest': _digest(hashlib.sha256(buffer.data), logged), 'warnings': logged}
    folder.write(f'{name}.mjb', lambda file: file.write(buffer.data))
    folder.write(f'{name}.json', lambda file: file.write(json.dumps(about).encode()))


def _digest(model: hashlib._Hash, warnings: list[Any]) -> str:
    """Return the digest that is compared with the one written."""
    model.update(json.dumps(warnings).encode())
    return model.hexdigest()


class SceneCache:
    """Compiled scenes by content.

    The most recently used ones are kept, as far as their models fit into `capacity` [bytes]. A scene that another
    object keeps, such as an env that runs it, is found in any case.
    """

    def __init__(self, capacity: int = 256 << 20, files: SceneFiles | None = None):
        """`files`: from where scenes that others have compiled are read; None compiles all that is not in memory."""
        self.capacity = capacity
        self._files = files
        self.size = 0  # [bytes], of the models that are kept
        self._recent: OrderedDict[str, CompiledScene] = OrderedDict()  # the least recently used first
        self._alive: WeakValueDictionary[str, CompiledScene] = WeakValueDictionary()
        self._dropped: OrderedDict[int, None] = OrderedDict()  # hashes of keys
        self._compiled = 0  # [bytes], since memory was given back
        self._lock = threading.Lock()  # Envs in several threads share the cache

    def get(self, scene: SceneSpec, timestep: float, contact: ContactCfg | None = None) -> CompiledScene:
        """Return the compiled scene for a scene spec. FileNotFoundError or ValueError if its assets can't be read."""
        if limits().own_process:
            _try(scene, timestep, contact)
        # all that robots' models depend on, but links that pass through each other where they start
        robots = [f'{content_key(resolve(robot.asset))} {robot.build}' for robot in scene.robots]
        build, scene = scene.build, exclude_overlaps(scene, robots, timestep)
        others = [scene.asset and content_key(resolve(scene.asset))]
        for each in scene.objects:
            others.append(each.asset and content_key(resolve(each.asset)))
        excludes = [robot.contact_excludes for robot in scene.robots]
        key = f'{timestep!r} {contact!r} {others} {build} {robots} {excludes}'  # poses are in `build` if joints are
        compiled = self._alive.get(key)
        if compiled is None:
            get = compile_scene if self._files is None else functools.partial(self._files.get, key=key)
            compiled = self._alive.setdefault(key, get(scene, timestep=timestep, contact=contact))
            self._compiled += compiled.size
            if hash(key) in self._dropped:
                warn_once(
                    'scenes are compiled again and again: those in use need more than the %d MiB of '
                    'SimConfig.scene_cache; if there is memory for them, let it be larger',
                    self.capacity >> 20,
                )
        with self._lock:
            self._keep(key, compiled)
        if self._compiled > _COMPILED_PER_RETURN:
            self._compiled = 0
            return_free_memory()
        return compiled

    def __contains__(self, compiled: CompiledScene) -> bool:
        """Return True if the scene is in the cache."""
        return compiled in self._recent.values()

    def _keep(self, key: str, compiled: CompiledScene) -> None:
        if key not in self._recent:
            self._recent[key] = compiled
            self.size += compiled.size
        self._recent.move_to_end(key)
        while self.size > self.capacity:
            oldest, dropped = self._recent.popitem(last=False)
            self.size -= dropped.size
            self._dropped[hash(oldest)] = None
            if len(self._dropped) > _DROPPED_KEPT:
                self._dropped.popitem(last=False)


SCENES = SceneCache(files=SceneFiles())
"""The scenes of the process: a second Env of the same scenes starts at once."""


def _try(scene: SceneSpec, timestep: float, contact: ContactCfg | None) -> None:
    """Compile a scene in a separate process, which may look up assets elsewhere, if its files were not tried yet."""
    robots = [dataclasses.replace(robot, asset=str(resolve(robot.asset))) for robot in scene.robots]
    objects = [dataclasses.replace(obj, asset=obj.asset and str(resolve(obj.asset))) for obj in scene.objects]
    asset = scene.asset and str(resolve(scene.asset))
    resolved = dataclasses.replace(scene, asset=asset, robots=tuple(robots), objects=tuple(objects))
    assets = dict.fromkeys([asset, *(robot.asset for robot in robots), *(obj.asset for obj in objects)])
    try_files([Path(each) for each in assets if each], _compile_alone, resolved, timestep, contact)


def _compile_alone(scene: SceneSpec, timestep: float, contact: ContactCfg | None) -> None:
    SceneCache(files=SceneFiles()).get(scene, timestep, contact)
