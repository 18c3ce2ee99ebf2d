"""Orders in which simulators and trainers list the joints of a robot on legs."""

from __future__ import annotations

from collections.abc import Sequence


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
