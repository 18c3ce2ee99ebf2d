"""Navigation episodes and their YAML form."""

import logging
import math

import numpy as np
import pytest

from internutopia.navigation.episodes import NavigationEpisode, NavigationGoal, read_episodes, write_episodes


def episode(name='0', **values):
    return NavigationEpisode(
        episode_id=name, scene='a.usd', start_position=(1, 2, 0), goals=[NavigationGoal(position=(4, 2, 0))], **values
    )


def test_episodes_come_back_from_their_file_as_they_were(tmp_path):
    full = episode(
        start_yaw=1.5,
        reference_path=[(1, 2, 0), (4, 2, 0)],
        instruction='Geh zur Tür',
        geodesic_distance=3.0,
        info={'trajectory': 7},
    ).update(goals=[NavigationGoal(position=(4, 2, 0.5), radius=1.0, category='chair', view_points=[(3, 2, 0)])])
    write_episodes(tmp_path / 'e.yaml', [full, episode('1')])
    assert read_episodes(tmp_path / 'e.yaml') == [full, episode('1')]


def test_yaw_is_a_turn_about_z():
    w, x, y, z = episode(start_yaw=math.pi / 2).start_orientation
    assert (x, y) == (0, 0)
    np.testing.assert_allclose((w, z), math.sqrt(0.5))


def test_distances_are_measured_to_view_points_where_there_are_some():
    goals = [
        NavigationGoal(position=(4, 2, 1), view_points=[(3, 2, 0), (5, 2, 0)]),
        NavigationGoal(position=(0, 1, 0)),
    ]
    assert episode().update(goals=goals).goal_points.tolist() == [[3, 2, 0], [5, 2, 0], [0, 1, 0]]


def test_wrong_episodes_are_left_out_and_told_once(tmp_path, caplog):
    (tmp_path / 'e.yaml').write_text("""
episodes:
- {episode_id: good, scene: a.usd, start_position: [0, 0, 0], goals: [{position: [1, 0, 0]}]}
- {episode_id: short, scene: a.usd, start_position: [0, 0], goals: [{position: [1, 0, 0]}]}
- {episode_id: nowhere, scene: a.usd, start_position: [0, 0, .nan], goals: [{position: [1, 0, 0]}]}
- {episode_id: idle, scene: a.usd, start_position: [0, 0, 0], goals: []}
- {episode_id: good, scene: a.usd, start_position: [0, 0, 0], goals: [{position: [2, 0, 0]}]}
- 3
""")
    with caplog.at_level(logging.WARNING):
        episodes = read_episodes(tmp_path / 'e.yaml')
    assert [each.episode_id for each in episodes] == ['good']
    (record,) = caplog.records
    lines = record.getMessage().splitlines()
    assert lines[0] == f'{tmp_path}/e.yaml: 5 of 6 episodes are left out'
    assert lines[1].endswith(
        "episode 1 (episode_id 'short'): start_position: Value error, expected 3 numbers (x, y, z), got [0, 0]"
    )
    assert lines[2].startswith("  episode 2 (episode_id 'nowhere'): start_position.2: Input should be a finite number")
    assert lines[3].startswith("  episode 3 (episode_id 'idle'): goals: List should have at least 1 item")
    assert lines[4] == "  episode 4 (episode_id 'good'): scene 'a.usd' already has an episode with this id"
    assert lines[5] == '  episode 5: expected a mapping, got 3'


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('episodes: 3', "expected a list 'episodes', got int"),
        ('episodes: []', 'it has no episodes'),
        ('episodes: [1]', 'no episode is right'),
        ('episodes: [', 'not a YAML file'),
    ],
)
def test_a_file_without_a_right_episode_is_refused(tmp_path, text, message):
    (tmp_path / 'e.yaml').write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_episodes(tmp_path / 'e.yaml')
    assert 'e.yaml' in str(caught.value)
