"""Masses of the links of a URDF, so that MuJoCo can move them and the total is that of the file.

- The masses are those of the file. A link without one weighs nothing; where links that move together (they are fixed to
  each other) all weigh nothing, the first of them gets `LEAST_MASS` and `LEAST_INERTIA`, without which MuJoCo has
  nothing to accelerate. If the file says no mass, all follow from the collision shapes, at 1000 kg/m3.
- Principal moments that no body has (a negative one, or one that is more than the other two together) are replaced by
  their mean, as MuJoCo's `balanceinertia` does. If the excess is no more than rounding, the largest is reduced.
- A mass without inertia, or with one of zeros (not given, as in UsdPhysics), is spread evenly over the collision shapes
  of the link; without any it is a point.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.importers.urdf.document import Document, Inertial, Link

LEAST_MASS, LEAST_INERTIA = 1e-6, 1e-9
"""[kg], [kg·m2]: too light to matter for any real link, heavy enough to keep the mass matrix regular."""

_ROUNDING = 0.01  # excess of a principal moment, as part of it, that three written digits may cause
_EVEN = 1 - 1e-12  # MuJoCo refuses an excess of one bit, which scaling may cause


def set_masses(document: Document, spec: mujoco.MjSpec, bodies: dict[str, mujoco.MjsBody]) -> None:
    """Give the bodies of a spec, by link, their masses and inertias; a mass without inertia is a point."""
    if not document.has_masses:
        if any(shape.collides for link in document.links.values() for shape in link.shapes):
            document.warnings.add(
                'no link says what it weighs; the collision shapes are taken as 1000 kg/m3', document.root
            )
        spec.compiler.boundmass = spec.compiler.boundmass or LEAST_MASS
        spec.compiler.boundinertia = spec.compiler.boundinertia or LEAST_INERTIA
        return
    for name, body in bodies.items():
        _set_inertial(document, document.links[name], body)
    for name in _weightless(document):
        if name in bodies:
            bodies[name].mass, bodies[name].inertia = LEAST_MASS, np.maximum(bodies[name].inertia, LEAST_INERTIA)


def spread_masses(document: Document, spec: mujoco.MjSpec, bodies: dict[str, mujoco.MjsBody]) -> None:
    """Spread masses without inertia over the collision shapes of their links; the spec must compile."""
    points = [
        body
        for name, body in bodies.items()
        if document.links[name].mass and not document.links[name].inertia and any(geom.contype for geom in body.geoms)
    ]
    if not points:
        return
    probe = spec.copy()
    probe.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    probe.compiler.boundmass, probe.compiler.boundinertia = LEAST_MASS, LEAST_INERTIA
    model = probe.compile()
    for body in points:
        shapes = model.body(body.name)
        body.inertia, body.iquat = shapes.inertia * (body.mass / shapes.mass[0]), shapes.iquat


def _set_inertial(document: Document, link: Link, body: mujoco.MjsBody) -> None:
    body.explicitinertial = True
    body.mass, body.inertia = 0.0, np.zeros(3)
    if link.inertial is None:
        return
    moments, axes = _principal(link.inertial)
    possible = _corrected(moments)
    if possible is None:
        document.warnings.add('balanced an inertia that no body can have', link.name)
        possible = np.full(3, np.abs(moments).mean())
    if link.mass:
        possible = np.where(possible > mujoco.mjMINVAL, possible, LEAST_INERTIA)
    body.mass, body.inertia = link.mass, possible
    body.ipos, body.iquat = link.inertial.pose.xyz, axes


def _principal(inertial: Inertial) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return principal moments, in ascending order, and the quaternion of their axes on the link."""
    xx, xy, xz, yy, yz, zz = inertial.inertia or np.zeros(6)
    moments, axes = np.linalg.eigh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    axes[:, 0] *= np.linalg.det(axes)
    turn, quat = np.zeros(4), np.zeros(4)
    mujoco.mju_mat2Quat(turn, axes.ravel())
    mujoco.mju_mulQuat(quat, inertial.pose.quat, turn)
    return moments, quat


def _corrected(moments: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """Return principal moments (ascending) without rounding errors, None if there is more wrong with them."""
    least, middle, most = moments
    if least < -_ROUNDING * abs(most) or least + middle < (1 - _ROUNDING) * most:
        return None
    least = max(least, 0.0)
    return np.array([least, middle, min(most, (least + middle) * _EVEN)]) if most else np.zeros(3)


def _weightless(document: Document) -> list[str]:
    """Return the first link of each set of links that move together and have no mass."""
    first = {document.root: document.root}
    for joint in document.joints:
        first[joint.child] = first[joint.parent] if joint.kind == 'fixed' else joint.child
    heavy = {first[name] for name, link in document.links.items() if link.mass}
    return [name for name in dict.fromkeys(first.values()) if name not in heavy]
