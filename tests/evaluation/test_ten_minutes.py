"""The page for newcomers: its server is evaluated by its command, and its mapping is the default."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from internutopia.cli.commands import app
from internutopia.evaluation.mapping import MappingCfg

PAGE = (Path(__file__).parents[2] / 'docs' / 'evaluation.md').read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf'^```{language}\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL)


def report_of(command: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    return json.loads(Path('out/tabletop/report.json').read_text())


def test_the_mapping_is_the_default():
    (mapping,) = blocks('yaml')
    assert yaml.safe_load(mapping) == MappingCfg().model_dump(mode='json')


@pytest.mark.slow
@pytest.mark.usefixtures('opengl')
def test_the_server_of_twenty_lines_is_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code = blocks('py')[0]
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    (tmp_path / 'policy_server.py').write_text(
        code.replace('8000', '0')
        .replace('HTTPServer((', 'server = HTTPServer((')
        .replace(').serve_forever()', ')\nprint(server.server_port, flush=True)\nserver.serve_forever()')
    )
    monkeypatch.chdir(tmp_path)
    program = [sys.executable, 'policy_server.py']
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            reports = [report_of(command.replace('8000', port)) for command in blocks('sh')]
        finally:
            server.kill()
    first, resumed = reports
    (row,) = first['summary']
    assert row['ends'] == {'steps': 4} and first['times']['requests'] == 4 * -(-300 // 8)
    assert resumed['summary'] == first['summary'] and resumed['times']['requests'] == 0
