"""Composition: one `SceneSpec` -> one `MjSpec`.

Names in the composed model: the scene asset's elements under `scene/`, a robot's under `robots/<name>/`, an object's
body is `objects/<name>`. A robot with a fixed base hangs under a mocap body `robots/<name>`, an object that does not
move is a mocap body itself: so every pose is state and nothing is recompiled when only poses differ.

Options (gravity, solver, cone, ...): see `options`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

import mujoco
import numpy as np

from internutopia.config.simulator import ContactCfg
from internutopia.model.asset_paths import resolve
from internutopia.model.contacts import filter_links, keep_base_contacts, make_rigid, stiffen_feet
from internutopia.model.drives import (
    DRIVEN_JOINTS,
    add_drives,
    check_joints,
    gets_drives,
    replace_actuators,
    take_drives,
)
from internutopia.model.importers import LoadOptions
from internutopia.model.importers.load import content_key, is_mjcf, is_urdf, load_scene_asset, load_spec
from internutopia.model.importers.urdf import WORLD_LINK
from internutopia.model.lighting import add_missing_sky, light_if_dark
from internutopia.model.options import RobotAsset, adopt_settings, set_options
from internutopia.model.robot_assets import clear_mocap, conform, remove_surroundings, restore_mocap, warn_of_removed
from internutopia.model.scaling import scale_mass
from internutopia.model.spec import OBJECTS_PREFIX, SCENE_PREFIX, ObjectSpec, RobotSpec, SceneSpec
from internutopia.util import did_you_mean
from internutopia.util.log import warn_once

_CONE_EDGES = 64  # of its base


def robot_prefix(name: str) -> str:
    """Return the prefix of a robot's elements in the composed model."""
    return f'robots/{name}/'


def contact_sensor(robot: str, link: str) -> str:
    """Return the name of the sensor of a link's contact force."""
    return f'{robot_prefix(robot)}{link}/contact'


def object_body(name: str) -> str:
    """Return the name of an object's body in the composed model."""
    return OBJECTS_PREFIX + name


def compose(scene: SceneSpec, timestep: float, contact: ContactCfg | None = None) -> mujoco.MjSpec:
    """Build the MuJoCo spec of a scene with its robots and objects.

    Args:
        scene: What it is made of.
        timestep: Of the engine [s].
        contact: Contact settings of the user; None is the default.

    Raises:
        FileNotFoundError: There is no such asset.
        ValueError: An asset is broken, or does not fit the scene spec.
    """
    spec = mujoco.MjSpec()
    base = None
    if scene.asset:
        base = load_scene_asset(resolve(scene.asset), _options(scene, timestep, decompose=scene.decompose))
    robots = [(robot, load_robot(robot, timestep)) for robot in scene.robots]
    objects = [
        (obj, None if obj.asset is None else load_spec(resolve(obj.asset), _options(obj, timestep)))
        for obj in scene.objects
    ]
    robot_assets = [RobotAsset(robot.name, child, gets_drives(robot, child)) for robot, child in robots]
    object_assets = [child for _, child in objects if child is not None]
    loose = any(obj.dynamic for obj in scene.objects)
    set_options(spec, base, robot_assets, object_assets, timestep, contact or ContactCfg(), loose=loose)
    if base is not None:
        _name_elements(base)
        spec.memory = base.memory
        adopt_settings(base, spec)
        drives = take_drives(base)
        frame = spec.worldbody.add_frame(pos=scene.position, quat=scene.orientation)
        spec.attach(base, frame=frame, prefix=SCENE_PREFIX)
        add_drives(spec, SCENE_PREFIX, drives)
    bases: list[str] = []
    for robot, child in robots:
        warn_of_removed(robot, remove_surroundings(child, robot, in_scene=base is not None))
        bases += attach_robot(spec, robot, child)
    for obj, child in objects:
        bases += _attach_object(spec, obj, child)
    keep_base_contacts(spec, bases)
    light_if_dark(spec)
    if scene.asset and not is_mjcf(resolve(scene.asset)):  # MJCF files can define MuJoCo's sky themselves
        add_missing_sky(spec)
    return spec


def load_robot(robot: RobotSpec, timestep: float) -> mujoco.MjSpec:
    """Load the asset of a robot; a copy, files that did not change are read once. Errors as for `compose`."""
    path = resolve(robot.asset)
    return _robot_asset(path, content_key(path), _options(robot, timestep, short_names=True)).copy()


