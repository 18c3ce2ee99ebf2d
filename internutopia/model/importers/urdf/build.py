"""Build: a `Document` -> `MjSpec`: its bodies, joints, geoms, and masses that add up to those of the file.

- The masses are those of the file. A link without one weighs nothing; where links that move together (they are fixed to
  each other) all weigh nothing, the first of them gets `LEAST_MASS` and `LEAST_INERTIA`, without which MuJoCo has
  nothing to accelerate. If the file has no mass, all follow from the collision shapes, at 1000 kg/m3.
- Principal moments that no body has (a negative one, or one that is more than the other two together) are replaced by
  their mean, as MuJoCo's `balanceinertia` does. If the excess is no more than rounding, the largest is reduced.
- A mass without inertia, or with one of zeros (not given, as in UsdPhysics), is spread evenly over the collision shapes
  of the link; without any it is a point.
"""

from __future__ import annotations

from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from internutopia.model.groups import COLLIDER_GROUP, VISUAL_GROUP
from internutopia.model.importers.transforms import principal, to_quat
from internutopia.model.importers.urdf.document import WORLD, Document, Inertial, Joint, Link, Numbers
from internutopia.model.importers.urdf.meshes import Meshes

WORLD_LINK = 'world_link'
"""Name of the body of a link called `world`, which MuJoCo keeps for itself."""

_HINGE, _SLIDE = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE
_BALL, _FREE = mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE
_JOINTS = {'revolute': _HINGE, 'continuous': _HINGE, 'prismatic': _SLIDE, 'spherical': _BALL}
_GEOMS = {
    'box': mujoco.mjtGeom.mjGEOM_BOX,
    'sphere': mujoco.mjtGeom.mjGEOM_SPHERE,
    'cylinder': mujoco.mjtGeom.mjGEOM_CYLINDER,
    'capsule': mujoco.mjtGeom.mjGEOM_CAPSULE,
    'mesh': mujoco.mjtGeom.mjGEOM_MESH,
}
# Options of MuJoCo's compiler that are handled, or decided, here
_OURS = ('angle', 'eulerseq', 'discardvisual', 'fusestatic', 'strippath', 'meshdir', 'texturedir', 'assetdir')
LEAST_MASS, LEAST_INERTIA = 1e-6, 1e-9
"""[kg], [kg·m2]: too light to matter for any real link, heavy enough to keep the mass matrix regular."""
_ROUNDING = 0.01  # excess of a principal moment, as part of it, that three written digits may cause
_EVEN = 1 - 1e-12  # MuJoCo refuses an excess of one bit, which scaling may cause


def empty_spec(document: Document) -> mujoco.MjSpec:
    """Return a spec with the settings in the file's `<mujoco>` element. ValueError for one that MuJoCo lacks."""
    model = Element('mujoco')
    for section in document.settings if document.settings is not None else ():
        if section.tag == 'compiler':
            SubElement(model, 'compiler', {key: value for key, value in section.items() if key not in _OURS})
        elif section.tag in ('option', 'size'):
            model.append(section)
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(model, encoding='unicode'))
    spec.compiler.degree = False
    spec.modelname = document.name or 'robot'
    return spec


def add_links(document: Document, spec: mujoco.MjSpec, meshes: Meshes) -> dict[str, mujoco.MjsBody]:
    """Add all links with their joints and shapes; returns the bodies by link, without the world's own."""
    root = document.root
    rooted = root == WORLD and any(joint.parent == WORLD and joint.kind == 'floating' for joint in document.joints)
    bodies = {root: spec.worldbody if rooted else spec.worldbody.add_body(name=_body_name(root))}
    for joint in document.joints:
        pose = {'pos': joint.pose.xyz, 'quat': joint.pose.quat}
        bodies[joint.child] = bodies[joint.parent].add_body(name=_body_name(joint.child), **pose)
        _add_joints(bodies[joint.child], joint, free=rooted and joint.parent == WORLD)
    names = set[str]()
    for name, link in document.links.items():
        _add_shapes(bodies[name], link, meshes, names)
    for joint in document.joints:
        if joint.mimic is not None:
            equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_JOINT, name1=joint.name, name2=joint.mimic.joint)
            equality.objtype = mujoco.mjtObj.mjOBJ_JOINT
            equality.data[:2] = joint.mimic.offset, joint.mimic.multiplier
    if rooted:
        del bodies[root]
    return bodies


