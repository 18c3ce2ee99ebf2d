"""Files for maintainers: targets of make, releases, CI, container."""

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']


@pytest.fixture(scope='module')
def release() -> ModuleType:
    """The program that builds a release."""
    spec = importlib.util.spec_from_file_location('release', ROOT / 'tools' / 'release.py')
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_help_lists_every_target():
    (phony,) = re.findall(r'^\.PHONY: (.*)$', (ROOT / 'Makefile').read_text(), re.MULTILINE)
    listed = subprocess.run(['make', 'help'], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in listed.splitlines() if line.startswith('make ')} == set(phony.split())


def test_a_release_is_checked_on_every_python_that_it_is_for(release: ModuleType):
    versions = release.supported_versions((ROOT / 'pyproject.toml').read_text())
    assert PROJECT['requires-python'] == f'>={versions[0]}'
    assert [int(version.split('.')[1]) for version in versions] == list(range(11, 11 + len(versions)))
    listed = yaml.safe_load((ROOT / '.github' / 'workflows' / 'ci.yml').read_text())['jobs']['release']['steps']
    (python,) = (step['with']['python-version'] for step in listed if 'setup-python' in step.get('uses', ''))
    assert sorted(python.split()) == versions


def test_a_python_is_found_by_its_version_and_only_if_it_runs(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv('PYENV_ROOT', str(tmp_path))
    monkeypatch.setenv('PATH', f'{tmp_path}:/bin')
    shim = tmp_path / 'python3.99'
    shim.write_text('#!/bin/sh\nexit 127\n')
    shim.chmod(0o755)
    assert release.find_python('3.99') is None
    python = tmp_path / 'versions' / '3.99.1' / 'bin' / 'python'
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    assert release.find_python('3.99') == str(python)


def test_versions_agree():
    citation = yaml.safe_load((ROOT / 'CITATION.cff').read_text())
    assert citation['version'] == PROJECT['version'] and citation['license'] == PROJECT['license']


def test_ci_of_github_runs_what_ci_runs():
    for file, command in (('ci.yml', '.ci/run'), ('nightly.yml', 'make test-all')):
        jobs = yaml.safe_load((ROOT / '.github' / 'workflows' / file).read_text())['jobs']
        assert command in [step.get('run') for step in jobs['tests']['steps']]
    for file in (ROOT / '.github' / 'ISSUE_TEMPLATE').glob('*.yml'):
        assert yaml.safe_load(file.read_text()), file


def test_the_container_has_extras_and_stages_that_exist():
    text = (ROOT / 'Dockerfile').read_text()
    (extras,) = re.findall(r'^ARG EXTRAS=([\w,]+)$', text, re.MULTILINE)
    assert {*extras.split(','), *re.findall(r'EXTRAS=(\w+) \.', text)} <= set(PROJECT['optional-dependencies'])
    container = json.loads((ROOT / '.devcontainer' / 'devcontainer.json').read_text())
    assert f' AS {container["build"]["target"]}\n' in text
