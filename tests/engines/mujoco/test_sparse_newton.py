"""Scenes of 60 degrees of freedom and more, for which MuJoCo's Newton solver takes a sparse Jacobian."""

import copy
from typing import Any

import mujoco
import numpy as np

from internutopia.config import SimConfig
from internutopia.engines.factory import create_world
from internutopia.model.spec import RobotSpec, SceneSpec

STEPS = 60
TOLERANCE = 1e-9  # m, rad: a sparse and a dense factor round differently; with a wrong one, robots are metres away


def test_two_humanoids_that_touch_move_as_with_a_dense_jacobian():
    robots = [RobotSpec(f'h{k}', 'robots/h1/h1.xml', position=(0.1 * k, 0.0, 1.0 + 0.6 * k)) for k in range(2)]
    scene = SceneSpec('scenes/warehouse.xml', robots=tuple(robots))
    world: Any = create_world(SimConfig(physics_dt='1/200', threads=1), 1, np.zeros((1, 3)))
    world.load({0: (world.prepare(scene), scene)})
    model, data = copy.copy(world.model(0)), world.data(0)
    assert model.nv >= 60 and model.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
        assert world.step(np.array([0])) == {}
    assert np.abs(world.data(0).qpos - data.qpos).max() < TOLERANCE
    world.close()
