"""Scene asset: the last one is kept, so that other robots in the same scene cost no second import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco

from internutopia.model.importers.load import content_key, load_spec
from internutopia.model.importers.load_options import LoadOptions
from internutopia.util.log import Warned, recorded_warnings


@dataclass(frozen=True)
class _SceneAsset:
    path: Path
    content: str
    options: LoadOptions
    spec: mujoco.MjSpec
    warnings: list[Warned]


_last: _SceneAsset | None = None


def load_scene_asset(path: Path, options: LoadOptions) -> mujoco.MjSpec:
    """Load as `load_spec`, with the same warnings, but reuse the asset that this process has read last."""
    global _last
    content, kept = content_key(path), _last
    if kept is not None and (kept.path, kept.content, kept.options) == (path, content, options):
        for warned in kept.warnings:
            warned.say()
        return kept.spec.copy()
    kept = _last = None  # before there is another one in memory
    with recorded_warnings() as warnings:
        spec = load_spec(path, options)
    if all(warned.lasting for warned in warnings):  # or else another attempt may do better
        _last = _SceneAsset(path, content, options, spec, warnings)
        return spec.copy()
    return spec
