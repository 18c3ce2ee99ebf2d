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

from internutopia.rendering.camera import CameraPose, Frame, Intrinsics, RenderRequest
from internutopia.rendering.renderer import Renderer, RenderJob

Mesh = tuple[NDArray[np.float64], NDArray[np.int64]]
TOOL = Path(__file__).parents[2] / 'tools' / 'make_apartment.py'


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


@pytest.fixture(scope='session')
def revolved() -> Callable[..., Mesh]:
    """Makes the surface around z of a line of radii and heights, counterclockwise seen along the angle."""

    def surface(profile: Sequence[tuple[float, float]], count: int, *, closed: bool) -> Mesh:
        angles = np.arange(count) * 2 * np.pi / count
        points = np.array([[r * np.cos(a), r * np.sin(a), z] for a in angles for r, z in profile])
        n, faces = len(profile), []
        for i in range(count):
            for j in range(n if closed else n - 1):
                a, b = i * n, (i + 1) % count * n
                k = (j + 1) % n
                faces += [[a + j, b + j, b + k], [a + j, b + k, a + k]]
        return points, np.array(faces)

    return surface


@pytest.fixture(scope='session')
def bowl(revolved: Callable[..., Mesh]) -> Callable[..., Mesh]:
    """Makes half a hollow ball of a radius and a thickness, open above; its bottom is at z = 0."""

    def made(radius: float, wall: float, steps: int, count: int) -> Mesh:
        angles = np.linspace(0.01, np.pi / 2, steps)
        outer = [(radius * np.sin(a), radius * (1 - np.cos(a))) for a in angles]
        inner = [((radius - wall) * np.sin(a), radius - (radius - wall) * np.cos(a)) for a in angles[::-1]]
        return revolved(outer + inner, count, closed=True)

    return made


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
        request = RenderRequest(0, camera_pose, Frame(pixels))
        renderer = Renderer(1, 'fast')
        renderer.render([RenderJob(model, state, np.full(model.ngeom, -1, np.int32), [request])])
        renderer.close()
        return pixels[..., :3]

    return picture
