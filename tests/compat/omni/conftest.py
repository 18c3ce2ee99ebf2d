"""Fixtures for tests of modules of Isaac Sim."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from internutopia import compat


@pytest.fixture
def stand_ins() -> Iterator[None]:
    """The stand-ins for modules of Isaac Sim can be imported, until the test is over."""
    assert compat.install()
    yield
    compat.uninstall()
