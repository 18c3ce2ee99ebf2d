"""The world that a config asks for."""

import numpy as np
import pytest

from internutopia.config import SimConfig
from internutopia.engines.factory import create_world


def test_a_window_that_the_backend_does_not_have_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        create_world(SimConfig(headless=False), 1, np.zeros((1, 3)))
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("SimConfig.headless=False: backend 'mujoco' opens no window.") and 'Env.render()' in said
