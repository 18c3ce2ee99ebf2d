"""NVIDIA Jetbot, a small robot on two wheels and a caster, and the articulation class that 2.x has for such robots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import RobotCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.isaacsim.articulation import IsaacsimArticulation
from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives, RobotSpec


class WheeledRobot(IsaacsimArticulation):
    """A robot with wheels addressed separately, in the order of their names or indices; one robot of one env.

    Args:
        prim_path: see `IArticulation.create`, as what is not listed here.
        robot_path: path of the robot below `prim_path`; None means that it is there itself.
        wheel_dof_names: names of the wheels' joints.
        wheel_dof_indices: their dof indices, used where no names are given.

    Raises:
        ValueError: neither names nor indices are given.
        KeyError: the robot has no joint of such a name.
    """

    def __init__(
        self,
        prim_path: str,
        name: str = 'wheeled_robot',
        robot_path: str | None = None,
        wheel_dof_names: Sequence[str] | None = None,
        wheel_dof_indices: Sequence[int] | None = None,
        usd_path: str | None = None,
        position: Any = None,
        orientation: Any = None,
        scale: Any = None,
    ):
        path = prim_path if robot_path is None else f'{prim_path}/{robot_path.lstrip("/")}'
        super().__init__(usd_path, path, name, position, orientation, scale)
        if wheel_dof_names is not None:
            wheel_dof_indices = [self.get_dof_index(wheel) for wheel in wheel_dof_names]
        if wheel_dof_indices is None:
            raise ValueError(f'robot {name!r}: set the names of its wheel joints (wheel_dof_names), or their indices')
        self._wheel_dof_names = wheel_dof_names
        self._wheel_dof_indices = list(wheel_dof_indices)

    @property
    def wheel_dof_indices(self) -> list[int]:
        """Dof indices of the wheels."""
        return self._wheel_dof_indices

    @override
    def post_reset(self) -> None:
        """Set the wheels to follow velocities."""
        for wheel in self._wheel_dof_indices:
            self.switch_dof_control_mode(wheel, 'velocity')

    def get_wheel_positions(self) -> NDArray[np.float32]:
        """Return the positions of the wheels [rad]."""
        return self.get_joint_positions(self._wheel_dof_indices)

    def set_wheel_positions(self, positions: Any) -> None:
        """Turn the wheels at once [rad]."""
        self.set_joint_positions(positions, self._wheel_dof_indices)

    def get_wheel_velocities(self) -> NDArray[np.float32]:
        """Return the velocities of the wheels [rad/s]."""
        return self.get_joint_velocities(self._wheel_dof_indices)

    def set_wheel_velocities(self, velocities: Any) -> None:
        """Set the velocities of the wheels at once [rad/s]; `apply_wheel_actions` drives them."""
        self.set_joint_velocities(velocities, self._wheel_dof_indices)

    def apply_wheel_actions(self, actions: ArticulationAction) -> None:
        """Set targets of the wheels, one for each. ValueError for another number of them."""
        targets = actions.joint_positions, actions.joint_velocities, actions.joint_efforts
        self.apply_action(ArticulationAction(*targets, joint_indices=self._wheel_dof_indices))

    def get_articulation_controller_properties(self) -> tuple[Sequence[str] | None, list[int]]:
        """Return the names, if they were given, and dof indices of the wheels."""
        return self._wheel_dof_names, self._wheel_dof_indices


_DAMPING = 0.1  # N·m·s/rad


@BaseRobot.register('JetbotRobot')
class JetbotRobot(BaseRobot):
    """NVIDIA Jetbot, a small car with a velocity drive on each of its two wheels."""

    batched = True
    # Stiff enough to hold a commanded wheel speed within 1 % under the robot's own weight, within the motor's 0.08 N·m
    drives = Drives(stiffness=0.0, damping=_DAMPING)
    fixed_base = False
    at_root = True

    @classmethod
    @override
    def model(cls, config: RobotCfg) -> RobotSpec:
        """Return the spec of the robot, with wheels that hold their speed as well at any scale."""
        spec = super().model(config)
        if cls.drives is not JetbotRobot.drives:
            return spec
        # masses stay: loads at a wheel grow with its radius, and its speeds become less as much
        return replace(spec, drives=Drives(stiffness=0.0, damping=_DAMPING * spec.scale**2))

    @property
    def prim_path(self) -> str:
        """Absolute prim path of the robot."""
        return self.config.prim_path
