"""Document: the contents of a URDF file as plain data, and the tree of its links and joints."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.asset_files import check_bound
from internutopia.model.importers import FileWarnings
from internutopia.util import did_you_mean

Numbers = tuple[float, ...]

WORLD = 'world'
"""The link that is fixed to the world; it may be a parent without being declared."""


@dataclass(frozen=True)
class Pose:
    """Position [m] and roll, pitch, yaw about fixed axes [rad]."""

    xyz: Numbers = (0.0, 0.0, 0.0)
    rpy: Numbers = (0.0, 0.0, 0.0)

    @property
    def quat(self) -> NDArray[np.float64]:
        """Rotation as a unit quaternion `(w, x, y, z)`."""
        quat = np.zeros(4)
        mujoco.mju_euler2Quat(quat, self.rpy, 'XYZ')  # capitals: about axes that do not turn along
        return quat


@dataclass(frozen=True)
class Shape:
    """A visual or collision shape of a link.

    `size` [m]: edges of a box; radius of a sphere; radius and length of a cylinder or capsule; of a mesh, factors along
    x, y, z. `mesh` is the reference as it stands in the file, `color` RGBA where the link has one.
    """

    name: str
    collides: bool
    pose: Pose
    kind: str
    size: Numbers
    mesh: str = ''
    color: Numbers | None = None


@dataclass(frozen=True)
class Inertial:
    """Mass [kg], its centre, and xx, xy, xz, yy, yz, zz of the inertia [kg·m2] in the axes of `pose`.

    `inertia` is None where the file has none, or zeros (or what rounding made of them).
    """

    mass: float
    pose: Pose
    inertia: Numbers | None


@dataclass(frozen=True)
class Link:
    """Link; `inertial` is None where the file has no mass."""

    name: str
    inertial: Inertial | None = None
    shapes: tuple[Shape, ...] = ()

    @property
    def mass(self) -> float:
        """Mass [kg], 0 where the file has none."""
        return self.inertial.mass if self.inertial else 0.0

    @property
    def inertia(self) -> Numbers | None:
        """Inertia in `inertial`, None where the file has none."""
        return self.inertial.inertia if self.inertial else None


@dataclass(frozen=True)
class Mimic:
    """Relation of a joint's position to another one's: `multiplier` times that of `joint`, plus `offset` [rad or m]."""

    joint: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Joint:
    """Joint; `limits` [rad or m] is None and `effort` [N·m or N] 0 where there is no limit."""

    name: str
    kind: str
    parent: str
    child: str
    pose: Pose
    axis: Numbers
    limits: tuple[float, float] | None
    effort: float
    damping: float
    friction: float
    mimic: Mimic | None


@dataclass
class Document:
    """A whole file. `root` is the link that is no child, `joints` have parents before children.

    `settings`: the `<mujoco>` element. `warnings` has what was wrong or is left out, `unread` counts valid content that
    is not used here.
    """

    path: Path
    name: str
    links: dict[str, Link]
    joints: list[Joint]
    root: str
    settings: Element | None
    warnings: FileWarnings = field(default_factory=FileWarnings)
    unread: Counter[str] = field(default_factory=Counter)


def arrange(path: Path, links: dict[str, Link], joints: list[Joint]) -> tuple[dict[str, Link], list[Joint], str]:
    """Sort joints so that parents come before children, and find the root.

    Returns:
        All links, the world among them if a joint hangs on it; the joints in order; the name of the root.

    Raises:
        ValueError: The links do not form one tree, or one that is too deep; the message names the file and the link or
            joint.
    """
    if WORLD not in links and any(joint.parent == WORLD for joint in joints):
        links = {WORLD: Link(WORLD), **links}
    above: dict[str, Joint] = {}
    below: defaultdict[str, list[Joint]] = defaultdict(list)
    for joint in joints:
        for role, link in ('parent', joint.parent), ('child', joint.child):
            if link not in links:
                hint = did_you_mean(link, links)
                raise ValueError(f'{path}: joint {joint.name!r}: there is no link {link!r} to be its {role}; {hint}')
        if joint.child in above:
            other = above[joint.child]
            raise ValueError(
                f'{path}: joint {joint.name!r}: link {joint.child!r} has a parent already, '
                f'link {other.parent!r} (joint {other.name!r})'
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [link for link in links if link not in above]
    if not links:
        raise ValueError(f'{path}: there must be one root link, found no link')
    if len(roots) > 1:
        found = ', '.join(map(repr, roots))
        raise ValueError(f'{path}: there must be one root link, found {found}; each of the others needs a joint')
    ordered = [joint for root in roots for joint in below[root]]
    depths = dict.fromkeys(roots, 1)
    for joint in ordered:  # it grows while it is read
        depths[joint.child] = depths[joint.parent] + 1
        ordered += below[joint.child]
    if len(ordered) < len(joints):
        lost = set(above) - {joint.child for joint in ordered}
        link = next(link for link in links if link in lost)
        raise ValueError(f'{path}: link {link!r} is its own ancestor, or below one that is; links must form a tree')
    check_bound(path, 'links, one below the other', max(depths.values()), 'depth')
    return links, ordered, roots[0]
