"""Evaluations in the manner of a client of 2.x, each started as a program with nothing but the switch.

The results of the episodes of `client_data` are worked out by hand. Robots of flash settings are where they are
commanded to be; physics goes on for one step of 5 ms after each action. Robots that walk get there as well as the
policy can.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from client_data import EPISODES
from vln_client.collector import Collector

pytestmark = pytest.mark.slow

FLASH = 2e-3  # m and 1, that physics may do to flash; the figures are of the order of 1
THROUGH = 0.02  # m, the same for a robot that is put into a pillar
# m, at the end of up to 21 actions without corrections: the policy gets going within three of them, on the corner
# along both axes, and 5 degrees that it turned too little are 0.09 m at the end of a metre
WALK = 0.45

# by episode, in the order of `FIGURES`
FIGURES = ('TL', 'NE', 'SR', 'OS', 'SPL')
EXPECTED = {
    'straight': (1.0, 0.0, 1, 1, 1.0),
    'corner': (2.0, 0.0, 1, 1, math.sqrt(2) / 2),
    'past': (2.0, 1.5, 0, 1, 0.0),
    'leaning': (0.0, 1.0, 0, 0, 0.0),
    'pillar': (3.0, 1.0, 0, 0, 0.0),
    'turned': (0.5, 0.0, 1, 1, 1.0),
}
AT_THE_PILLAR = (2.25, 1.75, 0, 0, 0.0)  # its face is at 2.75 m, and 0.4 + 0.25 m ahead must be free
# sums of distances between the robot at the ends of actions and the matching point of the path, over points and 0.5 m
NDTW = {
    'straight': math.exp(-(0.25 + 0.25) / (3 * 0.5)),
    'corner': math.exp(-2 * (0.25 + 0.5 + 0.25) / (3 * 0.5)),
    'past': math.exp(-(0.25 + 0.25 + 0.5 + 0.75 + 1 + 1.25 + 1.5 + 1.5) / (2 * 0.5)),
    'leaning': math.exp(-1 / (2 * 0.5)),
    'turned': math.exp(-0.25 / (2 * 0.5)),
}


def evaluate(settings: str, data: Path, output: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """Run the program; results of all episodes by path key. The means are checked against them."""
    here = Path(__file__).parent
    environment = {**os.environ, 'INTERNUTOPIA_COMPAT': '2.x', 'PYTHONPATH': os.pathsep.join([str(here), *sys.path])}
    command = [sys.executable, '-m', 'vln_client.evaluate', settings, '--data', data, '--output', output, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    results = {path.stem: json.loads(path.read_text()) for path in (output / 'episodes').glob('*.json')}
    merged = json.loads((output / 'result.json').read_text())
    for name in FIGURES:
        assert merged[name] == pytest.approx(np.mean([each[name] for each in results.values()]))
    assert merged['count'] == len(results)
    assert merged['fail_reasons'] == ({'fall': 1} if 'leaning' in results else {})
    assert json.loads((output / 'progress.json').read_text()) == {'finished': sorted(results)}
    return results


def check_flash(results: dict[str, dict[str, Any]]) -> None:
    assert sorted(results) == sorted(EXPECTED)
    for name, expected in EXPECTED.items():
        figures = [results[name][figure] for figure in FIGURES]
        np.testing.assert_allclose(figures, expected, atol=THROUGH if name == 'pillar' else FLASH, err_msg=name)
        assert results[name]['fail_reason'] == ('fall' if name == 'leaning' else '')
    for name, expected in NDTW.items():
        assert results[name]['NDTW'] == pytest.approx(expected, abs=FLASH)


@pytest.fixture(scope='module')
def flash(client_data: Path, tmp_path_factory: pytest.TempPathFactory, opengl: None) -> dict[str, dict[str, Any]]:
    """Results of flash in two envs of a process."""
    return evaluate('flash', client_data, tmp_path_factory.mktemp('flash'))


@pytest.mark.nightly
def test_figures_of_robots_that_are_there_at_once(flash):
    check_flash(flash)


@pytest.mark.nightly
def test_a_scene_in_centimetres_gives_the_same_figures(flash, client_data, tmp_path):
    results = evaluate('centimetre_scene', client_data, tmp_path)
    check_flash(results)
    for name, figures in flash.items():
        assert results[name] == pytest.approx(figures, abs=1e-6)  # a hundredth of a float32 is another one


@pytest.mark.nightly
@pytest.mark.xdist_group('ray')
def test_two_processes_give_the_same_figures(flash, client_data, tmp_path):
    assert evaluate('ray', client_data, tmp_path) == flash


@pytest.mark.nightly
@pytest.mark.parametrize('settings', ['single_env', 'vec_env'])
def test_a_robot_that_walks_with_a_torchscript_policy(settings, client_data, tmp_path, opengl):
    results = evaluate(settings, client_data, tmp_path, '--limit', '4')
    assert sorted(results) == ['corner', 'leaning', 'past', 'straight']
    for name, result in results.items():
        length, distance, success, near, _ = EXPECTED[name]
        assert result['TL'] == pytest.approx(length, abs=WALK)
        assert result['NE'] == pytest.approx(distance, abs=WALK)
        assert (result['SR'], result['OS']) == (success, near)


@pytest.mark.nightly
def test_data_is_collected_and_goes_on_where_it_was_stopped(client_data, tmp_path, opengl):
    evaluate('collect', client_data, tmp_path, '--limit', '4')
    collector = Collector(tmp_path / 'episodes.lmdb')
    first = {key: collector.read(key) for key in collector.done()}
    collector.close()
    assert sorted(first) == ['corner', 'leaning', 'past', 'straight']
    results = evaluate('collect', client_data, tmp_path)
    collector = Collector(tmp_path / 'episodes.lmdb')
    assert collector.done() == set(EXPECTED)
    for episode in EPISODES:
        check_collected(episode, collector.read(episode['path_key']), results[episode['path_key']])
    np.testing.assert_equal(collector.read('straight'), first['straight'])  # not done again
    collector.close()


def check_collected(episode: dict[str, Any], collected: dict[str, Any], result: dict[str, Any]) -> None:
    """Each action of an episode, where the robot was at its end, and what it saw; positions add up to its figures."""
    steps, name = collected['steps'], episode['path_key']
    assert collected['result'] == result
    expected = AT_THE_PILLAR if name == 'pillar' else EXPECTED[name]
    np.testing.assert_allclose([result[figure] for figure in FIGURES], expected, atol=FLASH, err_msg=name)
    words = [] if name == 'leaning' else episode['instruction']['instruction_text'].split()  # it fell at once
    actions = [{'move_by_flash': [('stop', 'forward', 'left', 'right').index(word)]} for word in words]
    assert [step['action'] for step in steps] == [*actions, {'stop': []}][: len(steps)]
    assert len(steps) == (len(words) + 1 if words else 0)
    if not steps:
        return
    places = np.array([step['position'][:2] for step in steps])
    assert places.dtype == np.float64
    way = np.vstack([episode['start_position'][:2], places])
    assert np.linalg.norm(np.diff(way, axis=0), axis=1).sum() == pytest.approx(result['TL'], abs=1e-3)
    goal = np.array(episode['reference_path'])[-1, :2]
    assert np.linalg.norm(places[-1] - goal) == pytest.approx(result['NE'], abs=1e-9)
    for step in steps:
        assert (step['rgb'].shape, step['rgb'].dtype) == ((24, 32, 3), np.uint8)
        assert (step['depth'].shape, step['depth'].dtype) == ((24, 32, 1), np.float32)
        assert step['topdown_rgb'].shape == (200, 200, 3) and step['topdown_depth'].shape == (200, 200)
