"""Order of a robot's joints in arrays."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from internutopia.model.spec import JointOrder


def order_joints(model: mujoco.MjModel, joints: Sequence[int], names: Sequence[str], order: JointOrder) -> list[int]:
    """Return indices into `joints`, joint ids of one robot as the model has them, in the requested order.

    Args:
        model: the compiled scene.
        joints: joint ids, depth first.
        names: what the robot calls them.
        order: see `RobotSpec`.
    """
    places = list(range(len(joints)))
    if order == 'depth_first':
        return places
    if order == 'breadth_first':
        paths = [_links_to(model, joint) for joint in joints]
        return sorted(places, key=lambda place: (len(paths[place]), paths[place], place))
    return sorted(places, key=lambda place: order.index(names[place]))


def _links_to(model: mujoco.MjModel, joint: int) -> list[str]:
    """Return the names of the bodies from the world to the one that a joint moves."""
    body, names = int(model.jnt_bodyid[joint]), []
    while body:
        names.append(model.body(body).name)
        body = int(model.body_parentid[body])
    return names[::-1]