@functools.lru_cache(16)
def _robot_asset(path: Path, _content: str, options: LoadOptions) -> mujoco.MjSpec:
    return load_spec(path, options)


def _options(part: SceneSpec | RobotSpec | ObjectSpec, timestep: float, **more: bool) -> LoadOptions:
    return LoadOptions(
        scale=part.scale if isinstance(part.scale, tuple) else (part.scale, part.scale, part.scale),
        raw_lengths=part.raw_lengths,
        ignore_usd_defaults=part.ignore_usd_defaults,
        timestep=timestep,
        **more,
    )


def attach_robot(spec: mujoco.MjSpec, robot: RobotSpec, child: mujoco.MjSpec) -> list[str]:
    """Attach a robot asset, fixed under a mocap body or with six free degrees of freedom at its root.

    Returns the mocap body if the links on it touch it (see `contacts`).
    """
    _name_elements(child)
    bolted = _is_bolted(child, robot.asset)
    conform(child, robot)
    links = [body.name for body in child.bodies if body.name != 'world']
    if (unknown := next((link for link in robot.contact_links if link not in links), None)) is not None:
        raise ValueError(
            f'robot {robot.name!r}: there is no link {unknown!r} in {robot.asset} to measure contact forces on; '
            f'{did_you_mean(unknown, links)}'
        )
    fixed = _fix_or_free(robot, child)
    frozen = set(robot.frozen)
    if isinstance(robot.joint_order, tuple):
        frozen |= {joint.name for joint in child.joints if joint.type in DRIVEN_JOINTS} - set(robot.joint_order)
    check_joints(robot, [joint.name for joint in child.joints if joint.type in DRIVEN_JOINTS])
    for joint in list(child.joints):
        if joint.name in frozen:
            child.delete(joint)
    filter_links(child, robot)
    stiffen_feet(child, robot.contact_links)
    drives = replace_actuators(robot, child)
    adopt_settings(child, spec)
    mocap_bodies = clear_mocap(child) if fixed else []
    if fixed:
        frame = spec.worldbody.add_body(name=f'robots/{robot.name}', mocap=True).add_frame()
    else:
        frame = spec.worldbody.add_frame()
    spec.attach(child, frame=frame, prefix=robot_prefix(robot.name))
    restore_mocap(spec, [robot_prefix(robot.name) + name for name in mocap_bodies])
    if drives is not None:
        add_drives(spec, robot_prefix(robot.name), drives)
    _add_contact_sensors(spec, robot)
    return [f'robots/{robot.name}'] if fixed and bolted else []


def _is_bolted(asset: mujoco.MjSpec, path: str) -> bool:
    """Return True if the file of an asset itself fixes its base to the world, so that it touches the links on it."""
    return is_mjcf(resolve(path)) and not any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in asset.joints)


def _fix_or_free(robot: RobotSpec, child: mujoco.MjSpec) -> bool:
    """Give a robot's asset a free joint or none, by the robot or else the asset; returns whether it is fixed."""
    free = [joint for joint in child.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
    roots = [body for body in child.worldbody.bodies if not body.mocap]
    fixed = robot.fixed_base
    if fixed is None:
        path = resolve(robot.asset)
        floats_by_default = is_urdf(path) and all(body.name != WORLD_LINK for body in roots)
        fixed = not free and not floats_by_default
        if fixed and is_mjcf(path) and not any(body.joints for body in roots):
            warn_once(  # a forgotten free joint looks the same
                '%s has no free joint: robots made of it have a base that is fixed to their env. If that is meant, set '
                'fixed_base=True in their GenericRobotCfg, or as an attribute of their class; if they should move, to '
                'False, or put a <freejoint/> into the root body',
                path,
            )
    if fixed:
        for joint in free:
            child.delete(joint)
    elif not free:
        if len(roots) != 1:
            names = ', '.join(repr(body.name) for body in roots) or 'none'
            raise ValueError(
                f'robot {robot.name!r}: {robot.asset} needs exactly one root body to float freely, it has: {names}'
            )
        roots[0].add_freejoint(name='root')
    return fixed


def _name_elements(child: mujoco.MjSpec) -> None:
    """Name each joint, link and actuator that has no name: they are addressed by name."""
    for kind, elements in (('joint', child.joints), ('link', child.bodies), ('actuator', child.actuators)):
        taken = {element.name for element in elements}
        for i, element in enumerate(elements):
            if not element.name:
                element.name = next(n for n in (f'{kind}_{i}', f'{kind}_{i}_') if n not in taken)


def _add_contact_sensors(spec: mujoco.MjSpec, robot: RobotSpec) -> None:
    """Measure the net contact force on links, in world axes; MuJoCo gives that of the link on what it touches."""
    prefix = robot_prefix(robot.name)
    links = [body.name.removeprefix(prefix) for body in spec.bodies if body.name.startswith(prefix)]
    for link in robot.measured_links(links):
        body = prefix + link
        sensor = spec.add_sensor(name=contact_sensor(robot.name, link), type=mujoco.mjtSensor.mjSENS_CONTACT)
        sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_BODY, body
        # what is extracted, how contacts are reduced (3: their net force), number of values kept
        sensor.intprm[:3] = 1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE), 3, 1


