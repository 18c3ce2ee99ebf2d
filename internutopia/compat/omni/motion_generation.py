"""`isaacsim.robot_motion.motion_generation`: inverse kinematics of robots by the solver of the built-in controllers.

`LulaKinematicsSolver` reads neither description nor URDF: the chain of joints is that of the robot's model in the env,
which an `ArticulationKinematicsSolver` knows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.model.inverse_kinematics import InverseKinematics
from internutopia.util.rotations import quat_to_matrix

Array = NDArray[np.float64]

NAMES = ('ArticulationKinematicsSolver', 'LulaKinematicsSolver')
"""Names of `isaacsim.robot_motion.motion_generation`."""


class LulaKinematicsSolver:
    """Inverse kinematics of an arm.

    Args:
        robot_description_path: accepted: joints are those of the robot's model.
        urdf_path: likewise.
    """

    def __init__(self, robot_description_path: str = '', urdf_path: str = '', robot_description: Any = None):
        self._base = np.eye(4)

    def set_robot_base_pose(self, robot_position: Any, robot_orientation: Any) -> None:
        """Set where the root of the robot is in the frame of targets: position `(3,)` [m], orientation `(4,)`."""
        self._base = np.eye(4)
        self._base[:3, :3] = quat_to_matrix(np.asarray(robot_orientation, float))
        self._base[:3, 3] = robot_position

    @property
    def base(self) -> Array:
        """Pose of the root in the frame of targets `(4, 4)`."""
        return self._base


class ArticulationKinematicsSolver:
    """Inverse kinematics of a robot in an env.

    Args:
        robot_articulation: the robot: a handle of it, such as `robot.articulation`.
        kinematics_solver: which knows where the robot's root is.
        end_effector_frame_name: link to be moved. KeyError with close matches, ValueError if no joint moves it.
    """

    def __init__(self, robot_articulation: Any, kinematics_solver: LulaKinematicsSolver, end_effector_frame_name: str):
        self._robot: Any = getattr(robot_articulation, '_body', robot_articulation)
        self._solver = kinematics_solver
        self._frame = end_effector_frame_name
        self._chain = self._robot.view.chain('', end_effector_frame_name, self._robot.env_id)
        if not len(self._chain.joints):
            raise ValueError(f'no joint of robot {self._robot.name!r} moves link {end_effector_frame_name!r}')
        home = np.asarray(self._robot.get_joint_positions(), float)[self._chain.joints]
        self._ik = InverseKinematics(self._chain, home, np.ones(len(home), bool))

    def get_end_effector_frame(self) -> str:
        """Return the link that is moved."""
        return self._frame

    def get_kinematics_solver(self) -> LulaKinematicsSolver:
        """Return the solver that knows where the root is."""
        return self._solver

    def compute_end_effector_pose(self, position_only: bool = False) -> tuple[Array, Array | None]:
        """Return position `(3,)` and rotation matrix `(3, 3)` of the link, in the frame of targets."""
        pose = self._solver.base @ self._chain.poses(self._now()[None])[0, -1]
        return pose[:3, 3], None if position_only else pose[:3, :3]

    def compute_inverse_kinematics(
        self,
        target_position: Any,
        target_orientation: Any = None,
        position_tolerance: float | None = None,
        orientation_tolerance: float | None = None,
    ) -> tuple[ArticulationAction, bool]:
        """Return the joint positions that bring the link to a pose, as an action, and whether it is met.

        Args:
            target_position: `(3,)` [m], in the frame of targets.
            target_orientation: `(4,)`; None: any.
            position_tolerance: accepted; a target counts as met within 0.1 mm.
            orientation_tolerance: accepted; within 1 mrad.
        """
        target = np.eye(4)
        target[:3, 3] = target_position
        if target_orientation is not None:
            target[:3, :3] = quat_to_matrix(np.asarray(target_orientation, float))
        local = np.linalg.inv(self._solver.base) @ target
        turned = np.array([target_orientation is not None])
        positions, met = self._ik.solve(local[None], turned, self._now()[None], np.array([True]))
        action = ArticulationAction(joint_positions=positions[0], joint_indices=np.asarray(self._chain.joints))
        return action, bool(met[0])

    def _now(self) -> Array:
        return np.asarray(self._robot.get_joint_positions(), float)[self._chain.joints]
