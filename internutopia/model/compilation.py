"""Compilation: one `SceneSpec` -> one `CompiledScene`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import mujoco

from internutopia.config.simulator import ContactCfg
from internutopia.model.asset_files import BROKEN
from internutopia.model.asset_paths import resolve
from internutopia.model.camera_layouts import add_cameras
from internutopia.model.compiled import CompiledScene
from internutopia.model.compose import compose
from internutopia.model.importers.load import is_mjcf
from internutopia.model.lighting import DEFAULT_PREFIX, drop_useless_shadows
from internutopia.model.probes import add_probes
from internutopia.model.scene_joints import add_joints, fix_bases
from internutopia.model.spec import SCENE_PREFIX, SceneSpec
from internutopia.model.static_tree import rebuild_static_tree


def compile_scene(
    scene: SceneSpec,
    timestep: float,
    contact: ContactCfg | None = None,
    edit: Callable[[mujoco.MjSpec], None] = lambda spec: None,
) -> CompiledScene:
    """Compose a scene, with its joints, probes and cameras, `edit` it, and compile it. Errors as for `compose`."""
    spec = _composed(scene, timestep, contact)
    add_probes(spec, scene.robots)
    add_cameras(spec, scene.robots)
    edit(spec)
    try:
        model = spec.compile()
    except BROKEN as error:
        assets = [scene.asset, *(r.asset for r in scene.robots), *(o.asset for o in scene.objects)]
        raise ValueError(
            f'cannot compile the scene made of {", ".join(str(a) for a in assets if a)}: {error}'
        ) from error
    rebuild_static_tree(model)
    drop_useless_shadows(model, _own_lights(scene, model))
    return CompiledScene(scene, model)


def _own_lights(scene: SceneSpec, model: mujoco.MjModel) -> list[int]:
    """Return the lights whose shadows no author has requested: default ones, and those of files that are not MJCF."""
    prefixes = [DEFAULT_PREFIX]
    if scene.asset and not is_mjcf(resolve(scene.asset)):
        prefixes.append(SCENE_PREFIX)
    return [light for light in range(model.nlight) if model.light(light).name.startswith(tuple(prefixes))]


def _composed(scene: SceneSpec, timestep: float, contact: ContactCfg | None) -> mujoco.MjSpec:
    if not scene.joints:
        return compose(scene, timestep, contact)
    unjoined = compile_scene(dataclasses.replace(scene, joints=()), timestep)  # where bodies are at the start
    scene = fix_bases(scene, unjoined)
    spec = compose(scene, timestep, contact)
    add_joints(spec, scene, unjoined)
    return spec
