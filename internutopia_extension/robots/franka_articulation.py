"""Articulation class of Franka, as 2.x has it in the module of that robot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from internutopia.compat.v2.handles import IsaacsimArticulation
from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia_extension.configs.joint_names import FRANKA_FINGERS

OPEN, CLOSED, DELTA = 0.05, 0.0, 0.05  # of each finger [m]: InternUtopia 2.2.1 (MIT), class Franka


class ParallelGripper:
    """Two fingers that open and close together.

    Attributes:
        joint_opened_positions: where the fingers are when it is open, `(2,)` [m]; `joint_closed_positions` likewise.
        active_joint_indices: dof indices of the fingers.
    """

    def __init__(self, articulation: IArticulation, joints: Sequence[str], opened: Any, closed: Any, deltas: Any):
        self.joint_opened_positions = np.asarray(opened, np.float64)
        self.joint_closed_positions = np.asarray(closed, np.float64)
        self.active_joint_indices = [articulation.get_dof_index(joint) for joint in joints]
        self._articulation = articulation
        self._deltas = np.asarray(deltas, np.float64)

    def get_joint_positions(self) -> NDArray[np.float32]:
        """Return the finger positions, `(2,)` [m]."""
        return self._articulation.get_joint_positions(self.active_joint_indices)

    def forward(self, action: Literal['open', 'close']) -> ArticulationAction:
        """Return targets that are one step nearer to open or closed. ValueError for another word."""
        if action not in ('open', 'close'):
            raise ValueError(f"gripper: expected 'open' or 'close', got {action!r}")
        step = self._deltas if action == 'open' else -self._deltas
        low, high = np.sort([self.joint_closed_positions, self.joint_opened_positions], axis=0)
        targets = np.clip(self.get_joint_positions() + step, low, high)
        return ArticulationAction(targets, joint_indices=self.active_joint_indices)

    def open(self) -> None:
        """Drive the fingers one step apart."""
        self._articulation.apply_action(self.forward('open'))

    def close(self) -> None:
        """Drive the fingers one step together."""
        self._articulation.apply_action(self.forward('close'))


class Franka(IsaacsimArticulation):
    """A Franka Panda with its gripper, the robot of one env.

    Args:
        prim_path: see `IArticulation.create`, as what is not listed here.
        end_effector_prim_name: link that `end_effector` is.
        gripper_dof_names: joints of the fingers.
        gripper_open_position: where they are when the gripper is open [m].
        gripper_closed_position: where they are when it is closed [m].
        deltas: how far one call of `gripper.open` or `close` moves the targets [m].
    """

    def __init__(
        self,
        prim_path: str,
        name: str = 'franka_robot',
        usd_path: str | None = None,
        position: Any = None,
        orientation: Any = None,
        end_effector_prim_name: str | None = None,
        gripper_dof_names: Sequence[str] | None = None,
        gripper_open_position: Any = None,
        gripper_closed_position: Any = None,
        deltas: Any = None,
        scale: Any = None,
    ):
        super().__init__(usd_path, prim_path, name, position, orientation, scale)
        opened, closed, step = (
            [default] * 2 if given is None else given
            for given, default in (
                (gripper_open_position, OPEN),
                (gripper_closed_position, CLOSED),
                (deltas, DELTA),
            )
        )
        self._end_effector = self.body(end_effector_prim_name or 'panda_rightfinger')
        self._gripper = ParallelGripper(self, gripper_dof_names or FRANKA_FINGERS, opened, closed, step)

    @property
    def end_effector(self) -> IRigidBody:
        """The link at the end of the arm."""
        return self._end_effector

    @property
    def gripper(self) -> ParallelGripper:
        """The gripper."""
        return self._gripper
