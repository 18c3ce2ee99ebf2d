"""Rigid bodies of a model as PhysX has them: each body that moves by itself, with all that is fixed to it.

MuJoCo's bodies without joints are parts of the one that they are fixed to, their *mover*: masses are summed, and
colliders hang on it. Those on which forces are measured are movers, too, with a fixed joint. Movers are standalone
rigid bodies, or links of an articulation, a tree of joints.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.constraints import Constraints
from internutopia.util.rotations import quat_conjugate, quat_multiply, quat_rotate, quat_rotate_inverse, quat_to_matrix

Floats = NDArray[np.floating[Any]]
FORCE_SENSORS = int(mujoco.mjtSensor.mjSENS_FORCE), int(mujoco.mjtSensor.mjSENS_TORQUE)
"""Types of sensors of the force or torque between a body and its parent."""
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)


@dataclass
class Articulation:
    """A tree of links: `root` is a body of the model, or 0 for what hangs on the world by joints.

    Attributes:
        root: mover at the root.
        fixed: True if the root does not move by itself.
        links: movers below the root.
        joints: joints of the model.
    """

    root: int
    fixed: bool
    links: list[int] = field(default_factory=list)
    joints: list[int] = field(default_factory=list)


class Movers:
    """Movers of a model, and the articulations and standalone bodies that they form.

    Attributes:
        of: mover of each body, `(nbody,)`; 0 for what is fixed to the world.
        wholes: mover at the top of all that is fixed to one another, of each body, `(nbody,)`.
        parents: of each mover, the mover above it.
        articulations: trees.
        free: standalone bodies that move freely.
        kinematic: standalone bodies that stay where they are put.
        constraints: equality constraints.
        positions, orientations: poses of all bodies in the model's reference configuration, env frame.
    """

    def __init__(self, model: mujoco.MjModel):
        self.model = model
        self.constraints = Constraints(model)
        self.of = np.zeros(model.nbody, np.intp)
        self.wholes = np.zeros(model.nbody, np.intp)
        self.parents: dict[int, int] = {}
        self.articulations: list[Articulation] = []
        self.free: list[int] = []
        self.kinematic: list[int] = []
        sensors = np.isin(model.sensor_type, FORCE_SENSORS)
        measured = set(model.site_bodyid[model.sensor_objid[sensors]].tolist())
        for body in range(1, model.nbody):
            parent = int(self.of[model.body_parentid[body]])
            moves = model.body_jntnum[body] > 0 or model.body_mocapid[body] >= 0
            self.wholes[body] = body if moves else self.wholes[model.body_parentid[body]]
            self.of[body] = parent
            if moves or (parent and body in measured):
                self.of[body] = body
                self.parents[body] = parent
        self._group()
        for joint, other in self.constraints.coupled():
            self._unite(joint, other)
        data = mujoco.MjData(model)
        data.qpos[:] = model.qpos0
        mujoco.mj_kinematics(model, data)
        self.positions, self.orientations = data.xpos.copy(), data.xquat.copy()
        self.geom_positions = data.geom_xpos.copy()
        self.geom_orientations = _quaternions(data.geom_xmat.reshape(-1, 3, 3))

    def _group(self) -> None:
        model, trees = self.model, dict[int, Articulation]()
        jointed = {parent for mover, parent in self.parents.items() if not self._is_root(mover)}
        for mover, parent in self.parents.items():
            if self._is_root(mover):
                fixed = model.body_mocapid[mover] >= 0
                if mover in jointed:
                    trees[mover] = Articulation(mover, bool(fixed))
                    self.articulations.append(trees[mover])
                else:
                    (self.kinematic if fixed else self.free).append(mover)
                continue
            if parent == 0:
                tree = Articulation(0, True)
                self.articulations.append(tree)
            else:
                tree = trees[parent]
            trees[mover] = tree
            tree.links.append(mover)
            tree.joints.extend(self.joints(mover))

    def _unite(self, joint: int, other: int) -> None:
        """Put two joints into one articulation. NotImplementedError if they are of trees with their own roots."""
        one, two = (next(tree for tree in self.articulations if i in tree.joints) for i in (joint, other))
        if one is two:
            return
        if one.root or two.root:
            names = ' and '.join(repr(self.model.joint(i).name) for i in (joint, other))
            raise NotImplementedError(
                f"backend 'physx': joints {names} are coupled and in different trees of bodies; use 'mujoco'"
            )
        one.links += two.links
        one.joints += two.joints
        self.articulations.remove(two)

    def joints(self, mover: int) -> range:
        """Return the joints of a body, none if it is fixed to another one."""
        first = int(self.model.body_jntadr[mover])
        return range(first, first + int(self.model.body_jntnum[mover]))

    def _is_root(self, mover: int) -> bool:
        if self.model.body_mocapid[mover] >= 0:
            return True
        return any(self.model.jnt_type[joint] == _FREE for joint in self.joints(mover))

    def local(self, mover: int, position: Floats, orientation: Floats) -> tuple[Floats, Floats]:
        """Return a pose of the env frame in the frame of a mover."""
        own = self.orientations[mover]
        return (
            quat_rotate_inverse(own, position - self.positions[mover]),
            quat_multiply(quat_conjugate(own), orientation),
        )


@dataclass(frozen=True)
class MassColumns:
    """Masses of movers, `(n, k)` [kg], centres of mass and principal axes `(n, k, 7)`, and moments `(n, k, 3)`.

    Poses are `(x, y, z, qx, qy, qz, qw)` in the frames of the movers.
    """

    masses: Floats
    frames: Floats
    moments: Floats


class MassSums:
    """Sums of what is fixed to each of some movers, for many sets of masses at once."""

    def __init__(self, movers: Movers, chosen: list[int]):
        place = {mover: k for k, mover in enumerate(chosen)}
        bodies = [body for body in range(1, movers.model.nbody) if movers.of[body] in place]
        self._bodies = np.array(bodies, np.intp)
        self._owner = np.array([place[movers.of[body]] for body in bodies], np.intp)
        self._count = len(chosen)
        poses = [movers.local(movers.of[b], movers.positions[b], movers.orientations[b]) for b in bodies]
        self._positions = np.array([position for position, _ in poses]).reshape(-1, 3)
        self._orientations = np.array([orientation for _, orientation in poses]).reshape(-1, 4)

    def columns(self, mass: Floats, inertia: Floats, position: Floats, orientation: Floats) -> MassColumns:
        """Return the sums, from fields `body_mass`, `_inertia`, `_ipos` and `_iquat` of n models."""
        mass, inertia = mass[:, self._bodies], inertia[:, self._bodies]
        centre = self._positions + quat_rotate(self._orientations, position[:, self._bodies])
        axes = quat_multiply(self._orientations, orientation[:, self._bodies])
        total = self._sum(mass)
        safe = np.where(total > 0, total, 1.0)
        middle = self._sum(mass[..., None] * centre) / safe[..., None]
        arm = centre - middle[:, self._owner]
        basis = quat_to_matrix(axes)
        tensor = np.einsum('nbij,nbj,nbkj->nbik', basis, inertia, basis)
        square = np.einsum('nbi,nbi->nb', arm, arm)
        tensor += mass[..., None, None] * (square[..., None, None] * np.eye(3) - arm[..., :, None] * arm[..., None, :])
        moments, vectors = np.linalg.eigh(self._sum(tensor))
        vectors[..., 2] *= np.sign(np.linalg.det(vectors))[..., None]
        return MassColumns(
            total, np.concatenate([middle, _quaternions(vectors)[..., [1, 2, 3, 0]]], axis=-1), np.maximum(moments, 0.0)
        )

    def _sum(self, values: Floats) -> Floats:
        sums = np.zeros((len(values), self._count, *values.shape[2:]))
        for body, owner in enumerate(self._owner.tolist()):
            sums[:, owner] += values[:, body]
        return sums


def _quaternions(matrices: Floats) -> Floats:
    """Return quaternions `(..., 4)` of rotation matrices `(..., 3, 3)`."""
    flat = np.ascontiguousarray(matrices.reshape(-1, 9))
    found = np.zeros((len(flat), 4))
    for quaternion, matrix in zip(found, flat, strict=True):
        mujoco.mju_mat2Quat(quaternion, matrix)
    return found.reshape(*matrices.shape[:-2], 4)
