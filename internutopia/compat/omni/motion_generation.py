"""`isaacsim.robot_motion.motion_generation`: inverse kinematics of robots by the solver of the built-in controllers.

An `ArticulationKinematicsSolver` has the joints of the robot's model in the env, a `LulaKinematicsSolver` those of a
file.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from internutopia.compat.numbers import checks_arguments
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.engines.batched.geometry import chain_of
from internutopia.model.compilation import compile_scene
from internutopia.model.compiled import CompiledScene
from internutopia.model.kinematics import InverseKinematics, KinematicChain
from internutopia.model.layouts import ArticulationLayout
from internutopia.model.spec import RobotSpec, SceneSpec
from internutopia.util import did_you_mean
from internutopia.util.rotations import quat_to_matrix

Array = NDArray[np.float64]

NAMES = ('ArticulationKinematicsSolver', 'LulaKinematicsSolver')
"""Names of `isaacsim.robot_motion.motion_generation`."""


class _Arm:
    """The joints between the root of a robot and a link. ValueError if no joint moves the link."""

    def __init__(self, chain: KinematicChain, home: Array, link: str, robot: str):
        if not len(chain.joints):
            raise ValueError(f'no joint of robot {robot!r} moves link {link!r}')
        self.joints = chain.joints
        self._chain = chain
        self._ik = InverseKinematics(chain, home[chain.joints], np.ones(len(chain.joints), bool))

    def pose(self, base: Array, positions: Array) -> tuple[Array, Array]:
        """Return position `(3,)` and rotation matrix `(3, 3)` of the link for joint positions `(m,)`."""
        pose = base @ self._chain.poses(positions[None])[0, -1]
        return pose[:3, 3], pose[:3, :3]

    def solve(self, base: Array, position: Any, orientation: Any, start: Array) -> tuple[Array, bool]:
        """Return joint positions `(m,)` that bring the link to a pose, and whether it is met."""
        target = np.eye(4)
        target[:3, 3] = position
        if orientation is not None:
            target[:3, :3] = quat_to_matrix(np.asarray(orientation, float))
        local = np.linalg.inv(base) @ target
        turned = np.array([orientation is not None])
        positions, met = self._ik.solve(local[None], turned, start[None], np.array([True]))
        return positions[0], bool(met[0])


class LulaKinematicsSolver:
    """Kinematics of an arm, without an env: that of the model in a file. Poses are in the frame of targets.

    Args:
        robot_description_path: YAML whose `cspace` lists the joints of the arm, and `default_q` where they start; where
            it is not there, all joints are, and functions of a frame also take those that move it alone.
        urdf_path: URDF, USD or MJCF, see [where assets are looked up](scenes.md). It is read at the first use; an
            `ArticulationKinematicsSolver` does not need it.
    """

    def __init__(self, robot_description_path: str = '', urdf_path: str = '', robot_description: Any = None):
        self._base = np.eye(4)
        self._description, self._asset = robot_description_path, urdf_path
        self._arms: dict[str, _Arm] = {}

    @checks_arguments
    def set_robot_base_pose(self, robot_position: Any, robot_orientation: Any) -> None:
        """Set where the root of the robot is in the frame of targets: position `(3,)` [m], orientation `(4,)`."""
        self._base = np.eye(4)
        self._base[:3, :3] = quat_to_matrix(np.asarray(robot_orientation, float))
        self._base[:3, 3] = robot_position

    @property
    def base(self) -> Array:
        """Pose of the root in the frame of targets `(4, 4)`."""
        return self._base

    def get_joint_names(self) -> list[str]:
        """Return the joints, in the order of joint arrays."""
        return list(self._joints)

    def get_all_frame_names(self) -> list[str]:
        """Return the links."""
        return list(self._layout.bodies)

    def compute_forward_kinematics(
        self, frame_name: str, joint_positions: Any, position_only: bool = False
    ) -> tuple[Array, Array | None]:
        """Return position `(3,)` and rotation matrix `(3, 3)` of a link for joint positions.

        KeyError with close matches for an unknown link, ValueError for another number of joints.
        """
        arm = self._arm(frame_name)
        position, rotation = arm.pose(self._base, self._dofs(joint_positions, arm)[arm.joints])
        return position, None if position_only else rotation

    @checks_arguments
    def compute_inverse_kinematics(
        self,
        frame_name: str,
        target_position: Any,
        target_orientation: Any = None,
        warm_start: Any = None,
        position_tolerance: float | None = None,
        orientation_tolerance: float | None = None,
    ) -> tuple[Array, bool]:
        """Return joint positions that bring a link to a pose, in the order of `warm_start`, and whether it is met.

        Args:
            frame_name: the link. KeyError with close matches.
            target_position: `(3,)` [m], in the frame of targets.
            target_orientation: `(4,)`; None: any.
            warm_start: joint positions to start from; None: where the model starts, in the order of `get_joint_names`.
            position_tolerance: accepted; a target counts as met within 0.1 mm.
            orientation_tolerance: accepted; within 1 mrad.
        """
        arm = self._arm(frame_name)
        dofs = self._dofs(warm_start, arm)
        dofs[arm.joints], met = arm.solve(self._base, target_position, target_orientation, dofs[arm.joints])
        return dofs[self._columns(arm, np.size(warm_start) if warm_start is not None else len(self._joints))], met

    @cached_property
    def _scene(self) -> CompiledScene:
        robot = RobotSpec(name='robot', asset=self._asset, fixed_base=True)
        return compile_scene(SceneSpec(robots=(robot,)), timestep=0.002)

    @property
    def _layout(self) -> ArticulationLayout:
        return self._scene.robots['robot']

    @cached_property
    def _joints(self) -> dict[str, int]:
        """Dof indices of the joints by name, in the order of joint arrays."""
        names = self._layout.dof_names
        wanted = self._described.get('cspace', names)
        for joint in wanted:
            if joint not in names:
                hint = did_you_mean(joint, names)
                raise ValueError(f'{self._description}: {self._asset} has no joint {joint!r}; {hint}')
        return {joint: names.index(joint) for joint in wanted}

    @cached_property
    def _described(self) -> dict[str, Any]:
        file = Path(self._description)
        return yaml.safe_load(file.read_text()) if file.is_file() else {}

    @cached_property
    def _home(self) -> Array:
        home = self._scene.model.qpos0[self._layout.qpos].copy()
        given = self._described.get('default_q', ())
        home[list(self._joints.values())[: len(given)]] = given
        return home

    def _arm(self, frame: str) -> _Arm:
        if frame not in self._arms:
            chain = chain_of(self._scene.model, self._layout, '', frame)
            self._arms[frame] = _Arm(chain, self._home, frame, self._asset)
        return self._arms[frame]

    def _columns(self, arm: _Arm, count: int) -> Any:
        """Return the dof indices of that many joint positions. ValueError if there is no such order."""
        orders = [list(self._joints.values()), arm.joints]
        for order in orders:
            if len(order) == count:
                return order
        names = self._layout.dof_names
        choices = ' or '.join(f'{len(order)} ({", ".join(names[dof] for dof in order)})' for order in orders)
        raise ValueError(f'{self._asset}: {count} joint positions, expected {choices}')

    def _dofs(self, positions: Any, arm: _Arm) -> Array:
        """Return positions of all dofs: those given, the others where the model starts."""
        dofs = self._home.copy()
        if positions is not None:
            dofs[self._columns(arm, np.size(positions))] = positions
        return dofs


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
        chain = self._robot.view.chain('', end_effector_frame_name, self._robot.env_id)
        self._arm = _Arm(chain, self._positions(), end_effector_frame_name, self._robot.name)

    def get_end_effector_frame(self) -> str:
        """Return the link that is moved."""
        return self._frame

    def get_kinematics_solver(self) -> LulaKinematicsSolver:
        """Return the solver that knows where the root is."""
        return self._solver

    def compute_end_effector_pose(self, position_only: bool = False) -> tuple[Array, Array | None]:
        """Return position `(3,)` and rotation matrix `(3, 3)` of the link, in the frame of targets."""
        position, rotation = self._arm.pose(self._solver.base, self._positions()[self._arm.joints])
        return position, None if position_only else rotation

    @checks_arguments
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
        start = self._positions()[self._arm.joints]
        positions, met = self._arm.solve(self._solver.base, target_position, target_orientation, start)
        return ArticulationAction(joint_positions=positions, joint_indices=self._arm.joints), met

    def _positions(self) -> Array:
        return np.asarray(self._robot.get_joint_positions(), float)
