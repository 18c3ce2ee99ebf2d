"""Scripts in the manner of tutorials for InternUtopia 2.x, started as a user starts them, with nothing but the switch.

What they check is in them. They have classes of their own: a controller, a robot, its gripper, an object, a sensor, a
task with metric and reward; or they read what they recorded, look through cameras, place and lift things, and listen to
the keyboard.
"""

from __future__ import annotations

import os
import pty
from collections.abc import Sequence
from pathlib import Path

import pytest
from forked_scripts import OURS, run_script
from markers import slow_but

SCRIPTS = Path(__file__).parent / 'scripts'
RUNS = [
    'tutorial_own_controller',
    'tutorial_own_robot',
    'tutorial_own_task_and_metric',
    'tutorial_own_object',
    'tutorial_own_gripper',
    'tutorial_objects',
    'tutorial_pick_up',
    'tutorial_keyboard',
    'bridge_sends_targets_once',
]
WITH_CAMERAS = ['tutorial_own_sensor', 'tutorial_camera_loop']


def run(script: str, *arguments: Path, stdin: str = os.devnull, modules: Sequence[str] = OURS, **variables: str) -> str:
    """Run it to its end, which it reaches if all that it asserts holds; returns what it logged."""
    switch = {'INTERNUTOPIA_COMPAT': '2.x', **variables}
    result = run_script(SCRIPTS / f'{script}.py', [*map(str, arguments)], Path.cwd(), switch, modules, stdin)
    assert result.returncode == 0, result.stderr
    return result.stderr


@pytest.mark.parametrize('script', RUNS)
def test_a_tutorial_runs_to_its_end(script: str):
    run(script)


@pytest.mark.parametrize('script', slow_but('tutorial_camera_loop', of=WITH_CAMERAS))
def test_a_tutorial_with_cameras_runs_to_its_end(script: str, opengl: None):
    run(script)


def test_a_script_with_helpers_at_its_top_runs_to_its_end():
    run('helpers_at_the_top', modules=())


def test_a_tutorial_that_records_runs_to_its_end(tmp_path: Path):
    run('tutorial_recording', tmp_path / 'results.jsonl')


def test_a_tutorial_listens_to_the_keyboard():
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b'iiii')
    try:
        run('tutorial_keyboard', stdin=os.ttyname(terminal))
    finally:
        os.close(keyboard)
        os.close(terminal)


def test_robots_walk_with_an_asset_folder_of_2x(tmp_path: Path):
    for file in (
        'robots/h1/policy/move_by_speed/h1_loco_model_20000.pt',
        'robots/g1/policy/move_by_speed/g1_15000.onnx',
        'robots/gr1/policy/move_by_speed/gr1_policy.onnx',
        'robots/aliengo/policy/move_by_speed/aliengo_loco_model_4000.pt',
    ):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_bytes(b'what this machine cannot read')
    said = run('walk_with_own_assets', modules=(), INTERNUTOPIA_ASSETS_PATH=str(tmp_path))
    assert said.count('is used instead') == 4
