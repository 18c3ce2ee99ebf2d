"""`internutopia demo`: run files that come with the package."""

import json
from pathlib import Path

import pytest
from runs import results_in
from typer.testing import CliRunner

from internutopia.cli import commands
from internutopia.cli.demo import demo_files
from internutopia.cli.run_file import read_run_file


def demo(*arguments: str):
    return CliRunner().invoke(commands.app, ['demo', *arguments])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_without_a_name_it_takes_the_options_of_run_and_replaces_its_own_results(folder: Path):
    for steps in (2, 1):
        result = demo('--steps', str(steps), '--env-num', '2', '--no-picture')
        assert result.exit_code == 0, result.output
        assert f'{2 * steps} env steps' in result.stdout
        assert 'demo --viewer ' in result.stdout and 'init my_run.yaml ' in result.stdout  # what to do next
    assert results_in(folder / 'out' / 'demo') == []


@pytest.mark.nightly
def test_everybody_walks_to_the_end_of_the_path(folder: Path):
    assert demo('walking', '--env-num', '1', '--no-picture', '--out', 'here').exit_code == 0
    for line in results_in(folder / 'here'):  # 2.2 + 0.9 m, with the corner cut at 0.2 m
        assert all(2.2 < distance < 3.2 for distance in line['metrics'].values()), json.dumps(line)
    again = demo('walking', '--steps', '1', '--out', 'here')
    assert again.exit_code == 2 and 'holds the results of an earlier run' in again.stderr  # chosen folders are safe


def test_what_does_not_exist_is_named():
    result = demo('wlaking')
    assert result.exit_code == 2 and "did you mean 'walking'" in result.stderr
    result = demo('walking', '--step', '1')
    assert result.exit_code == 2 and '--step' in result.stderr


def test_all_of_them_can_be_read_and_named():
    for name, file in demo_files().items():
        assert read_run_file(file).config.env_num >= 1, name
        assert file.read_text().startswith('# '), name  # what `internutopia list demos` says of it
