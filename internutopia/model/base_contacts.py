"""Contacts between a base that is fixed to its env and the links joined to it.

A file's base that is fixed to the world touches them in MuJoCo, whereas other parents and children pass through each
other (`filterparent`). Here that base hangs under a mocap body, which is not the world: so in a model that has such
contacts, the filter is off, and excludes take its place for all other parents and children.

MJCF alone means it: in the formats of other engines, neighbours pass through each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import product

import mujoco

from internutopia.model.assets import resolve
from internutopia.model.contact_parameters import excluded_bodies
from internutopia.model.importers.load import is_mjcf

_FILTER = int(mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)


def is_bolted(asset: mujoco.MjSpec, path: str) -> bool:
    """Return True if the file of an asset itself fixes its base to the world, so that it touches the links on it."""
    return is_mjcf(resolve(path)) and not any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in asset.joints)


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
