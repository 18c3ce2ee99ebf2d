"""Meshes and pictures that the tests of scene models share."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from internutopia.core.render.camera import CameraPose, Frame, Intrinsics
from internutopia.core.render.renderer import Renderer, RenderJob

Mesh = tuple[NDArray[np.float64], NDArray[np.int64]]
TOOL = Path(__file__).parents[3] / 'tools' / 'make_apartment.py'


@pytest.fixture(scope='session')
def make_apartment() -> ModuleType:
    """The program that writes the scene of that name."""
    pytest.importorskip('pxr')
    module_spec = importlib.util.spec_from_file_location('make_apartment', TOOL)
    assert module_spec is not None and module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='session')
def blocks(make_apartment: ModuleType) -> Callable[..., Mesh]:
    """Makes the closed surface of the solid cells `(i, j, k)` of a grid: vertices, and triangles that face outwards."""

    def triangulated(xs: Sequence[float], ys: Sequence[float], zs: Sequence[float], solid: Any) -> Mesh:
        points, quads = make_apartment.blocks(xs, ys, zs, np.asarray(solid, bool))
        return points, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])

    return triangulated


@pytest.fixture(scope='session')
def room(blocks: Callable[..., Mesh]) -> Mesh:
    """Walls 0.1 m thick around 2 m x 2 m, 0.6 m high, as one mesh; at x = 1 with a doorway 0.6 m wide, 0.4 m high."""
    solid = np.zeros((3, 5, 2), bool)
    solid[[0, -1]] = solid[:, [0, -1]] = True
    solid[-1, 2, 0] = False
    return blocks([-1.1, -1.0, 1.0, 1.1], [-1.1, -1.0, -0.3, 0.3, 1.0, 1.1], [0.0, 0.4, 0.6], solid)


@pytest.fixture(scope='session')
def trough(blocks: Callable[..., Mesh]) -> Mesh:
    """A floor between two walls, 0.3 m x 0.2 m x 0.4 m, as thick as 0.1 m; the simplest thing that is not convex."""
    return blocks([0.0, 0.1, 0.2, 0.3], [0.0, 0.2], [0.0, 0.1, 0.4], [[[1, 1]], [[1, 0]], [[1, 1]]])


@pytest.fixture
def render(opengl: None) -> Callable[..., NDArray[np.uint8]]:
    """Renders a model at rest, `(48, 48, 3)`, from a position with a rotation `(3, 3)`; `half` the height at 1 m."""

    def picture(model: mujoco.MjModel, position: Any, rotation: Any, half: float = 0.5) -> NDArray[np.uint8]:
        data = mujoco.MjData(model)
        state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_INTEGRATION))
        mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_INTEGRATION)
        pixels = np.zeros((48, 48, 4), np.uint8)
        camera_pose = CameraPose(
            np.asarray(position, float), np.asarray(rotation, float), Intrinsics.of_height(half, (48, 48))
        )
        renderer = Renderer(1, 'fast')
        renderer.render([RenderJob(model, state, np.full(model.ngeom, -1, np.int32), [(camera_pose, Frame(pixels))])])
        renderer.close()
        return pixels[..., :3]

    return picture
