"""The world that a config asks for."""

import numpy as np
import pytest

from internutopia.config import ContactCfg, SimConfig
from internutopia.engines.factory import create_world
from internutopia.util.log import recorded_warnings


def test_a_window_that_the_backend_does_not_have_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        create_world(SimConfig(headless=False), 1, np.zeros((1, 3)))
    (said,) = [record.getMessage() for record in caplog.records]
    assert (
        said.startswith("SimConfig.headless=False: backend 'mujoco' does not open a window.") and 'Env.render()' in said
    )


def test_settings_that_physx_does_not_have() -> None:
    """Contact settings are warned of by name, ray tracing on the CPU is refused."""
    config = SimConfig(backend='physx', contact=ContactCfg(cone='elliptic', impratio=10.0), renderer='raytrace')
    with recorded_warnings() as warnings, pytest.raises(ValueError, match="backend 'physx' renders with OpenGL"):
        create_world(config, 1, np.zeros((1, 3)))
    assert [each.text for each in warnings] == [
        "SimConfig.contact: backend 'physx' has no counterpart of cone, impratio"
    ]
