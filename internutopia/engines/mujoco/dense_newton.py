"""Dense Newton: a way around the sparse Newton solver of MuJoCo 4.0.0, which factors its Hessian wrongly.

From 60 degrees of freedom on, MuJoCo's constraint Jacobian is sparse unless the model says otherwise. In 4.0.0 the
factor is then wrong where robots touch one another: steps take many times the iterations, and robots fly away. 4.0.1
puts it right. With a dense Jacobian, 4.0.0 agrees with it to rounding, and takes about as long.
"""

import copy

import mujoco

_BROKEN = '4.0.0'


def solved_right(model: mujoco.MjModel) -> mujoco.MjModel:
    """Return the model, or a copy with a dense Jacobian if this MuJoCo would solve it wrongly."""
    newton = model.opt.solver == mujoco.mjtSolver.mjSOL_NEWTON
    if mujoco.__version__ != _BROKEN or not newton or not mujoco.mj_isSparse(model):
        return model
    model = copy.copy(model)
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    return model
