"""Contact parameters (`solref`, `solimp`) of things that are rigid, and of things that bounce.

MuJoCo pulls a contact of normal velocity `v` and depth `r` towards the acceleration `-b v - k r`, as strictly as the
impedance says, from 0 to 1. By default that is soft: a box under a hundred times its weight sinks in by centimetres.

Restitution is Newton's: a contact gives back the share `e` of the normal velocity in the one time step in which it
becomes active, however long that is, and can only push from then on, so it adds no energy. That takes `b = (1 + e) / h`
for a time step `h`, and an impedance near 1. Impacts are noticed late, at a depth of up to `v h`; `k` makes up for what
is lost on the way out of it.
"""

from __future__ import annotations

from itertools import chain

import mujoco
import numpy as np

# A box under a hundred times its weight sinks in by 1 mm; the weight lets these count where they meet softer geoms
_RIGID_IMPEDANCE = (0.99, 0.999, 0.001, 0.5, 2.0)
_RIGID_WEIGHT = 100.0

_MAX_RESTITUTION = 0.99  # several contacts at once are solved to a percent: a whole 1 could gain energy
_BOUNCE_IMPEDANCE = (0.9999, 0.9999, 0.001, 0.5, 2.0)  # MuJoCo's greatest
_BOUNCE_WEIGHT = 1000.0
# Speed [m/s] after a fall from 1 m, and gravity [m/s2]: for these the depth is made up for exactly, for others nearly so
_SPEED, _GRAVITY = 4.43, 9.81


def make_rigid(geom: mujoco.MjsGeom) -> None:
    """Let a geom of something that moves be hard, so that what is heavy does not sink into it."""
    geom.solimp = _RIGID_IMPEDANCE
    geom.solmix = _RIGID_WEIGHT


def make_bouncy(element: mujoco.MjsGeom | mujoco.MjsPair, restitution: float, timestep: float) -> None:
    """Let a geom or a pair of them give back a share of the normal velocity, at a time step [s].

    An impact is noticed at a depth of `a v h`, with `a` anywhere from 0 to 1. To rise from there to `e^2` times the
    height of the fall, things have to leave at `(e + c) v`, where `c^2 + 2 e c = (1 - e^2) 2 g h / v` at `a = 1`. The
    spring `k = c / h^2` adds `a c v`.
    """
    e = min(restitution, _MAX_RESTITUTION)
    c = np.sqrt(e**2 + (1 - e**2) * 2 * _GRAVITY * timestep / _SPEED) - e
    element.solref = -c / timestep**2, -(1 + e) / timestep
    element.solimp = _BOUNCE_IMPEDANCE
    if isinstance(element, mujoco.MjsGeom):
        element.solmix = _BOUNCE_WEIGHT


def bounces(spec: mujoco.MjSpec) -> bool:
    """Whether contacts of a spec are given as stiffness and damping, as those of things that bounce are."""
    return any(element.solref[1] < 0 for element in chain(spec.geoms, spec.pairs))
