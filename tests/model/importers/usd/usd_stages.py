"""USD stages, made by tests, and where the importer puts what is in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.importers.load import load_spec

# pxr is imported where used in the package, so that importing a module does not load it; a test may load it at once
Gf, Usd, UsdGeom = (pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'Usd', 'UsdGeom'))

POSITION_TOLERANCE = 1e-5  # [m]; meshes are in single precision
GEOM = mujoco.mjtGeom
CORNERS = np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), axis=-1).reshape(-1, 3).astype(float)


def srgb(*linear: float) -> list[float]:
    """Linear values as they are shown (IEC 61966-2-1)."""
    return [12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in linear]


def new_stage(path: Path, *, up: str = 'Z', unit: float = 1.0) -> Any:
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, up)
    UsdGeom.SetStageMetersPerUnit(stage, unit)
    return stage


def move(prim: Any, where: Any = (0, 0, 0), turn: Any = (0, 0, 0), scale: Any = (1, 1, 1)) -> Any:
    UsdGeom.Xformable(prim).AddTranslateOp().Set(Gf.Vec3d(*where))
    UsdGeom.Xformable(prim).AddRotateXYZOp().Set(Gf.Vec3f(*turn))
    UsdGeom.Xformable(prim).AddScaleOp().Set(Gf.Vec3f(*scale))
    return prim


def add_mesh(stage: Any, path: str, points: Any, faces: list[list[int]]) -> Any:
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr([Gf.Vec3f(*map(float, point)) for point in points])
    mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
    mesh.CreateFaceVertexIndicesAttr([corner for face in faces for corner in face])
    return mesh


def add_cube_mesh(stage: Any, path: str) -> Any:
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return add_mesh(stage, path, CORNERS, faces)


def saved(stage: Any) -> mujoco.MjModel:
    """Save a stage and compile what the importer makes of it."""
    stage.Save()
    return load_spec(Path(stage.GetRootLayer().realPath)).compile()


def placed(model: mujoco.MjModel) -> mujoco.MjData:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return data


def world_points(model: mujoco.MjModel, name: str) -> np.ndarray:
    """Corners of a box geom or vertices of a mesh geom, in the world."""
    frame, geom = placed(model).geom(name), model.geom(name)
    points = CORNERS * geom.size
    if geom.type == GEOM.mjGEOM_MESH:
        mesh = model.mesh(int(geom.dataid[0]))
        points = model.mesh_vert[int(mesh.vertadr[0]) : int(mesh.vertadr[0]) + int(mesh.vertnum[0])]
    return points @ frame.xmat.reshape(3, 3).T + frame.xpos


def assert_same_points(found: np.ndarray, expected: np.ndarray) -> None:
    """Two point sets are the same, in any order."""
    distances = np.linalg.norm(found[:, None] - expected[None], axis=-1)
    tolerance = POSITION_TOLERANCE * (1 + np.abs(expected).max())
    assert max(distances.min(axis=0).max(), distances.min(axis=1).max()) < tolerance


def kind(model: mujoco.MjModel, name: str) -> mujoco.mjtGeom:
    return GEOM(int(model.geom(name).type[0]))
