"""Map grids against the maps that they are made of, and a room worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scenes import AGENT, box, map_of, room

from internutopia.navigation.grids import MapGrids

CELL = 0.05
ROOM = map_of(room(6.0, 4.0, box((2.0, 4.0), (0.0, 3.0), (0.0, 1.0))))
SMALL = map_of(room(2.0, 2.0))


def test_lookups_agree_with_the_maps() -> None:
    grids, rng = MapGrids([SMALL, ROOM]), np.random.default_rng(0)
    numbers = np.repeat([0, 1], 200)
    points = np.concatenate([each.sample(200, rng) for each in (SMALL, ROOM)])
    fields = [SMALL.distance_field([1.0, 1.0, 0.0]), ROOM.distance_field([5.0, 1.0, 0.0])]
    found = grids.distances(numbers, points, grids.table([field.cell_distances for field in fields]), numbers)
    expected = np.concatenate([fields[0].distances(points[:200]), fields[1].distances(points[200:])])
    np.testing.assert_allclose(found, expected, atol=CELL)
    assert grids.free(numbers, points).mean() > 0.97  # to the nearest cell


def test_what_is_off_the_map_is_infinitely_far_and_not_free() -> None:
    grids = MapGrids([ROOM])
    table = grids.table([ROOM.distance_field([5.0, 1.0, 0.0]).cell_distances])
    points = np.array([[3.0, 1.5, 0.0], [99.0, 1.0, 0.0], [1.0, 1.0, 5.0], [0.1, 1.0, 0.0]])
    one = np.zeros(4, int)
    distances = grids.distances(one, points, table, one)
    assert np.isinf(distances[:3]).all()  # within the wall, beyond the room, above the floor's reach
    edge = grids.distances(one[:1], np.array([[AGENT.radius, 1.0, 0.0]]), table, one[:1])[0]
    assert distances[3] == pytest.approx(edge + 0.1, abs=CELL)  # leans against a wall
    assert not grids.free(one, points).any()


def test_crops_are_turned_with_the_robot() -> None:
    grids = MapGrids([ROOM])
    turned = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])  # along x, and back
    crop = grids.crop(np.zeros(2, int), np.tile([1.0, 2.0, 0.3], (2, 1)), turned, 2.0, 0.2)
    assert crop.shape == (2, 10, 10) and crop.dtype == np.float32
    ahead = 0.9 - 0.2 * np.arange(10)  # m; the axis stays 0.2 m from the wall 1 m ahead, and from the one 1 m behind
    np.testing.assert_array_equal(crop[0, :, 5], np.abs(ahead) > 0.8)
    np.testing.assert_array_equal(crop[1], crop[0, ::-1, ::-1])
    above = grids.crop(np.zeros(1, int), np.array([[1.0, 2.95, 0.3]]), turned[:1], 2.0, 0.2)[0]
    assert above[0].tolist() == [1, 0, 0, 0, 1, 1, 1, 1, 1, 1]  # between the end of the wall and that of the room