def _body_name(link: str) -> str:
    return WORLD_LINK if link == WORLD else link


def _add_joints(body: mujoco.MjsBody, joint: Joint, *, free: bool) -> None:
    """Add joints; `free`: a floating joint may be a free one, as only those right below the world can."""
    parts: list[tuple[str, mujoco.mjtJoint, ArrayLike]]
    if joint.kind == 'fixed':
        return
    if joint.kind == 'planar':
        x, y = _across(joint.axis)
        parts = [('_TX', _SLIDE, x), ('_TY', _SLIDE, y), ('_RZ', _HINGE, joint.axis)]
    elif joint.kind == 'floating':
        slides = [(f'_T{name}', _SLIDE, axis) for name, axis in zip('XYZ', np.eye(3), strict=True)]
        parts = [('', _FREE, joint.axis)] if free else [*slides, ('_R', _BALL, joint.axis)]
    else:
        parts = [('', _JOINTS[joint.kind], joint.axis)]
    for suffix, kind, axis in parts:
        added = body.add_joint(name=joint.name + suffix, type=kind, axis=axis)
        added.damping[0], added.frictionloss = joint.damping, joint.friction
        added.limited = joint.limits is not None
        if joint.limits is not None:
            added.range = joint.limits
        if joint.effort and kind in (_HINGE, _SLIDE):
            added.actfrcrange = -joint.effort, joint.effort


def _across(axis: Numbers) -> NDArray[np.float64]:
    """Return two directions across an axis and each other `(2, 3)`."""
    quat, turn = np.zeros(4), np.zeros(9)
    mujoco.mju_quatZ2Vec(quat, axis)
    mujoco.mju_quat2Mat(turn, quat)
    return turn.reshape(3, 3).T[:2]


def _add_shapes(body: mujoco.MjsBody, link: Link, meshes: Meshes, names: set[str]) -> None:
    """Add the shapes of a link; `names` are those that geoms have already, MuJoCo requires them to differ."""
    for shape in link.shapes:
        mesh = meshes.add(link.name, shape) if shape.mesh else None
        if shape.mesh and mesh is None:
            continue
        geom = body.add_geom(type=_GEOMS[shape.kind], pos=shape.pose.xyz, quat=shape.pose.quat)
        if shape.name not in names:
            geom.name = shape.name
            names.add(shape.name)
        if mesh is not None:
            geom.meshname = mesh
        else:
            # URDF has edges and lengths, MuJoCo halves of them
            radius = shape.kind != 'box'
            geom.size[: len(shape.size)] = [n if radius and i == 0 else n / 2 for i, n in enumerate(shape.size)]
        geom.contype = geom.conaffinity = int(shape.collides)
        if not shape.collides:
            geom.density = 0.0
        if shape.color is not None:
            geom.rgba = shape.color
        elif mesh is not None and not shape.collides:
            meshes.set_appearance(geom)


def group_geoms(spec: mujoco.MjSpec) -> None:
    """Sort the geoms of bodies that have visual ones into groups of both kinds."""
    for body in spec.bodies:
        geoms = list(body.geoms)
        if not all(geom.contype for geom in geoms):
            for geom in geoms:
                geom.group = COLLIDER_GROUP if geom.contype else VISUAL_GROUP


def set_masses(document: Document, spec: mujoco.MjSpec, bodies: dict[str, mujoco.MjsBody]) -> None:
    """Give the bodies of a spec, by link, their masses and inertias; a mass without inertia is a point."""
    if not any(link.inertial for link in document.links.values()):  # a mass may be 0
        if any(shape.collides for link in document.links.values() for shape in link.shapes):
            document.warnings.add('no link has a mass; the collision shapes are taken as 1000 kg/m3', document.root)
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
        document.warnings.add('balanced a physically impossible inertia', link.name)
        possible = np.full(3, np.abs(moments).mean())
    if link.mass:
        possible = np.where(possible > mujoco.mjMINVAL, possible, LEAST_INERTIA)
    body.mass, body.inertia = link.mass, possible
    body.ipos, body.iquat = link.inertial.pose.xyz, axes


def _principal(inertial: Inertial) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return principal moments, in ascending order, and the quaternion of their axes on the link."""
    xx, xy, xz, yy, yz, zz = inertial.inertia or np.zeros(6)
    moments, axes = principal(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    quat = np.zeros(4)
    mujoco.mju_mulQuat(quat, inertial.pose.quat, to_quat(axes))
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
