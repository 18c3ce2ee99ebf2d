"""What tests of compatibility share."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from client_data import write_data

from internutopia import compat


@pytest.fixture
def stand_ins() -> Iterator[None]:
    """The stand-ins for modules of Isaac Sim can be imported, until the test is over."""
    assert compat.install()
    yield
    compat.uninstall()


@pytest.fixture(scope='session')
def configs() -> ModuleType:
    """The client's configs: imported late, since their types are known from then on."""
    return importlib.import_module('vln_client.configs')


@pytest.fixture(scope='session')
def client_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the client evaluates in."""
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', '`torch.jit', DeprecationWarning)  # clients of 2.x have nothing else
        return write_data(tmp_path_factory.mktemp('client') / 'data')
