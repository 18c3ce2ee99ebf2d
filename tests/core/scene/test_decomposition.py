from __future__ import annotations

import importlib.util
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.core.scene import decomposition
from internutopia.core.scene.coacd_worker import CoacdProcess
from internutopia.core.scene.decomposition import ConvexPart, decompose
from internutopia.core.scene.surfaces import FLAT_THICKNESS, simplified

if importlib.util.find_spec('coacd') is None:
    pytest.skip('needs coacd', allow_module_level=True)

CUBE = [0.0, 1.0]
SOLID = np.ones((1, 1, 1), bool)
TOLERANCE = 0.01  # [m]; where parts are cut depends on a search


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv('INTERNUTOPIA_CACHE_PATH', str(tmp_path))
    return tmp_path / 'decomposition'


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The meshes that CoACD is run for."""
    run, seen = CoacdProcess.run, []
    monkeypatch.setattr(CoacdProcess, 'run', lambda process, *mesh: (seen.append(mesh), run(process, *mesh))[1])
    return seen


def within(point: Any, parts: list[ConvexPart]) -> bool:
    """Whether a point is in the bounding box of a part, which is the part itself where all corners are square."""
    boxes = ((part.vertices.min(axis=0), part.vertices.max(axis=0)) for part in parts)
    return any((low <= point).all() and (point <= high).all() for low, high in boxes)


def test_walls_stay_hollow_and_a_doorway_open(cache, room):
    (parts,) = decompose([room])
    assert 4 < len(parts) < 12
    for free in ((0, 0, 0.3), (0.95, 0.95, 0.5), (1.05, 0, 0.2), (1.05, 0.27, 0.05), (1.05, -0.27, 0.35)):
        assert not within(free, parts)
    for wall in ((-1.05, 0, 0.3), (0, 1.05, 0.3), (0, -1.05, 0.3), (1.05, 0.6, 0.2), (1.05, 0, 0.5), (1.05, -0.9, 0.5)):
        assert within(wall, parts)
    expected = 0.6 * (2.2**2 - 2**2) - 0.1 * 0.6 * 0.4
    assert sum(part.volume for part in parts) == pytest.approx(expected, rel=0.05)


def test_a_mesh_is_decomposed_once_and_always_in_the_same_way(cache, trough, runs, tmp_path, monkeypatch):
    first, again = decompose([trough, trough])
    (later,) = decompose([trough])
    assert len(runs) == 1 and len(list(cache.glob('*.npz'))) == 1
    monkeypatch.setenv('INTERNUTOPIA_CACHE_PATH', str(tmp_path / 'other'))
    (afresh,) = decompose([trough])
    assert len(runs) == 2
    for other in again, later, afresh:
        assert [part.volume for part in other] == [part.volume for part in first]
        for part, same in zip(first, other, strict=True):
            np.testing.assert_array_equal(part.vertices, same.vertices)


def test_those_who_ask_at_the_same_time_share_the_work(cache, trough, runs):
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(decompose, [[trough]] * 3))
    assert len(runs) == 1 and len({len(parts) for (parts,) in results}) == 1


@pytest.mark.parametrize('damage', [b'nonsense', None])
def test_a_damaged_file_in_the_cache_is_replaced(cache, trough, runs, damage):
    (parts,) = decompose([trough])
    (file,) = cache.glob('*.npz')
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    (again,) = decompose([trough])
    assert len(again) == len(parts) and len(runs) == 2
    decompose([trough])
    assert len(runs) == 2 and not list(cache.glob('*.part'))


def test_without_a_cache_there_is_a_warning(tmp_path, monkeypatch, trough, caplog):
    (tmp_path / 'file').touch()
    monkeypatch.setenv('INTERNUTOPIA_CACHE_PATH', str(tmp_path / 'file'))
    (parts,) = decompose([trough])
    assert len(parts) == 3
    (message,) = [record.getMessage() for record in caplog.records]
    assert str(tmp_path / 'file') in message and 'INTERNUTOPIA_CACHE_PATH' in message


@pytest.mark.parametrize(
    ('module', 'message'),
    [
        ('raise ImportError', 'pip install coacd'),
        ('import os; os._exit(1)', 'died'),
        ('set_log_level = print', 'CoACD'),
    ],
    ids=['missing', 'crash', 'error'],
)
def test_where_coacd_fails_there_is_the_hull_and_nothing_is_kept(
    cache, trough, tmp_path, monkeypatch, caplog, module, message
):
    (tmp_path / 'coacd.py').write_text(module)
    with monkeypatch.context() as patch:
        patch.setenv('PYTHONPATH', str(tmp_path))
        (parts,) = decompose([trough])
    assert len(parts) == 1 and len(parts[0].vertices) == len(trough[0])
    (warning,) = [record.getMessage() for record in caplog.records]
    assert message in warning
    assert not list(cache.glob('*.npz'))


def test_convex_things_that_touch_are_a_part_each(cache, blocks, runs):
    points, faces = blocks(CUBE, CUBE, CUBE, SOLID)
    beside = np.concatenate([points, points + [1, 0, 0]]), np.concatenate([faces, faces + 8])
    (parts,) = decompose([beside])
    assert [part.volume for part in parts] == pytest.approx([1, 1]) and not runs
    corners = points[faces].reshape(-1, 3), np.arange(faces.size).reshape(-1, 3)  # no face shares a vertex
    (parts,) = decompose([corners])
    assert [part.volume for part in parts] == pytest.approx([1]) and not runs


@pytest.mark.parametrize('sides', [1, 2])
def test_a_sheet_with_a_doorway_becomes_three_plates_behind_it(cache, sides, runs):
    """Looking along y at 3 m x 3 m with a gap 1 m wide and 2 m high; each square metre is a quad."""
    points = np.array([[x, 0, z] for z in range(4) for x in range(4)], float)
    quads = np.array([[4 * z + x, 4 * z + x + 1, 4 * z + x + 5, 4 * z + x + 4] for z in range(3) for x in range(3)])
    quads = np.delete(quads, [1, 4], axis=0)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    if sides == 2:
        faces = np.concatenate([faces, faces[:, ::-1]])
    (parts,) = decompose([(points, faces)])
    assert len(parts) == 3 and not runs
    assert sum(part.volume for part in parts) == pytest.approx(7 * FLAT_THICKNESS)
    assert not within((1.5, 0.01, 1.0), parts) and within((1.5, 0.01, 2.5), parts)
    ys = np.concatenate([part.vertices[:, 1] for part in parts])
    assert (ys.min(), ys.max()) == pytest.approx((0, FLAT_THICKNESS))  # the front looks towards -y


def test_the_inside_of_a_room_is_walls_around_it_and_a_small_thing_inside_out_a_mistake(cache, blocks, runs):
    points, faces = blocks(CUBE, CUBE, CUBE, SOLID)
    inwards = faces[:, ::-1]
    walls, thing = decompose([(4 * points, inwards), (points, inwards)])
    assert len(walls) == 6 and not within((2, 2, 2), walls)
    for outside in ((-0.03, 2, 2), (2, 4.03, 2), (2, 2, -0.03)):
        assert within(outside, walls)
    assert [part.volume for part in thing] == pytest.approx([1]) and not runs


def test_a_large_mesh_is_simplified_to_about_the_same_shape():
    angle, height = (a.ravel() for a in np.meshgrid(np.linspace(0, 2 * np.pi, 200), np.linspace(0, np.pi, 100)))
    points = np.stack([np.sin(height) * np.cos(angle), np.sin(height) * np.sin(angle), np.cos(height)], axis=1)
    cell = np.arange(len(points)).reshape(100, 200)
    a, b, c, d = (part.ravel() for part in (cell[:-1, :-1], cell[1:, :-1], cell[1:, 1:], cell[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    ball = simplified(points, faces, 3000)
    assert 1000 < len(ball.faces) <= 3000
    assert ball.is_closed() and ball.volume == pytest.approx(4 / 3 * np.pi, rel=0.05)


def test_a_huge_mesh_is_simplified_before_it_is_decomposed(cache, runs, monkeypatch, caplog):
    monkeypatch.setattr(decomposition, 'MAX_TRIANGLES', 300)
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(0, 3, 31), np.linspace(0, 3, 31)))
    cell = np.arange(31 * 31).reshape(31, 31)
    quads = np.stack([cell[:-1, :-1], cell[:-1, 1:], cell[1:, 1:], cell[1:, :-1]], axis=-1).reshape(-1, 4)
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    (parts,) = decompose([(np.stack([x, y, 0 * x], axis=1), faces)])
    (message,) = [record.getMessage() for record in caplog.records]
    assert '1800 triangles' in message and '300' in message
    assert len(parts) < 100 and not runs
    assert sum(part.volume for part in parts) == pytest.approx(9 * FLAT_THICKNESS, rel=0.02)


def test_no_meshes_and_meshes_without_a_surface_have_no_parts(cache, runs: list[Any], blocks: Callable[..., Any]):
    assert decompose([]) == []
    points, faces = blocks(CUBE, CUBE, CUBE, SOLID)
    assert decompose([(points * 0, faces)]) == [[]] and not runs
