"""Odd meshes: one that is flat, broken or too small costs the stage nothing; what it lacks is said with its prim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.groups import COLLIDER_GROUP
from internutopia.model.importers import usd

Gf, UsdGeom, UsdPhysics = (pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'UsdGeom', 'UsdPhysics'))

NAN = float('nan')
SQUARE = np.array([(-0.5, -0.5, 0), (0.5, -0.5, 0), (0.5, 0.5, 0), (-0.5, 0.5, 0)])
TILTED = np.array([[0.36, -0.8, 0.48], [0.48, 0.6, 0.64], [-0.8, 0, 0.6]])
"""A rotation that leaves no axis where it was."""
TURNED = SQUARE @ np.array([[0, 0, 1.0], [0.6, 0.8, 0], [-0.8, 0.6, 0]])
CORNERS = np.array([(x, y, z) for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
CUBE = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]


def quads(*squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate(squares), np.arange(4 * len(squares)).reshape(-1, 4)


@pytest.fixture
def read(stage: Any) -> Any:
    """The model of the stage with a good cube beside what the test has put on it, and the warnings."""

    def read() -> tuple[mujoco.MjModel, list[str]]:
        cube = UsdGeom.Cube.Define(stage, '/good')
        cube.AddTranslateOp().Set(Gf.Vec3d(0, 0, 50))
        UsdPhysics.CollisionAPI.Apply(cube.GetPrim())
        stage.Save()
        spec, warnings = usd.load_with_warnings(Path(stage.GetRootLayer().realPath))
        return spec.compile(), warnings

    return read


def named(model: mujoco.MjModel, colliding: bool) -> list[str]:
    """Geoms that collide, or are only seen, but for the good cube."""
    names = [model.geom(i).name for i in range(model.ngeom) if bool(model.geom_contype[i]) == colliding]
    return [name for name in names if name != '/good']


def distance_down(model: mujoco.MjModel, point: np.ndarray) -> float:
    """How far [m] below a point something collides; -1 for nothing."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    groups = np.array([1, 0, 0, 1, 0, 0], np.uint8)
    return mujoco.mj_ray(model, data, point, np.array([0.0, 0, -1]), groups, 1, -1, np.zeros(1, np.int32))


@pytest.mark.parametrize('approximation', ['none', 'convexDecomposition', 'sdf'])
@pytest.mark.parametrize(
    'squares',
    [
        (SQUARE @ TILTED.T, SQUARE @ TILTED.T + 3 * TILTED[:, 0]),
        (SQUARE @ TILTED.T, SQUARE @ TILTED.T + 3 * TILTED[:, 2]),
        (SQUARE @ TILTED.T, TURNED + [3, 0, 0]),
        tuple(SQUARE @ TILTED.T + 3 * k * TILTED[:, 0] for k in range(30)),
    ],
    ids=['one plane', 'parallel planes', 'other planes', 'many'],
)
def test_unconnected_flat_faces_are_plates(stage, add_mesh, read, squares, approximation):
    add_mesh('/leaves', *quads(*squares), approximation)
    model, warnings = read()
    assert named(model, False) == ['/leaves'] and len(named(model, True)) == len(squares) and not warnings
    assert distance_down(model, np.array([0, 0, 2.0])) == pytest.approx(2, abs=0.2)


def test_a_flat_piece_of_a_solid_mesh_collides_too(add_mesh, read):
    points = np.concatenate([CORNERS, SQUARE @ TILTED.T + [3, 0, 0]])
    add_mesh('/box', points, [*CUBE, [8, 9, 10, 11]], 'none')
    model, warnings = read()
    assert named(model, True) == ['/box/part_0', '/box/part_1'] and not warnings


