"""Static poses: those of bodies that nothing moves, computed once instead of in each step.

MuJoCo places every geom of a model anew in each step, which takes most of the time in a home of thousands of geoms. It
leaves out those that are fixed to the world where things may fall asleep (`mjENBL_SLEEP`). So a batch whose model has
many of them may do that, and nothing in it may: each tree has the policy never to sleep. Results are the same to the
bit. Such a batch is persistent, which is an `MjData` for each simulation.
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


def make_batch(model: mujoco.MjModel, nsim: int, nthread: int, expanded: AbstractSet[str]) -> Batch:
    """Return a batch of simulations; `expanded` are the fields of the model that will have values per simulation."""
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
