"""Fit of a policy to a robot: mistakes in its metadata that can be found before it makes a step.

A policy that was trained elsewhere comes with lists of numbers: joints in its own order, a default pose, scales.
Numbers in another order are still numbers. What gives them away is the robot: joints have limits, the default pose is
one that it stands in, and what a policy does there when it is commanded to stand is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.model.kinematics import LIMIT_TOLERANCE, outside_limits
from internutopia.rl.policy import PolicyMetadata
from internutopia.rl.state import RobotState
from internutopia.util.arrays import to_host

FAR = 0.5  # rad, of the default pose from the pose that the robot's class stands in
NEAR = 0.3  # rad, of numbers that are in the right order
BEYOND = 0.5  # rad, of targets past the limits of a joint: with less a foot may press on the ground


def check_offset(metadata: PolicyMetadata, state: RobotState) -> None:
    """Raise ValueError naming joints whose default position is outside their limits, and an order or unit that fits."""
    faults = outside_limits(metadata.joint_names, metadata.offset, _ranges(metadata.joint_names, state))
    if faults:
        hint = _better_order(metadata, state) or _in_degrees(metadata, state)
        raise ValueError(f'offset is outside the limits of joints: {faults}{hint}')


def misfits(metadata: PolicyMetadata, state: RobotState, actions: Any) -> list[str]:
    """Return suspected mistakes, a sentence each; none for a policy that training wrote, in any pose of the robot.

    Args:
        metadata: of the policy.
        state: the robot, in any pose.
        actions: of the policy `(k,)` for a robot that stands and is commanded to stand.
    """
    found: list[str] = []
    if metadata.training:
        return found
    home = _home(metadata.joint_names, state)
    far = np.flatnonzero(np.abs(np.array(metadata.offset) - home) > FAR)
    if len(far):
        joints = ', '.join(f'{metadata.joint_names[i]} {metadata.offset[i]:g} ({home[i]:g})' for i in far)
        found.append(
            f'its default pose is far from the one that the robot stands in: {joints}{_better_order(metadata, state)}'
        )
    targets = np.array(metadata.offset) + np.array(metadata.scale) * actions
    low, high = _ranges(metadata.joint_names, state).T
    beyond = np.flatnonzero((targets < low - BEYOND) | (targets > high + BEYOND))
    if len(beyond):
        joints = ', '.join(f'{metadata.joint_names[i]} {targets[i]:.3g}' for i in beyond)
        found.append(
            f'standing still it commands joint positions beyond the limits: {joints}; check scale, the order of the '
            'joints and of the observation, and the scales in it'
        )
    return found


def _better_order(metadata: PolicyMetadata, state: RobotState) -> str:
    """Return a hint, if the numbers of the default pose would fit the robot with its joints in another common order."""
    offset = np.array(metadata.offset)
    for name, joints in common_orders(metadata.joint_names, state.articulation.dof_names).items():
        low, high = _ranges(joints, state).T
        inside = (offset >= low - LIMIT_TOLERANCE) & (offset <= high + LIMIT_TOLERANCE)
        if joints != metadata.joint_names and (inside & (np.abs(offset - _home(joints, state)) < NEAR)).all():
            return f'; they would fit with joint_names {name}: {", ".join(joints)}'
    return ''


def _in_degrees(metadata: PolicyMetadata, state: RobotState) -> str:
    """Return a hint, if the numbers of the default pose would fit the robot as degrees."""
    radians = np.radians(metadata.offset).tolist()
    are_angles = np.abs(metadata.offset).max() < 2.0 * np.pi
    if are_angles or outside_limits(metadata.joint_names, radians, _ranges(metadata.joint_names, state)):
        return ''
    return f'; they would fit as degrees: give radians, [{", ".join(f"{angle:.4g}" for angle in radians)}]'


def legs_of(joints: Sequence[str], dof_names: Sequence[str]) -> list[list[str]]:
    """Return these joints leg by leg, in the order of the model; a leg is what a name has before its first `_`."""
    legs: dict[str, list[str]] = {}
    for name in dof_names:
        if name in joints:
            legs.setdefault(_leg(name), []).append(name)
    return list(legs.values())


def leg_by_leg(legs: Sequence[Sequence[str]]) -> list[str]:
    """Return the joints of one leg after the other."""
    return [name for leg in legs for name in leg]


def joint_by_joint(legs: Sequence[Sequence[str]]) -> list[str]:
    """Return the first joint of every leg, then the second of every leg, and so on."""
    longest = max(len(leg) for leg in legs)
    return [leg[i] for i in range(longest) for leg in legs if i < len(leg)]


def common_orders(joints: Sequence[str], dof_names: Sequence[str]) -> dict[str, list[str]]:
    """Return common orders of these joints, by what they are; `dof_names` are those of the robot, as in its model."""
    legs = legs_of(joints, dof_names)
    return {
        'in the order of the model': [name for name in dof_names if name in joints],
        'joint by joint over the legs, as Isaac Sim lists them': joint_by_joint(legs),
        'leg by leg, left before right': leg_by_leg(sorted(legs, key=lambda leg: _leg(leg[0]))),
    }


def _leg(joint: str) -> str:
    return joint.partition('_')[0]


def _home(joints: Sequence[str], state: RobotState) -> NDArray[np.float64]:
    """Return the home positions of the joints by the robot's class."""
    robot = state.robot
    positions = type(robot).model(robot.config).joint_positions
    return np.array([positions.get(joint, 0.0) for joint in joints])


def _ranges(joints: Sequence[str], state: RobotState) -> NDArray[np.float64]:
    return to_host(state.joint_ranges)[to_host(state.dof_indices(joints))]
