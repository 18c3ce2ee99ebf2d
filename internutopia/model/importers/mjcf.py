"""MJCF: MuJoCo reads its own format in full; here only bounds and the list of files are added (`mjcf_files`)."""

from __future__ import annotations

from pathlib import Path

import mujoco

from internutopia.model.importers.mjcf_files import read_mjcf


def load(path: Path) -> mujoco.MjSpec:
    """Read an MJCF file at an absolute path. ValueError if it is broken or a file it refers to is missing."""
    spec = mujoco.MjSpec.from_file(str(path))
    spec.copy().compile()  # most errors (sizes, names, missing meshes) show up only here
    return spec


def dependencies(path: Path) -> set[Path]:
    """Return the file itself and all that it refers to: includes, models, meshes, textures, height fields, skins.

    ValueError as `read_mjcf`.
    """
    models = read_mjcf(path)
    documents = {document for model in models.values() for document in model.documents}
    return documents | {file for model in models.values() for _, file in model.references}
