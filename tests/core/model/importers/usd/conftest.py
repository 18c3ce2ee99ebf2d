"""USD stages that the tests of the importer share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from internutopia.core.model.importers.load import load_spec
from internutopia.core.model.importers.load_options import LoadOptions
from internutopia.core.model.importers.usd import load_with_warnings
from internutopia.core.render.camera import CameraPose, Frame, Intrinsics
from internutopia.core.render.renderer import Renderer, Scenery


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


@pytest.fixture
def render(opengl: None) -> Callable[..., NDArray[np.uint8]]:
    """Draws a model at rest, `(48, 48, 3)`, from a position with a rotation `(3, 3)`; `half` the height at 1 m."""

    def picture(model: mujoco.MjModel, position: Any, rotation: Any, half: float = 0.5) -> NDArray[np.uint8]:
        data = mujoco.MjData(model)
        state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
        mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        pixels = np.zeros((48, 48, 4), np.uint8)
        camera_pose = CameraPose(
            np.asarray(position, float), np.asarray(rotation, float), Intrinsics.of_height(half, (48, 48))
        )
        renderer = Renderer(1, 'fast')
        renderer.draw([Scenery(model, state, np.full(model.ngeom, -1, np.int32), [(camera_pose, Frame(pixels))])])
        renderer.close()
        return pixels[..., :3]

    return picture
