"""Instructions that are made of a way and of what is labelled."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scenes import AGENT, box, room

from internutopia.navigation import Ranges, sample_instruction_episodes
from internutopia.navigation.instructions import instruction, landmarks_of, simplified
from internutopia.navigation.metrics import ndtw, path_length

# two rooms, each 4 m x 4 m, with a doorway of 1 m in the middle of the wall between them
WALLS = box((4.0, 4.1), (0.0, 1.5), (0.0, 2.0)), box((4.0, 4.1), (2.5, 4.0), (0.0, 2.0))
THINGS = (
    box((4.0, 4.1), (1.5, 2.5), (1.9, 2.0), name='lintel'),
    box((1.0, 1.4), (3.0, 3.4), (0.0, 0.5), name='sofa'),
    box((6.0, 6.4), (2.5, 2.9), (0.0, 0.5), name='table'),
    box((7.4, 7.9), (0.1, 0.6), (0.0, 0.5), name='bed'),
)
LABELS = {'lintel': 'doorway', 'sofa': 'sofa', 'table': 'coffee_table', 'bed': 'bed'}


@pytest.fixture
def home(write_model: Callable[[str, str], str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Two rooms with labelled things, under a name that is always the same: episodes are random by it."""
    labels = ''.join(f'<text name="semantics:{name}" data="{kind}"/>' for name, kind in LABELS.items())
    inside = room(8.0, 4.0, *WALLS, *THINGS)
    file = Path(write_model('home', f'<custom>{labels}</custom><worldbody>{inside}</worldbody>'))
    monkeypatch.chdir(file.parent)
    return file.name


def test_turns_doorways_and_what_is_passed_are_named(home: str):
    things = landmarks_of(home)
    assert {each.name for each in things} == {'doorway', 'sofa', 'coffee table', 'bed'}
    way = np.array([[2.0, 2.0, 0.0], [6.8, 2.0, 0.0], [7.0, 1.0, 0.0]])
    for yaw, first in ((0.0, 'Go straight ahead'), (-1.0, 'Turn left'), (1.0, 'Turn right'), (math.pi, 'Turn around')):
        text = instruction(way, yaw, things, 'bed')
        assert (
            text
            == f'{first}, go through the doorway, turn right, pass the coffee table on your right and stop at the bed.'
        )
    assert instruction(way[:1].repeat(2, 0) + [[0, 0, 0], [-1, 0, 0]], math.pi, things, 'sofa') == (
        'Go straight ahead and stop at the sofa.'
    )
    back = instruction(way[::-1], math.pi / 2, things, 'sofa')
    assert (
        back == 'Go straight ahead, pass the bed on your right, turn left, go through the doorway and stop at the sofa.'
    )


def test_a_way_is_simplified_to_its_legs():
    corner = np.array([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0], [2.2, 0.1], [2.3, 2.0]])
    assert simplified(corner).tolist() == [[0.0, 0.0], [2.2, 0.1], [2.3, 2.0]]


@pytest.mark.slow
def test_the_reference_path_is_the_shortest_one_to_the_goal(home: str):
    episodes = sample_instruction_episodes(home, AGENT, 6, seed=3, ranges=Ranges(distance=(1.5, 9.0)))
    assert episodes == sample_instruction_episodes(home, AGENT, 6, seed=3, ranges=Ranges(distance=(1.5, 9.0)))
    for episode in episodes:
        path = episode.reference_path
        assert path[-1] == episode.goals[0].position and episode.goals[0].category in LABELS.values()
        assert path_length(path) == pytest.approx(episode.geodesic_distance, abs=0.02)
        assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() < 0.26
        assert np.linalg.norm(np.subtract(path[0], episode.start_position)[:2]) < 0.1 and ndtw(path, path) == 1.0
        assert episode.instruction is not None
        if not 4.0 <= path[0][0] <= 4.1:  # some begin in the doorway
            crosses = (path[0][0] - 4.05) * (path[-1][0] - 4.05) < 0
            assert ('go through the doorway' in episode.instruction) == crosses
