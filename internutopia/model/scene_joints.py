"""Joints of a scene besides those of its assets (`SceneSpec.joints`), in MuJoCo.

A joint that fixes the root of a robot to the env where it stands is the robot's fixed base. All others are equality
constraints between two sites, which mark the frame of the joint on its bodies: a weld, a connect, or for a hinge two
connects on its axis. For a slide, the weld is to a light carriage that slides on the first body. These are soft, as all
constraints of MuJoCo: a body that hangs on one gives by some micrometres.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.compiled import CompiledScene
from internutopia.model.compose import object_body, robot_prefix
from internutopia.model.groups import HINGE_ARM, add_frame_site
from internutopia.model.spec import IDENTITY_QUAT, SCENE_PREFIX, JointSpec, RobotSpec, SceneSpec
from internutopia.util import did_you_mean
from internutopia.util.rotations import quat_conjugate, quat_multiply, quat_rotate

_WORLD = 'world'
# Time constant [s] and damping ratio with which a violation fades (default 0.02 s; MuJoCo takes two time steps where
# that is longer). What hangs on a constraint sags by 0.1 g times the square of the time constant: 25 um
_SOLREF = (0.005, 1.0)
_WELD, _CONNECT = mujoco.mjtEq.mjEQ_WELD, mujoco.mjtEq.mjEQ_CONNECT
_EQUALITIES = {'fixed': _WELD, 'slide': _WELD, 'ball': _CONNECT, 'hinge': _CONNECT}
_CARRIAGE = 0.01
"""Mass of a carriage, of that of the bodies that it connects."""
_CARRIAGE_SIZE = 0.05
"""Radius of gyration of a carriage [m]."""
# Impedance of what holds a carriage, which would give as light as it is, and of what breaks, at whose first load a
# softer constraint overshoots by 40 %
_STIFF = [0.9999, 0.9999, 0.001, 0.5, 2.0]

Floats = NDArray[np.float64]


def fix_bases(scene: SceneSpec, unjoined: CompiledScene) -> SceneSpec:
    """Return the scene with robots whose root a joint fixes to the env in their start pose fixed by their base instead.

    Args:
        scene: the scene.
        unjoined: the same scene without joints, compiled.

    Raises:
        ValueError: a joint names a body that is not there.
    """
    roots = {_root(robot, unjoined): robot.name for robot in scene.robots}
    fixed, others = set[str](), list[JointSpec]()
    for joint in scene.joints:
        if joint.broken:
            others.append(joint)
            continue
        bodies = {body_name(path, joint, scene, unjoined) for path in joint.bodies}
        given = any(value is not None for value in (*joint.positions, *joint.orientations))
        root = next((body for body in bodies if body in roots), None)
        base = joint.kind == 'fixed' and _WORLD in bodies and root is not None and not given and not joint.breakable
        if base and root is not None:
            fixed.add(roots[root])
        others.append(replace(joint, broken=True) if base else joint)  # others keep their numbers
    robots = tuple(replace(robot, fixed_base=True) if robot.name in fixed else robot for robot in scene.robots)
    return replace(scene, robots=robots, joints=tuple(others))


def add_joints(spec: mujoco.MjSpec, scene: SceneSpec, unjoined: CompiledScene) -> None:
    """Add the joints of a scene to its composed MuJoCo spec; arguments and errors as for `fix_bases`."""
    if not scene.joints:
        return
    start = _poses(unjoined.model, unjoined.data_at_start(scene))
    for index, joint in enumerate(scene.joints):
        if joint.broken:
            continue
        first, second = (body_name(path, joint, scene, unjoined) for path in joint.bodies)
        if first == second:
            raise ValueError(f'joint {joint.path!r} holds {joint.bodies[0]!r} to itself')
        if _WORLD not in (first, second):
            spec.add_exclude(name=f'joints/{index}', bodyname1=first, bodyname2=second)
        if joint.kind == 'free':
            continue
        frames = _frames(joint, scene, (start[first], start[second]))
        if joint.kind == 'slide':
            mass = max(unjoined.model.body(name).subtreemass[0] for name in (first, second) if name != _WORLD)
            first = _add_carriage(spec.body(first), f'joints/{index}', frames[0], _CARRIAGE * mass)
            frames = _Frame(np.zeros(3), np.array(IDENTITY_QUAT)), frames[1]
        for end, offset in enumerate((0.0, HINGE_ARM) if joint.kind == 'hinge' else (0.0,)):
            name = f'joints/{index}/{end}'
            equality = spec.add_equality(name=name, type=_EQUALITIES[joint.kind], objtype=mujoco.mjtObj.mjOBJ_SITE)
            equality.name1, equality.name2 = f'{name}/first', f'{name}/second'
            equality.solref = _SOLREF
            if joint.kind == 'slide' or joint.breakable:
                equality.solimp = _STIFF
            for site, body, frame in zip((equality.name1, equality.name2), (first, second), frames, strict=True):
                position = frame.position + quat_rotate(frame.quat, np.array([offset, 0.0, 0.0]))
                add_frame_site(spec.body(body), site, position, frame.quat)


def body_name(path: str | None, joint: JointSpec, scene: SceneSpec, unjoined: CompiledScene) -> str:
    """Return the name in the composed model of the body at a prim path below the env.

    Raises:
        ValueError: there is none; the message has close matches.
    """
    if path is None:
        return _WORLD
    for robot in scene.robots:
        if _is_at(path, robot.path):
            links = unjoined.robots[robot.name].bodies
            below = path.removeprefix(robot.path).strip('/')
            link = below if below in links else below.rsplit('/', 1)[-1]  # by name, wherever its prim is
            if link not in links:
                raise _unknown(joint, path, f'robot {robot.name!r} has no link {link!r}', link, links)
            return robot_prefix(robot.name) + link
    objects = {obj.path: obj.name for obj in scene.objects}
    if path in objects:
        return object_body(objects[path])
    names = [unjoined.model.body(i).name for i in range(1, unjoined.model.nbody)]
    prefix = SCENE_PREFIX
    bodies = {f'/{prefix}{name.removeprefix(prefix).lstrip("/")}': name for name in names if name.startswith(prefix)}
    # a stage that refers to the asset leaves out its default prim
    shown = {f'/{prefix}{each.removeprefix(f"/{prefix}").partition("/")[2]}': name for each, name in bodies.items()}
    name = bodies.get(path, shown.get(path))
    if name is None:
        robots = [robot.path for robot in scene.robots]
        raise _unknown(joint, path, 'the env has nothing there', path, [*robots, *objects, *bodies])
    return name


@dataclass(frozen=True)
class _Frame:
    """A position `(3,)` [m] and an orientation `(4,)`."""

    position: Floats
    quat: Floats


def _frames(joint: JointSpec, scene: SceneSpec, bodies: tuple[_Frame, _Frame]) -> tuple[_Frame, _Frame]:
    """Return the frame of a joint on each of its bodies, which start at these poses."""
    lead = 1 if joint.bodies[1] is not None else 0  # the body whose frame it has by default
    positions: list[Floats | None] = [
        None if position is None else np.asarray(position) * _scale(path, scene)
        for path, position in zip(joint.bodies, joint.positions, strict=True)
    ]
    quats: list[Floats | None] = [None if quat is None else np.asarray(quat) for quat in joint.orientations]
    if all(position is None for position in positions):
        positions[lead] = np.zeros(3)
    if all(quat is None for quat in quats):
        quats[lead] = np.array(IDENTITY_QUAT)
    frames = []
    for own, other in ((0, 1), (1, 0)):
        position, quat = positions[own], quats[own]
        if position is None:
            there = positions[other]
            assert there is not None
            world = bodies[other].position + quat_rotate(bodies[other].quat, there)
            position = quat_rotate(quat_conjugate(bodies[own].quat), world - bodies[own].position)
        if quat is None:
            there = quats[other]
            assert there is not None
            quat = quat_multiply(quat_conjugate(bodies[own].quat), quat_multiply(bodies[other].quat, there))
        frames.append(_Frame(position, quat))
    return frames[0], frames[1]


def place_joints(scene: SceneSpec, compiled: CompiledScene, data: mujoco.MjData) -> SceneSpec:
    """Return the scene with the frames of new joints where its bodies are now.

    Args:
        scene: a running scene with more joints, after those that it has.
        compiled: the running scene.
        data: its data, positions computed.

    Raises:
        ValueError: a joint names a body that is not there.
    """
    now = _poses(compiled.model, data)

    def place(joint: JointSpec) -> JointSpec:
        names = [body_name(path, joint, scene, compiled) for path in joint.bodies]
        first, second = _frames(joint, scene, (now[names[0]], now[names[1]]))
        scales = [_scale(path, scene) for path in joint.bodies]
        positions = [_tuple(frame.position / scale) for frame, scale in zip((first, second), scales, strict=True)]
        return replace(
            joint, positions=(positions[0], positions[1]), orientations=(_tuple(first.quat), _tuple(second.quat))
        )

    count = len(compiled.source.joints)
    return replace(scene, joints=(*scene.joints[:count], *map(place, scene.joints[count:])))


def joint_load(index: int, model: mujoco.MjModel, data: mujoco.MjData) -> tuple[float, float]:
    """Return the force [N] and the torque [N·m] about the middle of its frame that joint `index` of a scene transmits.

    Args:
        index: which of the scene's joints.
        model: the model of the scene, with that joint.
        data: its data, forward dynamics computed.
    """
    force, torque = np.zeros(3), np.zeros(3)
    sites = [i for i in range(model.nsite) if model.site(i).name.startswith(f'joints/{index}/')]
    middle = data.site_xpos[sites[0]]
    for equality in (i for i in range(model.neq) if model.equality(i).name.startswith(f'joints/{index}/')):
        rows = (data.efc_id == equality) & (data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        values = data.efc_force[rows]
        if not len(values):
            continue
        force += values[:3]
        torque += np.cross(data.site_xpos[model.eq_obj1id[equality]] - middle, values[:3])
        if len(values) == 6:  # of a weld: rows of half the angle, times its scale
            torque += 0.5 * model.eq_data[equality, 10] * values[3:]
    return float(np.linalg.norm(force)), float(np.linalg.norm(torque))


def _add_carriage(body: mujoco.MjsBody, name: str, frame: _Frame, mass: float) -> str:
    """Add a body that slides along the x axis of a frame on another; returns its name."""
    inertia = mass * _CARRIAGE_SIZE**2
    carriage = body.add_body(
        name=name, pos=frame.position, quat=frame.quat, mass=mass, inertia=[inertia] * 3, ipos=np.zeros(3)
    )
    carriage.explicitinertial = True
    carriage.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[1, 0, 0])
    return name


def _tuple(values: Floats) -> Any:
    return tuple(values.tolist())


def _poses(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, _Frame]:
    """Return the poses of the bodies, env frame."""
    return {model.body(i).name: _Frame(data.xpos[i].copy(), data.xquat[i].copy()) for i in range(model.nbody)}


def _root(robot: RobotSpec, unjoined: CompiledScene) -> str:
    """Return the root link of a robot, by its name in the composed model."""
    layout, model = unjoined.robots[robot.name], unjoined.model
    if layout.root.qpos >= 0:
        return model.body(layout.root.body).name
    children = np.flatnonzero(model.body_parentid == layout.root.body)  # of the mocap body that holds a fixed base
    return model.body(int(children[0])).name


def _scale(path: str | None, scene: SceneSpec) -> float | tuple[float, ...]:
    """Return the factors of lengths on the body at a prim path."""
    if path is None:
        return 1.0
    return next((each.scale for each in (*scene.robots, *scene.objects) if _is_at(path, each.path)), scene.scale)


def _is_at(path: str, root: str) -> bool:
    """Return True if a path is a root or below it."""
    return path == root or path.startswith(root + '/')


def _unknown(joint: JointSpec, path: str, what: str, name: str, known: Iterable[str]) -> ValueError:
    return ValueError(f'joint {joint.path!r}, body {path!r}: {what}; {did_you_mean(name, known)}')
