"""Config of how contacts are computed."""

from typing import Literal

from pydantic import Field, NonNegativeInt

from internutopia.config.base import BaseCfg
from internutopia.config.fields import Count, PositiveFloat
from internutopia.util.bounds import MAX_SOLVER_ITERATIONS


class ContactCfg(BaseCfg):
    """Contact settings of MuJoCo, on the CPU or on Warp; None leaves a setting to the models of a scene.

    MuJoCo's documentation describes each option, under `option`. Isaac Sim has no counterpart.
    """

    integrator: Literal['Euler', 'RK4', 'implicit', 'implicitfast', 'discrete'] | None = None
    """Integrator of velocities and positions. `'discrete'` solves contacts and damped drives together, so a finger that
    presses does not chatter; under it nothing bounces."""
    cone: Literal['pyramidal', 'elliptic'] | None = None
    """Friction cone: `'pyramidal'` is faster, `'elliptic'` the same in all directions, and slips less with a higher
    `impratio`."""
    impratio: PositiveFloat | None = None
    """Stiffness of friction relative to the normal force; MuJoCo's default is 1. Pays off with an elliptic cone."""
    noslip_iterations: NonNegativeInt | None = Field(default=None, le=MAX_SOLVER_ITERATIONS)
    """Passes of a solver that takes out the slip that soft friction leaves; 0 is none."""
    solver: Literal['PGS', 'CG', 'Newton'] | None = None
    """Algorithm of the constraint solver; `'PGS'` is not available on Warp."""
    iterations: Count | None = Field(default=None, le=MAX_SOLVER_ITERATIONS)
    """Passes of the solver at most; it stops earlier when it has converged."""
    ls_iterations: Count | None = Field(default=None, le=MAX_SOLVER_ITERATIONS)
    """Passes of the line search in each of them, at most."""
    tolerance: PositiveFloat | None = None
    """Improvement of the cost, scaled, at which the solver stops."""
