"""Equality constraints of a model as joints of PhysX: mimic joints, locked joints, and joints that close loops.

They are hard, whatever `solref` and `solimp` say. Those that are not active from the start are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

Frame = tuple[NDArray[np.float64], NDArray[np.float64]]
_CONNECT, _WELD, _JOINT = (
    int(kind) for kind in (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD, mujoco.mjtEq.mjEQ_JOINT)
)
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)
_MOVABLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another one: its position is `offset + ratio * position`, both from their references."""

    leader: int
    offset: float
    ratio: float


@dataclass(frozen=True)
class Loop:
    """A joint between two bodies of the model besides those of their trees: it fixes them, or only a point of theirs.

    `frames` are position and orientation of the joint in the frame of each body.
    """

    fixed: bool
    bodies: tuple[int, int]
    frames: tuple[Frame, Frame]


class Constraints:
    """Equality constraints of a model. NotImplementedError for those that PhysX has no counterpart of.

    Attributes:
        mimics: by joints that follow others.
        locked: positions, from their references, by joints that are held there.
        loops: all others.
    """

    def __init__(self, model: mujoco.MjModel):
        self.mimics: dict[int, Mimic] = {}
        self.locked: dict[int, float] = {}
        self.loops: list[Loop] = []
        for constraint in np.flatnonzero(model.eq_active0).tolist():
            kind = int(model.eq_type[constraint])
            if kind == _JOINT:
                self._add_joint(model, constraint)
            elif kind in (_CONNECT, _WELD):
                self.loops.append(_loop(model, constraint, kind == _WELD))
            else:
                raise _refusal(model, constraint, f'of the type {mujoco.mjtEq(kind).name}')

    def coupled(self) -> Iterator[tuple[int, int]]:
        """Yield pairs of joints that have to be in one articulation."""
        for follower, mimic in self.mimics.items():
            yield follower, mimic.leader

    def _add_joint(self, model: mujoco.MjModel, constraint: int) -> None:
        one, other = int(model.eq_obj1id[constraint]), int(model.eq_obj2id[constraint])
        offset, ratio, *curved = model.eq_data[constraint, :5].tolist()
        if any(curved):
            raise _refusal(model, constraint, 'that is not linear')
        if any(model.jnt_type[joint] not in _MOVABLE for joint in (one, other) if joint >= 0):
            raise _refusal(model, constraint, 'between joints that are no hinges and slides')
        if other < 0 or ratio == 0:
            self.locked[one] = offset
            return
        if one in self.mimics and other not in self.mimics:  # one joint follows one other: turn it round
            one, other, offset, ratio = other, one, -offset / ratio, 1 / ratio
        if one in self.mimics:
            raise _refusal(model, constraint, f'of joint {model.joint(one).name!r}, which follows another one')
        self.mimics[one] = Mimic(other, offset, ratio)


def _loop(model: mujoco.MjModel, constraint: int, fixed: bool) -> Loop:
    """Return a loop. In MuJoCo's data are points on both bodies, and for a weld the orientation of one to the other."""
    ends, data = (int(model.eq_obj1id[constraint]), int(model.eq_obj2id[constraint])), model.eq_data[constraint]
    if model.eq_objtype[constraint] == _SITE:
        bodies = int(model.site_bodyid[ends[0]]), int(model.site_bodyid[ends[1]])
        first, second = ((model.site_pos[site], model.site_quat[site]) for site in ends)
        return Loop(fixed, bodies, (first, second))
    if fixed:
        return Loop(True, ends, ((data[3:6], data[6:10] / np.linalg.norm(data[6:10])), (data[:3], _IDENTITY)))
    return Loop(False, ends, ((data[:3], _IDENTITY), (data[3:6], _IDENTITY)))


def _refusal(model: mujoco.MjModel, constraint: int, what: str) -> NotImplementedError:
    name = model.equality(constraint).name or constraint
    return NotImplementedError(
        f"backend 'physx' has no counterpart of equality constraint {name!r}, {what}; use 'mujoco'"
    )