@pytest.mark.parametrize(
    ('points', 'faces'),
    [
        (np.concatenate([SQUARE[:3] @ TILTED.T, SQUARE[:3] @ TILTED + 2]), [[0, 1, 2], [3, 4, 5]]),
        (SQUARE[:3] @ TILTED.T, [[0, 1, 2]]),
        (SQUARE[:3], [[0, 1, 2], [0, 0, 1], [2, 2, 2]]),
        (CORNERS * [1, 1, 1e-6] @ TILTED.T, CUBE),
        (
            np.concatenate([SQUARE @ TILTED.T, [SQUARE[0] @ TILTED.T + 1e-5 * TILTED[:, 2]]]),
            [[0, 1, 2], [0, 2, 3], [0, 1, 4]],
        ),
        (SQUARE @ TILTED.T + 1e4, [[0, 1, 2, 3]]),
        (np.concatenate([SQUARE @ TILTED.T, SQUARE @ TILTED.T + 3 * TILTED[:, 0]]) + 1e4, [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ],
    ids=['triangles', 'triangle', 'faces without area', 'two sides', 'nearly', 'far', 'two far'],
)
@pytest.mark.parametrize('approximation', ['none', 'convexDecomposition', 'convexHull', 'boundingCube'])
def test_what_is_flat_or_nearly_so_is_seen_and_collides(add_mesh, read, points, faces, approximation):
    corners = np.array([[*face, face[-1]][:4] for face in faces])
    add_mesh('/sheet', points, corners, approximation)
    model, warnings = read()
    assert model.geom('/sheet').group[0] < COLLIDER_GROUP and named(model, True) and not warnings


def test_a_flat_mesh_is_seen_as_flat_and_from_both_sides(add_mesh, read):
    add_mesh('/card', 0.1 * SQUARE, [[0, 1, 2, 3]], 'none')
    model, _ = read()
    assert (named(model, False), named(model, True)) == (['/card'], ['/card/collider'])
    seen, collider = model.geom('/card'), model.geom('/card/collider')
    mesh = model.mesh(int(seen.dataid[0]))
    vertices = model.mesh_vert[int(mesh.vertadr[0]) :][: int(mesh.vertnum[0])]
    assert sorted(np.ptp(vertices, axis=0)) == pytest.approx([0, 0.1, 0.1])
    assert sorted(2 * model.geom_aabb[collider.id, 3:]) == pytest.approx([0.005, 0.1, 0.1], rel=1e-4)
    data, camera = mujoco.MjData(model), mujoco.MjvCamera()
    mujoco.mj_forward(model, data)
    camera.distance = 2
    with mujoco.Renderer(model, 64, 64) as renderer:
        renderer.enable_segmentation_rendering()
        for camera.elevation in -90, 90:
            renderer.update_scene(data, camera)
            assert renderer.render()[32, 32, 0] == seen.id


@pytest.mark.parametrize(
    ('points', 'faces', 'said'),
    [
        (np.where(np.arange(8)[:, None] == 7, NAN, CORNERS), CUBE, 'points must be finite numbers'),
        (np.where(np.arange(8)[:, None] == 7, np.inf, CORNERS), CUBE, 'points must be finite numbers'),
        (CORNERS, [*CUBE, [0, 1, 2, 99]], r'faceVertexIndices must be within 0..7, the points there are'),
        (CORNERS, [*CUBE, [0, 1, 2, -1]], r'faceVertexIndices must be within 0..7, the points there are'),
    ],
    ids=['nan', 'infinite', 'no such point', 'negative'],
)
@pytest.mark.parametrize('approximation', [None, 'none', 'convexHull'])
def test_broken_faces_are_left_out_and_the_others_stay(add_mesh, read, points, faces, said, approximation):
    add_mesh('/cube', points, faces, approximation)
    model, warnings = read()
    assert warnings == [f'faces are left out, {said}: /cube']
    assert any(name == '/cube' for name in (*named(model, False), *named(model, True)))
    assert bool(named(model, True)) == (approximation is not None)


def test_points_that_no_face_has_do_not_matter(add_mesh, read):
    add_mesh('/cube', [*CORNERS, [NAN] * 3], CUBE, 'none')
    model, warnings = read()
    assert named(model, True) == ['/cube'] and not warnings


def test_meshes_of_which_nothing_is_left_cost_themselves(stage, add_mesh, read):
    add_mesh('/nan', np.full((4, 3), NAN), [[0, 1, 2, 3]], 'none')
    add_mesh('/line', [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3)], [[0, 1, 2, 3]], 'none')
    add_mesh('/point', np.ones((4, 3)), [[0, 1, 2, 3]], 'none')
    add_mesh('/counts', CORNERS, CUBE, 'none').CreateFaceVertexCountsAttr([4] * 5)
    model, warnings = read()
    assert model.ngeom == 1
    assert sorted(warnings) == [
        'left out, faceVertexCounts sum up to 20, but there are 24 faceVertexIndices: /counts',
        'left out, it has no surface: /line, /point',
        'left out, points must be finite numbers: /nan',
    ]


def test_what_is_too_small_for_the_engine_is_only_seen_or_left_out(stage, add_mesh, read):
    add_mesh('/dust/a', 1e-6 * CORNERS, CUBE, 'convexHull')
    add_mesh('/dust/b', 2e-6 * CORNERS, CUBE, 'convexHull')
    add_mesh('/less', 1e-12 * CORNERS, CUBE, 'none')
    model, warnings = read()
    assert (named(model, False), named(model, True)) == (['/dust/a', '/dust/b'], [])
    assert 'collides with nothing, mesh volume is too small: /dust/a, /dust/b' in warnings
    assert any(line.startswith('left out, ') and line.endswith(': /less') for line in warnings)


def test_a_body_of_flat_things_only_can_move(stage, add_mesh, read):
    """It has no volume, so no weight of its own, if it does not collide; else that of its collider."""
    for name, approximation in ('leaf', None), ('card', 'none'):
        UsdPhysics.RigidBodyAPI.Apply(UsdGeom.Xform.Define(stage, f'/{name}').GetPrim())
        add_mesh(f'/{name}/mesh', SQUARE[:3], [[0, 1, 2]], approximation)
    model, warnings = read()
    assert float(model.body('/leaf').mass[0]) == 1.0
    assert float(model.body('/card').mass[0]) == pytest.approx(1000 * 0.5 * 0.05, rel=1e-4)
    assert 'body without mass and solid shapes weighs 1 kg: /leaf' in warnings
    assert not any('convex hull' in line for line in warnings)


@pytest.mark.nightly
@pytest.mark.parametrize('approximation', [None, 'none', 'convexDecomposition', 'convexHull', 'boundingCube'])
def test_no_mesh_costs_the_stage(stage, add_mesh, read, approximation):
    """A hundred heaps of faces: flat in any direction, far, tiny, with points that coincide or are not finite."""
    rng = np.random.default_rng(0)
    for number in range(100):
        count = int(rng.integers(3, 14))
        thin = np.diag([1, 10.0 ** -rng.integers(0, 9), 10.0 ** -rng.integers(0, 9)])
        points = rng.normal(size=(count, 3)) @ thin @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
        points = points[rng.integers(0, count, count)] * 10.0 ** rng.integers(-7, 3) + rng.choice([0, 0, 1e3])
        points[0] *= rng.choice([1, 1, 1, NAN, np.inf, 1e20])
        faces = rng.integers(0, count + (number % 10 == 0), (int(rng.integers(1, 20)), int(rng.integers(3, 6))))
        add_mesh(f'/heap_{number}', points, faces, approximation)
    model, _ = read()
    assert model.geom('/good').contype[0] == 1 and model.ngeom > 30
