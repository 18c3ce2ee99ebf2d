"""Scene files: compiled scenes on disk, so that later processes need not compile them again.

They are the folder `scenes` of the cache (`internutopia.util.cache_folder`), two files for a scene: its model in
MuJoCo's binary format, and what goes with it. Their name is a hash of all that the model depends on: content and places
of the assets' files, the scene spec, the limits in force, and the code. Nothing in them is executed.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict
from typing import Any

import mujoco
import numpy as np

from internutopia.config.contact import ContactCfg
from internutopia.model.asset_bounds import limits
from internutopia.model.assets import resolve
from internutopia.model.compilation import compile_scene
from internutopia.model.compiled import CompiledScene
from internutopia.model.file_errors import BROKEN
from internutopia.model.spec import SceneSpec
from internutopia.util.cache_folder import CacheFolder, code_version, hashed
from internutopia.util.log import Warned, recorded_warnings
from internutopia.util.memory import return_free_memory

CAPACITY = 8 << 30
"""Maximum size of all files [bytes]; scenes that were used least recently are deleted."""


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
        warned.say()
    return model


def _store(folder: CacheFolder, name: str, model: mujoco.MjModel, warnings: list[Warned]) -> None:
    return_free_memory()  # before there is the model once more
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, buffer=buffer)
    said = [asdict(warned) for warned in warnings]
    about = {'digest': _digest(hashlib.sha256(buffer.data), said), 'warnings': said}
    folder.write(f'{name}.mjb', lambda file: file.write(buffer.data))
    folder.write(f'{name}.json', lambda file: file.write(json.dumps(about).encode()))


def _digest(model: hashlib._Hash, warnings: list[Any]) -> str:
    """Return the digest that is compared with the one written."""
    model.update(json.dumps(warnings).encode())
    return model.hexdigest()
