"""Controllers of joints: drive targets, raw controls of actuators, opening and closing of a gripper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.mimic_joints import MimicJoints
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia_extension.configs.controllers import GripperControllerCfg, JointControllerCfg
from internutopia_extension.controllers.batch_values import BoxActionController, checks_as, stack_actions


@BaseController.register('JointController')
class JointController(BaseController):
    """Drive targets of joints, and of those that mimic them. Action: positions [rad or m], velocities.

    Action: `[]` (no new command), `[positions]` or `[positions, velocities]`, each `(k,)` [rad or m, rad/s or m/s] in
    the order of `joint_names`, or None to leave them. `[None, velocities]` holds the current positions.
    """

    batched = True
    pure = True
    commands = 'drives'

    def __init__(self, config: JointControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.joint_subset = self._moved = ArticulationSubset(robot.articulation, config.joint_names)
        if config.mimic:
            self.mimic_joints = MimicJoints(config.mimic, config.joint_names, self.arrays)
            self._moved = ArticulationSubset(robot.articulation, [*config.joint_names, *config.mimic])

    @classmethod
    @override
    def checks_signature_only(cls) -> bool:
        return checks_as(cls, JointController)

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Return one env's action as `(0..2, k)`, NaN for None."""
        k = self.joint_subset.num_joints
        if not isinstance(action, list | tuple | np.ndarray) or len(action) > 2:
            raise ValueError(f'expected [positions, velocities] of {k} numbers each, [positions] or [], got {action!r}')
        parsed = np.full((len(action), k), np.nan, np.float32)
        for row, values, what in zip(parsed, action, ('positions', 'velocities'), strict=False):
            if values is not None:
                row[:] = box_action(values, (k,), f' (joint {what})')
        return parsed

    @override
    def parse_actions(self, actions: Sequence[Any]) -> NDArray[Any]:
        """Return the actions of several envs as `(n, 0..2, k)`."""
        stacked = stack_actions(actions)
        if (
            stacked is None
            or stacked.ndim != 3
            or stacked.shape[1] > 2
            or stacked.shape[2] != self.joint_subset.num_joints
        ):
            return super().parse_actions(actions)
        return stacked

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        action = self.parsed(action, env_ids)
        return self.forward(*[action[..., row, :] for row in range(action.shape[-2])], env_ids=env_ids)

    def forward(
        self, joint_positions: Any = None, joint_velocities: Any = None, env_ids: Any = ...
    ) -> ArticulationAction:
        """Return joint targets `(k,)`, for several envs `(n, k)`; None or NaN entries leave a target as it is.

        A joint with a velocity target alone holds its current position.
        """
        if joint_velocities is not None:
            current = self.joint_subset.get_joint_positions()[env_ids]
            velocities = np.asarray(joint_velocities, np.float32)
            positions = np.asarray(np.nan if joint_positions is None else joint_positions, np.float32)
            joint_positions = np.where(np.isnan(positions) & ~np.isnan(velocities), current, positions)
        if self.mimic_joints is not None:
            joint_positions = self._with_followers(joint_positions, self.mimic_joints.positions)
            joint_velocities = self._with_followers(joint_velocities, self.mimic_joints.velocities)
        return self._moved.make_articulation_action(joint_positions, joint_velocities)

    def _with_followers(self, targets: Any, follow: Callable[[Any], Any]) -> Any:
        """Return targets of the commanded joints and of those that mimic them; None for None."""
        if targets is None:
            return None
        targets = self.arrays.asarray(targets, 'float32')
        return self.arrays.xp.concat([targets, follow(targets)], axis=-1)

    @override
    def action_space(self) -> Space[Any]:
        """Return the space of `[positions]` within the joint limits; without any half a turn (pi metres) each way."""
        subset = self.joint_subset
        ranges = subset.articulation.view.joint_ranges[subset.joint_indices]
        low, high = np.where(np.isfinite(ranges), ranges, [-np.pi, np.pi]).astype(np.float32).T
        return Box(low[None], high[None])


@BaseController.register('ActuatorController')
class ActuatorController(BoxActionController):
    """Actuators of the model file (motors, muscles, servos). Action: one control per actuator, in the model's units.

    Action: one number per actuator, in the model's order and units; the engine clips them to the actuators' ranges. As
    such actuators are no joint drives, the controls are written to the robot at once and the returned
    `ArticulationAction` is empty.

    Raises ValueError when created for a robot without actuators of its own.
    """

    batched = True
    pure = True
    commands = 'actuators'
    action_meaning = 'controls of the actuators'

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.control_names = robot.articulation.view.control_names
        if not self.control_names:
            raise ValueError(
                f'controller {config.name!r}: robot {robot.name!r} has joint drives and no actuators of its own; '
                'command it through a JointController'
            )
        self.action_shape = (len(self.control_names),)

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Write the controls to the robot; no joint targets are returned."""
        action = self.parsed(action, env_ids)
        if env_ids is ...:
            env_ids, action = np.array([self.scene.env_id]), action[None]
        self.robot.articulation.view.set_controls(env_ids, action)
        return ArticulationAction()

    @override
    def action_space(self) -> Space[Any]:
        """Return the space of controls within their ranges; -1 to 1 where an actuator has none."""
        ranges = self.robot.articulation.view.control_ranges
        low, high = np.where(np.isfinite(ranges), ranges, [-1.0, 1.0]).astype(np.float32).T
        return Box(low, high)


_COMMANDS = {'open': 1.0, 'close': -1.0}


@BaseController.register('GripperController')
class GripperController(BaseController):
    """Opening and closing of a gripper. Action: `'open'` or `'close'`.

    Action: `['open']` or `['close']`, or a number: positive opens. The drives of the fingers press on with their
    stiffness on what is between them.

    Observation: `gripper_pos`, positions of the finger joints `(2,)` [m].
    """

    batched = True
    commands = 'drives'

    def __init__(self, config: GripperControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        joints: Sequence[str] = getattr(robot, 'finger_joints', ())
        if not joints:
            raise ValueError(f'robot {robot.name!r} of type {robot.config.type!r} has no gripper: no finger_joints')
        self.joint_subset = ArticulationSubset(robot.articulation, joints)
        ranges = robot.articulation.view.joint_ranges[self.joint_subset.joint_indices]
        self._closed, self._open = (self.arrays.asarray(ends) for ends in ranges.T)

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Return one env's action as `(1,)`: positive opens."""
        if isinstance(action, list | tuple) and len(action) == 1 and isinstance(action[0], str):
            if action[0] not in _COMMANDS:
                raise ValueError(f"expected ['open'] or ['close'], got {action!r}")
            return np.array([_COMMANDS[action[0]]], np.float32)
        return box_action(action, (1,), " ('open', 'close', or a number: positive opens)")

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        return self.forward(self.parsed(action, env_ids), env_ids)

    def forward(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute finger positions for `'open'`, `'close'` or numbers `(1,)`, for several envs `(n, 1)`. ValueError."""
        if isinstance(action, str):
            action = self.parse_action([action])
        xp = self.arrays.xp
        positions = xp.where(self.arrays.asarray(action) > 0.0, self._open, self._closed)
        if env_ids is not ...:
            positions = xp.broadcast_to(positions, (len(env_ids), len(self._open)))
        return self.joint_subset.make_articulation_action(positions)

    @override
    def get_obs(self) -> dict[str, Any]:
        return {'gripper_pos': self.joint_subset.get_joint_positions()}

    @override
    def action_space(self) -> Space[Any]:
        return Box(-1.0, 1.0, (1,))
