"""Overlaps: links of a robot in contact only because of how its shapes were drawn, which pass through each other.

`exclude_overlaps` finds those of the robots of a scene, `LinkOverlaps` measures how far links overlap in motion.

The former are links that overlap in the pose of the asset or in the one that the robot starts in, and links between
which there is nothing but links that weigh nothing, as between the axes of a joint that was written as several. An MJCF
file that defines which links collide is not changed.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_paths import resolve
from internutopia.model.compose import attach_robot, load_robot, robot_prefix
from internutopia.model.contacts import defines_self_collisions, keep_base_contacts
from internutopia.model.importers.load import is_mjcf
from internutopia.model.robot_assets import remove_surroundings
from internutopia.model.spec import RobotSpec, SceneSpec
from internutopia.util import did_you_mean
from internutopia.util.log import warn_once

DEPTH = 1e-3
"""Depth from which shapes overlap rather than touch [m]."""
_NEXT_TO_NOTHING = 1e-3  # [kg]
_NAMED = 20  # pairs in a message
_KEPT = 64  # robots, and their starts

Pairs = frozenset[tuple[str, str]]


def exclude_overlaps(scene: SceneSpec, keys: Sequence[str], timestep: float) -> SceneSpec:
    """Return the scene with the robots' links that pass through each other (`RobotSpec.contact_excludes`).

    `keys`: equal for robots that are made of the same.
    """
    excludes = []
    for robot, key in zip(scene.robots, keys, strict=True):
        lone = _lone_robot(robot, key, timestep) if robot.self_collisions is not False else None
        excludes.append(lone.contact_excludes(robot.joint_positions) if lone is not None else ())
    if excludes == [robot.contact_excludes for robot in scene.robots]:
        return scene
    pairs = zip(scene.robots, excludes, strict=True)
    robots = tuple(dataclasses.replace(robot, contact_excludes=own) for robot, own in pairs)
    return dataclasses.replace(scene, robots=robots)


class LinkOverlaps:
    """Depths by which links of a robot overlap, whether its asset lets them collide or not.

    Parents and children do not count, nor do links that overlap at home: their shapes were drawn so.

    Args:
        robot: spec of the robot.
        dof_names: its dofs, in the order of the positions that are given; others are at home.
    """

    def __init__(self, robot: RobotSpec, dof_names: Sequence[str]):
        spec = _lone_spec(robot, timestep=0.005)
        for exclude in list(spec.excludes):
            spec.delete(exclude)
        spec.option.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)  # which excludes took the place of
        for geom in spec.geoms:
            geom.contype = geom.conaffinity = int(bool(geom.contype or geom.conaffinity))
        self._model = model = spec.compile()
        self._data = mujoco.MjData(model)
        prefix = robot_prefix(robot.name)
        columns = {model.joint(i).name.removeprefix(prefix): model.jnt_qposadr[i] for i in range(model.njnt)}
        for name in robot.joint_positions.keys() & columns.keys():
            self._data.qpos[columns[name]] = robot.joint_positions[name]
        if unknown := [name for name in dof_names if name not in columns]:
            raise ValueError(f'robot {robot.name!r} has no joint {unknown[0]!r}; {did_you_mean(unknown[0], columns)}')
        self._columns = [columns[name] for name in dof_names]
        bodies, depths = self._contacts()
        self._ignored = bodies[depths > DEPTH]

    def depths(self, joint_positions: NDArray[Any]) -> NDArray[np.float64]:
        """Return the largest depth of an overlap at each of these positions `(n, dofs)` [rad or m], `(n,)` [m]."""
        deepest = np.zeros(len(joint_positions))
        for row, positions in enumerate(joint_positions):
            self._data.qpos[self._columns] = positions
            bodies, depths = self._contacts()
            deepest[row] = depths[~np.isin(bodies, self._ignored)].max(initial=0.0)
        return deepest

    def _contacts(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return pairs of links that touch, as one number each, and their depths [m]."""
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_collision(self._model, self._data)
        bodies = np.sort(self._model.geom_bodyid[self._data.contact.geom], axis=-1)
        return bodies[:, 0] * self._model.nbody + bodies[:, 1], -self._data.contact.dist


