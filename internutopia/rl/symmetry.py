"""Mirror images of observations and actions, left and right swapped, for robots with lateral symmetry.

A policy is symmetric if it does the mirror image of what it does when it sees the mirror image of what it sees; one
that is trained with it does not limp (Mittal et al., "Symmetry Considerations for Learning Task Symmetric Robot
Policies", 2024). Which joint is the image of which follows from the geometry of the robot's model. The mirror is the
plane through the x and z axis of its root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.rl.state import RobotState

DISTANCE = 0.02  # m, that the image of a joint or link may be away from its partner: models are made of rounded numbers
ALIGNMENT = 0.99  # cosine of the angle between the image of a joint's axis and the axis of its partner


@dataclass(frozen=True)
class Mirror:
    """Mirror image of vectors: element i is element `order[i]` times `signs[i]`."""

    order: NDArray[np.intp]
    signs: NDArray[np.float32]

    @classmethod
    def of_signs(cls, signs: Sequence[float]) -> Mirror:
        """Return a mirror that only multiplies elements by these signs."""
        return cls(np.arange(len(signs)), np.array(signs, np.float32))

    @classmethod
    def joined(cls, parts: Sequence[Mirror]) -> Mirror:
        """Return the mirror of vectors side by side."""
        starts = np.cumsum([0, *(len(part.order) for part in parts)])
        orders = [part.order + start for part, start in zip(parts, starts[:-1], strict=True)]
        none = np.empty(0)
        return cls(
            np.concatenate([none, *orders]).astype(np.intp),
            np.concatenate([none, *(part.signs for part in parts)]).astype(np.float32),
        )


TermMirror = Sequence[float] | Callable[..., Mirror]
"""Mirror of a term: a sign for each element, or a function of `state` and the term's parameters."""


def mirror_joints(state: RobotState, joints: Sequence[str]) -> Mirror:
    """Return the mirror of positions, velocities or efforts of joints. ValueError naming a joint without an image."""
    anchors, axes, slides = _joint_frames(state, joints)
    flip = np.array([1.0, -1.0, 1.0])
    # an axis of rotation is a pseudovector: in the mirror it turns the other way round
    images = np.where(slides[:, None], axes * flip, -axes * flip)
    aligned = images @ axes.T
    apart = np.linalg.norm((anchors * flip)[:, None] - anchors, axis=-1)
    partners = np.where((np.abs(aligned) > ALIGNMENT) & (slides[:, None] == slides), apart, np.inf)
    order = _paired(partners, joints, 'joint')
    return Mirror(order, np.sign(aligned[order, np.arange(len(order))]).astype(np.float32))


def mirror_feet(state: RobotState) -> Mirror:
    """Return the mirror of one number per foot. ValueError naming a foot without an image."""
    feet = state.robot.feet
    places = np.array([_frames(state, foot)[1][-1][:3, 3] for foot in feet])
    apart = np.linalg.norm((places * [1.0, -1.0, 1.0])[:, None] - places, axis=-1)
    return Mirror(_paired(apart, feet, 'foot'), np.ones(len(feet), np.float32))


def _frames(state: RobotState, link: str) -> tuple[Any, NDArray[np.float64]]:
    """Return the chain from the root to a link, and the poses in it, all joints at zero, in the root's frame."""
    chain = state.chain(link)
    return chain, chain.poses(np.zeros((1, len(chain.joints))))[0]


def _joint_frames(state: RobotState, joints: Sequence[str]) -> tuple[Any, Any, NDArray[np.bool_]]:
    """Return anchors and axes of joints in the root's frame, `(k, 3)` each, and which of them slide."""
    found: dict[int, tuple[Any, Any, bool]] = {}
    for link in state.articulation.view.body_names:
        chain, poses = _frames(state, link)
        for index, dof in enumerate(chain.joints.tolist()):
            axis = poses[index][:3, :3] @ chain.axes[index]
            found[dof] = poses[index][:3, 3], axis, bool(chain.slides[index])
    rows = [found[state.articulation.get_dof_index(joint)] for joint in joints]
    anchors, axes, slides = zip(*rows, strict=True)
    return np.array(anchors), np.array(axes), np.array(slides)


def _paired(apart: NDArray[np.float64], names: Sequence[str], what: str) -> NDArray[np.intp]:
    """Return the pairs of images, given distances `(k, k)` of images from all of them [m]."""
    order = apart.argmin(axis=1)
    for index, partner in enumerate(order.tolist()):
        if apart[index, partner] > DISTANCE or order[partner] != index:
            raise ValueError(f'{what} {names[index]!r} has no mirror image: the robot is not symmetric')
    return order
