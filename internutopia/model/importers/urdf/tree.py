"""Tree of the links and joints of a URDF file."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from internutopia.model.asset_bounds import check_bound
from internutopia.model.importers.urdf.document import WORLD, Joint, Link
from internutopia.util import did_you_mean


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
        raise ValueError(f'{path}: there must be one root link, found {found}; a joint must hold each of the others')
    ordered = [joint for root in roots for joint in below[root]]
    depths = dict.fromkeys(roots, 1)
    for joint in ordered:  # it grows while it is read
        depths[joint.child] = depths[joint.parent] + 1
        ordered += below[joint.child]
    if len(ordered) < len(joints):
        lost = set(above) - {joint.child for joint in ordered}
        link = next(link for link in links if link in lost)
        raise ValueError(f'{path}: link {link!r} is its own ancestor, or hangs on one; links must form a tree')
    check_bound(path, 'links, one below the other', max(depths.values()), 'depth')
    return links, ordered, roots[0]
