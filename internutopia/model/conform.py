"""Conforming robot assets: a file from another source, adapted to the one that the robot's class was written for.

Vendors' descriptions differ from each other in names, in extra frames, and in how the limits of the motors are given.
Controllers and sensors refer to the joints and links of the robot class.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from internutopia.model.spec import IDENTITY_QUAT, RobotSpec

# References to joints and links by name: collection of the spec, attributes that hold names
_REFERENCES = (
    ('actuators', ('target', 'refsite')),
    ('equalities', ('name1', 'name2')),
    ('excludes', ('bodyname1', 'bodyname2')),
    ('sensors', ('objname', 'refname')),
)


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
