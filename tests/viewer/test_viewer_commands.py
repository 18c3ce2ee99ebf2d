"""Commands that show envs live."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip('viser', reason='the viewer needs the extra `viewer`')

from page_client import PageClient

from internutopia.cli.commands import app
from internutopia.cli.options import LOOPBACK, open_viewer
from internutopia.config import Config
from internutopia.rl.training.playback import run

RUN = """
env_num: 2
task_configs:
  - type: FiniteStepTask
    max_steps: 3
    repeat: 2
    scene_asset_path: scenes/empty.xml
    robots:
      - {type: JetbotRobot, position: [0, 0, 0.03]}
"""


@pytest.mark.nightly
def test_a_run_waits_for_a_page(tmp_path: Path):
    (tmp_path / 'run.yaml').write_text(RUN)
    command = [sys.executable, '-m', 'internutopia', 'run', 'run.yaml', '--viewer', '--no-picture']
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        line = next(line for line in program.stdout if line.startswith('viewer: '))
        with PageClient(line.split()[2]) as page:
            page.wait_for(lambda: '| step | 0 |' in page.text())
            page.set('Run', True)
            program.stdout.read()
    assert program.returncode == 0
    assert len((tmp_path / 'out' / 'run' / 'results.jsonl').read_text().splitlines()) == 2


def test_a_policy_is_played_on_a_page(config: Config):
    urls: list[str] = []
    opened = threading.Event()

    def shown(envs: Any) -> Any:
        viewer = open_viewer(envs, LOOPBACK)
        urls.append(viewer.url)
        opened.set()
        return viewer

    def policy(obs: Any) -> Any:
        return np.zeros((len(obs), 2), np.float32)

    playing = threading.Thread(target=run, args=(policy, config, shown), kwargs={'seconds': 0.1})
    playing.start()
    opened.wait()
    with PageClient(urls[0]) as page:
        page.wait_for(lambda: '| step | 0 |' in page.text())
        page.set('Run', True)
        playing.join()


@pytest.mark.nightly
@pytest.mark.parametrize('address', ['8080', 'localhost:', ':80', 'localhost:70000', 'localhost:http'])
def test_an_address_that_is_none(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / 'run.yaml').write_text(RUN)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ['run', 'run.yaml', '--viewer-address', address, '--no-picture'])
    assert result.exit_code == 2
    assert f'--viewer-address {address}: expected HOST:PORT, such as 127.0.0.1:8080' in result.stderr


def test_without_the_extra_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / 'run.yaml').write_text(RUN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, 'viser', None)
    result = CliRunner().invoke(app, ['run', 'run.yaml', '--viewer', '--no-picture'])
    assert result.exit_code == 2 and "pip install -e '.[viewer]'" in result.stderr
    assert not (tmp_path / 'out' / 'run' / 'results.jsonl').read_text()
