"""The wheel: what is installed works without a checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = "from setuptools import build_meta; build_meta.build_wheel('.')"
PROGRAM = """
import sys, gymnasium
gymnasium.make('internutopia:InternUtopia/CartPole-v0', threads=1).close()
import internutopia, internutopia_extension
for package in (internutopia, internutopia_extension):
    assert package.__file__.startswith(sys.argv[1]), package.__file__
from internutopia.cli import app
app.app(['list', 'tasks'])
"""


@pytest.mark.slow
def test_what_is_installed_has_the_ids_and_the_types(tmp_path: Path) -> None:
    pytest.importorskip('setuptools')
    source, installed = tmp_path / 'source', tmp_path / 'installed'
    for package in ('internutopia', 'internutopia_extension'):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns('__pycache__'))
    for file in ('pyproject.toml', 'README.md', 'LICENSE'):
        shutil.copy(ROOT / file, source)
    subprocess.run([sys.executable, '-c', BUILD], cwd=source, check=True, capture_output=True)
    (wheel,) = source.glob('*.whl')
    zipfile.ZipFile(wheel).extractall(installed)
    for package in ('internutopia', 'internutopia_extension'):
        assert (installed / package / 'py.typed').exists()
    command = [sys.executable, '-c', PROGRAM, str(installed)]
    environment = {**os.environ, 'PYTHONPATH': str(installed)}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert 'InternUtopia/CartPole-v0  ' in result.stdout
