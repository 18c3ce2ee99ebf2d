"""Convex decomposition, its cache and its fallbacks."""

from __future__ import annotations

import importlib.util
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.model.meshes import decomposition
from internutopia.model.meshes.coacd_worker import CoacdProcess
from internutopia.model.meshes.convex_parts import STATIC_TOLERANCE, Solid, parts_of
from internutopia.model.meshes.decomposition import ConvexPart, decompose
from internutopia.model.meshes.sheets import FLAT_THICKNESS
from internutopia.model.meshes.surfaces import Surface, pieces, simplified
from internutopia.util.child_process import ChildProcess
from internutopia.util.log import recorded_warnings

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
def trough(trough: Any) -> Any:
    """Skewed, so that it is not made of boxes: it needs CoACD."""
    points, faces = trough
    return points + np.outer(points[:, 0], [0.0, 0.5, 0.0]), faces


@pytest.fixture
def skewed_room(room: Any) -> Any:
    points, faces = room
    return points + np.outer(points[:, 0], [0.0, 0.5, 0.0]), faces


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_those_who_ask_at_the_same_time_share_the_work(cache, trough, runs):
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(decompose, [[trough]] * 3))
    assert len(runs) == 1 and len({len(parts) for (parts,) in results}) == 1


@pytest.mark.nightly
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


@pytest.mark.slow
def test_without_a_cache_there_is_a_warning(tmp_path, monkeypatch, trough, caplog):
    (tmp_path / 'file').touch()
    monkeypatch.setenv('INTERNUTOPIA_CACHE_PATH', str(tmp_path / 'file'))
    (parts,) = decompose([trough])
    assert len(parts) in (3, 4)
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
        patch.syspath_prepend(tmp_path)
        (parts,) = decompose([trough])
    assert len(parts) == 1 and parts[0].volume == pytest.approx(0.3 * 0.2 * 0.4)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert message in warning
    assert not list(cache.glob('*.npz'))


