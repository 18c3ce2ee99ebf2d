"""Computes the constants of `internutopia_extension/controllers/h1_stance.py` that follow from the built-in H1 model.

    python tools/tune_h1_stance.py

Run it after the model's masses, feet or home pose have changed and copy the numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from internutopia_extension.controllers.h1_stance import SET_POINT, STATIC_TORQUES
from internutopia_extension.robots.h1 import H1Robot

MODEL = Path(__file__).resolve().parent.parent / 'internutopia' / 'assets' / 'robots' / 'h1' / 'h1.xml'
SIDES = ('left', 'right')


def com_ahead_of_ankles(data: mujoco.MjData) -> float:
    """Returns how far the centre of mass is ahead of the ankles [m]."""
    ankles = np.mean([data.body(f'{side}_ankle_link').xpos[0] for side in SIDES])
    return float(data.subtree_com[1][0] - ankles)


def set_posture(model: mujoco.MjModel, data: mujoco.MjData, hip_shift: float) -> None:
    """Puts the robot in its home pose, leaned by `hip_shift` [rad] from the ankles; pelvis and feet stay level."""
    mujoco.mj_resetData(model, data)
    for joint, position in H1Robot.home.items():
        shift = hip_shift * (('hip_pitch' in joint) - ('ankle' in joint))
        data.joint(joint).qpos = position + shift
    mujoco.mj_forward(model, data)


def find_hip_shift(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Returns the hip shift [rad] that puts the centre of mass over `SET_POINT`, by bisection."""
    low, high = -0.3, 0.3
    while high - low > 1e-7:
        middle = (low + high) / 2
        set_posture(model, data, middle)
        low, high = (middle, high) if com_ahead_of_ankles(data) < SET_POINT else (low, middle)
    return high


def static_torques(model: mujoco.MjModel, data: mujoco.MjData, weight: float) -> dict[str, float]:
    """Returns torques [N m] of left joints, each foot carrying half the weight below the centre of mass."""
    torques = data.qfrc_bias.copy()
    jacobian = np.zeros((3, model.nv))
    for side in SIDES:
        pressure = np.array([data.subtree_com[1][0], *data.site(f'{side}_foot').xpos[1:]])
        mujoco.mj_jac(model, data, jacobian, None, pressure, model.body(f'{side}_ankle_link').id)
        torques -= jacobian.T @ [0, 0, weight / 2]
    return {joint: float(torques[model.joint(f'left_{joint}_joint').dofadr[0]]) for joint in STATIC_TORQUES}


def com_gradient(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Returns the motion of the centre of mass ahead of the ankles [m/rad] by pelvis pitch, hips and knees."""
    com, ankle = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jacSubtreeCom(model, data, com, 1)
    mujoco.mj_jacBody(model, data, ankle, None, model.body('left_ankle_link').id)
    relative = com[0] - ankle[0]
    dofs = [[model.joint(f'{side}_{joint}_joint').dofadr[0] for side in SIDES] for joint in ('hip_pitch', 'knee')]
    return np.array([relative[4], *(relative[both].sum() for both in dofs)])


def constants() -> dict[str, Any]:
    """Returns the constants by their name in `h1_stance.py`."""
    spec = mujoco.MjSpec.from_file(str(MODEL))
    spec.worldbody.first_body().add_freejoint()
    model = spec.compile()
    data = mujoco.MjData(model)
    hip_shift = find_hip_shift(model, data)
    weight = float(model.body_mass.sum() * -model.opt.gravity[2])
    return {
        'HIP_SHIFT': hip_shift,
        'COM_GRADIENT': com_gradient(model, data),
        'HEIGHT': float(data.subtree_com[1][2] - data.site('left_foot').xpos[2]),
        'WEIGHT': weight,
        'STATIC_TORQUES': static_torques(model, data, weight),
    }


if __name__ == '__main__':
    for constant, value in constants().items():
        print(f'{constant} = {value}')
