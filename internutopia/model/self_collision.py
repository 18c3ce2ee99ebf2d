"""Self-collision filter: the links of a robot's asset that pass through each other.

| `RobotSpec.self_collisions` | links of the robot that collide |
|---|---|
| None | those that the asset lets collide |
| True | likewise, and those that only `enabledSelfCollisions` of a USD file keeps from it |
| False | none |

Parent and child never do: MuJoCo sees to that, through fixed joints, too; but for a base that an MJCF file fixes to the
world (see `base_contacts`). `RobotSpec.contact_excludes` names more pairs
that do not (see `overlaps`). What links do with the scene, with objects and with other robots is left as it is.
"""

from __future__ import annotations

from itertools import combinations

import mujoco

from internutopia.model.spec import RobotSpec

SELF_COLLISIONS_OFF = 'self_collisions/'
"""Prefix of the names of excludes that stand for `enabledSelfCollisions` of a USD file alone."""


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
    excluded = {frozenset((exclude.bodyname1, exclude.bodyname2)) for exclude in child.excludes}
    for one, other in sorted(tuple(sorted(pair)) for pair in contact_excludes - excluded):
        child.add_exclude(bodyname1=one, bodyname2=other)
    for pair in list(child.pairs):  # those count whatever is excluded
        if frozenset(child.geom(name).parent.name for name in (pair.geomname1, pair.geomname2)) in contact_excludes:
            child.delete(pair)
