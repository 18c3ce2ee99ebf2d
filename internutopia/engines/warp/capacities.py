"""Buffer capacities of a Warp batch: what contacts and constraints need, and how they grow."""

from __future__ import annotations

import dataclasses

import mujoco
import mujoco_warp as mjw

_O = mjw.OverflowType
_CONTACTS = _O.BROADPHASE | _O.NARROWPHASE | _O.CCD
GROWABLE = _CONTACTS | _O.NEFC | _O.NJMAX_NNZ | _O.CONTACT_MATCH  # flags of buffers that can be enlarged


@dataclasses.dataclass
class Capacities:
    """Sizes of the buffers of a batch."""

    contacts: int  # per world, in the mean
    constraints: int  # per world
    nonzeros: int | None = None  # of a sparse constraint Jacobian, per world; None is a guess of the engine
    matches: int = 64  # contacts per contact sensor

    @classmethod
    def of(cls, model: mujoco.MjModel) -> Capacities:
        """Return what a scene is likely to need: all its limits, and some contacts for each geom that moves."""
        moves = model.body_weldid[model.geom_bodyid] != 0
        touches = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
        contacts = 16 + 2 * int((moves & touches).sum()) + 4 * model.npair
        rows = 2 * (int(max([3, *model.geom_condim, *model.pair_dim])) - 1)  # of the friction pyramid of a contact
        rest = 6 * model.neq + 2 * (model.njnt + model.ntendon) + int((model.dof_frictionloss > 0).sum())
        return cls(contacts, rows * contacts + rest)

    def grown(self, flags: int, nv: int) -> Capacities:
        """Double what was too small according to the engine's `flags`; `nv` is the number of dofs of a world."""
        grown = self
        if flags & _CONTACTS:
            grown = dataclasses.replace(grown, contacts=2 * grown.contacts)
        if flags & _O.NEFC:
            grown = dataclasses.replace(grown, constraints=2 * grown.constraints)
        if flags & _O.CONTACT_MATCH:
            grown = dataclasses.replace(grown, matches=2 * grown.matches)
        if flags & _O.NJMAX_NNZ or grown.nonzeros is not None:
            grown = dataclasses.replace(grown, nonzeros=grown.constraints * nv)
        return grown
