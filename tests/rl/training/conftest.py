"""A run that tests look at, and copies of it that they change."""

import shutil
from pathlib import Path

import pytest
from toy_runs import train_toy


@pytest.fixture(scope='module')
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a run of two updates; not to be changed."""
    folder = tmp_path_factory.mktemp('runs') / 'floater'
    assert train_toy(folder, seed=3, command='what was typed').finished
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(finished, tmp_path / 'run'))