def _lone_spec(robot: RobotSpec, timestep: float) -> mujoco.MjSpec:
    """Return a spec of the robot with nothing around it."""
    robot = dataclasses.replace(robot, contact_excludes=(), contact_links=(), all_contacts=False)
    spec, child = mujoco.MjSpec(), load_robot(robot, timestep)
    remove_surroundings(child, robot, in_scene=True)
    keep_base_contacts(spec, attach_robot(spec, robot, child))
    return spec


class _LoneRobot:
    """A robot with nothing around it."""

    def __init__(self, robot: RobotSpec, timestep: float):
        self._model = _lone_spec(robot, timestep).compile()
        self._prefix, self._asset = robot_prefix(robot.name), robot.asset
        self._always = self._adjacent() | self._overlapping({})
        self._known: OrderedDict[str, tuple[tuple[str, str], ...]] = OrderedDict()

    def contact_excludes(self, joint_positions: Mapping[str, float]) -> tuple[tuple[str, str], ...]:
        """Return the links that pass through each other at this start [rad or m]; unknown joints are ignored."""
        key = repr(joint_positions)
        if key not in self._known:
            pairs = self._always | (self._overlapping(joint_positions) if joint_positions else frozenset())
            self._known[key] = known = tuple(sorted(pairs))
            if known:
                names = [f'{one} and {other}' for one, other in known[:_NAMED]]
                names += [f'{len(known) - _NAMED} more pairs'] if len(known) > _NAMED else []
                warn_once(
                    '%s: links that overlap at the start, or have only weightless links between them, pass through '
                    'each other: %s',
                    self._asset,
                    ', '.join(names),
                )
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return self._known[key]

    def _overlapping(self, joint_positions: Mapping[str, float]) -> Pairs:
        """Return links that overlap at these joint positions, with the asset's for other joints."""
        model = self._model
        data = mujoco.MjData(model)
        names = {model.joint(i).name.removeprefix(self._prefix): i for i in range(model.njnt)}
        for name, position in joint_positions.items():
            if name in names:
                data.qpos[model.jnt_qposadr[names[name]]] = position
        mujoco.mj_fwdPosition(model, data)
        deep = data.contact.geom[data.contact.dist < -DEPTH]
        return self._pairs(model.geom_bodyid[deep])

    def _adjacent(self) -> Pairs:
        """Return links and the nearest one above, where all between them have no mass and no colliders."""
        model = self._model
        collides = (model.geom_contype | model.geom_conaffinity) != 0
        solid = np.isin(np.arange(model.nbody), model.geom_bodyid[collides])
        found = []
        for link in np.flatnonzero(solid).tolist():
            above = model.body_parentid[link]
            if solid[above]:
                continue
            while above and not solid[above] and model.body_mass[above] <= _NEXT_TO_NOTHING:
                above = model.body_parentid[above]
            if solid[above]:
                found.append((link, above))
        return self._pairs(found)

    def _pairs(self, bodies: Iterable[Iterable[int]]) -> Pairs:
        """Return names of links, of pairs of bodies."""

        def pairs() -> Iterator[tuple[str, str]]:
            for pair in bodies:
                one, other = sorted(self._model.body(body).name for body in pair)
                if one != other and one.startswith(self._prefix) and other.startswith(self._prefix):
                    yield one.removeprefix(self._prefix), other.removeprefix(self._prefix)

        return frozenset(pairs())


_lone_robots: OrderedDict[tuple[str, float], _LoneRobot | None] = OrderedDict()


def _lone_robot(robot: RobotSpec, key: str, timestep: float) -> _LoneRobot | None:
    """Return the robot alone; None if its asset defines which links collide, or is invalid (reported elsewhere)."""
    place = key, timestep
    if place not in _lone_robots:
        try:
            own = is_mjcf(resolve(robot.asset)) and defines_self_collisions(load_robot(robot, timestep))
            _lone_robots[place] = None if own else _LoneRobot(robot, timestep)
        except ValueError:
            return None
        if len(_lone_robots) > _KEPT:
            _lone_robots.popitem(last=False)
    _lone_robots.move_to_end(place)
    return _lone_robots[place]
