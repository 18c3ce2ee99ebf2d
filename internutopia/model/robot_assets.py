"""Robot assets, adapted to the robot's class and to the scene they are put into.

Vendors' descriptions differ from each other in names, in extra frames, and in how the limits of the motors are given;
controllers and sensors refer to the joints and links of the robot class. What surrounds a robot in its file (a floor,
lights, keyframes) is left out where the scene provides it.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from internutopia.model.spec import IDENTITY_QUAT, RobotSpec
from internutopia.util.log import warn_once

# References to joints and links by name: collection of the spec, attributes that hold names
_REFERENCES = (
    ('actuators', ('target', 'refsite')),
    ('equalities', ('name1', 'name2')),
    ('excludes', ('bodyname1', 'bodyname2')),
    ('sensors', ('objname', 'refname')),
)
_FLOORS = mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD
_GEOM = mujoco.mjtObj.mjOBJ_GEOM
_COPY = 'copy!'


def conform(child: mujoco.MjSpec, robot: RobotSpec) -> None:
    """Give a robot's asset the names and frames of its class.

    Raises:
        ValueError: a frame of the class hangs on a link that the asset does not have.
    """
    _rename(child, robot.synonyms)
    for name, (parent, position) in robot.frames.items():
        if child.body(name) is None:
            link = child.body(parent)
            if link is None:
                raise ValueError(f'robot {robot.name!r}: {robot.asset} has neither a link {name!r} nor {parent!r}')
            link.add_body(name=name, pos=np.asarray(position) * robot.scale)
    roots = list(child.worldbody.bodies)
    if robot.at_root and len(roots) == 1:
        roots[0].pos, roots[0].quat = (0.0, 0.0, 0.0), IDENTITY_QUAT
    if robot.weightless:
        for body in child.bodies:
            body.gravcomp = 1.0


def _rename(child: mujoco.MjSpec, synonyms: Mapping[str, str]) -> None:
    """Rename joints and links, and references to them; an existing name is not taken."""
    new = {}
    for parts in (child.joints, child.bodies):
        taken = {part.name for part in parts}
        for part in parts:
            name = synonyms.get(part.name)
            if name is not None and name not in taken:
                new[part.name] = part.name = name
    if not new:
        return
    for collection, attributes in _REFERENCES:
        for element in getattr(child, collection):
            for attribute in attributes:
                old = getattr(element, attribute)
                if old in new:
                    setattr(element, attribute, new[old])


def remove_surroundings(child: mujoco.MjSpec, robot: RobotSpec, *, in_scene: bool) -> list[str]:
    """Remove parts of a robot's file that the scene provides, and keyframes; returns those that are missed then.

    Floors (planes and height fields), lights and the sky of the world go if the robot is put into a scene with an
    asset. Cameras stay: some robots have external ones. Keyframes go in any case: the robot defines where joints start.
    """
    removed = []
    if in_scene:
        floors = [geom for geom in child.geoms if geom.type in _FLOORS]  # always of bodies that do not move
        skies = [texture for texture in child.textures if texture.type == mujoco.mjtTexture.mjTEXTURE_SKYBOX]
        lights = list(child.worldbody.lights)
        _delete_references(child, {geom.name for geom in floors} - {''})
        for kind, elements in (('floor', floors), ('light', lights), ('sky', skies)):
            removed += [f'{kind} {element.name!r}' if element.name else f'a {kind}' for element in elements]
            for element in elements:
                child.delete(element)
    if child.keys and not robot.joint_positions:
        removed += [f'keyframe {key.name!r}' if key.name else 'a keyframe' for key in child.keys]
    for key in list(child.keys):  # they are sized for the asset alone
        child.delete(key)
    return removed


def warn_of_removed(robot: RobotSpec, removed: list[str]) -> None:
    """Warn of what was removed from a robot's file, once."""
    if removed:
        warn_once('%s: left out, as the env or the config of the robot defines it: %s', robot.asset, ', '.join(removed))


def clear_mocap(child: mujoco.MjSpec) -> list[str]:
    """Make mocap bodies ordinary ones, for a while; returns their names."""
    bodies = [body for body in child.worldbody.bodies if body.mocap]
    for body in bodies:
        body.mocap = False
    return [body.name for body in bodies]


def restore_mocap(spec: mujoco.MjSpec, names: list[str]) -> None:
    """Make bodies of these names in a composed spec mocap bodies again, on their own in the env."""
    spec.copy_during_attach = True  # a spec cannot move its own body
    for name in names:
        held = spec.body(name)
        frame = spec.worldbody.add_frame()
        body = frame.attach_body(held, _COPY, '')
        for equality in spec.equalities:
            if equality.objtype == mujoco.mjtObj.mjOBJ_BODY:
                equality.name1, equality.name2 = (
                    _COPY + end if end == name else end for end in (equality.name1, equality.name2)
                )
        spec.delete(held)
        body.mocap = True
        _rename_copies(spec, body)
    spec.copy_during_attach = False


def _rename_copies(spec: mujoco.MjSpec, body: mujoco.MjsBody) -> None:
    """Rename a copied body, all on it, and sensors that came along, to the original names."""
    kinds = ('body', 'joint', 'geom', 'site', 'camera', 'light')
    for element in (body, *(found for kind in kinds for found in body.find_all(kind)), *spec.sensors):
        element.name = element.name.removeprefix(_COPY)
    for sensor in spec.sensors:
        sensor.objname, sensor.refname = sensor.objname.removeprefix(_COPY), sensor.refname.removeprefix(_COPY)
    for equality in spec.equalities:
        equality.name1, equality.name2 = equality.name1.removeprefix(_COPY), equality.name2.removeprefix(_COPY)


def _delete_references(child: mujoco.MjSpec, geoms: set[str]) -> None:
    """Delete references to geoms of these names."""
    gone = {(_GEOM, name) for name in geoms}
    for pair in list(child.pairs):
        if geoms & {pair.geomname1, pair.geomname2}:
            child.delete(pair)
    for sensor in list(child.sensors):
        if gone & {(sensor.objtype, sensor.objname), (sensor.reftype, sensor.refname)}:
            child.delete(sensor)
