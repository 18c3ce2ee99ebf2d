"""Config of how contacts are computed."""

from typing import Literal

from pydantic import Field, NonNegativeInt

from internutopia.config.base import BaseCfg
from internutopia.config.fields import Count, PositiveFloat
from internutopia.util.bounds import MAX_SOLVER_ITERATIONS


class ContactCfg(BaseCfg):
    """How MuJoCo, on the CPU or on Warp, computes contacts; what is None follows from the models of a scene.

    What each option does is said in MuJoCo's documentation, under `option`. Isaac Sim has no counterpart.
    """

    integrator: Literal['Euler', 'RK4', 'implicit', 'implicitfast', 'discrete'] | None = None
    """How velocities and positions advance. `'discrete'` solves contacts and damped drives together, so a finger that
    presses does not chatter; under it nothing bounces."""
    cone: Literal['pyramidal', 'elliptic'] | None = None
    """Friction cone: `'pyramidal'` is faster, `'elliptic'` the same in all directions, and slips less with a higher
    `impratio`."""
    impratio: PositiveFloat | None = None
    """How much stiffer friction is than the normal force; MuJoCo's default is 1. Pays off with an elliptic cone."""
    noslip_iterations: NonNegativeInt | None = Field(default=None, le=MAX_SOLVER_ITERATIONS)
    """Passes of a solver that takes out the slip that soft friction leaves; 0 is none."""
    solver: Literal['PGS', 'CG', 'Newton'] | None = None
    """Algorithm of the constraint solver; `'PGS'` is not there on Warp."""
    iterations: Count | None = Field(default=None, le=MAX_SOLVER_ITERATIONS)
    """Passes of the solver at most; it stops earlier when it has converged."""
    ls_iterations: Count | None = Field(default=None, le=MAX_SOLVER_ITERATIONS)
    """Passes of the line search in each of them, at most."""
    tolerance: PositiveFloat | None = None
    """Improvement of the cost, scaled, at which the solver stops."""
