"""Contacts: parameters (`solref`, `solimp`) of rigid and bouncing things and of feet, and links that collide.

MuJoCo pulls a contact of normal velocity `v` and depth `r` towards the acceleration `-b v - k r`, as strictly as the
impedance defines, from 0 to 1. By default that is soft: a box under a hundred times its weight sinks in by centimetres.

Restitution is Newton's: a contact gives back the share `e` of the normal velocity in the one time step in which it
becomes active, however long that is, and can only push from then on, so it adds no energy. That takes `b = (1 + e) / h`
for a time step `h`, and an impedance near 1. Impacts are detected late, at a depth of up to `v h`; `k` restores what
is lost on the way out of it.

Friction has the same parameters, and that is what keeps a tumbling box from gaining energy: normal restitution together
with another law for friction would give it some (Kane's paradox). The price: what slides hops, since MuJoCo lifts it by
as much as friction slows it down in a step; at 1 m/s, with `e` and the friction 0.5 each, by 2 cm.

| `RobotSpec.self_collisions` | links of the robot that collide |
|---|---|
| None | those that the asset lets collide |
| True | likewise, and those that only `enabledSelfCollisions` of a USD file keeps from it |
| False | none |

Parent and child never do, also through fixed joints: MuJoCo excludes them. The exception is a base that an MJCF file
fixes to the world: in MuJoCo, it touches the links joined to it, whereas other parents and children pass through each
other (`filterparent`). Here that base is a child of a mocap body, not of the world. So in a model with such contacts,
the filter is off, and excludes take its place for all other parents and children.
MJCF alone means it: in the formats of other engines, neighbours pass through each other.

`RobotSpec.contact_excludes` names more pairs that do not collide (see `overlaps`). Contacts of links with the scene,
with objects and with other robots are left as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import chain, combinations, product

import mujoco
import numpy as np

from internutopia.model.spec import RobotSpec

# A box under a hundred times its weight sinks in by 1 mm; the weight lets these count where they meet softer geoms
_RIGID_IMPEDANCE = (0.99, 0.999, 0.001, 0.5, 2.0)
_RIGID_WEIGHT = 100.0

_DEFAULT_SOLREF = 0.02, 1.0  # time constant [s] and damping ratio of contacts
STIFF_SOLREF = 0.01, 1.0
"""The same of feet, and of what they stand on where that has a priority."""

_MAX_RESTITUTION = 0.99  # several contacts at once are solved to a percent: a whole 1 could gain energy
_BOUNCE_IMPEDANCE = (0.9999, 0.9999, 0.001, 0.5, 2.0)  # MuJoCo's greatest
_BOUNCE_WEIGHT = 1000.0
# Speed [m/s] after a fall from 1 m, and gravity [m/s2]: for these the depth is made up for exactly, else nearly so
_SPEED, _GRAVITY = 4.43, 9.81
SELF_COLLISIONS_OFF = 'self_collisions/'
"""Prefix of the names of excludes that stand for `enabledSelfCollisions` of a USD file alone."""
_FILTER = int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)


def make_rigid(element: mujoco.MjsGeom | mujoco.MjsPair) -> None:
    """Make a geom of a moving body, or a pair with one, hard: heavy bodies do not sink into it."""
    element.solimp = _RIGID_IMPEDANCE
    if isinstance(element, mujoco.MjsGeom):
        element.solmix = _RIGID_WEIGHT


def stiffen_feet(child: mujoco.MjSpec, links: Collection[str]) -> None:
    """Make contacts of the feet of a robot's asset stiff, unless the asset sets how stiff they are.

    With MuJoCo's default, feet of humanoids sink in by 3 cm when they land: by more than the radius of their shapes, so
    that they fall through a floor that is a thin box. Time steps beyond 5 ms make them as soft again (`refsafe`).
    """
    for geom in (geom for link in links for geom in child.body(link).geoms):
        if (geom.contype or geom.conaffinity) and tuple(geom.solref) == _DEFAULT_SOLREF:
            geom.solref, geom.solmix = STIFF_SOLREF, _RIGID_WEIGHT


def make_bouncy(element: mujoco.MjsGeom | mujoco.MjsPair, restitution: float, timestep: float) -> None:
    """Make a geom or a pair of them return a share of the normal velocity, at a time step [s].

    An impact is detected at a depth of `a v h`, with `a` anywhere from 0 to 1. To rise from there to `e^2` times the
    height of the fall, things have to leave at `(e + c) v`, where `c^2 + 2 e c = (1 - e^2) 2 g h / v` at `a = 1`. The
    spring `k = c / h^2` adds `a c v`.
    """
    e = min(restitution, _MAX_RESTITUTION)
    c = np.sqrt(e**2 + (1 - e**2) * 2 * _GRAVITY * timestep / _SPEED) - e
    element.solref = -c / timestep**2, -(1 + e) / timestep
    element.solimp = _BOUNCE_IMPEDANCE
    if isinstance(element, mujoco.MjsGeom):
        element.solmix = _BOUNCE_WEIGHT


def bounces(spec: mujoco.MjSpec) -> bool:
    """Return True if contacts of a spec are given as stiffness and damping, as those of bouncing things are."""
    return any(element.solref[1] < 0 for element in chain(spec.geoms, spec.pairs))


def add_pair(spec: mujoco.MjSpec, one: mujoco.MjsGeom, other: mujoco.MjsGeom, friction: float) -> mujoco.MjsPair:
    """Give the contacts between two geoms a sliding friction, and other parameters of their own."""
    _, torsion, rolling = np.maximum(one.friction, other.friction)
    pair = spec.add_pair(geomname1=one.name, geomname2=other.name, condim=max(one.condim, other.condim))
    pair.friction = friction, friction, torsion, rolling, rolling
    return pair


def can_touch(one: mujoco.MjsGeom, other: mujoco.MjsGeom, excluded: set[frozenset[str]]) -> bool:
    """Return True if MuJoCo checks two geoms for contacts, as it does those of a `<pair>` in any case.

    `excluded`: names of bodies that pass through each other.
    """
    if not (one.contype & other.conaffinity or other.contype & one.conaffinity):
        return False
    if frozenset((one.parent.name, other.parent.name)) in excluded:
        return False
    first, second = (_holder(geom.parent) for geom in (one, other))
    if first == second:
        return False
    # one below the other by its joints; on the world, MuJoCo lets them touch
    return not any(
        child.parent is not None and _holder(child.parent) == parent and parent.parent is not None
        for child, parent in ((first, second), (second, first))
    )


def excluded_bodies(spec: mujoco.MjSpec) -> set[frozenset[str]]:
    """Return names of the bodies of a spec that pass through each other."""
    return {frozenset((exclude.bodyname1, exclude.bodyname2)) for exclude in spec.excludes}


def is_loose(body: mujoco.MjsBody) -> bool:
    """Return True if a body moves freely and no other is joined to it."""
    mover = _holder(body)
    free = [joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in mover.joints]
    return free == [True] and not any(below.joints for below in mover.find_all('body'))


def defines_self_collisions(spec: mujoco.MjSpec) -> bool:
    """Return True if an MJCF asset has its own filter of colliding links: by excludes, pairs, or bits of geoms."""
    bits = {(geom.contype, geom.conaffinity) for geom in spec.geoms}
    return bool(spec.excludes) or bool(spec.pairs) or not bits <= {(1, 1), (0, 0)}


def filter_links(child: mujoco.MjSpec, robot: RobotSpec) -> None:
    """Make links of a robot's asset pass through each other, by the robot's settings."""
    links = {body.name for body in child.bodies if any(geom.contype or geom.conaffinity for geom in body.geoms)}
    links.discard(child.worldbody.name)
    contact_excludes = {frozenset(pair) for pair in robot.contact_excludes}
    if robot.self_collisions is False:
        contact_excludes = {frozenset(pair) for pair in combinations(links, 2)}
    if robot.self_collisions:
        for exclude in [e for e in child.excludes if e.name.startswith(SELF_COLLISIONS_OFF)]:
            child.delete(exclude)
    excluded = excluded_bodies(child)
    for one, other in sorted(tuple(sorted(pair)) for pair in contact_excludes - excluded):
        child.add_exclude(bodyname1=one, bodyname2=other)
    for pair in list(child.pairs):  # those count whatever is excluded
        if frozenset(child.geom(name).parent.name for name in (pair.geomname1, pair.geomname2)) in contact_excludes:
            child.delete(pair)


def keep_base_contacts(spec: mujoco.MjSpec, bases: Collection[str]) -> None:
    """Let the first links of a composed model touch their bases: mocap bodies of these names, and what is on them."""
    if not bases or spec.option.disableflags & _FILTER:
        return
    solid = defaultdict[str, list[str]](list)  # names of bodies, by what they are fixed to
    parents: dict[str, str] = {}  # of what is fixed to something else, by joints between them
    for body in spec.bodies:
        if any(geom.contype or geom.conaffinity for geom in body.geoms):
            holder = _holder(body)
            solid[holder.name].append(body.name)
            if holder.parent is not None and not holder.mocap:
                parents[holder.name] = _holder(holder.parent).name
    excluded = excluded_bodies(spec)

    def pairs(child: str) -> Iterator[frozenset[str]]:
        """Return names of bodies, of the child and of its parent, that pass through each other by the filter alone."""
        both = map(frozenset, product(solid[child], solid.get(parents[child], ())))
        return (pair for pair in both if pair not in excluded)

    if not any(any(pairs(child)) for child, parent in parents.items() if parent in bases):
        return
    spec.option.disableflags |= _FILTER
    for child, parent in parents.items():
        if parent not in bases and parent != spec.worldbody.name:
            for one, other in pairs(child):
                spec.add_exclude(bodyname1=one, bodyname2=other)


def _holder(body: mujoco.MjsBody) -> mujoco.MjsBody:
    """Return the body that one is fixed to: the first one upwards that moves, by joints or mocap, or the world."""
    while not body.joints and not body.mocap and body.parent is not None:
        body = body.parent
    return body
