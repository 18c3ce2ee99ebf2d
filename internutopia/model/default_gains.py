"""Default gains of joint drives: as stiff as the load on a joint takes, and damped critically.

A hinge gives way by at most `SAG` under the weight of all links beyond it, stretched out sideways as far as the chain
reaches, a slide by `SLIDE_SAG`; so an arm, whose links rarely all lie like that, holds a pose within one or two
hundredths of a radian. That is a natural frequency of `sqrt(g / (SAG L))` for links at a distance `L`, 3 Hz at 1 m.
Dampings are critical for the inertia in that pose.

The sizes do not depend on the gravity of the scene, so that a robot is the same one everywhere; links that gravity does
not act on have no weight.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.file_errors import BROKEN

SAG = 0.03  # [rad]
SLIDE_SAG = 0.01  # [m]
_GRAVITY = 9.81  # [m/s2]


def default_gains(asset: mujoco.MjSpec, least: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Return stiffness and damping of drives on joints of a robot's asset; `least`: lower bounds, by joint.

    The least ones for an asset that does not compile, an error when the scene is compiled.
    """
    try:
        model = asset.copy().compile()
    except BROKEN:
        return dict(least)
    gains = dict[str, tuple[float, float]]()
    for name, (least_stiffness, least_damping) in least.items():
        joint = model.joint(name).id
        links, arms = _links_beyond(model, joint)
        masses, armature = model.body_mass[links], model.dof_armature[model.jnt_dofadr[joint]]
        weights = _GRAVITY * masses * (1.0 - model.body_gravcomp[links]).clip(0.0)
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE:
            load, sag = weights @ arms, SAG
            inertia = masses @ arms**2 + model.body_inertia[links].max(axis=1).sum()
        else:
            load, sag, inertia = weights.sum(), SLIDE_SAG, masses.sum()
        stiffness = max(least_stiffness, load / sag)
        damping = max(least_damping, 2.0 * np.sqrt(stiffness * (inertia + armature)))
        gains[name] = float(stiffness), float(damping)
    return gains


def _links_beyond(model: mujoco.MjModel, joint: int) -> tuple[list[int], NDArray[np.float64]]:
    """Return the bodies that a joint moves, and the greatest distance [m] of their centres of mass, slides at zero."""
    first = int(model.jnt_bodyid[joint])
    anchor = model.jnt_pos[joint]
    reach = {first: 0.0}  # of the frame of a body
    arms = [float(np.linalg.norm(model.body_ipos[first] - anchor))]
    for body in range(first + 1, model.nbody):
        parent = int(model.body_parentid[body])
        if parent in reach:
            offset = model.body_pos[body] - (anchor if parent == first else 0.0)
            reach[body] = reach[parent] + float(np.linalg.norm(offset))
            arms.append(reach[body] + float(np.linalg.norm(model.body_ipos[body])))
    return list(reach), np.array(arms)