@pytest.fixture
def use_coacd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts another module in the place of CoACD."""

    def use(module: str) -> None:
        (tmp_path / 'coacd.py').write_text(
            f'set_log_level = print\ndef Mesh(*mesh): return mesh\ndef run_coacd(*mesh, **options):\n    {module}\n'
        )
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv('PYTHONPATH', str(tmp_path))  # of programs that decompose
        monkeypatch.setenv('PYTHONDONTWRITEBYTECODE', '1')  # of a module that is another one within the same second

    return use


@pytest.mark.slow
def test_what_crashes_coacd_is_preprocessed(cache, trough, use_coacd, runs, caplog):
    use_coacd('return [mesh[0]] * 3 if options["preprocess_mode"] == "auto" else __import__("os").abort()')
    (parts,) = decompose([trough])
    assert len(parts) == 3 and len(runs) == 2 and not caplog.records and len(list(cache.glob('*.npz'))) == 1


def test_what_is_too_much_work_becomes_plates_that_are_kept(cache, trough, runs, monkeypatch, caplog):
    monkeypatch.setattr(decomposition, 'MAX_WORK', 1)
    (parts,) = decompose([trough], ['/World/trough'])
    (warning,) = [record.getMessage() for record in caplog.records]
    reason = 'plates along their faces, as they are too much work for CoACD: '
    assert reason + '/World/trough (0.3 x 0.35 x 0.4 m, ' in warning
    assert 'triangles). If their size is wrong, change the scale' in warning
    assert not within((0.15, 0.1, 0.2), parts)  # between the walls
    for inside in ((0.001, 0.1, 0.2), (0.099, 0.1, 0.2), (0.299, 0.1, 0.2), (0.15, 0.1, 0.099)):
        assert within(inside, parts)
    (again,) = decompose([trough], ['/World/trough'])
    assert len(again) == len(parts) and not runs and len(caplog.records) == 1


@pytest.mark.slow
def test_a_mesh_of_many_pieces_has_those_decomposed_that_are_least_work(cache, trough, skewed_room, runs, monkeypatch):
    points, faces = trough
    solids = [parts_of(pieces(*mesh)[0]) for mesh in (trough, skewed_room)]
    works = [solid.work for solid in solids if isinstance(solid, Solid)]
    monkeypatch.setattr(decomposition, 'MAX_MESH_WORK', max(works))
    walls = skewed_room[0] + [5, 0, 0], skewed_room[1]
    both = np.concatenate([walls[0], points]), np.concatenate([walls[1], faces + len(walls[0])])
    decompose([both])
    ((vertices, *_),) = runs
    assert works[0] < works[1] and np.ptp(vertices, axis=0).max() < 1  # the trough


def test_work_is_told_from_the_shape(blocks):
    """A cube of 12 triangles: with a tolerance of a tenth of its edge, 12 x 6 x 10 at any scale."""
    points, faces = blocks(CUBE, CUBE, CUBE, SOLID)
    for scale in (0.01, 1.0, 100.0):
        assert Solid(Surface(scale * points, faces), 0.1 * scale).work == pytest.approx(720)
    assert Solid(Surface(100 * points, faces), 0.1).work == pytest.approx(72_000)


@pytest.mark.nightly
def test_what_takes_too_long_becomes_plates_that_are_not_kept(cache, trough, use_coacd, runs, monkeypatch, caplog):
    monkeypatch.setattr(decomposition, 'MAX_SECONDS', 1)
    use_coacd('while True: pass')
    with recorded_warnings() as warnings:
        (parts,) = decompose([trough], ['/World/trough'])
    assert not within((0.15, 0.1, 0.2), parts) and not list(cache.glob('*.npz'))
    (warned,) = warnings
    assert 'as they take CoACD longer than 1 s, which is tried again next time: /World/trough' in warned.text
    assert not warned.lasting
    use_coacd('return [mesh[0]] * 3')
    assert len(decompose([trough])[0]) == 3 and len(runs) == 2 and len(list(cache.glob('*.npz'))) == 1


@pytest.mark.nightly
def test_a_process_that_was_too_slow_is_replaced(cache, trough, skewed_room, use_coacd, monkeypatch, caplog):
    monkeypatch.setattr(decomposition, 'MAX_SECONDS', 1)
    monkeypatch.setattr(decomposition, '_core_count', lambda: 1)
    use_coacd('return [mesh[0]] if len(mesh[0][0]) < 50 else sum(range(10**15))')
    walls, thing = decompose([skewed_room, trough], ['walls', 'thing'])
    assert len(walls) > 10 and len(thing) == 1
    (warning,) = [record.getMessage() for record in caplog.records]
    assert ': walls (2.2 x 3.3 x 0.6 m' in warning and 'thing' not in warning


def test_a_mesh_of_too_many_parts_becomes_plates(cache, blocks, runs, monkeypatch, caplog):
    monkeypatch.setattr(decomposition, 'MAX_PARTS', 5)
    points, faces = blocks(CUBE, CUBE, CUBE, SOLID)
    rows = [(np.concatenate([points + [2 * k, 0, 0] for k in range(n)]), n) for n in (5, 6)]
    meshes = [(row, np.concatenate([faces + 8 * k for k in range(n)])) for row, n in rows]
    few, many = decompose(meshes, ['few', 'many'])
    assert len(few) == 5 and len(many) == 6 * 6 and not runs
    assert not within((1.5, 0.5, 0.5), many) and within((2.02, 0.5, 0.5), many)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert 'as they would have more than 5 convex parts: many (11 x 1 x 1 m, 72 triangles)' in warning


@pytest.mark.slow
def test_plates_are_taken_if_they_are_fewer_than_many_parts(cache, trough, skewed_room, use_coacd, monkeypatch, caplog):
    use_coacd('return [mesh[0]] * 101')
    walls, thing = decompose([skewed_room, trough])
    assert 10 < len(walls) < 60 and 5 < len(thing) < 20 and not caplog.records
    assert not within((0.0, 0.0, 0.3), walls) and not within((0.15, 0.1, 0.2), thing)
    monkeypatch.setattr(decomposition, '_FORMAT', -1)  # nothing is in the cache
    use_coacd('return [mesh[0]] * 100')
    assert [len(parts) for parts in decompose([skewed_room, trough])] == [100, 100]


@pytest.mark.slow
@pytest.mark.parametrize(
    'busy',
    [
        pytest.param('__import__("time").sleep(1000)', id='others run beside it'),
        pytest.param('sum(range(10**15))', id='nothing else runs'),
    ],
)
def test_a_process_ends_with_its_parent(cache, trough, use_coacd, tmp_path, busy):
    """Although it is in a session of its own, and the parent is killed."""
    file, mesh = tmp_path / 'pid', tmp_path / 'mesh'
    mesh.write_bytes(pickle.dumps(trough))
    use_coacd(f'open({str(file)!r}, "w").write(str(__import__("os").getpid()) + "."); {busy}')
    code = f"""
import pickle
from internutopia.model.meshes.decomposition import decompose
decompose([pickle.loads(open({str(mesh)!r}, 'rb').read())])
"""
    parent = subprocess.Popen([sys.executable, '-c', code])
    try:
        wait_for(lambda: file.is_file() and file.read_text().endswith('.'))
        status = Path('/proc', file.read_text().strip('.'), 'stat')
        assert is_running(status)
    finally:
        parent.kill()
        parent.wait()
    wait_for(lambda: not is_running(status))


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait long enough for a machine that is busy."""
    until = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_running(status: Path) -> bool:
    """Whether a process is there and not a zombie that nobody has asked for; `status` is its file in `/proc`."""
    try:
        return status.read_text().rpartition(')')[2].split()[0] != 'Z'
    except (FileNotFoundError, ProcessLookupError):
        return False


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
    assert 'mesh 0: 1800 triangles' in message and '300' in message
    assert len(parts) < 100 and not runs
    assert sum(part.volume for part in parts) == pytest.approx(9 * FLAT_THICKNESS, rel=0.02)


