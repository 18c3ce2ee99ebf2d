"""Readers of the episode files of others, on small files that were written by hand."""

import copy
import gzip
import json
import logging
import math

import pytest

from internutopia.navigation.habitat import read_habitat, yaw_of_rotation, z_up
from internutopia.navigation.vln_ce import read_vln_ce

HALF = math.sqrt(0.5)

POINT = {
    'episode_id': '7',
    'scene_id': 'mp3d/abc/abc.glb',
    'start_position': [1.0, 0.1, -2.0],
    'start_rotation': [0, HALF, 0, HALF],
    'info': {'geodesic_distance': 4.5, 'difficulty': 'easy'},
    'goals': [{'position': [3.0, 0.1, -4.0], 'radius': None}],
    'shortest_paths': None,
}
OBJECTS = {
    'category_to_task_category_id': {'chair': 0},
    'goals_by_category': {
        'abc.glb_chair': [
            {
                'position': [5.0, 0.6, -1.0],
                'radius': None,
                'object_category': 'chair',
                'view_points': [{'agent_state': {'position': [4.0, 0.1, -1.0], 'rotation': [0, 0, 0, 1]}, 'iou': 0.2}],
            }
        ]
    },
    'episodes': [{**POINT, 'goals': [], 'object_category': 'chair'}] * 2,
}
R2R = {
    'episode_id': 3,
    'trajectory_id': 11,
    'scene_id': 'mp3d/abc/abc.glb',
    'start_position': [1.0, 0.1, -2.0],
    'start_rotation': [0, 0, 0, 1],
    'info': {'geodesic_distance': 4.0},
    'goals': [{'position': [1.0, 0.1, -6.0], 'radius': 3.0}],
    'instruction': {'instruction_text': ' Walk past the sofa.\n', 'instruction_tokens': [4, 5, 0]},
    'reference_path': [[1.0, 0.1, -2.0], [1.0, 0.1, -6.0]],
}


def written(folder, values, name='val.json.gz'):
    text = json.dumps(values).encode()
    (folder / name).write_bytes(gzip.compress(text) if name.endswith('gz') else text)
    return folder / name


@pytest.mark.parametrize(
    ('rotation', 'yaw'),
    [
        ([0, 0, 0, 1], math.pi / 2),  # along -z, which is y here
        ([0, HALF, 0, HALF], math.pi),  # a quarter turn to the left: along -x
        ([0, -HALF, 0, HALF], 0.0),  # to the right: along x
        ([0, 2, 0, 0], -math.pi / 2),  # half a turn, of any length: along z, which is -y here
        ([0, math.sin(0.15), 0, math.cos(0.15)], math.pi / 2 + 0.3),
    ],
)
def test_a_robot_of_habitat_looks_along_minus_z(rotation, yaw):
    assert yaw_of_rotation(rotation) == pytest.approx(yaw)


def test_points_of_habitat_have_y_up():
    assert z_up([1, 2, 3]) == (1, -3, 2)


def test_rotated_frames_agree_with_rotated_points():
    """What is a metre ahead there is a metre ahead here."""
    for angle in (0.0, 0.4, 2.0, -3.0):
        ahead = z_up([-math.sin(angle), 0.0, -math.cos(angle)])
        yaw = yaw_of_rotation([0, math.sin(angle / 2), 0, math.cos(angle / 2)])
        assert ahead == pytest.approx((math.cos(yaw), math.sin(yaw), 0))


@pytest.mark.parametrize('name', ['val.json', 'val.json.gz'])
def test_point_goals(tmp_path, name):
    (episode,) = read_habitat(written(tmp_path, {'episodes': [POINT]}, name))
    assert episode.episode_id == '7'
    assert episode.scene == 'mp3d/abc/abc.glb'
    assert episode.start_position == (1, 2, 0.1)
    assert episode.start_yaw == pytest.approx(math.pi)
    assert [goal.position for goal in episode.goals] == [(3, 4, 0.1)]
    assert episode.goals[0].radius is None
    assert episode.geodesic_distance == 4.5
    assert episode.info == {'difficulty': 'easy'}


def test_object_goals_have_the_places_that_see_them(tmp_path):
    first, second = read_habitat(written(tmp_path, OBJECTS), {'mp3d/abc/abc.glb': 'abc.usd'})
    assert (first.episode_id, second.episode_id) == ('0', '1')
    assert first.scene == 'abc.usd'
    (goal,) = first.goals
    assert (goal.category, goal.position, goal.view_points) == ('chair', (5, 1, 0.6), [(4, 1, 0.1)])
    assert first.goal_points.tolist() == [[4, 1, 0.1]]
    assert first.info == {'episode_id': '7', 'object_category': 'chair', 'difficulty': 'easy'}


def test_r2r(tmp_path):
    (episode,) = read_vln_ce(written(tmp_path, {'episodes': [R2R], 'instruction_vocab': {}}))
    assert episode.episode_id == '3'
    assert episode.start_position == (1, 2, 0.1)
    assert episode.start_yaw == pytest.approx(math.pi / 2)
    assert episode.instruction == 'Walk past the sofa.'
    assert episode.reference_path == [(1, 2, 0.1), (1, 6, 0.1)]
    assert (episode.goals[0].position, episode.goals[0].radius) == ((1, 6, 0.1), 3)
    assert episode.geodesic_distance == 4
    assert episode.info == {'trajectory_id': 11}


