"""`internutopia teleop`: a person at a terminal, and what is refused."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('viser', reason='teleoperation needs the extra `viewer`')

from page_client import PageClient
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.recording import Dataset

TASK = """
task_configs:
  - type: FiniteStepTask
    max_steps: 100000
    repeat: 2
    scene_asset_path: scenes/empty.xml
    robots:
      - &jetbot
        type: JetbotRobot
        position: [0, 0, 0.03]
        controllers: [{type: DifferentialDriveController, name: drive, wheel_base: 0.1125, wheel_radius: 0.03}]
"""
SECOND_ROBOT = '      - {<<: *jetbot, name: second, prim_path: /second, position: [1, 0, 0.03]}\n'


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'run.yaml').write_text(TASK)
    return tmp_path / 'run.yaml'


@pytest.mark.slow
def test_keys_of_a_terminal_end_the_episodes(config: Path):
    master, slave = pty.openpty()
    command = [sys.executable, '-m', 'internutopia', 'teleop', str(config), '--device', 'keyboard']
    with subprocess.Popen(command, cwd=config.parent, stdin=slave, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        line = next(line for line in program.stdout if line.startswith('viewer: '))
        assert line.startswith('viewer: open http://127.0.0.1:') and 'Run' not in line
        os.write(master, b'wyn')
        rest = program.stdout.read()
    os.close(master)
    os.close(slave)
    assert program.returncode == 0
    assert 'success: 1, reset: 1' in rest
    results = (config.parent / 'out' / 'run' / 'results.jsonl').read_text().splitlines()
    assert [json.loads(each)['metrics'] for each in results] == [{'success': True}, {'success': False}]


@pytest.mark.slow
def test_a_session_is_recorded(config: Path):
    pytest.importorskip('h5py', reason='this format needs the extra `record`')
    master, slave = pty.openpty()
    command = [sys.executable, '-m', 'internutopia', 'teleop', str(config), '--device', 'keyboard', '--record', 'data']
    options = ['--format', 'hdf5', '--only', 'success']
    with subprocess.Popen(
        command + options, cwd=config.parent, stdin=slave, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        line = next(line for line in program.stdout if line.startswith('viewer: '))
        with PageClient(line.split()[2]) as page:  # when steps were made
            page.wait_for(lambda: '| step |' in page.text() and '| step | 0 |' not in page.text())
        os.write(master, b'wyn')
        program.stdout.read()
    os.close(master)
    os.close(slave)
    assert program.returncode == 0
    assert Dataset(config.parent / 'data').episode_ids == [0]


def test_what_is_refused(config: Path):
    def refused(*options: str) -> str:
        result = CliRunner().invoke(app, ['teleop', 'run.yaml', *options])
        assert result.exit_code == 2
        return result.stderr

    assert 'the keyboard is read through a terminal, and stdin is none' in refused('--device', 'keyboard')
    assert "--robot jetbto: task_configs[0] has no such robot; did you mean 'jetbot'" in refused('--robot', 'jetbto')
    config.write_text(TASK + SECOND_ROBOT)
    assert "has the robots ['jetbot', 'second']: select one with --robot NAME" in refused()
    assert not (config.parent / 'out').exists()
