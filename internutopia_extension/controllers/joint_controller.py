"""Joint controller: targets straight from the action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.controllers.actions import checks_as, stack_actions

if TYPE_CHECKING:
    import gymnasium


@BaseController.register('JointController')
class JointController(BaseController):
    """Controller that sets drive targets of the joints `config.joint_names`.

    Action: `[]` (no new command), `[positions]` or `[positions, velocities]`, each `(k,)` [rad or m, rad/s or m/s] in
    the order of `joint_names`, or None to leave them. `[None, velocities]` holds the current positions.
    """

    batched = True
    pure = True
    commands = 'drives'

    def __init__(self, config: JointControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.joint_subset = ArticulationSubset(robot.articulation, config.joint_names)

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
        """Compute joint targets of the action."""
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
        return self.joint_subset.make_articulation_action(joint_positions, joint_velocities)

    @override
    def action_space(self) -> gymnasium.Space[Any]:
        """`[positions]` within the joint limits; a joint without limits goes half a turn (or pi metres) each way."""
        from gymnasium.spaces import Box

        subset = self.joint_subset
        ranges = subset.articulation.view.joint_ranges[subset.joint_indices]
        low, high = np.where(np.isfinite(ranges), ranges, [-np.pi, np.pi]).astype(np.float32).T
        return Box(low[None], high[None])
