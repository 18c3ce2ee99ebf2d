"""Scripts in the manner of the tests of InternUtopia 2.2.1, each with its numbers, run to their end.

They are written as for 2.x; all that is done for them is `INTERNUTOPIA_COMPAT=2.x`. Steps, episodes and tolerances are
those of 2.x but for these, where the number does not depend on how long the script runs:

- `rep_camera_pointcloud`: looks every 20 steps instead of 500; each of them is at a frame of a robot that stands;
- `memory_leak`: 60 episodes of 10 steps instead of 100 of 100; `tests/core/runner/test_memory.py` looks closer.

The script of two processes is run by `tests/cluster/test_ray_2x_script.py`. Two more scripts, of a user:
`test_seed_script.py` and, robots that walk without the switch, `test_walking_goals.py`.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from markers import slow_but

SCRIPTS = Path(__file__).parent / 'scripts'
ROBOTS = ('h1', 'h1_with_hand', 'g1', 'gr1', 'aliengo', 'jetbot')
RUNS = [  # script and its arguments
    'h1_locomotion',
    'h1_locomotion_multi_env 500',
    'h1_locomotion_3_env_2_episodes 500',
    'h1_locomotion_multi_env_endless 500',
    'load_scene_without_robot 1',
    'load_scene_without_robot 2',
    'franka_manipulation_multi_env_with_reset',
    'memory_leak 60 10',
    'vec_env_franka 6 100',
    'franka',
    *(f'move_to_point {robot} 3' for robot in ROBOTS),
    *(f'rotate {robot} 3' for robot in ROBOTS),
    *(f'vec_env_robots {robot} 4' for robot in ROBOTS),
]
QUICK = (
    'h1_locomotion',
    'load_scene_without_robot 1',
    'franka_manipulation_multi_env_with_reset',
    'franka',
    'move_to_point jetbot 3',
    'rotate jetbot 3',
    'vec_env_robots jetbot 4',
)
WITH_CAMERAS = [
    'h1_locomotion_multi_env_no_remainder 500',
    'h1_locomotion_multi_episodes',
    'rep_camera_pose',
    'rep_camera_pointcloud 1 20',
    'rep_camera_pointcloud 4 20',
]


def run(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script, *arguments = call.split()
    monkeypatch.setattr(sys, 'argv', [script, *arguments])
    runpy.run_path(str(SCRIPTS / f'{script}.py'), run_name='__main__')


@pytest.fixture
def switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('INTERNUTOPIA_COMPAT', '2.x')


@pytest.mark.nightly
@pytest.mark.parametrize('call', slow_but(*QUICK, of=RUNS))
def test_a_script_runs_to_its_end(call: str, switch: None, monkeypatch: pytest.MonkeyPatch):
    run(call, monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize('call', slow_but('rep_camera_pose', 'rep_camera_pointcloud 1 20', of=WITH_CAMERAS))
def test_a_script_with_cameras_runs_to_its_end(call: str, opengl: None, switch: None, monkeypatch: pytest.MonkeyPatch):
    run(call, monkeypatch)


@pytest.mark.parametrize(
    ('call', 'error'),
    [
        ('h1_locomotion_3_env_2_episodes 20', AssertionError),  # its reward is not -1
        ('h1_locomotion_multi_env_endless 20', KeyError),  # its env has no such robot
    ],
)
def test_scripts_need_the_switch(call: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(error):
        run(call, monkeypatch)


@pytest.mark.slow
def test_a_script_with_other_cameras_in_each_episode_needs_the_switch(opengl: None, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(AssertionError):
        run('h1_locomotion_multi_episodes', monkeypatch)