def _attach_object(spec: mujoco.MjSpec, obj: ObjectSpec, child: mujoco.MjSpec | None) -> list[str]:
    """Attach an object; returns its body if links on it touch it, as `attach_robot` does."""
    body = spec.worldbody.add_body(name=object_body(obj.name), mocap=not obj.dynamic)
    if obj.dynamic:
        body.add_freejoint(name=object_body(obj.name))
    if child is None:
        geom = _add_shape(spec, body, obj)
        if obj.mass is not None:
            geom.mass = obj.mass
        elif obj.density is not None:
            geom.density = obj.density
        if not obj.collider:
            geom.contype = geom.conaffinity = 0
        elif obj.dynamic:
            make_rigid(geom)
        _set_friction([geom], obj)
        return []
    assert obj.asset is not None
    bolted = not obj.dynamic and _is_bolted(child, obj.asset)
    _name_elements(child)
    for joint in [j for j in child.joints if j.type == mujoco.mjtJoint.mjJNT_FREE]:
        child.delete(joint)  # the object itself is what moves
    if obj.mass is not None:
        scale_mass(child, obj.mass)
    if not obj.collider:
        for geom in child.geoms:
            geom.contype = geom.conaffinity = 0
    _set_friction(child.geoms, obj)
    for pair in list(child.pairs):  # of parts that are one body now
        child.delete(pair)
    adopt_settings(child, spec)
    spec.attach(child, frame=body.add_frame(), prefix=object_body(obj.name) + '/')
    return [body.name] if bolted else []


def _set_friction(geoms: Iterable[mujoco.MjsGeom], obj: ObjectSpec) -> None:
    """Let the friction of an object, if one is given, count whatever its geoms touch."""
    for geom in geoms if obj.friction is not None else ():
        make_rigid(geom)  # what it touches does not count for that either
        geom.friction = [obj.friction, *geom.friction[1:]]
        geom.priority = 1


def _add_shape(spec: mujoco.MjSpec, body: mujoco.MjsBody, obj: ObjectSpec) -> mujoco.MjsGeom:
    """Give the body of an object its shape. ValueError for proportions that the shape cannot have."""
    x, y, z = (0.5 * edge for edge in obj.scale)
    if obj.shape in ('cylinder', 'capsule') and (x != y or (obj.shape == 'capsule' and z <= x)):
        raise ValueError(
            f'object {obj.name!r}: a {obj.shape} is as wide along x as along y'
            f'{", and higher than that" if obj.shape == "capsule" else ""}; it got edge lengths {obj.scale}'
        )
    kinds = mujoco.mjtGeom
    kind, size = {
        'box': (kinds.mjGEOM_BOX, (x, y, z)),
        'ellipsoid': (kinds.mjGEOM_SPHERE, (x, 0, 0)) if x == y == z else (kinds.mjGEOM_ELLIPSOID, (x, y, z)),
        'cylinder': (kinds.mjGEOM_CYLINDER, (x, z, 0)),
        'capsule': (kinds.mjGEOM_CAPSULE, (x, z - x, 0)),
        'cone': (kinds.mjGEOM_MESH, (0, 0, 0)),
        'plane': (kinds.mjGEOM_PLANE, (0, 0, 1)),
    }[obj.shape]
    geom = body.add_geom(name=object_body(obj.name), type=kind, size=size, rgba=[*obj.color, 1.0])
    if obj.shape == 'cone':
        turn = 2 * np.pi / _CONE_EDGES
        wider = (turn / np.sin(turn)) ** 0.5  # so that the volume is that of a cone
        points = [(wider * x * np.cos(i * turn), wider * y * np.sin(i * turn), -z) for i in range(_CONE_EDGES)]
        spec.add_mesh(name=object_body(obj.name), uservert=np.array([*points, (0, 0, z)]).ravel())
        geom.meshname = object_body(obj.name)
    return geom
