"""Articulation subset: some joints of a robot, in an order of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.robot.articulation import ArticulationAction, IArticulation


class ArticulationSubset:
    """The joints `joint_names` of an articulation; every array follows the order of these names.

    Serves one env, `(k,)`, and all envs, `(n, k)`, as its articulation does. Getters return copies. KeyError if the
    robot lacks one of the joints.
    """

    def __init__(self, articulation: IArticulation, joint_names: Sequence[str]):
        self.articulation = articulation
        self.joint_names = list(joint_names)
        self._indices = np.array([articulation.get_dof_index(name) for name in joint_names], np.intp)

    @property
    def is_initialized(self) -> bool:
        """True if joints can be read."""
        return self.articulation.handles_initialized

    @property
    def num_joints(self) -> int:
        """Number of joints, k."""
        return len(self.joint_names)

    @property
    def joint_indices(self) -> NDArray[np.intp]:
        """Dof indices `(k,)` in the articulation."""
        return self._indices

    def get_joint_subset_indices(self) -> NDArray[np.intp]:
        """Dof indices `(k,)` in the articulation."""
        return self._indices

    def get_joint_positions(self) -> NDArray[np.float32]:
        """Return joint positions [rad or m]."""
        return self.articulation.get_joint_positions(self._indices)

    def get_joint_velocities(self) -> NDArray[np.float32]:
        """Return joint velocities [rad/s or m/s]."""
        return self.articulation.get_joint_velocities(self._indices)

    def get_joint_efforts(self) -> NDArray[np.float32]:
        """Return the forces of the drives [N·m or N]."""
        return self.articulation.get_joint_efforts(self._indices)

    def set_joint_positions(self, positions: Any) -> None:
        """Move the joints at once."""
        self.articulation.set_joint_positions(positions, self._indices)

    def set_joint_velocities(self, velocities: Any) -> None:
        """Set joint velocities at once."""
        self.articulation.set_joint_velocities(velocities, self._indices)

    def set_joint_efforts(self, efforts: Any) -> None:
        """Set efforts that are added to the drives."""
        self.articulation.set_joint_efforts(efforts, self._indices)

    def make_articulation_action(
        self, joint_positions: Any = None, joint_velocities: Any = None, joint_efforts: Any = None
    ) -> ArticulationAction:
        """Create an action for these joints; None leaves positions, velocities or efforts alone.

        Args:
            joint_positions: position targets `(k,)` or `(n, k)` [rad or m].
            joint_velocities: velocity targets, of the same shape [rad/s or m/s].
            joint_efforts: efforts that are added to the drives, of the same shape [N·m or N].
        """
        return ArticulationAction(joint_positions, joint_velocities, joint_efforts, joint_indices=self._indices)

    def apply_action(
        self, joint_positions: Any = None, joint_velocities: Any = None, joint_efforts: Any = None
    ) -> None:
        """Set drive targets and efforts of these joints, as `make_articulation_action` takes them."""
        self.articulation.apply_action(self.make_articulation_action(joint_positions, joint_velocities, joint_efforts))

    def map_to_articulation_order(self, joint_values: Any) -> NDArray[np.float32]:
        """Return values `(k,)` or `(n, k)` as `(dof,)` or `(n, dof)`, zero for joints outside the subset."""
        values = np.asarray(joint_values, np.float32)
        mapped = np.zeros((*values.shape[:-1], self.articulation.num_dof), np.float32)
        mapped[..., self._indices] = values
        return mapped
