"""Sampled episodes, and the commands that write them and draw maps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scenes import AGENT, box, map_of, room
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.model.asset_paths import resolve
from internutopia.navigation import (
    Agent,
    MapPicture,
    NavigationMap,
    Ranges,
    sample_object_episodes,
    sample_point_episodes,
)
from internutopia.navigation.episodes import read_episodes
from internutopia.navigation.picture import FREE, NO_ROOM, OBSTACLE, OTHER_ISLAND, RAISED, floor_plan

Write = Callable[[str, str], str]

TABLE = box((4.0, 5.0), (3.0, 3.6), (0.0, 0.7), name='table')
LABELS = '<custom><text name="semantics:table" data="table"/><text name="semantics:lamp" data="lamp"/></custom>'
HOME = room(6.0, 4.0, box((2.0, 2.2), (0.0, 3.0), (0.0, 1.5)), TABLE)


@pytest.fixture
def home(write_model: Write) -> str:
    """A room with a table and a wall that leaves a way of 1 m, and a lamp that nobody can come near."""
    lamp = '<geom name="lamp" type="sphere" size="0.1" pos="3 2 1.9"/>'
    return write_model('home', f'<worldbody>{HOME}{lamp}</worldbody>{LABELS}')


@pytest.mark.slow
def test_places_are_reachable_as_far_as_they_say_and_repeatable(home: str) -> None:
    ranges = Ranges(distance=(2.0, 5.0), ratio=(1.2, 3.0))
    episodes = sample_point_episodes(home, AGENT, 20, seed=1, ranges=ranges)
    found = NavigationMap.of_scene(home, AGENT)
    for episode in episodes:
        start, goal = np.array(episode.start_position), np.array(episode.goals[0].position)
        assert found.is_free([start, goal]).all()
        length = episode.geodesic_distance
        assert length == pytest.approx(found.distance_field(goal).distances(start)[0], abs=0.002)
        assert length is not None and 2.0 <= length <= 5.0 and 1.2 <= length / np.linalg.norm(goal - start) <= 3.0
    assert episodes == sample_point_episodes(home, AGENT, 20, seed=1, ranges=ranges)
    assert episodes[:5] == sample_point_episodes(home, AGENT, 5, seed=1, ranges=ranges)
    assert episodes != sample_point_episodes(home, AGENT, 20, seed=2, ranges=ranges)
    assert len({episode.start_yaw for episode in episodes}) == 20


def starts(scene: str | Path) -> list[tuple[object, float]]:
    return [(each.start_position, each.start_yaw) for each in sample_point_episodes(str(scene), AGENT, 2, seed=1)]


@pytest.mark.slow
def test_episodes_of_a_scene_are_the_same_however_its_path_is_given(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built_in = [((-1.1259, -0.9012, 0.0), 1.9259), ((0.8152, -0.2085, 0.0), 1.226)]
    assert starts('scenes/rooms.xml') == starts(resolve('scenes/rooms.xml')) == built_in
    monkeypatch.chdir(Path(home).parent)
    found = starts(home)
    assert found == starts(Path(home).name) == starts(f'../{Path(home).parent.name}/{Path(home).name}')
    other = tmp_path / 'other.xml'
    other.write_text(Path(home).read_text())
    assert starts(other) != found


@pytest.mark.slow
def test_long_robots_start_where_they_can_turn(write_model: Write) -> None:
    """Two halls of 3 x 3 m with a door of 0.9 m: an agent of 0.26 m goes through it, and turns 0.48 m from walls."""
    walls = box((3.0, 3.1), (0.0, 1.0), (0.0, 2.0)), box((3.0, 3.1), (1.9, 3.0), (0.0, 2.0))
    home = write_model('halls', f'<worldbody>{room(6.1, 3.0, *walls)}</worldbody>')
    agent = Agent(radius=0.26, height=0.45, step_height=0.02, turning_radius=0.48)
    episodes = sample_point_episodes(home, agent, 30)
    starts = np.array([episode.start_position for episode in episodes])
    goals = np.array([episode.goals[0].position for episode in episodes])
    posts = np.clip(starts[:, None, :2], [[3.0, 0.0], [3.0, 1.9]], [[3.1, 1.0], [3.1, 3.0]])  # what is nearest of them
    posts_away = np.linalg.norm(starts[:, None, :2] - posts, axis=-1)
    walls_away = np.minimum(np.minimum(starts[:, 0], 6.1 - starts[:, 0]), np.minimum(starts[:, 1], 3.0 - starts[:, 1]))
    assert min(posts_away.min(), walls_away.min()) >= 0.48 - 1e-4  # they are rounded
    assert {*map(tuple, (np.stack([starts[:, 0], goals[:, 0]], axis=1) > 3.05).tolist())} >= {
        (True, False),
        (False, True),
    }


def test_objects_are_gone_to_where_they_are_seen(home: str) -> None:
    episodes = sample_object_episodes(home, AGENT, 5)
    found = NavigationMap.of_scene(home, AGENT)
    for episode in episodes:
        (goal,) = episode.goals
        assert goal.category == 'table' and goal.position == pytest.approx((4.5, 3.3, 0.35))
        points = np.array(goal.view_points)
        assert len(points) > 5 and found.is_free(points).all()
        away = np.maximum(np.maximum([4.0, 3.0] - points[:, :2], points[:, :2] - [5.0, 3.6]), 0.0)
        assert (np.linalg.norm(away, axis=1) <= 1.0).all()
        expected = found.distance_field(points).distances([episode.start_position])[0]
        assert episode.geodesic_distance == pytest.approx(expected, abs=0.002)


def test_what_is_behind_a_wall_is_not_seen(write_model: Write) -> None:
    """A vase that stands against a wall can be seen from one side only."""
    vase = box((2.3, 2.5), (1.4, 1.6), (0.0, 0.3), name='vase')
    text = '<custom><text name="semantics:vase" data="vase"/></custom>'
    wall = box((2.0, 2.2), (0.0, 2.5), (0.0, 1.5))
    file = write_model('wall', f'<worldbody>{room(4.0, 4.0, wall, vase)}</worldbody>{text}')
    points = np.array(sample_object_episodes(file, AGENT, 1)[0].goals[0].view_points)
    assert (points[:, 0] > 2.2).all()


@pytest.mark.slow
def test_what_cannot_be_sampled_says_why(home: str, write_model: Write) -> None:
    with pytest.raises(ValueError, match='found 0 of 3 episodes with a distance of 50 to 60 m and a ratio'):
        sample_point_episodes(home, AGENT, 3, ranges=Ranges(distance=(50.0, 60.0)))
    with pytest.raises(ValueError, match=r"nothing is labelled as 'tabel'; did you mean 'table'\?"):
        sample_object_episodes(home, AGENT, 3, categories=['tabel'])
    with pytest.raises(ValueError, match='no free position is near enough to see any of: lamp'):
        sample_object_episodes(home, AGENT, 3, categories=['lamp'])
    bare = write_model('bare', f'<worldbody>{room(2.0, 2.0)}</worldbody>')
    with pytest.raises(ValueError, match='it has no labelled objects'):
        sample_object_episodes(bare, AGENT, 3)
    with pytest.raises(ValueError, match=r'distance must be a range \(low, high\) of finite numbers from 0 on'):
        Ranges(distance=(3.0, 1.0))


def test_floor_plan_and_picture() -> None:
    closet = box((5.0, 6.0), (1.0, 1.1), (0.0, 2.0)), box((5.0, 5.1), (0.0, 1.0), (0.0, 2.0))
    found = map_of(room(6.0, 4.0, TABLE, *closet))
    plan = floor_plan(found)

    def kind(x: float, y: float) -> int:
        i, j = np.floor((np.array([x, y]) - plan.low) / plan.spacing).astype(int)
        return int(plan.kinds[i, j])

    places = {
        (2.0, 2.0): FREE,
        (0.1, 2.0): NO_ROOM,
        (4.1, 3.1): RAISED,
        (5.55, 0.5): OTHER_ISLAND,
        (-0.02, 2.0): OBSTACLE,
    }
    assert {place: kind(*place) for place in places} == places
    picture = MapPicture(found, pixels_per_metre=40)
    picture.add_path([[1.0, 1.0, 0.0], [3.0, 1.0, 0.0]], color='#ff0000')
    pixels = picture.array()
    assert pixels.shape == (round(4.2 * 40), round(6.2 * 40), 3)
    (column, row), *_ = np.round(picture.pixels([[2.0, 1.0, 0.0]])).astype(int)
    assert (column, row) == (84, 124)
    assert pixels[row, column].tolist() == [255, 0, 0] and (pixels[row - 10, column] > 240).all()


@pytest.mark.slow
def test_commands(home: str, tmp_path: Path) -> None:
    out, picture = tmp_path / 'out' / 'e.yaml', tmp_path / 'map.png'
    command = ['episodes', home, '--robot', 'jetbot', '--count', '2', '--distance', '1', '3', '--out', str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert '2 episodes, ways of' in result.output
    assert [episode.scene for episode in read_episodes(out)] == [home, home]
    assert CliRunner().invoke(app, ['map', home, '--robot', 'jetbot', '--out', str(picture)]).exit_code == 0
    assert Image.open(picture).size == (round(6.2 * 80), round(4.2 * 80))


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--robot', 'jetbott'], "there is no built-in robot 'jetbott'; did you mean 'jetbot' or 'JetbotRobot'?"),
        (['--category', 'table'], '--category applies to --task objectnav'),
        (['--distance', '3', '1'], 'distance must be a range'),
        (['--step-height', '5'], 'step_height = 5.0 m must be below height'),
    ],
)
def test_mistakes_in_commands_are_told(home: str, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ['episodes', home, *arguments])
    assert result.exit_code == 2 and message in result.output
