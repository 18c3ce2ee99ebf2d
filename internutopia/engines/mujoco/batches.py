"""Batches of simulations: poses of what never moves are computed once, and a solver of MuJoCo 4.0.0 is avoided.

MuJoCo places every geom of a model anew in each step, which takes most of the time in a home of thousands of geoms. It
leaves out those that are fixed to the world where things may fall asleep (`mjENBL_SLEEP`). So a batch whose model has
many of them may do that, and nothing in it may: each tree has the policy never to sleep. Results are the same to the
bit. Such a batch is persistent, which is an `MjData` for each simulation.

From 60 degrees of freedom on, MuJoCo's constraint Jacobian is sparse unless the model sets another. MuJoCo 4.0.0 then
factors the Hessian of its Newton solver wrongly where robots touch one another: steps take many times the iterations,
and robots fly away. 4.0.1 puts it right. With a dense Jacobian, 4.0.0 agrees with it to rounding, and takes about as
long.
"""

from __future__ import annotations

import copy
from collections.abc import Set as AbstractSet

import mujoco
import numpy as np
from mujoco.batch import Batch

MANY_GEOMS = 500
"""A model with more geoms that are fixed to the world has them placed once."""
POSE_FIELDS = frozenset({'body_pos', 'body_quat', 'geom_pos', 'geom_quat', 'site_pos', 'site_quat'})
"""Fields of `MjModel` that may move them; where one has values per simulation, they are placed in each step."""

_SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
_BROKEN = '4.0.0'  # whose sparse Newton solver is wrong


def make_batch(model: mujoco.MjModel, nsim: int, nthread: int, expanded: AbstractSet[str]) -> Batch:
    """Return a batch of simulations; `expanded` are the fields of the model that will have values per simulation."""
    model = _solved_right(model)
    geoms = np.count_nonzero(model.body_weldid[model.geom_bodyid] == 0)
    rk4 = model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4  # which cannot do that
    if geoms <= MANY_GEOMS or rk4 or POSE_FIELDS & expanded:
        return Batch(model, nsim, nthread)
    sleepless = copy.copy(model)
    sleepless.opt.enableflags |= _SLEEP
    sleepless.tree_sleep_policy[:] = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    batch = Batch(sleepless, nsim, nthread, persistent=True)
    batch.model = model  # it has made a copy of its own: there need not be a third one
    return batch


def _solved_right(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return the model, or a copy with a dense Jacobian if this MuJoCo would solve it wrongly."""
    newton = model.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON
    if mujoco.__version__ != _BROKEN or not newton or not mujoco.mj_isSparse(model):
        return model
    model = copy.copy(model)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    return model
