"""Uniform scaling of an MJCF or URDF model by the `scale` of a robot, an object or a scene.

Lengths are multiplied by the scale. Masses that are given stay (as USD's MassAPI masses do under a scaled transform)
with inertias following the square of the lengths; masses that follow from a density grow with the volume.
"""

from __future__ import annotations

import mujoco
import numpy as np

from internutopia.model.options import adopt_settings


def scale_spec(spec: mujoco.MjSpec, scale: float) -> None:
    """Scale every length of a spec in place."""
    if scale == 1.0:
        return
    for body in spec.bodies:
        body.pos = body.pos * scale
        if body.explicitinertial:
            body.ipos = body.ipos * scale
            body.inertia = body.inertia * scale**2
            body.fullinertia = body.fullinertia * scale**2
    for frame in spec.frames:
        frame.pos = frame.pos * scale
    for geom in spec.geoms:
        geom.pos = geom.pos * scale
        geom.fromto = geom.fromto * scale
        if geom.type != mujoco.mjtGeom.mjGEOM_MESH:
            geom.size = geom.size * scale
    for element in (*spec.sites, *spec.cameras, *spec.lights):
        element.pos = element.pos * scale
    for camera in spec.cameras:
        if camera.proj == mujoco.mjtProjection.mjPROJ_ORTHOGRAPHIC:
            camera.fovy *= scale  # a height in metres
    for site in spec.sites:
        site.size = site.size * scale
    for mesh in spec.meshes:
        mesh.scale = mesh.scale * scale
    for hfield in spec.hfields:
        hfield.size = hfield.size * scale
    for joint in spec.joints:
        joint.pos = joint.pos * scale
        if joint.type == mujoco.mjtJoint.mjJNT_SLIDE:
            joint.range = joint.range * scale
            joint.ref *= scale
            joint.springref *= scale
    for actuator in spec.actuators:
        joint = spec.joint(actuator.target) if actuator.trntype == mujoco.mjtTrn.mjTRN_JOINT else None
        if joint is not None and joint.type == mujoco.mjtJoint.mjJNT_SLIDE:
            actuator.biasprm[0] *= scale  # the length or speed that it pursues at a control of zero
    for equality in spec.equalities:
        if equality.type in (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD):
            equality.data[:6] *= scale  # anchor and relative position
    for tendon in spec.tendons:
        if tendon.path[0].type != mujoco.mjtWrap.mjWRAP_JOINT:  # a length in space
            tendon.range = tendon.range * scale
            tendon.springlength = np.where(tendon.springlength < 0, -1, tendon.springlength * scale)


def scale_mass(spec: mujoco.MjSpec, mass: float) -> None:
    """Scale all masses and inertias of a spec in place to a total of `mass` [kg]."""
    whole, part = mujoco.MjSpec(), spec.copy()
    adopt_settings(part, whole)
    whole.attach(part, frame=whole.worldbody.add_body().add_frame(), prefix='part/')  # what stands still, too
    total = float(np.sum(whole.compile().body_mass))
    if total <= 0:
        raise ValueError(f'the model has no mass that could be scaled to {mass} kg')
    factor = mass / total
    for geom in spec.geoms:
        geom.density *= factor
        if not np.isnan(geom.mass):
            geom.mass *= factor
    for body in spec.bodies:
        body.mass *= factor
        body.inertia = body.inertia * factor
        body.fullinertia = body.fullinertia * factor