def test_a_coarse_tolerance_takes_a_keyboard_for_a_box(cache, blocks, runs):
    """A body with 4 x 10 keys that touch nothing, 8 mm high and 8 mm apart."""
    body = blocks([0.0, 0.3], [0.0, 0.12], [0.0, 0.02], SOLID)
    key = blocks([0.0, 0.02], [0.0, 0.02], [0.021, 0.028], SOLID)
    meshes = [body] + [(key[0] + (0.01 + 0.028 * i, 0.004 + 0.028 * j, 0), key[1]) for i, j in np.ndindex(10, 4)]
    starts = np.cumsum([0, *(len(points) for points, _ in meshes[:-1])])
    keyboard = (
        np.concatenate([points for points, _ in meshes]),
        np.concatenate([faces + start for (_, faces), start in zip(meshes, starts, strict=True)]),
    )
    fine, coarse = decompose([keyboard, keyboard], finest=[0.0, STATIC_TOLERANCE])
    assert len(fine) == 41 and len(coarse) == 1 and not runs
    assert coarse[0].volume == pytest.approx(0.3 * 0.12 * 0.028, rel=0.05)


@pytest.mark.slow
def test_a_coarse_tolerance_keeps_things_hollow(cache, room, trough, revolved):
    tray = revolved(
        [(0.001, 0.0), (0.15, 0.0), (0.15, 0.08), (0.14, 0.08), (0.14, 0.01), (0.001, 0.01)], 32, closed=True
    )
    for mesh, free in ((room, (0, 0, 0.3)), (trough, (0.15, 0.1 + 0.075, 0.3)), (tray, (0, 0, 0.06))):
        (parts,) = decompose([mesh], finest=[STATIC_TOLERANCE])
        assert len(parts) > 2 and not within(free, parts)


@pytest.mark.slow
def test_the_slowest_mesh_is_named(cache, trough, blocks, caplog):
    caplog.set_level('INFO', logger='internutopia')
    decompose([trough, blocks(CUBE, CUBE, CUBE, SOLID)], ['/World/trough', '/World/cube'])
    (record,) = (each for each in caplog.records if each.msg == decomposition.DECOMPOSED)
    assert record.getMessage().startswith('meshes were decomposed (2); the slowest is /World/trough, it took ')


@pytest.mark.slow
def test_an_interruption_keeps_what_was_decomposed(cache, trough, blocks, monkeypatch):
    split = decomposition._split

    def interrupted(job: Any, *limits: Any) -> Any:
        if job.name == 'fourth':
            raise KeyboardInterrupt
        return split(job, *limits)

    monkeypatch.setattr(decomposition, '_split', interrupted)
    cubes = [blocks(np.multiply(CUBE, size), CUBE, CUBE, SOLID) for size in (1.0, 2.0, 3.0)]
    with pytest.raises(KeyboardInterrupt):
        decompose([cubes[0], trough, *cubes[1:]], ['first', 'second', 'third', 'fourth'])
    assert len(list(cache.glob('*.npz'))) == 3


def test_much_work_is_announced_each_time_and_is_no_warning_of_the_scene(cache, blocks, monkeypatch, caplog):
    monkeypatch.setattr(decomposition, 'MANY_TRIANGLES', 20)
    cubes = [blocks(np.multiply(CUBE, size), CUBE, CUBE, SOLID) for size in (1.0, 2.0)]
    with recorded_warnings() as kept:
        decompose(cubes[:1])
        assert not caplog.records
        decompose([*cubes, blocks(np.multiply(CUBE, 3.0), CUBE, CUBE, SOLID)])
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith('2 meshes of 24 triangles together are decomposed') and 'convexHull' in message
    assert not kept


def test_no_meshes_and_meshes_without_a_surface_have_no_parts(cache, runs: list[Any], blocks: Callable[..., Any]):
    assert decompose([]) == []
    points, faces = blocks(CUBE, CUBE, CUBE, SOLID)
    assert decompose([(points * 0, faces)]) == [[]] and not runs


@pytest.mark.slow
def test_all_cores_share_the_work_and_the_parts_are_the_same(cache, trough, skewed_room, blocks, monkeypatch):
    meshes = [trough, skewed_room, blocks(CUBE, CUBE, CUBE, SOLID)]
    alone = decompose(meshes, finest=[STATIC_TOLERANCE] * 3)
    shutil.rmtree(cache)
    call, called = ChildProcess.call, list[str]()

    def counted(process: Any, timeout: Any, function: Any, *args: Any) -> Any:
        called.append(function.__name__)
        return call(process, timeout, function, *args)

    monkeypatch.setattr(ChildProcess, 'call', counted)
    monkeypatch.setattr(decomposition, 'SHARED_TRIANGLES', 1)
    monkeypatch.setattr(decomposition, '_core_count', lambda: 2)
    shared = decompose(meshes, finest=[STATIC_TOLERANCE] * 3)
    assert called.count('_split') == called.count('_finished') == 3
    for one, other in zip(alone, shared, strict=True):
        assert len(one) == len(other)
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(part.vertices, same.vertices)
