"""Fixtures of the tests of the command line."""

import copy
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from runs import RUN


@pytest.fixture(autouse=True)
def log_level():
    level = logging.getLogger('internutopia').level
    yield
    logging.getLogger('internutopia').setLevel(level)


@pytest.fixture
def write(tmp_path: Path):
    """Writes RUN with some fields replaced to a file."""

    def write(**fields: Any) -> Path:
        file = tmp_path / 'run.yaml'
        file.write_text(yaml.safe_dump({**copy.deepcopy(RUN), **fields}))
        return file

    return write
