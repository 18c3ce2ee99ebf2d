"""The command that a controller gives to the joints of a robot."""

from __future__ import annotations

from typing import Any

import numpy as np


class ArticulationAction:
    """Targets for joint drives; `ArticulationAction()` does nothing.

    Arrays are `(k,)`, or `(n, k)` for n envs, over the joints `joint_indices` `(k,)` (None: all joints in order). A
    target that is None, or an entry that is None or NaN, leaves what was commanded before.

    Args:
        joint_positions: position targets [rad or m].
        joint_velocities: velocity targets [rad/s or m/s].
        joint_efforts: efforts [N·m or N].
        joint_indices: dof indices of the articulation that the arrays are for.
    """

    def __init__(
        self,
        joint_positions: Any = None,
        joint_velocities: Any = None,
        joint_efforts: Any = None,
        joint_indices: Any = None,
    ):
        self.joint_positions = joint_positions
        self.joint_velocities = joint_velocities
        self.joint_efforts = joint_efforts
        self.joint_indices = joint_indices

    def with_env_axis(self) -> ArticulationAction:
        """This action of one env as that of a batch of one env: `(k,)` becomes `(1, k)`."""
        targets = (self.joint_positions, self.joint_velocities, self.joint_efforts)
        rows = (None if target is None else np.asarray(target, np.float64)[None] for target in targets)
        return ArticulationAction(*rows, joint_indices=self.joint_indices)

    def get_dof_action(self, index: int) -> dict[str, Any]:
        """Return the targets of one dof of the articulation; empty if this action has none for it."""
        if self.joint_indices is not None:
            positions = np.flatnonzero(np.asarray(self.joint_indices) == index)
            if len(positions) == 0:
                return {}
            index = int(positions[0])
        targets = {
            'position': self.joint_positions,
            'velocity': self.joint_velocities,
            'effort': self.joint_efforts,
        }
        return {name: np.asarray(value)[..., index] for name, value in targets.items() if value is not None}

    def get_dict(self) -> dict[str, Any]:
        """Return the targets as nested lists, None where there are none."""
        values = {
            'joint_positions': self.joint_positions,
            'joint_velocities': self.joint_velocities,
            'joint_efforts': self.joint_efforts,
        }
        return {name: None if value is None else np.asarray(value).tolist() for name, value in values.items()}

    def get_length(self) -> int | None:
        """Return the number of joints, None for an action that does nothing."""
        for value in (self.joint_positions, self.joint_velocities, self.joint_efforts):
            if value is not None:
                return int(np.shape(value)[-1])
        return None
