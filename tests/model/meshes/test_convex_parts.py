"""Which convex parts a piece becomes, without CoACD."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from internutopia.model.meshes.convex_parts import TOLERANCE, Solid, collapsed, parts_of
from internutopia.model.meshes.hulls import HULL_VERTICES
from internutopia.model.meshes.part_cache import ConvexPart
from internutopia.model.meshes.surfaces import Surface, pieces

Mesh = tuple[NDArray[np.float64], NDArray[np.int64]]
TURN = np.array([[0.36, 0.48, -0.8], [-0.8, 0.6, 0.0], [0.48, 0.64, 0.6]])


def piece_of(mesh: Mesh) -> Surface:
    (piece,) = pieces(*mesh)
    return piece


def parts(mesh: Mesh) -> list[ConvexPart]:
    found = parts_of(piece_of(mesh))
    assert not isinstance(found, Solid)
    return found


def covers(found: list[ConvexPart], point: Any) -> bool:
    """Whether a point is in one of the boxes."""
    spreads = [(part.vertices @ part.axes, point @ part.axes) for part in found if part.axes is not None]
    return any((at > spread.min(axis=0)).all() and (at < spread.max(axis=0)).all() for spread, at in spreads)


@pytest.fixture
def wall(blocks: Callable[..., Mesh]) -> Mesh:
    """4 m long, 0.2 m thick, 2.5 m high, with a doorway from 1 m to 1.9 m and a window."""
    solid = np.ones((5, 1, 4), bool)
    solid[1, 0, :2] = solid[3, 0, 1] = False
    return blocks([0, 1, 1.9, 2.5, 3.3, 4], [0, 0.2], [0, 0.9, 2.1, 2.5], solid[:, :, :3])


@pytest.mark.parametrize('turn', [np.eye(3), TURN], ids=['straight', 'turned'])
@pytest.mark.parametrize('scale', [1.0, 0.01, 30.0])
def test_a_wall_is_few_boxes_and_exactly_the_wall(wall, turn, scale):
    points, faces = wall
    found = parts((scale * points @ turn.T, faces))
    assert len(found) <= 7 and all(part.axes is not None for part in found)
    assert sum(part.volume for part in found) == pytest.approx((4 * 2.5 - 0.9 * 2.1 - 0.8 * 1.2) * 0.2 * scale**3)
    for x, z, full in ((0.99, 1, 1), (1.01, 1, 0), (1.89, 2.09, 0), (1.45, 2.11, 1), (2.51, 0.91, 0), (2.9, 0.89, 1)):
        assert covers(found, scale * turn @ [x, 0.1, z]) == full


def test_a_wall_that_is_a_little_crooked_is_boxes_too(wall):
    """What is not quite straight, by 4 mm of 4 m, is no slope either."""
    points, faces = wall
    bevelled = points.copy()
    rng = np.random.default_rng(0)
    bevelled[:, :2] += rng.uniform(-0.004, 0.004, bevelled[:, :2].shape)  # no face is straight any more
    found = parts((bevelled, faces))
    assert len(found) <= 7 and all(part.axes is not None for part in found)
    assert not covers(found, np.array([1.45, 0.1, 1.0]))


def test_a_box_with_cut_off_edges_is_a_box():
    """A prism of eight corners: a square of 1 m without 8 mm at each corner."""
    corners = np.array([(0.5, 0.492), (0.492, 0.5), (-0.492, 0.5), (-0.5, 0.492), (-0.5, -0.492), (-0.492, -0.5)])
    corners = np.concatenate([corners, [(0.492, -0.5), (0.5, -0.492)]])
    points = np.concatenate([np.c_[corners, np.zeros(8)], np.c_[corners, np.ones(8)]])
    sides = [[k, (k + 1) % 8, (k + 1) % 8 + 8, k + 8] for k in range(8)]
    quads = np.array(
        sides + [[0, 7, 6, 5], [0, 5, 4, 3], [0, 3, 2, 1], [8, 9, 10, 11], [8, 11, 12, 13], [8, 13, 14, 15]]
    )
    (part,) = parts((points, np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])))
    assert part.axes is not None and part.volume == pytest.approx(1.0)


def ball(radius: float, dent: float, revolved: Callable[..., Mesh]) -> Mesh:
    """A ball whose surface goes in and out by `dent` between the poles."""
    angles = np.linspace(0.01, np.pi - 0.01, 60)
    wavy = radius - dent * (1 - np.cos(8 * angles)) / 2
    return revolved([(r * np.sin(a), -r * np.cos(a)) for r, a in zip(wavy, angles, strict=True)], 60, closed=True)


@pytest.mark.slow
def test_what_nearly_fills_its_hull_is_that_with_few_vertices(revolved):
    (part,) = parts(ball(0.3, 0.006, revolved))
    assert len(part.vertices) <= HULL_VERTICES and part.volume == pytest.approx(4 / 3 * np.pi * 0.027, rel=0.15)
    assert isinstance(parts_of(piece_of(ball(0.3, 0.1, revolved))), Solid)


def test_a_hole_through_a_thin_thing_stays_open(revolved):
    """It is less deep than the tolerance, 0.04 times 2 m, but wider than twice that."""
    disc = [(1.0, -0.03), (1.0, 0.03)]
    open_wide = piece_of(revolved([(0.2, -0.03), *disc, (0.2, 0.03)], 40, closed=True))
    assert isinstance(parts_of(open_wide), Solid)
    open_little = piece_of(revolved([(0.02, -0.03), *disc, (0.02, 0.03)], 40, closed=True))
    assert not isinstance(parts_of(open_little), Solid)


@pytest.mark.nightly
def test_what_is_left_to_coacd_is_simple_and_its_tolerance_relative_up_to_a_limit(bowl):
    points, faces = bowl(0.15, 0.012, steps=40, count=100)
    for scale, tolerance in ((1.0, 0.04 * 0.3), (0.01, 0.04 * 0.003), (100.0, TOLERANCE)):
        solid = parts_of(piece_of((scale * points, faces)))
        assert isinstance(solid, Solid) and solid.surface.is_closed()
        assert solid.tolerance == pytest.approx(tolerance, rel=0.01)
        assert len(solid.surface.faces) < (1000 if scale < 100 else 8000)


def test_a_curved_sheet_is_some_plates(revolved):
    angles = np.linspace(0.0, np.pi / 2, 25)[1:]
    shade = [(0.2 * np.sin(a), -0.2 * np.cos(a)) for a in angles]
    found = parts(revolved(shade, 60, closed=False))
    assert 10 < len(found) < 80
    area = 2 * np.pi * 0.2**2
    thickness = 0.05 * 0.4
    assert sum(part.volume for part in found) == pytest.approx(area * thickness, rel=0.1)
    highest = np.concatenate([np.linalg.norm(part.vertices, axis=1) for part in found]).max()
    assert highest < 0.2 + 1e-6  # they grow inwards


@pytest.mark.nightly
@pytest.mark.parametrize('turned', [False, True])
def test_simplification_keeps_the_shape_and_its_topology(revolved, turned):
    """A torus stays one."""
    circle = np.arange(80) * 2 * np.pi / 80
    points, faces = revolved([(0.3 + 0.1 * np.cos(a), 0.1 * np.sin(a)) for a in circle], 150, closed=True)
    torus = piece_of((points @ TURN.T if turned else points, faces))
    coarse = collapsed(torus, 0.004)
    assert len(coarse.faces) < len(torus.faces) / 20 and coarse.is_closed()
    assert len(coarse.vertices) - len(coarse.faces) // 2 == 0  # Euler's number: V - E + F with E = 3 F / 2
    assert coarse.volume == pytest.approx(torus.volume, rel=0.1)
    where = coarse.vertices @ TURN if turned else coarse.vertices
    np.testing.assert_allclose(np.hypot(np.hypot(where[:, 0], where[:, 1]) - 0.3, where[:, 2]), 0.1, atol=1e-6)


def test_simplification_keeps_the_outline_of_a_sheet():
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(0, 3, 31), np.linspace(0, 2, 21)))
    cell = np.arange(31 * 21).reshape(21, 31)
    quads = np.stack([cell[:-1, :-1], cell[:-1, 1:], cell[1:, 1:], cell[1:, :-1]], axis=-1).reshape(-1, 4)
    quads = quads[~((x[quads].mean(axis=1) > 1) & (x[quads].mean(axis=1) < 2) & (y[quads].mean(axis=1) < 1))]
    sheet = piece_of((np.stack([x, y, 0 * x], axis=1), np.concatenate([quads[:, :3], quads[:, [0, 2, 3]]])))
    coarse = collapsed(sheet, 0.01)
    assert len(coarse.faces) < 30
    sides = coarse.vertices[coarse.faces]
    areas = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])[:, 2] / 2
    assert (areas > 0).all() and areas.sum() == pytest.approx(6 - 1, rel=0.01)
