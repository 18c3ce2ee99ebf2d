"""Merging of convex parts: fewer of them, and what is open stays open."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.model.meshes.hulls import Blocks, box_corners, samples
from internutopia.model.meshes.merging import merged
from internutopia.model.meshes.part_cache import ConvexPart

SLACK = 0.02  # m


def box(low: Any, size: Any) -> ConvexPart:
    corners = box_corners(np.array(low, float), np.array(low, float) + size)
    return ConvexPart(corners, float(np.prod(size)), np.eye(3))


@pytest.mark.parametrize(('gap', 'count'), [(0.0, 1), (0.03, 1), (0.05, 2)], ids=['touching', 'narrow', 'wide'])
def test_boxes_become_one_across_gaps_of_less_than_twice_the_slack(gap, count):
    found = merged([box((0, 0, 0), (0.5, 0.2, 0.3)), box((0.5 + gap, 0, 0), (0.5, 0.2, 0.3))], SLACK)
    assert len(found) == count and all(part.axes is not None for part in found)
    whole = 0.06 if count == 2 else 0.06 + 0.06 * gap
    assert sum(part.volume for part in found) == pytest.approx(whole)


def test_a_part_within_another_one_is_dropped():
    (found,) = merged([box((0.1, 0.1, 0.1), (0.1, 0.1, 0.1)), box((0, 0, 0), (1, 1, 1))], SLACK)
    assert found.volume == pytest.approx(1)


def test_books_of_about_the_same_height_become_one_part_and_the_others_do_not():
    heights = [0.25, 0.24, 0.255, 0.245, 0.15, 0.155]
    books = [box((0.03 * k, 0, 0), (0.03, 0.2, height)) for k, height in enumerate(heights)]
    high, low = sorted(merged(books, SLACK), key=lambda part: -part.volume)
    assert high.vertices[:, 0].max() == pytest.approx(0.12) and low.vertices[:, 0].min() == pytest.approx(0.12)
    assert 0.15 <= low.vertices[:, 2].max() <= 0.155


def test_a_corner_and_a_table_stay_as_they_are():
    corner = [box((0, 0, 0), (1, 0.1, 0.1)), box((0, 0.1, 0), (0.1, 0.9, 0.1))]
    legs = [box((x, y, 0), (0.05, 0.05, 0.7)) for x in (0, 0.75) for y in (0, 0.55)]
    assert merged(corner, SLACK) == corner
    table = [box((0, 0, 0.7), (0.8, 0.6, 0.04)), *legs]
    assert merged(table, SLACK) == table


def test_the_wall_of_a_basket_stays_around_its_inside():
    """A ring of 36 plates: neighbours are merged, but however many are, none stands over the ring by more than that."""
    inner, outer, count = 0.13, 0.15, 36
    angles = np.arange(count + 1) * 2 * np.pi / count
    ring = [[r * np.cos(a), r * np.sin(a), z] for a in angles for r in (inner, outer) for z in (0.0, 0.2)]
    points = np.array(ring).reshape(count + 1, 4, 3)
    plates = [ConvexPart(np.concatenate(points[k : k + 2]), 0.0) for k in range(count)]
    found = merged(plates, SLACK)
    assert 4 <= len(found) <= 9
    inside = inner * np.cos(np.pi / count) - SLACK
    for part in found:  # the edges of a part are at its corners and between them
        a, b = np.meshgrid(*[np.arange(len(part.vertices))] * 2)
        along = np.linspace(0, 1, 20)[:, None, None, None]
        chords = along * part.vertices[a] + (1 - along) * part.vertices[b]
        assert np.linalg.norm(chords[..., :2], axis=-1).min() > inside - 1e-3


def test_parts_without_a_neighbour_are_the_same_objects():
    parts = [box((k, 0, 0), (0.5, 0.5, 0.5)) for k in range(3)]
    assert merged(parts, SLACK) == parts and merged([], SLACK) == []


def test_a_wide_floor_is_looked_at_where_its_parts_meet(monkeypatch):
    """Its 25 million points on a grid of the slack are not."""
    looked_at, on_grid = 0, (100 / SLACK) ** 2
    corners = Blocks.corners

    def counted(blocks: Blocks) -> Any:
        nonlocal looked_at
        looked_at += len(blocks.owners)
        return corners(blocks)

    monkeypatch.setattr(Blocks, 'corners', counted)
    halves = [box((0, 0, 0), (100, 50, 0.1)), box((0, 50, 0), (100, 50, 0.1))]
    (floor,) = merged(halves, SLACK)
    assert floor.volume == pytest.approx(1000)
    assert 0 < looked_at < on_grid / 100


@pytest.mark.slow
def test_what_is_merged_is_the_same_when_every_point_is_looked_at(monkeypatch):
    heights = np.random.default_rng(0).uniform(0.2, 0.26, 30)
    books = [box((0.03 * k, 0, 0), (0.03, 0.2, height)) for k, height in enumerate(heights)]
    found = merged(books, SLACK)
    halves = Blocks.halves
    monkeypatch.setattr(Blocks, 'halves', lambda blocks, chosen: halves(blocks, np.ones_like(chosen)))
    expected = merged(books, SLACK)
    assert 1 < len(found) < len(books) and len(found) == len(expected)
    for part, slow in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part.vertices, slow.vertices)


def test_blocks_have_just_the_points_of_samples():
    triangles = np.random.default_rng(0).uniform(0, 1, (5, 3, 3)) * np.array([1, 0.2, 0.05])
    blocks, found = Blocks.over(triangles, 0.07), []
    while len(blocks.owners):
        points, real = blocks.corners()
        found.append(points[real])
        blocks = blocks.halves(np.ones(len(points), bool))
    of_blocks, expected = (
        np.unique(np.round(points, 9), axis=0) for points in (np.concatenate(found), samples(triangles, 0.07))
    )
    np.testing.assert_array_equal(of_blocks, expected)
