"""Maps on disk: found again, and made anew where they are damaged or something has changed."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from scenes import AGENT, box, room

from internutopia.navigation import Agent, NavigationMap
from internutopia.navigation import map as maps


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scene file, with an empty cache; every map is worth keeping."""
    monkeypatch.setenv('INTERNUTOPIA_CACHE_PATH', str(tmp_path / 'cache'))
    monkeypatch.setattr(maps, 'LEAST_TIME', 0.0)
    return written(tmp_path / 'scene.xml', 2.0)


def written(file: Path, x: float) -> Path:
    wall = box((x, x + 1.0), (0.0, 2.0), (0.0, 1.0))
    file.write_text(f'<mujoco><worldbody>{room(6.0, 4.0, wall)}</worldbody></mujoco>')
    return file


def cached(scene: Path) -> list[Path]:
    return sorted((scene.parent / 'cache' / 'maps').glob('*.npz'))


def lengths(found: NavigationMap) -> np.ndarray:
    return found.distance_field([0.5, 0.5, 0.0]).distances([[5.5, 0.5, 0.0], [1.5, 3.5, 0.0]])


@pytest.mark.slow
def test_a_map_that_was_made_is_read(scene: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = NavigationMap.of_scene(scene, AGENT)
    assert len(cached(scene)) == 1
    monkeypatch.setattr(NavigationMap, 'of_model', None)  # not called
    second = NavigationMap.of_scene(scene, AGENT)
    np.testing.assert_array_equal(first.points, second.points)
    np.testing.assert_array_equal(first.islands, second.islands)
    np.testing.assert_array_equal(lengths(first), lengths(second))
    one, other = (each.shortest_path([0.5, 0.5, 0.0], [[5.5, 0.5, 0.0]])[0] for each in (first, second))
    np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_another_scene_or_agent_has_another_map(scene: Path) -> None:
    first = NavigationMap.of_scene(scene, AGENT)
    slim = NavigationMap.of_scene(scene, Agent(0.1, 1.0, 0.2))
    assert lengths(slim)[0] < lengths(first)[0]
    moved = NavigationMap.of_scene(written(scene, 3.5), AGENT)
    assert moved.is_free([2.5, 1.0, 0.0])[0] and not first.is_free([2.5, 1.0, 0.0])[0]
    assert len(cached(scene)) == 3


@pytest.mark.parametrize('damage', [lambda content: content[: len(content) // 2], lambda content: b'nothing'])
def test_a_damaged_file_is_made_anew_with_one_warning(
    scene: Path, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    first = NavigationMap.of_scene(scene, AGENT)
    [file] = cached(scene)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        second = NavigationMap.of_scene(scene, AGENT)
    said = [record.getMessage() for record in caplog.records if str(file) in record.getMessage()]
    assert len(said) == 1 and 'is damaged, the navigation map is computed again' in said[0]
    np.testing.assert_array_equal(lengths(first), lengths(second))
    assert file.stat().st_size == len(whole)
