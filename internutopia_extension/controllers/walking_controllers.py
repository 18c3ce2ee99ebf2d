"""Walking controllers of the built-in robots; those of humanoids also move the upper body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.util.arrays import to_host
from internutopia.util.log import warn_once
from internutopia_extension.configs.controllers import MoveBySpeedControllerCfg
from internutopia_extension.configs.joint_names import (
    ALIENGO_12,
    ALIENGO_GYM_12,
    G1_GYM,
    G1_SIM,
    GR1_54,
    H1_19,
    H1_GYM_19,
)
from internutopia_extension.controllers.move_by_speed_controller import MoveBySpeedController


class UpperBodyMoveBySpeedController(MoveBySpeedController):
    """Walking on the legs, with targets of the action for the joints above them.

    Action: forward, lateral [m/s], rotation speed [rad/s], then optionally the base height [m] and the targets of the
    joints `upper_joints` [rad]; None stands for the default of each: arms swing with the legs if the policy's do
    (`PolicyMetadata.mimic`). Targets of joints that the policy itself drives are passed over. The policies of this
    package walk at one height: another one is checked, a warning is logged once (on a device none), and nothing else
    happens.
    """

    upper_joints: ClassVar[Sequence[str]]
    upper_default: ClassVar[NDArray[np.float32]]
    default_height: ClassVar[float]

    def __init__(self, config: MoveBySpeedControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        arrays, columns = scene.world.arrays, self.columns_of(self.upper_joints, 'moves')
        # of the upper body's joints, those that the policy leaves alone
        driven = self.columns_of(self.policy.metadata.joint_names, 'drives')
        free = np.flatnonzero(~np.isin(columns, driven))
        self._free, self._upper = arrays.index(free), arrays.index(columns[free])
        follow = [] if self.mimic_joints is None else list(self.mimic_joints.configs)
        default = np.where(np.isin(self.upper_joints, follow), np.nan, self.upper_default).astype(np.float32)
        self._upper_default = arrays.asarray(default)

    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Return one env's action as `(4 + k,)`: speeds, height, upper-body targets."""
        if not isinstance(action, list | tuple | np.ndarray) or not 3 <= len(action) <= 5:
            raise ValueError(
                f'expected [{self.action_meaning}], then base height and {len(self.upper_joints)} upper-body joint '
                f'targets (optional), got {action!r}'
            )
        height = action[3] if len(action) > 3 and action[3] is not None else self.default_height
        if len(action) > 4 and action[4] is not None:
            upper = box_action(action[4], (len(self.upper_joints),), ' (upper-body joint targets)')
        else:
            upper = to_host(self._upper_default)
        return np.concatenate(
            [
                box_action(list(action[:3]), (3,), f' ({self.action_meaning})'),
                box_action([height], (1,), ' (base height)'),
                upper,
            ]
        )

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        """Compute joint targets for the action."""
        action = self.parsed(action, env_ids)
        rest = () if action.shape[-1] == 3 else (action[..., 3], action[..., 4:])  # envs that all gave speeds only
        return self.forward(action[..., 0], action[..., 2], action[..., 1], env_ids, *rest)

    def forward(
        self,
        forward_speed: Any = 0.0,
        rotation_speed: Any = 0.0,
        lateral_speed: Any = 0.0,
        env_ids: Any = ...,
        height: Any = None,
        upper: Any = None,
    ) -> ArticulationAction:
        """Compute joint targets for speeds, base height [m] and upper-body targets `(k,)` or `(n, k)` [rad]."""
        if (
            height is not None
            and not self._on_device
            and np.any(np.abs(np.asarray(height) - self.default_height) > 1e-3)
        ):
            warn_once(
                '%s: the policy walks at a fixed height of %g m; other heights are ignored',
                *(type(self).__name__, self.default_height),
            )
        rows = self._rows(env_ids)
        upper = self._upper_default if upper is None else self._robot_state.arrays.asarray(upper)
        super().forward(forward_speed, rotation_speed, lateral_speed, env_ids)
        xp, places, wanted = self._robot_state.xp, (rows[:, None], self._upper), upper[..., self._free]
        self._targets[places] = xp.where(xp.isnan(wanted), self._targets[places], wanted)
        return self._held_targets(rows)


@BaseController.register('H1MoveBySpeedController')
class H1MoveBySpeedController(MoveBySpeedController):
    """Walking controller of H1, with or without hands. Action: forward, lateral [m/s] and rotation speed [rad/s]."""

    batched = True
    joint_names_sim = H1_19
    joint_names_gym = H1_GYM_19


@BaseController.register('AliengoMoveBySpeedController')
class AliengoMoveBySpeedController(MoveBySpeedController):
    """Trotting controller of Aliengo. Action: forward, lateral [m/s] and rotation speed [rad/s]."""

    batched = True
    joint_names_sim = ALIENGO_12
    joint_names_gym = ALIENGO_GYM_12


@BaseController.register('G1MoveBySpeedController')
class G1MoveBySpeedController(UpperBodyMoveBySpeedController):
    """Walking controller of G1. The upper body is the yaw joint of the waist and both arms, 15 joints."""

    batched = True
    joint_names_sim = G1_SIM
    joint_names_gym = G1_GYM
    upper_joints = G1_GYM[12:]
    upper_default = np.zeros(15, np.float32)
    default_height = 0.74


@BaseController.register('GR1MoveBySpeedController')
class GR1MoveBySpeedController(UpperBodyMoveBySpeedController):
    """Walking controller of GR1. The upper body is waist, head, arms and hands, 42 joints; elbows bent by default."""

    batched = True
    upper_joints = GR1_54[12:]
    upper_default = np.array([-1.25 if 'elbow_pitch' in name else 0.0 for name in upper_joints], np.float32)
    default_height = 0.9