def test_paths_of_the_ground_truth(tmp_path, caplog):
    """Habitat's (1, 0.1, -2) is (1, 2, 0.1) here; of the second episode nothing is known."""
    file = written(tmp_path, {'episodes': [R2R, {**R2R, 'episode_id': 4}]})
    truth = tmp_path / 'val_gt.json.gz'
    locations = [[1.0, 0.1, -2.0], [1.0, 0.1, -2.25], [1.0, 0.1, -2.5]]
    truth.write_bytes(gzip.compress(json.dumps({'3': {'locations': locations, 'actions': [1, 1, 0]}}).encode()))
    (episode,) = read_vln_ce(file, ground_truth=truth)
    assert episode.reference_path == [(1, 2, 0.1), (1, 2.25, 0.1), (1, 2.5, 0.1)]
    assert episode.goals[0].position == (1, 6, 0.1)
    assert 'episode 1 (episode_id 4): the file of the ground truth does not have it' in caplog.text
    truth.write_text('[]')
    with pytest.raises(ValueError, match='val_gt.json.gz: expected a mapping from episode ids, got list'):
        read_vln_ce(file, ground_truth=truth)


def test_rxr_by_language(tmp_path):
    languages = ('en-IN', 'en-US', 'hi-IN')
    items = [
        {**R2R, 'episode_id': i, 'instruction': {'instruction_text': 'x', 'language': each, 'instruction_id': str(i)}}
        for i, each in enumerate(languages)
    ]
    file = written(tmp_path, {'episodes': items})
    assert [episode.info['language'] for episode in read_vln_ce(file)] == list(languages)
    assert [episode.episode_id for episode in read_vln_ce(file, language='en')] == ['0', '1']
    with pytest.raises(ValueError, match=r"no instruction is in language 'te'; there are en-IN, en-US, hi-IN"):
        read_vln_ce(file, language='te')


def test_scans_of_internnav_have_z_up_already(tmp_path):
    item = {key: value for key, value in R2R.items() if key not in ('scene_id', 'goals')}
    item |= {
        'scan': 'home_0003',
        'start_position': [1.0, 2.0, 0.1],
        'start_rotation': [HALF, 0, 0, HALF],
        'reference_path': [[1.0, 2.0, 0.1], [1.0, 6.0, 0.1]],
    }
    (episode,) = read_vln_ce(written(tmp_path, {'episodes': [item]}), {'home_0003': 'home_0003.usda'})
    assert episode.scene == 'home_0003.usda'
    assert episode.start_position == (1, 2, 0.1)
    assert episode.start_yaw == pytest.approx(math.pi / 2)
    assert episode.goals[0].position == (1, 6, 0.1)  # the end of the way


@pytest.mark.parametrize(
    ('change', 'reason'),
    [
        ({'start_position': [0, 1]}, 'start_position: expected 3 finite numbers, got [0, 1]'),
        ({'start_position': [0, 1, None]}, 'start_position: expected 3 finite numbers'),
        ({'start_rotation': [0, 0, 0, 0]}, 'start_rotation: a quaternion of length zero is no rotation'),
        ({'goals': [], 'reference_path': None}, "it has neither 'goals' nor a 'reference_path'"),
        ({'instruction': {}}, "it has no 'instruction_text'"),
        ({'instruction': 3}, "'int' object"),
        ({'goals': [3]}, "'int' object"),
        ({'scene_id': 'elsewhere'}, "scene 'elsewhere' is not among those of `scenes`"),
        ({'episode_id': 3}, 'an episode with this id'),
    ],
)
def test_episodes_that_are_wrong_are_left_out_and_named(tmp_path, caplog, change, reason):
    wrong = {**copy.deepcopy(R2R), 'episode_id': 4, **change}
    file = written(tmp_path, {'episodes': [R2R, wrong]})
    with caplog.at_level(logging.WARNING):
        episodes = read_vln_ce(file, {'mp3d/abc/abc.glb': 'abc.usd'})
    assert [each.episode_id for each in episodes] == ['3']
    message = caplog.records[-1].getMessage()
    assert f'{file}: 1 of 2 episodes are left out\n  episode 1 (episode_id {wrong["episode_id"]}): ' in message
    assert reason in message


def test_objects_without_a_goal_are_named(tmp_path, caplog):
    values = copy.deepcopy(OBJECTS)
    values['episodes'][1] = {**values['episodes'][1], 'object_category': 'sofa'}
    with caplog.at_level(logging.WARNING):
        assert len(read_habitat(written(tmp_path, values))) == 1
    assert "goals_by_category has no goal 'abc.glb_sofa'" in caplog.text


@pytest.mark.parametrize('read', [read_habitat, read_vln_ce])
@pytest.mark.parametrize(
    ('content', 'message'),
    [
        (gzip.compress(json.dumps({'episodes': [R2R] * 9}).encode())[:-30], 'the gzip file is cut off or damaged'),
        (json.dumps({'episodes': [R2R]}).encode()[:-30], 'not JSON, or cut off'),
        (b'\xff\xfe\xfa', 'not JSON, or cut off'),
        (b'[1]', "expected a mapping with a list 'episodes'"),
        (b'{"episodes": 3}', "expected a mapping with a list 'episodes'"),
        (b'{"episodes": []}', 'it has no episodes'),
        (b'{"episodes": [1]}', 'no episode is right\n  episode 0: expected a mapping, got 1'),
    ],
    # the compressed one has the time in it, and every worker of pytest-xdist must give it the same name
    ids=['gzip cut off', 'JSON cut off', 'binary', 'list', 'number', 'nothing', 'no episodes'],
)
def test_files_that_are_cut_off_or_something_else_are_refused(tmp_path, read, content, message):
    (tmp_path / 'val.json.gz').write_bytes(content)
    with pytest.raises(ValueError, match='val.json.gz') as caught:
        read(tmp_path / 'val.json.gz')
    assert message in str(caught.value)
