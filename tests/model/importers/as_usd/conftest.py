"""Places of geoms in compiled models, for the tests of all formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray


@pytest.fixture(scope='session')
def corners() -> Callable[[mujoco.MjModel, str], NDArray[np.float64]]:
    """Corners `(n, 3)` of a geom's mesh in the world, each place once, sorted."""

    def corners(model: mujoco.MjModel, geom: str) -> NDArray[Any]:
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        mesh = model.mesh(model.geom(geom).dataid[0])
        points = model.mesh_vert[mesh.vertadr[0] :][: mesh.vertnum[0]]
        placed = points @ data.geom(geom).xmat.reshape(3, 3).T + data.geom(geom).xpos
        return np.unique(placed.round(5) + 0.0, axis=0)

    return corners
