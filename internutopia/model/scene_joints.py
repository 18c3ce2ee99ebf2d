"""Joints of a scene besides those of its assets (`SceneSpec.joints`), in MuJoCo.

A joint that fixes the root of a robot to the env where it stands is the robot's fixed base. All others are equality
constraints between two sites, which mark the frame of the joint on its bodies: a weld, a connect, or for a hinge two
connects on its axis. These are soft, as all constraints of MuJoCo: a body that hangs on one gives by some micrometres.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

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
_EQUALITIES = {'fixed': mujoco.mjtEq.mjEQ_WELD, 'ball': mujoco.mjtEq.mjEQ_CONNECT, 'hinge': mujoco.mjtEq.mjEQ_CONNECT}

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
        bodies = {body_name(path, joint, scene, unjoined) for path in joint.bodies}
        given = any(value is not None for value in (*joint.positions, *joint.orientations))
        root = next((body for body in bodies if body in roots), None)
        if joint.kind == 'fixed' and _WORLD in bodies and root is not None and not given:
            fixed.add(roots[root])
        else:
            others.append(joint)
    robots = tuple(replace(robot, fixed_base=True) if robot.name in fixed else robot for robot in scene.robots)
    return replace(scene, robots=robots, joints=tuple(others))


def add_joints(spec: mujoco.MjSpec, scene: SceneSpec, unjoined: CompiledScene) -> None:
    """Add the joints of a scene to its composed MuJoCo spec; arguments and errors as for `fix_bases`."""
    if not scene.joints:
        return
    start = _start(scene, unjoined)
    for index, joint in enumerate(scene.joints):
        first, second = (body_name(path, joint, scene, unjoined) for path in joint.bodies)
        if first == second:
            raise ValueError(f'joint {joint.path!r} holds {joint.bodies[0]!r} to itself')
        if _WORLD not in (first, second):
            spec.add_exclude(name=f'joints/{index}', bodyname1=first, bodyname2=second)
        if joint.kind == 'free':
            continue
        frames = _frames(joint, scene, (start[first], start[second]))
        for end, offset in enumerate((0.0, HINGE_ARM) if joint.kind == 'hinge' else (0.0,)):
            name = f'joints/{index}/{end}'
            equality = spec.add_equality(name=name, type=_EQUALITIES[joint.kind], objtype=mujoco.mjtObj.mjOBJ_SITE)
            equality.name1, equality.name2 = f'{name}/first', f'{name}/second'
            equality.solref = _SOLREF
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
    if path not in bodies:
        robots = [robot.path for robot in scene.robots]
        raise _unknown(joint, path, 'the env has nothing there', path, [*robots, *objects, *bodies])
    return bodies[path]


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


def _start(scene: SceneSpec, unjoined: CompiledScene) -> dict[str, _Frame]:
    """Return the poses of the bodies at the start, env frame."""
    model = unjoined.model
    data = unjoined.data_at_start(scene)
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
