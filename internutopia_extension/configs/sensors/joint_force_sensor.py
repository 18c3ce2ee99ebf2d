"""Joint force sensor."""

from typing import Self

from pydantic import model_validator

from internutopia.config.fields import NonNegativeFloat
from internutopia.config.robot import SensorCfg


class JointForceSensorCfg(SensorCfg):
    """Efforts of joints, and the forces and torques that joints transmit."""

    name: str = 'joint_forces'
    type: str = 'JointForceSensor'
    joint_names: list[str] | None = None
    """Joints whose `efforts` are measured, in this order; None means all, in joint order, an empty list none."""
    wrenches_at: list[str] = []
    """Joints, or links (for their attachment to their parents), where `forces` and `torques` are measured."""
    noise: NonNegativeFloat = 0.0
    """Standard deviation of normal noise on each effort, force and torque, N·m or N."""

    @model_validator(mode='after')
    def _check_anything(self) -> Self:
        if self.joint_names == [] and not self.wrenches_at:
            raise ValueError('joint_names and wrenches_at are empty: there is nothing to measure')
        return self
