"""USD stages that the tests of the importer share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.importers import LoadOptions
from internutopia.model.importers.load import load_spec
from internutopia.model.importers.usd import load_with_warnings


@pytest.fixture
def load(tmp_path) -> Any:
    """Loads a stage of the prim `/World` with these children; the compiled model."""

    def load(text: str, metres: float = 1.0, kilograms: float = 1.0, apis: str = '', **options: Any) -> mujoco.MjModel:
        path = tmp_path / 'stage.usda'
        schemas = f'(prepend apiSchemas = [{apis}])' if apis else ''
        path.write_text(
            f'#usda 1.0\n(defaultPrim = "World"\nmetersPerUnit = {metres}\nkilogramsPerUnit = {kilograms}\n'
            'upAxis = "Z")\n'
            f'def Xform "World" {schemas} {{\n{text}\n}}\n'
        )
        return load_spec(path, LoadOptions(**options)).compile()

    return load


@pytest.fixture
def warnings(tmp_path) -> Any:
    return lambda: load_with_warnings(tmp_path / 'stage.usda')[1]


@pytest.fixture
def stage(tmp_path: Path) -> Any:
    """A new stage with z up, in metres."""
    usd, geom = pytest.importorskip('pxr.Usd'), pytest.importorskip('pxr.UsdGeom')
    stage = usd.Stage.CreateNew(str(tmp_path / 'stage.usda'))
    geom.SetStageUpAxis(stage, 'Z')
    geom.SetStageMetersPerUnit(stage, 1.0)
    return stage


@pytest.fixture
def add_mesh(stage: Any) -> Callable[..., Any]:
    """Adds a mesh of `points` and `faces`, all of as many corners, to the stage; with an approximation, it collides."""
    from pxr import UsdGeom, UsdPhysics

    def add(path: str, points: Any, faces: Any, approximation: str | None = None) -> Any:
        faces = np.asarray(faces)
        mesh = UsdGeom.Mesh.Define(stage, path)
        mesh.CreatePointsAttr(np.asarray(points, np.float32).tolist())
        mesh.CreateFaceVertexCountsAttr([faces.shape[1]] * len(faces))
        mesh.CreateFaceVertexIndicesAttr(faces.ravel().tolist())
        if approximation is not None:
            UsdPhysics.CollisionAPI.Apply(mesh.GetPrim())
            UsdPhysics.MeshCollisionAPI.Apply(mesh.GetPrim()).CreateApproximationAttr(approximation)
        return mesh

    return add
