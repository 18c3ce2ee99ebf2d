"""The demos under their names of 2.x: each runs, ends by itself and says where the robot is; scripts as they were."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from forked_scripts import OURS, run_script
from markers import slow_but

from internutopia.demo import franka_manipulation_mocap_teleop, h1_traveled_distance
from internutopia.demo.teleop import KeyboardTarget, MocapTarget

BY_THEMSELVES = [
    'aliengo_locomotion',
    'franka_manipulation',
    'gr1_locomotion',
    'h1_locomotion',
    'h1_traveled_distance',
    'jetbot_locomotion',
]
BY_A_PERSON = ['franka_manipulation_mocap_teleop', 'g1_locomotion', 'gr1_teleop']
QUICK = [(demo, '3.x') for demo in ('jetbot_locomotion', 'h1_traveled_distance', 'gr1_teleop')]
HAND = [[0.0, 0.0, 0.0]] * 21  # points of a captured hand [m], axes of the camera


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('demo', 'switch'),
    [
        *slow_but(*QUICK, of=((demo, '3.x') for demo in BY_THEMSELVES + BY_A_PERSON)),
        ('h1_locomotion', '2.x'),
        ('gr1_teleop', '2.x'),
    ],
)
def test_a_demo_runs(demo: str, switch: str):
    program = [sys.executable, '-m', f'internutopia.demo.{demo}', '--steps', '12']
    environment = {**os.environ, 'INTERNUTOPIA_COMPAT': switch}
    result = subprocess.run(
        program, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert re.search(r'0\.1 s: .*at \(-?\d\.\d\d, -?\d\.\d\d, \d\.\d\d\) m', result.stdout)
    assert ('stdin is no terminal' in result.stderr) == (demo in BY_A_PERSON)


@pytest.mark.parametrize('demo', slow_but('jetbot_locomotion', 'gr1_teleop', of=BY_THEMSELVES + BY_A_PERSON))
def test_a_demo_of_2x_runs_or_says_what_to_use(demo: str, tmp_path: Path):
    here, switch = Path(__file__).parent, {'INTERNUTOPIA_COMPAT': '2.x', 'MUJOCO_GL': 'egl'}
    done = run_script(here / 'scripts' / 'demos.py', [demo, str(tmp_path / 'results.jsonl')], here, switch, OURS)
    if demo.endswith('teleop'):
        assert done.returncode == 1 and 'of InternUtopia 2.x is not available: internutopia teleop has' in done.stderr
    else:
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize('steps', ['0', '-3', 'many'])
def test_a_demo_makes_one_step_at_least(steps: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        h1_traveled_distance.main(['--steps', steps])
    assert 'argument --steps: ' in capsys.readouterr().err


def test_there_is_a_demo_for_every_name():
    folder = Path(h1_traveled_distance.__file__).parent
    modules = {path.stem for path in folder.glob('*.py')} - {'__init__', 'runner', 'teleop'}
    assert modules == set(BY_THEMSELVES + BY_A_PERSON)


@pytest.mark.slow
def test_a_demo_measures_and_draws(opengl: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from PIL import Image

    file = tmp_path / 'h1.png'
    assert h1_traveled_distance.main(['--picture', str(file)]) == 0
    (distance,) = re.findall(r'traveled_distance_metric: (.*)', capsys.readouterr().out)
    assert 0.4 < float(distance) < 1.3  # 300 steps of 1/240 s at up to 1 m/s
    assert Image.open(file).size == (640, 480)
    assert h1_traveled_distance.main(['--steps', '1', '--picture', str(tmp_path / 'missing' / 'h1.png')]) == 1
    assert 'no image: ' in capsys.readouterr().err


def test_keys_move_a_target_within_its_range(monkeypatch: pytest.MonkeyPatch):
    master, slave = pty.openpty()
    with os.fdopen(slave) as stdin:
        monkeypatch.setattr(sys, 'stdin', stdin)
        target = KeyboardTarget((0.0, 0.0, 1.0), low=(-1.0, -1.0, 0.0), high=(0.15, 1.0, 2.0), speed=0.1)
        assert target.read()[0].tolist() == [0.0, 0.0, 1.0]
        os.write(master, b'iLu')
        assert target.read()[0].tolist() == [0.1, -0.1, 1.1] and target.read()[1] is None
        assert target.read()[0][0] == 0.15
        target.close()
    os.close(master)


def test_a_captured_hand_moves_a_target_and_grasps(mocap_server):
    url, requested, answers = mocap_server
    fist, open_hand = np.array(HAND), np.array(HAND)
    open_hand[8] = (0.0, 0.1, 0.0)
    way = np.array([0.2, -0.1, -0.4])  # to the right, up and towards the camera
    for points in ([*fist], [*(open_hand + way)], [], [*fist]):
        answers.append({'rh_bones_kps_cam': np.array(points).tolist()} if points else {})
    target = MocapTarget(url, (0.4, 0.0, 0.3), scale=(0.25, 0.5, 1.0))
    seen = [target.read() for _ in range(4)]
    target.close()
    moved = [0.4 + 0.25 * 0.4, 0.5 * 0.2, 0.3 + 0.1]
    np.testing.assert_allclose([position for position, _ in seen], [(0.4, 0.0, 0.3), moved, moved, moved])
    assert [grasps for _, grasps in seen] == [True, False, None, True]
    assert requested == ['/start', *['/results'] * 4, '/stop']


@pytest.mark.slow
def test_a_captured_hand_moves_the_gripper_of_the_demo(mocap_server, capsys: pytest.CaptureFixture[str]):
    url, _, answers = mocap_server
    answers += [{'rh_bones_kps_cam': HAND}, {'rh_bones_kps_cam': (np.array(HAND) + [0.0, 0.1, 0.0]).tolist()}]
    assert franka_manipulation_mocap_teleop.main(['--mocap-url', url, '--steps', '240']) == 0
    (*_, last) = re.findall(r'gripper at \((.*)\) m', capsys.readouterr().out)
    np.testing.assert_allclose([float(value) for value in last.split(',')], (0.46, 0.0, 0.305), atol=0.015)


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(ConnectionError, match='no motion-capture server answers at http://127.0.0.1:9/start'):
        franka_manipulation_mocap_teleop.main(['--mocap-url', 'http://127.0.0.1:9'])
