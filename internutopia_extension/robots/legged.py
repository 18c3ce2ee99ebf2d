"""Base of the legged robots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives

T = TypeVar('T')


def both_sides(values: Mapping[str, T]) -> dict[str, T]:
    """Return the same values for the joints of both sides: `knee` for `left_knee_joint` and `right_knee_joint`."""
    return {f'{side}_{joint}_joint': value for side in ('left', 'right') for joint, value in values.items()}


def drives_of(gains: Mapping[str, tuple[float, float]]) -> Drives:
    """Return drives with stiffness [N·m/rad] and damping [N·m·s/rad] by joint name."""
    return Drives({joint: kp for joint, (kp, _) in gains.items()}, {joint: kd for joint, (_, kd) in gains.items()})


class LeggedRobot(BaseRobot):
    """A floating base on legs, with drives that hold its joints."""

    fixed_base = False
    at_root = True

    def set_gains(self) -> None:
        """Set the gains of this class again, after they were changed at run time."""
        gains = [self.drives.gains(name) for name in self.articulation.dof_names]
        self.articulation.set_gains([kp for kp, _ in gains], [kd for _, kd in gains])
