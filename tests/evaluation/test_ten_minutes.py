"""The page for newcomers: its server is evaluated by its command, and its mapping is the default."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.evaluation.mapping import MappingCfg
from internutopia_extension.navigation.nav_mapping import NavMappingCfg

PAGE = (Path(__file__).parents[2] / 'docs' / 'evaluation.md').read_text().replace('\\\n', '')  # of long commands


def blocks(language: str) -> list[str]:
    return re.findall(rf'^```{language}\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL)


def report_of(command: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    return json.loads(Path('out/tabletop/report.json').read_text())


def test_the_mappings_are_the_defaults():
    arm, navigation = map(yaml.safe_load, blocks('yaml'))
    assert arm == MappingCfg().model_dump(mode='json')
    assert navigation == NavMappingCfg().model_dump(mode='json')


@contextmanager
def served(code: str) -> Iterator[str]:
    """Run a server of the page in a process of its own; yields its port."""
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    start, _, address = code.rpartition('HTTPServer((')
    port = address.partition(', ')[2].partition(')')[0]
    served_once = address.replace(port, '0').replace(').serve_forever()', ')')
    Path('server.py').write_text(
        f'{start}server = HTTPServer(({served_once}print(server.server_port, flush=True)\nserver.serve_forever()'
    )
    program = [sys.executable, 'server.py']
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.kill()


@pytest.mark.nightly
@pytest.mark.usefixtures('opengl')
def test_the_server_of_twenty_lines_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with served(blocks('py')[0]) as port:
        first, resumed = [report_of(command.replace('8000', port)) for command in blocks('sh')]
    (row,) = first['summary']
    assert row['ends'] == {'steps': 4} and first['times']['requests'] == 4 * -(-300 // 8)
    assert resumed['summary'] == first['summary'] and resumed['times']['requests'] == 0


@pytest.mark.nightly
@pytest.mark.usefixtures('opengl')
def test_the_server_for_navigation_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (code,) = [each for each in blocks('py') if 'observation/depth' in each]
    (made,) = re.findall(r'^internutopia episodes .*$', PAGE, re.MULTILINE)
    (evaluated,) = re.findall(r'^internutopia evaluate nav .*8001.*$', PAGE, re.MULTILINE)
    assert CliRunner().invoke(app, shlex.split(made.replace('--count 4', '--count 1'))[1:]).exit_code == 0
    with served(code) as port:
        result = CliRunner().invoke(app, shlex.split(evaluated.replace('8001', port).replace('--video 1', ''))[1:])
    assert result.exit_code == 0, result.output
    episodes = json.loads(Path('out/stub/report.json').read_text())['episodes']
    assert [each['end'] for each in episodes] == ['actions', 'actions']
    assert all(each['instruction'].endswith('.') and each['ndtw'] < 1.0 for each in episodes)
