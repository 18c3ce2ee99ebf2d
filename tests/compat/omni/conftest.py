"""Fixtures for tests of modules of Isaac Sim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from internutopia import compat


@pytest.fixture
def stand_ins() -> Iterator[None]:
    """The stand-ins for modules of Isaac Sim can be imported, until the test is over."""
    assert compat.install()
    yield
    compat.uninstall()


@pytest.fixture
def arm_crate_and_box(make_task, make_robot, make_block) -> Any:
    """A task with an arm, a crate of the scene, and a box in the air."""
    return make_task(
        scene='crates',
        robots=[make_robot(position=(1, 2, 0))],
        objects=[make_block('box', mass=1.0, position=(0, 1, 2.0), scale=(0.2, 0.4, 0.6))],
        max_steps=99,
    )
